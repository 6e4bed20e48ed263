/* A world of NCCL's ranks: nodes, rings and trees on channels, and ops as programs of sends and
 * receives with real data. */
#pragma once

#include "cmocka-all.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../rng.h"
#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "wire/wire.h"

#define RANKS 24
#define NODES 10
#define CHANNELS 4
#define OPS 6

struct instr {
	uint32_t is_send, peer, reduces;
	uint64_t at, n; /* elements of the buffer */
	bool divides;   /* its sender, before, for an average */
};

struct program {
	struct instr *of;
	uint32_t n, room, at;
};

struct op {
	uint32_t kind, algorithm, protocol, dtype, redop, root, n_channels;
	uint64_t count;               /* elements, as called */
	uint64_t elements;            /* of a buffer */
	uint64_t cap;                 /* elements of a chunk at most */
	uint64_t first[CHANNELS + 1]; /* elements of the call in each channel */
	uint64_t seq[RANKS];          /* as each rank counts */
	bool takes_part[RANKS];       /* all, but in sends and receives */
	struct program program[RANKS][CHANNELS];
	unsigned char *input[RANKS], *model[RANKS], *buffer[RANKS];
};

struct message {
	struct message *next;
	uint64_t op, index, bytes;
	bool is_identity;
	unsigned char *data;
};

struct pipe { /* from a rank to another on a channel */
	struct message *first, **last;
};

struct world {
	uint32_t n, n_nodes, n_channels, n_trees, n_ops;
	uint32_t named[RANKS]; /* what the job calls the nodes */
	uint32_t node[RANKS];  /* NCCL's numbers */
	bool real[NODES];
	bool has_bodies;
	uint32_t ring[CHANNELS][RANKS], place[CHANNELS][RANKS]; /* by place, by rank */
	uint32_t up[CHANNELS][NODES], down[CHANNELS][NODES][2]; /* ranks that have a tree's edges */
	struct op op[OPS];
	struct pipe pipe[RANKS][RANKS][CHANNELS];
	struct message *sent[RANKS][RANKS][CHANNELS], **last_sent[RANKS][RANKS][CHANNELS];
};
extern struct world w;

extern struct rng rng;
uint32_t pick(uint32_t n);                 /* below @n */
uint64_t up_to(uint64_t n, uint64_t unit); /* @n in whole units */

/* --- world.c */

bool is_real(uint32_t rank);
bool is_net(uint32_t a, uint32_t b);
bool is_direct(const struct op *op);
size_t element(const struct op *op);
void set_identity(const struct op *op, void *to, uint64_t n);
void make_nodes(void);
void make_channels(void);

/* --- programs.c */

/* What NCCL does in an op, as programs of all ranks. */
void make_op(struct op *op, uint32_t number);

/* --- pipes.c */

/* How a protocol lays out so many elements. */
uint64_t wire_bytes(const struct op *op, uint64_t elements);
void to_wire(const struct op *op, const unsigned char *from, uint64_t bytes, unsigned char *to,
	     uint64_t n);
void from_wire(const struct op *op, const unsigned char *from, unsigned char *to, uint64_t bytes);
/* @data NULL: none. */
struct message *new_message(const unsigned char *data, uint64_t bytes);
void free_message(struct message *m);
void put(struct pipe *p, struct message *m);
struct message *get(struct pipe *p);
/* Of elements; NCCL's average is a sum until it is divided. */
void reduce(const struct op *op, void *to, const void *data, uint64_t n);
/* What @in does before it sends. */
void prepare(const struct op *op, const struct instr *in, unsigned char *buffer);
/* What @in does with what came. */
void receive(const struct op *op, const struct instr *in, unsigned char *buffer,
	     const unsigned char *data);

/* --- model.c */

/* The slow model: everybody, op after op. What each rank sends stays in w.sent. */
void run_model(void);
