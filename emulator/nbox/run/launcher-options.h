/* The options of the launchers that nbox knows, as far as they speak of machines: one
 * table a launcher, and the reading of one option as that launcher would. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum launcher_kind {
	LAUNCHER_NONE, /* a plain program: nbox starts the ranks */
	LAUNCHER_TORCHRUN,
	LAUNCHER_ACCELERATE,
	LAUNCHER_DEEPSPEED,
	LAUNCHER_SRUN,
	LAUNCHER_MPIRUN,
};

/* What an option is about. */
enum launcher_class {
	LAUNCHER_KEEP,
	LAUNCHER_NODES,    /* how many machines */
	LAUNCHER_TOTAL,    /* processes on all of them */
	LAUNCHER_PROCS,    /* processes on each */
	LAUNCHER_RANK,     /* which machine this is */
	LAUNCHER_ADDR,     /* of another machine: makes it a line for a cluster */
	LAUNCHER_HOSTS,    /* a list of machines */
	LAUNCHER_HOSTFILE, /* a file with one machine a line */
	LAUNCHER_RDZV,     /* how machines meet: goes, when the line is for a cluster */
	LAUNCHER_SLOTS,    /* deepspeed --include HOST:0,1: this machine, or others */
	LAUNCHER_MAP,      /* mpirun --map-by ppr:N:node */
	LAUNCHER_STANDALONE,
	LAUNCHER_CLASSES
};

/* One option with its value. */
struct launcher_found {
	enum launcher_class class;
	const char *value; /* NULL: none */
	size_t n_words;
};

struct launcher;
enum launcher_kind launcher_kind(const struct launcher *l);
const char *launcher_name(const struct launcher *l);

/* The launcher that @words run, also behind `env A=1` and `python -m`. *ret_at: the first word
 * behind it. Return: NULL when there is none. */
const struct launcher *launcher_find(char *const *words, size_t *ret_at);
/* The option at words[0]. Return: false when it is none: here the program begins. */
bool launcher_take(const struct launcher *l, char *const *words, struct launcher_found *ret);
