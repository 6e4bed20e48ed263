/* See worlds.h. */
#include "nbox/fit/worlds.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "nbox/ask/ask.h"
#include "nbox/doctor/paths.h"

#define LATENCY_MOST 12

struct world {
	uint32_t n_ranks, n_nodes;
	struct config *config; /* owned; its fabric is changed for each question */
	struct fabric_class classes[FABRIC_CLASSES_MAX]; /* as they were */
	struct fabric_network network;
};

struct worlds {
	struct world *list; /* owned */
	size_t n;
	struct paths paths;
};

static int set_number(struct config *c, enum option_id id, uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return config_set(c, id, SOURCE_FLAG, text);
}

static int open_world(const char *fabric, const struct sample *s, struct world *ret,
		      struct err *err)
{
	struct config *c;
	int r;

	if (s->n_ranks % s->n_nodes)
		return err_set(err, EINVAL, "%u ranks on %u nodes: as many on each are expected",
			       s->n_ranks, s->n_nodes);
	r = config_new(&c);
	if (r < 0)
		return err_set(err, -r, "out of memory");
	ret->n_ranks = s->n_ranks;
	ret->n_nodes = s->n_nodes;
	ret->config = c; /* freed with the others */
	r = config_set(c, CONFIG_FABRIC, SOURCE_FLAG, fabric);
	r = r < 0 ? r : config_set(c, CONFIG_MODEL, SOURCE_FLAG, "nccl");
	r = r < 0 ? r : set_number(c, CONFIG_NODES, s->n_nodes);
	r = r < 0 ? r : set_number(c, CONFIG_GPUS_PER_NODE, s->n_ranks / s->n_nodes);
	r = r < 0 ? r : config_finish(c, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < c->fabric->n_classes; i++)
		ret->classes[i] = c->fabric->classes[i];
	ret->network = c->fabric->network;
	return 0;
}

static struct world *find(const struct worlds *w, const struct sample *s)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->list[i].n_ranks == s->n_ranks && w->list[i].n_nodes == s->n_nodes)
			return &w->list[i];
	return NULL;
}

struct worlds *worlds_close(struct worlds *w)
{
	if (!w)
		return NULL;
	for (size_t i = 0; i < w->n; i++)
		config_free(w->list[i].config);
	free(w->list);
	free(w);
	return NULL;
}

int worlds_open(const char *fabric, const struct samples *samples, struct worlds **ret,
		struct err *err)
{
	struct worlds *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(err, ENOMEM, "out of memory");
	r = paths_find(&w->paths, PATHS_MODELS, err);
	for (size_t i = 0; r == 0 && i < samples->n; i++) {
		struct world *more;

		if (find(w, &samples->list[i]))
			continue;
		more = realloc(w->list, (w->n + 1) * sizeof(*more));
		if (!more) {
			r = err_set(err, ENOMEM, "out of memory");
			break;
		}
		w->list = more;
		more[w->n] = (struct world){.config = NULL};
		r = open_world(fabric, &samples->list[i], &more[w->n++], err);
	}
	if (r < 0)
		worlds_close(w);
	else
		*ret = w;
	return r;
}

static int change(struct world *w, const double factors[LINK_NUMBERS],
		  const struct residuals *residuals)
{
	struct fabric *f = w->config->fabric;
	struct fabric_residual *list = calloc(residuals->n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < residuals->n; i++)
		list[i] =
			(struct fabric_residual){residuals->list[i].kind, residuals->list[i].bytes,
						 residuals->list[i].factor};
	free(f->residuals);
	f->residuals = list;
	f->n_residuals = residuals->n;

	for (uint32_t i = 0; i < f->n_classes; i++) {
		const struct fabric_class *was = &w->classes[i];
		struct fabric_class *c = &f->classes[i];

		c->gpu_latency_ns = was->gpu_latency_ns * factors[LINK_GPU_LATENCY];
		c->gpu_efficiency = fabric_gpu_efficiency(was) * factors[LINK_GPU_BANDWIDTH];
		c->nic_efficiency = fabric_nic_efficiency(was) * factors[LINK_NIC_BANDWIDTH];
	}
	f->network.latency_ns = w->network.latency_ns * factors[LINK_NET_LATENCY];
	f->network.hop_latency_ns = w->network.hop_latency_ns * factors[LINK_HOP_LATENCY];
	return 0;
}

static int ask_one(struct ask *ask, const struct sample *s, double *ret_ns, struct err *err)
{
	enum coll_kind kind = (enum coll_kind)s->kind;
	uint32_t elem_bytes = 4;
	uint64_t bytes = ask_bytes(kind, (uint64_t)s->bytes, elem_bytes, s->n_ranks);
	struct answer answer;
	int r;

	if (!bytes) {
		elem_bytes = 1;
		bytes = ask_bytes(kind, (uint64_t)s->bytes, elem_bytes, s->n_ranks);
	}
	r = ask_op(ask, kind, bytes, elem_bytes, 0, &answer, err);
	if (r == 0)
		*ret_ns = answer.ns;
	return r;
}

int worlds_predict(void *worlds, const double factors[LINK_NUMBERS],
		   const struct residuals *residuals, const struct sample *samples, size_t n,
		   double *ret_ns, struct err *err)
{
	struct worlds *w = worlds;
	struct ask *ask = NULL;
	struct world *now = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct world *world = find(w, &samples[i]);

		if (world != now) {
			ask = ask_close(ask);
			r = change(world, factors, residuals);
			r = r < 0 ? r : ask_open(world->config, w->paths.models, &ask, err);
			now = world;
		}
		if (r == 0)
			r = ask_one(ask, &samples[i], &ret_ns[i], err);
	}
	ask_close(ask);
	return r;
}

void worlds_most(const struct worlds *w, double ret[LINK_NUMBERS])
{
	const struct world *any = w->list;

	ret[LINK_NET_LATENCY] = ret[LINK_HOP_LATENCY] = ret[LINK_GPU_LATENCY] = LATENCY_MOST;
	ret[LINK_NIC_BANDWIDTH] = ret[LINK_GPU_BANDWIDTH] = INFINITY;
	for (uint32_t i = 0; i < any->config->fabric->n_classes; i++) {
		const struct fabric_class *c = &any->classes[i];

		ret[LINK_NIC_BANDWIDTH] =
			fmin(ret[LINK_NIC_BANDWIDTH], 1 / fabric_nic_efficiency(c));
		ret[LINK_GPU_BANDWIDTH] =
			fmin(ret[LINK_GPU_BANDWIDTH], 1 / fabric_gpu_efficiency(c));
	}
}

struct fabric *worlds_fabric(struct worlds *w, const double factors[LINK_NUMBERS],
			     const struct residuals *residuals)
{
	struct world *largest = w->list;

	for (size_t i = 1; i < w->n; i++)
		if (w->list[i].n_nodes > largest->n_nodes)
			largest = &w->list[i];
	return change(largest, factors, residuals) < 0 ? NULL : largest->config->fabric;
}
