/* The command line of a launcher. nbox reads what it says of the cluster and takes those words out,
 * since nboxd plays the other nodes:
 *
 *   torchrun --nnodes=64 --node-rank=0 --rdzv-endpoint=head:29500 --nproc-per-node=8 t.py
 *   torchrun --nproc-per-node=8 --master-addr=127.0.0.1 --master-port=41327 t.py
 *
 * Known launchers are torchrun (python -m torch.distributed.run), accelerate launch, deepspeed,
 * srun and mpirun/mpiexec. Words that do not speak of nodes stay as they are. Pure functions: they
 * read no file but a --hostfile and print nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "nbox/run/launcher-options.h"

struct launcher_line {
	enum launcher_kind kind;
	const char *name;   /* as typed, without its folder; borrowed */
	uint32_t n_nodes;   /* machines; 0: not said */
	uint32_t n_procs;   /* on this one; 0: not said */
	uint32_t n_total;   /* on all of them; 0: not said */
	int64_t node_rank;  /* -1: not said */
	bool is_range;      /* --nnodes=MIN:MAX */
	bool has_cluster;   /* speaks of other machines: launcher_line_local() will change it */
	bool is_standalone; /* torchrun --standalone */
	char **words;       /* the command; NULL-terminated array, owned; words borrowed */
	uint8_t *class_of;  /* of each word, owned */
	size_t n_words, options_at; /* where new options may be put */
	size_t script_at;           /* the first word that is no option of the launcher */
};

/* @get: variables that launchers read their defaults from (as getenv()); never NULL.
 * Return: 0; -EINVAL a number is none, with the sentence; -ENOMEM. */
int launcher_line_read(char *const *command, const char *(*get)(const char *name),
		       struct launcher_line *ret, struct err *err);
void launcher_line_deinit(struct launcher_line *l);

/* Ranks that the line starts on one node. @n_nodes and @gpus: of the virtual cluster (0: not
 * said). Return: 0; -EINVAL with the sentence, also when it says nothing. */
int launcher_line_procs(const struct launcher_line *l, uint32_t n_nodes, uint32_t gpus,
			uint32_t n_devices, uint32_t *ret, struct err *err);

/* The command for this node alone. *ret_argv: NULL-terminated, one block, the caller's to
 * free(); *ret_changed: the sentence about it, or NULL where nothing was changed; the
 * caller's to free(). @port: free for the launcher's own rendezvous. @here: the name
 * of this machine for srun, or NULL. Return: 0 or -ENOMEM. */
int launcher_line_local(const struct launcher_line *l, uint32_t n_procs, int port, const char *here,
			char ***ret_argv, char **ret_changed);
