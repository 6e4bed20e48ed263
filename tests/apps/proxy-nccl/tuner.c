/* See impl.h: the tuner's plug-in, of version 5 alone, which NCCL 2.28 and 2.29 take. */
#include "nccl-plugin/tuner.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "impl.h"
#include "patches/records.h"
#include "wire.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct tuner_plugin_v5 *tuner;

/* As NCCL, which looks into the network's library last. */
static void load(int version)
{
	const char *own = getenv("NCCL_TUNER_PLUGIN"), *net = getenv("NCCL_NET_PLUGIN");
	const char *name = own ? own : net;
	void *library;

	if (tuner || !name || version < NCCL_CODE(2, 28, 0) || version >= NCCL_CODE(2, 30, 0))
		return;
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (library)
		tuner = dlsym(library, "ncclTunerPlugin_v5");
}

int tuner_init(ncclComm_t c)
{
	struct tuner_constants constants = {.base_us = {{0}}};
	struct tuner_domains domains = {(int)c->n_nodes, 1, 1};

	pthread_mutex_lock(&lock);
	load(c->version);
	pthread_mutex_unlock(&lock);
	if (!tuner)
		return 0;
	if (tuner->init(&c->tuner, c->hash, c->n_ranks, c->n_nodes, NULL, &domains, &constants))
		return wire_fail("the tuner %s does not begin", tuner->name);
	c->has_tuner = true;
	return 0;
}

void tuner_end(ncclComm_t c)
{
	if (c->has_tuner)
		tuner->destroy(c->tuner);
}

/* All that this NCCL can but LL128, which NCCL does not consider in host memory; cheapest what it
 * takes by itself. */
static void set_costs(const struct op *o, float costs[PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS])
{
	for (int a = 0; a < PLUGIN_N_ALGORITHMS; a++)
		for (int p = 0; p < PLUGIN_N_PROTOCOLS; p++) {
			bool is_there =
				a == PLUGIN_RING || (a == PLUGIN_TREE && o->kind == COLL_ALLREDUCE);

			costs[a][p] = is_there && p != PLUGIN_LL128 ? 2 : TUNER_IGNORED;
		}
	costs[o->algorithm][o->protocol] = 1;
}

int tuner_ask(struct op *o)
{
	static const int functions[COLL_KINDS] = {PLUGIN_ALLREDUCE, PLUGIN_ALLGATHER,
						  PLUGIN_REDUCESCATTER, PLUGIN_BROADCAST,
						  PLUGIN_REDUCE};
	bool is_shared = o->kind == COLL_ALLGATHER || o->kind == COLL_REDUCESCATTER;
	size_t bytes = o->count * dtype_bytes(o->dtype) * (is_shared ? o->comm->n_ranks : 1);
	float costs[PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS], least = 3;
	int n_channels = 0, r;

	if (!o->comm->has_tuner)
		return 0;
	set_costs(o, costs);
	r = tuner->get_info(o->comm->tuner, functions[o->kind], bytes, 1, (float **)costs,
			    PLUGIN_N_ALGORITHMS, PLUGIN_N_PROTOCOLS, 0, &n_channels);
	for (int a = 0; a < PLUGIN_N_ALGORITHMS; a++)
		for (int p = 0; p < PLUGIN_N_PROTOCOLS; p++)
			if (costs[a][p] >= 0 && costs[a][p] < least) {
				least = costs[a][p];
				o->algorithm = a;
				o->protocol = p;
			}
	if (n_channels && n_channels < o->n_channels)
		o->n_channels = n_channels;
	return r;
}
