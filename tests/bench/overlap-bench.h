/* What the parts of bench-overlap share: worlds, ops, scores and rows. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "contention/overlap.h"
#include "engine/delay.h"
#include "engine/usage-op.h"
#include "fabric/fabric.h"
#include "rng.h"

struct bench_output {
	FILE *json; /* or NULL */
	bool has_rows;
	bool is_verbose; /* print the sets that differ most */
};

struct bench_world {
	struct topology t;
	struct fabric *f;
	struct delay_chain *d;
};

struct bench_op {
	struct sched s;
	struct membership m;
	double solo_ns;
	struct usage *usage; /* a reference */
};

struct bench_score {
	double *values; /* owned */
	uint32_t n, capacity;
};

double bench_now_s(void);
_Noreturn void bench_fail(const char *what);

/* Of a preset, with the scheduler nccl and another network. */
struct bench_world bench_world(const char *preset, uint32_t nodes, enum fabric_network_kind kind,
			       double oversubscription);
void bench_world_end(struct bench_world *w);
static inline uint32_t bench_ranks(const struct bench_world *w)
{
	return w->t.n_nodes * w->t.gpus_per_node;
}

/* How long it takes alone, and what it puts on links. Return: false: it has no messages. */
bool bench_op(const struct bench_world *w, struct bench_op *ret, enum coll_kind kind,
	      uint64_t bytes, const struct membership *m);
void bench_usage(const struct bench_world *w, struct bench_op *o,
		 const struct usage_images *images);

void bench_note(struct bench_score *s, double v);
/* The value that the part @at of all, by size, does not exceed. */
double bench_at(struct bench_score *s, double at);
void bench_free(struct bench_score *s);
void bench_row(struct bench_output *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Microseconds: a line, and a row. */
void bench_cost_row(struct bench_output *out, const char *what, struct bench_score *s);

/* overlap-shares.c, overlap-messages.c, overlap-costs.c, overlap-iteration.c */
void bench_shares(struct bench_output *out);
void bench_rates(struct bench_output *out);
void bench_messages(struct bench_output *out);
void bench_costs(struct bench_output *out);
void bench_iteration(struct bench_output *out);
