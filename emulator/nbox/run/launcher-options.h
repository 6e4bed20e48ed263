/* The options of the launchers that nbox knows, as far as they speak of machines: one
 * table a launcher, and the reading of one option as that launcher would. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "nbox/run/launcher-line.h"

/* What an option is about. */
enum launch_class {
	LAUNCH_KEEP,
	LAUNCH_NODES,    /* how many machines */
	LAUNCH_TOTAL,    /* processes on all of them */
	LAUNCH_PROCS,    /* processes on each */
	LAUNCH_RANK,     /* which machine this is */
	LAUNCH_ADDR,     /* of another machine: makes it a line for a cluster */
	LAUNCH_HOSTS,    /* a list of machines */
	LAUNCH_HOSTFILE, /* a file with one machine a line */
	LAUNCH_RDZV,     /* how machines meet: goes, when the line is for a cluster */
	LAUNCH_SLOTS,    /* deepspeed --include HOST:0,1: this machine, or others */
	LAUNCH_MAP,      /* mpirun --map-by ppr:N:node */
	LAUNCH_STANDALONE,
	LAUNCH_CLASSES
};

/* One option with its value. */
struct launch_found {
	enum launch_class class;
	const char *value; /* NULL: none */
	size_t n_words;
};

struct launcher;
enum launch_kind launcher_kind(const struct launcher *l);
const char *launcher_name(const struct launcher *l);

/* The launcher that @words run, also behind `env A=1` and `python -m`. *ret_at: the first word
 * behind it. Return: NULL when there is none. */
const struct launcher *launcher_find(char *const *words, size_t *ret_at);
/* The option at words[0]. Return: false when it is none: here the program begins. */
bool launcher_take(const struct launcher *l, char *const *words, struct launch_found *ret);
