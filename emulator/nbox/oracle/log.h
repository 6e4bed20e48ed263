/* What NCCL logs of a communicator that it makes (NCCL_DEBUG=INFO, subsystems INIT, GRAPH and
 * TUNING), of 2.21 to 2.30. Lines that are not known are passed over. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "nccl/decisions.h"

#define NCCL_LOG_CHANNELS_MAX 64
#define NCCL_LOG_GPUS_MAX 64
#define NCCL_LOG_GRAPHS_MAX 16
#define NCCL_LOG_NONE (-2) /* -1 is NCCL's for "none" */

struct nccl_log_graph {
	int pattern; /* as NCCL numbers them: 1 balanced tree ... 4 ring, 5 nvls */
	int cross_nic, n_channels, same_channels;
	float bw_intra, bw_inter;
	char type_intra[8], type_inter[8];
};

/* Of the ranks that log: 0 .. NCCL_LOG_GPUS_MAX - 1, those of one node. */
struct nccl_log {
	int32_t n_ranks, n_nodes; /* 0: not told */
	int32_t n_channels, n_nvls_channels, n_p2p_channels, n_p2p_channels_per_peer; /* -1 */
	struct nccl_log_graph graphs[NCCL_LOG_GRAPHS_MAX]; /* of the first rank that logs */
	uint32_t n_graphs;
	int32_t ring_prev[NCCL_LOG_CHANNELS_MAX][NCCL_LOG_GPUS_MAX];
	int32_t ring_next[NCCL_LOG_CHANNELS_MAX][NCCL_LOG_GPUS_MAX];
	int32_t tree_up[NCCL_LOG_CHANNELS_MAX][NCCL_LOG_GPUS_MAX];
	int32_t tree_down[NCCL_LOG_CHANNELS_MAX][NCCL_LOG_GPUS_MAX][3];
	int32_t threads[N_ALGOS][N_PROTOS];      /* most that an op takes; 0: not told */
	int64_t thread_bytes[N_ALGOS][N_PROTOS]; /* a thread should have so many; 0: not told */
};

void nccl_log_parse(const char *text, size_t n, struct nccl_log *ret);
/* The last line that says what went wrong (WARN), else the last one, without NCCL's prefix.
 * Return: @buf. */
char *nccl_log_last(const char *text, char *buf, size_t size);
/* The most channels of an op, as NCCL has it from its threads and their bytes. Return:
 * DECISIONS_NOT_KNOWN where the log does not tell enough. */
int32_t nccl_log_channels(const struct nccl_log *l, uint32_t algo, uint32_t proto, uint64_t bytes);
