/* A decision file: what stock NCCL decides in communicators of the virtual size. `nbox oracle`
 * writes it, the model `nccl:decisions=FILE` reads it. A line is a comment (#), a head in brackets,
 * or `key = value` with bare numbers, whose units stand here:
 *
 *   format = 1
 *   nccl = 2.28.9
 *   date = 2026-11-24
 *   gpus = 8 x NVIDIA H100 80GB HBM3     of the node that it was made on
 *   made = on this machine               where and how the topology was had; free text
 *
 *   [comm]                               a communicator, each shape once
 *   ranks = 512                          a whole number for each node
 *   nodes = 64                           what NCCL calls a node
 *   channels = 16                        these four as NCCL's log tells them ("16 coll channels,
 *   nvls_channels = 16                   ... nvls channels, ... p2p channels, ... p2p channels per
 *   p2p_channels = 32                    peer"); - where it is not known
 *   p2p_channels_per_peer = 2
 *   graph ring = channels 8 bw_intra 45 bw_inter 45 type_intra nvl type_inter pxn pattern ring
 *                cross_nic 0 same_channels 1     on the same line
 *   order ring 0 = 0 7 6 5 4 3 2 1       of channel 0: the ranks of one node, as it visits them
 *   order tree 0 = 0 1 2 3 4 5 6 7
 *
 *   [cost allreduce]                     of the communicator above; two sizes or more, rising
 *   at 8 = tree/ll - of tree/ll 43.2 tree/ll128 51.25 ring/ll 901.5
 *   at 1048576 = tree/ll128 16 of tree/ll 317.09 tree/ll128 151.22 ring/ll 1016
 *
 * `at` has the bytes that NCCL tells its tuner (the larger of a rank's buffers), the algorithm and
 * protocol that NCCL takes, the most channels that it gives them (- where it is not known), and
 * NCCL's cost of each that it considers, in us. Graphs have their channels' bandwidths in GB/s, as
 * NCCL's search found them, and NCCL's words: no graph, no order and no kind of op must be there.
 * Floats are written so that they are the same when read: NCCL's near ties fall as NCCL's do. */
#ifndef NCCL_DECISIONS_H
#define NCCL_DECISIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tables.h"
#include "words.h"

#define DECISIONS_FORMAT 1
#define DECISIONS_BYTES_MAX (16u << 20) /* as a run keeps of such a file (config/kept-file.c) */
#define DECISIONS_TEXT 200
#define DECISIONS_SENTENCE 640
#define DECISIONS_LINE 2048 /* bytes of a line, less one */

#define DECISIONS_NOT_KNOWN (-1)

/* Words of a path's type; their numbers are those of NCCL 2.28 and of enum path_type. */
#define DECISIONS_PATHS "loc|nvl|nvb|c2c|pix|pxb|p2c|pxn|phb|sys|net|dis"
/* Of a graph's pattern, NCCL's numbers less 1. */
#define DECISIONS_PATTERNS "balanced-tree|split-tree|tree|ring|nvls|collnet-direct"
#define DECISIONS_PATTERN_TREE 2
/* Graphs have the numbers of enum algo, ALGO_TREE to ALGO_NVLS. */
#define DECISIONS_GRAPHS "tree|ring|collnetdirect|collnetchain|nvls"
#define N_DECISIONS_GRAPHS (ALGO_NVLS + 1)

struct decisions_graph {
	uint32_t n_channels; /* 0: the file has no such graph */
	float bw_intra, bw_inter;
	uint32_t type_intra, type_inter; /* numbers among DECISIONS_PATHS */
	uint32_t pattern;                /* number among DECISIONS_PATTERNS */
	uint32_t cross_nic, same_channels;
};

struct decisions_order {
	uint32_t graph, channel; /* ALGO_TREE, ALGO_RING */
	uint32_t n;
	uint16_t *ranks; /* owned; of one node, from 0 */
};

/* What NCCL decides of one size. */
struct decisions_point {
	uint64_t bytes;
	uint32_t algo, proto;        /* that it takes: the first of the cheapest */
	int32_t n_channels;          /* or DECISIONS_NOT_KNOWN */
	float us[N_ALGOS][N_PROTOS]; /* negative: not considered */
};

struct decisions_op {
	struct decisions_point *points; /* owned; bytes rise */
	size_t n;                       /* 0: the file has no such op; else >= 2 */
};

struct decisions_comm {
	uint32_t n_ranks, n_nodes;
	int32_t n_channels, n_nvls_channels, n_p2p_channels, n_p2p_channels_per_peer;
	struct decisions_graph graphs[N_DECISIONS_GRAPHS];
	struct decisions_order *orders; /* owned */
	size_t n_orders;
	struct decisions_op ops[N_COSTED]; /* by enum nbox_op_kind */
};

struct decisions {
	char nccl[24], date[16], gpus[DECISIONS_TEXT], made[DECISIONS_TEXT];
	struct decisions_comm *comms; /* owned */
	size_t n;
};

/* @file: for sentences. Return: 0; -1 with the sentence, "FILE:LINE: what, and what to do". *ret is
 * then as it was. */
int decisions_parse(const char *file, const char *text, size_t len, struct decisions *ret,
		    char sentence[DECISIONS_SENTENCE]);
/* The same of the file @path, whatever its size. */
int decisions_read(const char *path, struct decisions *ret, char sentence[DECISIONS_SENTENCE]);
void decisions_deinit(struct decisions *d);
/* The communicator of that shape; NULL: there is none. */
const struct decisions_comm *decisions_find(const struct decisions *d, uint32_t n_ranks,
					    uint32_t n_nodes);
/* "16 ranks on 2 nodes, 512 on 64, ...", cut short where it does not fit. Return: @buf. */
char *decisions_shapes(const struct decisions *d, char *buf, size_t size);

/* --- for who writes it ------------------------------------------------------------- */

/* What decisions_parse() reads again. */
void decisions_write(const struct decisions *d, FILE *to);
/* The number among DECISIONS_PATHS of the number @type that NCCL @version (2.28.9: 22809) has in a
 * graph; of what is beyond them the last. */
uint32_t decisions_path(int version, uint32_t type);

#endif
