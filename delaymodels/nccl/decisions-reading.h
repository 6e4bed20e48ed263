/* A decision file under way: decisions-read.c goes through its lines, decisions-lines.c takes what
 * a line says of a graph, an order or a size, decisions-words.c the words of a line. Here -1 is
 * returned with the sentence. @key and @what are for the sentence. */
#ifndef NCCL_DECISIONS_READING_H
#define NCCL_DECISIONS_READING_H

#include "decisions.h"

#define LOCAL_MAX 1024 /* ranks of a node */
#define CHANNELS_MAX 64

struct reading {
	const char *file;
	const char *p, *end;
	unsigned long line;
	struct decisions *to;
	struct decisions_comm *comm; /* the one under way; NULL: the head */
	struct decisions_op *op;     /* of it; NULL: none yet */
	unsigned int seen;           /* bits of what the head or the communicator had */
	char *sentence;
};

int reading_wrong(struct reading *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for one more of @size bytes in *items of @n; it doubles. */
int reading_grow(struct reading *r, void **items, size_t n, size_t size);
/* The next word of *text, which is moved behind it; "": there is none. */
char *reading_word(char **text);
/* The number of @word among @words ("a|b"). */
int reading_choice(struct reading *r, const char *key, const char *word, const char *words,
		   uint32_t *ret);
int reading_count(struct reading *r, const char *key, const char *word, uint64_t least,
		  uint64_t most, uint64_t *ret);
/* A number of channels, or "-". */
int reading_channels(struct reading *r, const char *key, const char *word, uint64_t least,
		     int32_t *ret);
/* From 0 to @most. */
int reading_float(struct reading *r, const char *key, const char *word, double most, float *ret);

/* What @what may stand below: the communicator's ranks and nodes are there. */
int reading_need_shape(struct reading *r, const char *what);
/* graph @name = "channels 8 bw_intra 45 ..." */
int reading_graph(struct reading *r, const char *name, char *value);
/* order "ring 0" = "0 7 6 5 4 3 2 1" */
int reading_order(struct reading *r, char *name, char *value);
/* at "1048576" = "tree/ll128 16 of tree/ll 317.09 ..." */
int reading_point(struct reading *r, const char *bytes, char *value);

#endif
