/* What NCCL's plug-ins of every kind share: results, the logger, and the numbers of functions,
 * algorithms and protocols. Declared for x86-64 and arm64, to be read beside NCCL's own headers;
 * all numbers hold for 2.21 to 2.30. A plug-in is a struct of functions under a name that ends in
 * its version (ncclNetPlugin_v11); NCCL takes the newest version that it knows. */
#pragma once

#include <stdint.h>

/* ncclResult_t; functions of plug-ins return int. */
enum plugin_result {
	PLUGIN_OK = 0,
	PLUGIN_SYSTEM_ERROR = 2,
	PLUGIN_INTERNAL_ERROR = 3,
	PLUGIN_INVALID_ARGUMENT = 4,
	PLUGIN_INVALID_USAGE = 5,
	PLUGIN_REMOTE_ERROR = 6,
};

enum plugin_level { PLUGIN_LEVEL_WARN = 2, PLUGIN_LEVEL_INFO = 3 };

/* whom a line of the log is of (NCCL_DEBUG_SUBSYS) */
enum plugin_subsystem { PLUGIN_INIT = 0x1, PLUGIN_NET = 0x10, PLUGIN_TUNING = 0x40 };

/* NCCL's logger, which lives as long as NCCL; it may be called by any thread. */
typedef void (*plugin_log_fn)(int level, unsigned long subsystems, const char *file, int line,
			      const char *format, ...);

/* Tells NCCL's profiler of an event of the network; @parent is isend's and irecv's. */
typedef int (*plugin_event_fn)(void **event, int type, void *parent, int64_t plugin, void *data);

/* ncclFunc_t; others (point-to-point) are never told to a tuner */
enum plugin_function {
	PLUGIN_BROADCAST,
	PLUGIN_REDUCE,
	PLUGIN_ALLGATHER,
	PLUGIN_REDUCESCATTER,
	PLUGIN_ALLREDUCE,
};

/* rows of a tuner's table; 2.21 and 2.22 have none for PAT */
enum plugin_algorithm {
	PLUGIN_TREE,
	PLUGIN_RING,
	PLUGIN_COLLNET_DIRECT,
	PLUGIN_COLLNET_CHAIN,
	PLUGIN_NVLS,
	PLUGIN_NVLS_TREE,
	PLUGIN_PAT,
	PLUGIN_N_ALGORITHMS,
};

/* its columns */
enum plugin_protocol { PLUGIN_LL, PLUGIN_LL128, PLUGIN_SIMPLE, PLUGIN_N_PROTOCOLS };
