/* NCCL's tuner, of versions 3 to 6: where a decision file (--model nccl:decisions=FILE) says what
 * NCCL takes on the virtual cluster, it has NCCL take that. To NCCL the cluster's NICs lie behind
 * host memory, so that by itself it takes other things. nboxd answers by the shape of the
 * communicator, the kind of op and its bytes alone, and tables are alike in all ranks of a
 * communicator: so all take the same. Without a file, or without plugin_start(), it leaves
 * everything to NCCL.
 *
 * It cannot have NCCL take an algorithm that NCCL does not consider here. LL128 is such a one,
 * since messages go by host memory: the lines of a GPU's kernel may be torn there. On the host CUDA
 * runtime a CPU's kernels look at each flag, and it has NCCL take it all the same. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl-plugin/tuner.h"
#include "nccl-plugin/words.h"
#include "schedule/coll.h"
#include "shim/gate/cuda-runtime.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/room.h"
#include "shim/progress/known.h"
#include "shim/progress/session.h"
#include "shim/progress/tune.h"

#define EXPORT __attribute__((visibility("default")))
#define ANSWERS 256 /* kept of a communicator, of 2^n; by what was asked */

/* A communicator's; NCCL calls with one thread at a time. */
struct context {
	plugin_log_fn log;
	uint32_t n_ranks, n_nodes;
	struct wire_tune answers[ANSWERS]; /* n_ranks 0: none */
};

/* --- NCCL is to take ------------------------------------------------------------------- */

/* What NCCL's network in host memory forbids, and kernels of a CPU do not mind. */
static bool is_forced(const struct wire_took *t)
{
	return t->protocol == PLUGIN_LL128 && cuda_runtime_is_host();
}

/* Once a process: the summary counts. */
static void say_left(const struct wire_tune *m)
{
	static atomic_flag is_said = ATOMIC_FLAG_INIT;
	struct wire_text text = {.code = 1}; /* any but 0 */

	if (atomic_flag_test_and_set(&is_said))
		return;
	snprintf(
		text.text, sizeof(text.text),
		"NCCL cannot be told to take %s %s here, as the decision file says of %s of %" PRIu64
		" bytes: %s. Its own choice stays, for this and others",
		plugin_algorithm_name(m->took.algorithm), plugin_protocol_name(m->took.protocol),
		coll_kind_name(m->kind), m->bytes,
		m->took.algorithm > PLUGIN_RING ? "full mode has rings and trees alone"
		: m->took.protocol == PLUGIN_LL128
			? "to NCCL the NICs are behind host memory, where a GPU's LL128 is not safe"
			: "NCCL does not consider it");
	known_send(NULL, WIRE_NOTE, &text, sizeof(text));
}

static void take(const struct wire_tune *m, float *costs, int n_algorithms, int n_protocols,
		 int *n_channels)
{
	const struct wire_took *t = &m->took;
	float *cost;

	if (t->algorithm > PLUGIN_RING || (int)t->algorithm >= n_algorithms ||
	    (int)t->protocol >= n_protocols) {
		say_left(m);
		return;
	}
	cost = &costs[t->algorithm * (uint32_t)n_protocols + t->protocol];
	if (*cost < 0 && !is_forced(t)) {
		say_left(m);
		return;
	}
	*cost = 0;
	*n_channels = (int)t->n_channels;
}

/* --- what ------------------------------------------------------------------------------ */

static int kind_of(int function)
{
	static const int kinds[] = {
		[PLUGIN_BROADCAST] = COLL_BROADCAST,         [PLUGIN_REDUCE] = COLL_REDUCE,
		[PLUGIN_ALLGATHER] = COLL_ALLGATHER,         [PLUGIN_ALLREDUCE] = COLL_ALLREDUCE,
		[PLUGIN_REDUCESCATTER] = COLL_REDUCESCATTER,
	};

	return function >= 0 && function <= PLUGIN_ALLREDUCE ? kinds[function] : -1;
}

static struct wire_tune *slot_of(struct context *c, uint32_t kind, uint64_t bytes)
{
	return &c->answers[(bytes * WIRE_KINDS_TUNED + kind) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
}

static int tune(struct context *c, int function, size_t bytes, float *costs, int n_algorithms,
		int n_protocols, int *n_channels)
{
	int kind = kind_of(function);
	struct wire_tune *known, m;
	struct err err = {""};

	if (!c || kind < 0)
		return PLUGIN_OK;
	m = (struct wire_tune){.n_ranks = c->n_ranks,
			       .n_nodes = c->n_nodes,
			       .kind = (uint32_t)kind,
			       .bytes = bytes};
	known = slot_of(c, m.kind, bytes);
	if (!known->n_ranks || known->kind != m.kind || known->bytes != bytes) {
		if (tune_ask(&m, &err) < 0) {
			/* other ranks may know better: none may choose for itself */
			if (c->log)
				c->log(PLUGIN_LEVEL_WARN, PLUGIN_TUNING, __FILE__, __LINE__,
				       "TUNER/" PLUGIN_NAME ": %s", err.text);
			return PLUGIN_SYSTEM_ERROR;
		}
		*known = m;
	}
	if (known->took.n_channels)
		take(known, costs, n_algorithms, n_protocols, n_channels);
	return PLUGIN_OK;
}

/* NCCL opens libnbox.so as both. */
static bool is_ours(void)
{
	const char *tuner = getenv("NCCL_TUNER_PLUGIN"), *net = getenv("NCCL_NET_PLUGIN");

	return tuner && net && !strcmp(tuner, net);
}

int plugin_channels(const struct comm *c, uint32_t *ret, struct err *err)
{
	uint32_t per_node = c->ready.ranks_per_node;
	struct wire_tune m = {.n_ranks = c->n_ranks,
			      .n_nodes = c->n_ranks / per_node,
			      .kind = COLL_ALLREDUCE};
	int r;

	*ret = 0;
	if (!session_welcome()->tunes || c->n_ranks < 2 || c->n_ranks % per_node || !is_ours())
		return 0;
	r = tune_ask(&m, err);
	*ret = r < 0 ? 0 : m.n_of_comm;
	return r;
}

/* --- the tables -------------------------------------------------------------------------- */

static int init(size_t n_ranks, size_t n_nodes, plugin_log_fn log, void **ret_context)
{
	struct context *c;

	*ret_context = NULL;
	if (!room_is_open() || !session_welcome()->tunes || n_ranks < 2 || n_ranks > WIRE_WORLD_MAX)
		return PLUGIN_OK;
	c = calloc(1, sizeof(*c));
	if (!c)
		return PLUGIN_SYSTEM_ERROR;
	c->log = log;
	c->n_ranks = (uint32_t)n_ranks;
	c->n_nodes = (uint32_t)n_nodes;
	*ret_context = c;
	return PLUGIN_OK;
}

static int init_v5(void **ret_context, uint64_t comm, size_t n_ranks, size_t n_nodes,
		   plugin_log_fn log, struct tuner_domains *domains,
		   struct tuner_constants *constants)
{
	(void)comm;
	(void)domains;
	(void)constants;
	return init(n_ranks, n_nodes, log, ret_context);
}

static int destroy(void *context)
{
	free(context);
	return PLUGIN_OK;
}

static int info_v3(void *context, int function, size_t bytes, int n_ops, float **costs,
		   int n_algorithms, int n_protocols, int *n_channels)
{
	(void)n_ops;
	return tune(context, function, bytes, (float *)costs, n_algorithms, n_protocols,
		    n_channels);
}

static int info_v4(void *context, int function, size_t bytes, int n_ops, float **costs,
		   int n_algorithms, int n_protocols, int is_registered, int *n_channels)
{
	(void)is_registered;
	return info_v3(context, function, bytes, n_ops, costs, n_algorithms, n_protocols,
		       n_channels);
}

EXPORT struct tuner_plugin_v3 ncclTunerPlugin_v3 = {PLUGIN_NAME, init, info_v3, destroy};
EXPORT struct tuner_plugin_v4 ncclTunerPlugin_v4 = {PLUGIN_NAME, init, info_v4, destroy};
EXPORT struct tuner_plugin_v5 ncclTunerPlugin_v5 = {PLUGIN_NAME, init_v5, info_v4, destroy};
EXPORT struct tuner_plugin_v6 ncclTunerPlugin_v6 = {PLUGIN_NAME, init_v5, info_v4, destroy, NULL};
