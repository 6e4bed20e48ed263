/* NCCL's tuner, of all versions: it keeps what NCCL tells it of each collective, and changes
 * nothing. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nccl-plugin/tuner.h"
#include "oracle-plugin/oracle-plugin.h"

#define EXPORT __attribute__((visibility("default")))
#define NAME "nbox"

struct context { /* one rank's communicator; one thread at a time, by NCCL */
	uint64_t comm;
	unsigned number;
	size_t n_ranks, n_nodes;
	bool was_asked; /* version 2: the first question of two */
};

static struct {
	pthread_mutex_t lock;
	bool stops, has_constants;
	unsigned n_contexts;
	uint64_t n_tables;
	struct tuner_constants constants;
	struct tuner_domains domains;
	struct nbox_oracle_table tables[NBOX_ORACLE_TABLES_KEPT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int make(uint64_t comm, size_t n_ranks, size_t n_nodes, void **ret_context)
{
	struct context *c = malloc(sizeof(*c));

	if (!c)
		return PLUGIN_SYSTEM_ERROR;
	pthread_mutex_lock(&kept.lock);
	*c = (struct context){.comm = comm,
			      .number = kept.n_contexts++,
			      .n_ranks = n_ranks,
			      .n_nodes = n_nodes};
	pthread_mutex_unlock(&kept.lock);
	*ret_context = c;
	return PLUGIN_OK;
}

static int init(size_t n_ranks, size_t n_nodes, plugin_log_fn log, void **ret_context)
{
	(void)log;
	return make(0, n_ranks, n_nodes, ret_context);
}

static int init_v5(void **ret_context, uint64_t comm, size_t n_ranks, size_t n_nodes,
		   plugin_log_fn log, struct tuner_domains *domains,
		   struct tuner_constants *constants)
{
	(void)log;
	pthread_mutex_lock(&kept.lock);
	kept.constants = *constants;
	kept.domains = *domains;
	kept.has_constants = true;
	pthread_mutex_unlock(&kept.lock);
	return make(comm, n_ranks, n_nodes, ret_context);
}

static int destroy(void *context)
{
	free(context);
	return PLUGIN_OK;
}

/* Numbers @t and keeps it. Return: enum plugin_result for NCCL. */
static int keep(struct nbox_oracle_table *t, const struct context *c)
{
	bool stops;

	t->comm = c->comm;
	t->context = c->number;
	t->n_ranks = c->n_ranks;
	t->n_nodes = c->n_nodes;
	pthread_mutex_lock(&kept.lock);
	t->number = kept.n_tables++;
	kept.tables[t->number % NBOX_ORACLE_TABLES_KEPT] = *t;
	stops = kept.stops;
	pthread_mutex_unlock(&kept.lock);
	return stops ? PLUGIN_REMOTE_ERROR : PLUGIN_OK; /* NCCL gives none such here itself */
}

static int info_v2(void *context, int function, size_t bytes, int has_collnet, int has_nvls,
		   int n_ops, int *algorithm, int *protocol, int *n_channels)
{
	struct context *c = context;
	struct nbox_oracle_table t = {
		.plugin_version = 2,
		.function = function,
		.bytes = bytes,
		.n_ops = n_ops,
		.has_collnet = has_collnet,
		.has_nvls = has_nvls,
	};
	bool is_second;

	(void)algorithm;
	(void)protocol;
	(void)n_channels;
	/* NCCL 2.21 asks about a collective twice, and prints its choice in between. */
	pthread_mutex_lock(&kept.lock);
	is_second = kept.stops && c->was_asked;
	c->was_asked = kept.stops && !c->was_asked;
	pthread_mutex_unlock(&kept.lock);
	if (is_second)
		return PLUGIN_REMOTE_ERROR;
	keep(&t, c);
	return PLUGIN_OK;
}

static int info(const struct context *c, struct nbox_oracle_table *t, float *costs,
		int n_algorithms, int n_protocols)
{
	/* A later NCCL may know more of either. */
	for (int a = 0; a < PLUGIN_N_ALGORITHMS; a++)
		for (int p = 0; p < PLUGIN_N_PROTOCOLS; p++)
			t->us[a][p] = a < n_algorithms && p < n_protocols
					      ? costs[a * n_protocols + p]
					      : TUNER_IGNORED;
	t->has_costs = true;
	t->n_algorithms = n_algorithms;
	return keep(t, c);
}

static int info_v3(void *context, int function, size_t bytes, int n_ops, float **costs,
		   int n_algorithms, int n_protocols, int *n_channels)
{
	struct nbox_oracle_table t = {.plugin_version = 3,
				      .function = function,
				      .bytes = bytes,
				      .n_ops = n_ops};

	(void)n_channels;
	return info(context, &t, (float *)costs, n_algorithms, n_protocols);
}

static int info_since_v4(int version, void *context, int function, size_t bytes, int n_ops,
			 float **costs, int n_algorithms, int n_protocols, int is_registered)
{
	struct nbox_oracle_table t = {.plugin_version = version,
				      .function = function,
				      .bytes = bytes,
				      .n_ops = n_ops,
				      .is_registered = is_registered};

	return info(context, &t, (float *)costs, n_algorithms, n_protocols);
}

#define INFO(version)                                                                    \
	static int info_v##version(void *context, int function, size_t bytes, int n_ops, \
				   float **costs, int n_algorithms, int n_protocols,     \
				   int is_registered, int *n_channels)                   \
	{                                                                                \
		(void)n_channels;                                                        \
		return info_since_v4(version, context, function, bytes, n_ops, costs,    \
				     n_algorithms, n_protocols, is_registered);          \
	}
INFO(4)
INFO(5)
INFO(6)

EXPORT struct tuner_plugin_v2 ncclTunerPlugin_v2 = {NAME, init, info_v2, destroy};
EXPORT struct tuner_plugin_v3 ncclTunerPlugin_v3 = {NAME, init, info_v3, destroy};
EXPORT struct tuner_plugin_v4 ncclTunerPlugin_v4 = {NAME, init, info_v4, destroy};
EXPORT struct tuner_plugin_v5 ncclTunerPlugin_v5 = {NAME, init_v5, info_v5, destroy};
EXPORT struct tuner_plugin_v6 ncclTunerPlugin_v6 = {NAME, init_v5, info_v6, destroy, NULL};

EXPORT void nbox_oracle_stop_ops(bool is_on)
{
	pthread_mutex_lock(&kept.lock);
	kept.stops = is_on;
	pthread_mutex_unlock(&kept.lock);
}

EXPORT uint64_t nbox_oracle_tables(void)
{
	uint64_t n;

	pthread_mutex_lock(&kept.lock);
	n = kept.n_tables;
	pthread_mutex_unlock(&kept.lock);
	return n;
}

EXPORT int nbox_oracle_table(uint64_t number, struct nbox_oracle_table *ret)
{
	int r = 0;

	pthread_mutex_lock(&kept.lock);
	if (number >= kept.n_tables)
		r = -ENOENT;
	else if (kept.n_tables - number > NBOX_ORACLE_TABLES_KEPT)
		r = -ESTALE;
	else
		*ret = kept.tables[number % NBOX_ORACLE_TABLES_KEPT];
	pthread_mutex_unlock(&kept.lock);
	return r;
}

EXPORT int nbox_oracle_constants(struct tuner_constants *ret, struct tuner_domains *ret_domains)
{
	int r = -ENOENT;

	pthread_mutex_lock(&kept.lock);
	if (kept.has_constants) {
		*ret = kept.constants;
		*ret_domains = kept.domains;
		r = 0;
	}
	pthread_mutex_unlock(&kept.lock);
	return r;
}
