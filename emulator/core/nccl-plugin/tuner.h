/* NCCL's plug-in of tuners, versions 2 to 6: NCCL 2.21 takes ncclTunerPlugin_v2, 2.22 and 2.23
 * v3, 2.24 to 2.27 v4, 2.28 and 2.29 v5, 2.30 v6. All functions return enum plugin_result.
 *
 * init and destroy are called once a communicator; get_info by the thread that ends a group, for
 * each of its collectives that is decided on (several of one kind and about one size are one). An
 * error of get_info fails the group, before anything is connected or launched. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "nccl-plugin/plugin.h"

#define TUNER_IGNORED -1.0f /* in a table: cannot be taken */

/* All of NCCL's tables of costs, as it will use them; may be changed in init. */
struct tuner_constants {
	double base_us[PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS];
	double hop_us[3][PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS]; /* NVLink, PCI, network */
	/* GB/s by kind of GPU (Volta, Ampere, Hopper, Blackwell), and for 1, 2, 4 and more nodes;
	 * all but the first a channel */
	double ll_max[4][3];
	double ring_ll128[4][3];
	double tree_ll128[4][3];
	double tree[4][3];
	double nvls_tree[4][3];
};

struct tuner_domains { /* of NVLink */
	int n_domains, n_ranks_min, n_ranks_max;
};

struct tuner_plugin_v2 {
	const char *name;
	int (*init)(size_t n_ranks, size_t n_nodes, plugin_log_fn log, void **ret_context);
	/* sees no costs; outputs that stay as they are leave it to NCCL */
	int (*get_info)(void *context, int function, size_t bytes, int has_collnet, int has_nvls,
			int n_ops, int *algorithm, int *protocol, int *n_channels);
	int (*destroy)(void *context);
};

struct tuner_plugin_v3 {
	const char *name;
	int (*init)(size_t n_ranks, size_t n_nodes, plugin_log_fn log, void **ret_context);
	/* @costs: us, n_algorithms rows of n_protocols floats, one behind the other (it is declared
	 * as if it pointed to rows); *n_channels: 0, or what NCCL is to take */
	int (*get_info)(void *context, int function, size_t bytes, int n_ops, float **costs,
			int n_algorithms, int n_protocols, int *n_channels);
	int (*destroy)(void *context);
};

struct tuner_plugin_v4 {
	const char *name;
	int (*init)(size_t n_ranks, size_t n_nodes, plugin_log_fn log, void **ret_context);
	int (*get_info)(void *context, int function, size_t bytes, int n_ops, float **costs,
			int n_algorithms, int n_protocols, int is_registered, int *n_channels);
	int (*destroy)(void *context);
};

struct tuner_plugin_v5 {
	const char *name;
	int (*init)(void **ret_context, uint64_t comm, size_t n_ranks, size_t n_nodes,
		    plugin_log_fn log, struct tuner_domains *domains,
		    struct tuner_constants *constants);
	int (*get_info)(void *context, int function, size_t bytes, int n_ops, float **costs,
			int n_algorithms, int n_protocols, int is_registered, int *n_channels);
	int (*destroy)(void *context);
};

struct tuner_plugin_v6 {
	const char *name;
	int (*init)(void **ret_context, uint64_t comm, size_t n_ranks, size_t n_nodes,
		    plugin_log_fn log, struct tuner_domains *domains,
		    struct tuner_constants *constants);
	int (*get_info)(void *context, int function, size_t bytes, int n_ops, float **costs,
			int n_algorithms, int n_protocols, int is_registered, int *n_channels);
	int (*destroy)(void *context);
	/* or NULL; called where a launch is planned, never where a group is simulated */
	int (*get_chunk)(void *context, int function, size_t bytes, int algorithm, int protocol,
			 int n_channels, size_t *chunk_bytes);
};
