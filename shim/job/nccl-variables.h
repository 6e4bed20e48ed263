/* NCCL's variables in a process whose NCCL runs at the virtual size (--nccl full). They let NCCL
 * find its plug-in, which is libnbox.so itself, and turn off what would pass by it, or what it
 * cannot tell apart. NCCL reads them when it makes its first communicator. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NCCL_VARIABLES_MAX 24

struct nccl_variables_input {
	const char *(*get)(void *ctx, const char *name); /* as getenv() */
	void *ctx;
	const char *self; /* path of libnbox.so; NULL: unknown */
	int node;         /* of this process; -1: unknown */
	int version;      /* of NCCL, as ncclGetVersion() tells it; 0: unknown */
	bool tunes;       /* a decision file says what NCCL is to take */
};

struct nccl_variables {
	uint32_t n;
	struct {
		const char *name, *text; /* @text: NULL: @number */
		char number[16];
	} sets[NCCL_VARIABLES_MAX];
	/* for the run's summary: what of the user's is not as it was; "": nothing */
	char note[480];
};

/* Decides what is to be set, without side effects. Deciding again on the result gives nothing. */
void nccl_variables_decide(const struct nccl_variables_input *in, struct nccl_variables *ret);

/* In the constructor, where NBOX_NCCL_MODE says full: before there are threads. */
void nccl_variables_set_early(void);
/* Before the first communicator where nboxd says full: what is not set yet. The node tells NCCL
 * which processes are on one host, also where nodes are processes of one machine. */
void nccl_variables_set(int node, int version, bool tunes);
/* Return: the note; "" where nothing is to be said. */
const char *nccl_variables_note(void);
