/* What nbox and nbox-oracle say to each other: lines of text over one socket (descriptor
 * ORACLE_FD of nbox-oracle). nbox asks, nbox-oracle answers each line with one:
 *
 *   (started)                  ready VERSION GPUS PATH<tab>NAME     of NCCL: its version's number
 *                              and file; the first GPU's name, where it is known
 *   device NAME GUID PORT MBPS LATENCY_US COMMS GDR
 *                              device                      a NIC of nbox's network, before a world
 *   world RANKS GPUS ID        world WALL_NS RSS_BYTES GPU_BYTES    a communicator of that id (hex)
 *                              is made; ranks 0 .. GPUS-1 of it are this process's GPUs
 *   ask OP BYTES               costs OP BYTES ALGOS PROTOS C...     NCCL's costs in us, by
 * algorithm and protocol as NCCL counts them; BYTES as NCCL counts them, too none OP BYTES the op
 * has no element for each rank end                        end WALL_NS CONNECTIONS     of the
 * communicator; made over nbox's network until now
 *
 * Instead of any answer: failed SENTENCE, behind which nbox-oracle ends. It ends where its socket
 * is closed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ORACLE_FD 3
#define ORACLE_LOG_FD 4 /* NCCL's own log goes there, by NCCL_DEBUG_FILE */
#define ORACLE_LINE_MAX 4096
#define ORACLE_ALGOS_MAX 16
#define ORACLE_PROTOS_MAX 8

/* As NCCL numbers them (ncclFunc_t), in all versions that have a tuner. */
enum oracle_op {
	ORACLE_BROADCAST,
	ORACLE_REDUCE,
	ORACLE_ALLGATHER,
	ORACLE_REDUCESCATTER,
	ORACLE_ALLREDUCE,
	ORACLE_OPS
};
extern const char *const oracle_op_names[ORACLE_OPS];

struct oracle_costs {
	enum oracle_op op;
	uint64_t bytes;
	uint32_t n_algos, n_protos;
	float us[ORACLE_ALGOS_MAX * ORACLE_PROTOS_MAX]; /* [algorithm * n_protos + protocol];
							   negative: cannot be */
};

/* "costs ...", without the newline. Return: as snprintf(). */
int oracle_costs_print(const struct oracle_costs *c, char *buf, size_t size);
/* Return: 0; -EPROTO it is no such line. */
int oracle_costs_parse(const char *line, struct oracle_costs *ret);
