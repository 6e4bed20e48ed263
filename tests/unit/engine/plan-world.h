/* A cluster over whose fabric a scheduler plans ops. Arguments of its tests: the folders of the
 * models and of the test's scheduler. */
#pragma once

#include "cmocka-all.h"
#include "engine/solve.h"
#include "fabric/fabric.h"

static const char *dirs[3];

static inline void take_dirs(int argc, char **argv)
{
	for (int i = 0; i < 2 && i + 1 < argc; i++)
		dirs[i] = argv[i + 1];
}

struct world {
	struct topology t;
	struct membership m;
	struct fabric *f;
	struct delay_chain *d;
};

static inline void world_end(struct world *w)
{
	delay_free(w->d);
	fabric_free(w->f);
}

static inline struct world world_of(const char *preset, uint32_t nodes, uint32_t gpus,
				    const char *model, const char *what_if)
{
	struct world w = {.t = {.n_nodes = nodes, .gpus_per_node = gpus, {1, 1}, {1, 1}, 0}};
	struct err err = {""};

	if (fabric_preset(preset, nodes, gpus, &w.f, &err) ||
	    delay_open(model, NULL, &what_if, what_if != NULL, &w.t, dirs, 1, &w.d, &err))
		fail_msg("%s", err.text);
	w.t.gpus_per_node = w.f->gpus_per_node;
	w.m = (struct membership){.n_ranks = topology_world(&w.t), .stride = 1};
	delay_set_fabric(w.d, w.f);
	return w;
}

static inline struct sched op_of(const struct world *w, enum coll_kind kind, uint64_t bytes)
{
	struct sched s = {.kind = kind,
			  .algo = sched_default_algo(kind),
			  .n_ranks = w->m.n_ranks,
			  .ranks_per_node = w->m.table ? 1 : w->t.gpus_per_node,
			  .n_channels = 1,
			  .elem_bytes = 4,
			  .bytes = bytes};

	assert_int_equal(sched_init(&s, NULL), 0);
	return s;
}

static inline struct timing solve_it(const struct world *w, const struct sched *s, int force_sim)
{
	struct timing t = {0};
	struct err err = {""};

	if (solve(s, &w->t, &w->m, w->d, NULL, 0, force_sim, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

static inline double time_of(const struct world *w, enum coll_kind kind, uint64_t bytes)
{
	struct sched s = op_of(w, kind, bytes);

	return solve_it(w, &s, 0).end_ns;
}

static const enum coll_kind kinds[] = {COLL_ALLREDUCE,     COLL_ALLREDUCE, COLL_ALLGATHER,
				       COLL_REDUCESCATTER, COLL_BROADCAST, COLL_REDUCE,
				       COLL_GATHER,        COLL_SCATTER};
