/* See overlap-bench.h. One iteration of 16,384 ranks: tensor parallelism of 8 in a node, 16
 * pipeline stages, data parallelism of 128, over a leaf-spine network of 2:1. Each stage has its
 * microbatches forward, then backward; its tensor-parallel all-reduces, its sends to the next stage
 * and its gradients' buckets, which go beside the backward pass, are ops that share links with
 * those of all other stages. All groups of a kind play at the same time: one op with images. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "overlap-bench.h"

enum { TP = 8, PP = 16, DP = 128, LAYERS = 6, BATCHES = 32 };
enum { RANKS = TP * PP * DP };
#define LAYER_NS 4e6 /* of computation, forward; backward twice */

enum shape { SHAPE_TP, SHAPE_FORWARD, SHAPE_BACKWARD, SHAPE_GATHER, SHAPE_SCATTER, SHAPES };

struct played {
	double end_ns;
};

struct stage {
	struct bench_op ops[SHAPES];
	uint32_t n_done; /* steps of its program */
	double ready_ns; /* where its computation is */
	struct played *last, *last_bucket;
	struct played *forward[BATCHES], *backward[BATCHES]; /* what it sent */
};

static struct stage stages[PP];
static struct played *played;
static uint32_t n_played;

struct images {
	uint32_t first, step, n_ranks, stride, n;
	uint32_t i; /* of the last one that was told */
};

static int next_image(void *ctx, struct membership *ret)
{
	struct images *m = ctx;

	if (++m->i >= m->n)
		return 1;
	*ret = (struct membership){.n_ranks = m->n_ranks,
				   .base = m->first + m->i * m->step,
				   .stride = m->stride};
	return 0;
}

static void make_op(const struct bench_world *w, struct bench_op *o, enum coll_kind kind,
		    uint64_t bytes, struct images m)
{
	struct usage_images images = {next_image, &m};

	bench_op(w, o, kind, bytes,
		 &(struct membership){.n_ranks = m.n_ranks, .base = m.first, .stride = m.stride});
	usage_unref(o->usage);
	bench_usage(w, o, &images);
}

static void make_stage(const struct bench_world *w, uint32_t p)
{
	const uint32_t first = p * TP * DP, size = TP * DP;
	const struct images tp = {first, TP, TP, 1, DP, 0}, dp = {first, 1, DP, TP, TP, 0};
	struct stage *s = &stages[p];

	make_op(w, &s->ops[SHAPE_TP], COLL_ALLREDUCE, 96 << 20, tp);
	make_op(w, &s->ops[SHAPE_GATHER], COLL_ALLGATHER, 2 << 20, dp);
	make_op(w, &s->ops[SHAPE_SCATTER], COLL_REDUCESCATTER, 4 << 20, dp);
	if (p + 1 < PP)
		make_op(w, &s->ops[SHAPE_FORWARD], COLL_BROADCAST, 12 << 20,
			(struct images){first, 1, 2, size, size, 0});
	if (p)
		make_op(w, &s->ops[SHAPE_BACKWARD], COLL_BROADCAST, 12 << 20,
			(struct images){first, 1, 2, -size, size, 0});
}

static void moved(void *ctx, void *tag, const struct warp *from, const struct warp *to)
{
	(void)ctx;
	(void)from;
	((struct played *)tag)->end_ns = warp_end(to);
}

static void forgotten(void *ctx, void *tag)
{
	(void)ctx;
	(void)tag;
}

static struct played *play(struct overlap *o, const struct bench_op *op, double start_ns)
{
	struct played *p = &played[n_played++];
	const struct warp *w;
	uint64_t number;

	if (!o) {
		p->end_ns = start_ns + op->solo_ns;
		return p;
	}
	if (overlap_add(o,
			&(struct overlap_op){.usage = op->usage,
					     .solo_ns = op->solo_ns,
					     .start = start_ns,
					     .begin = start_ns,
					     .tag = p},
			&number, &w))
		bench_fail("no memory");
	p->end_ns = warp_end(w);
	return p;
}

enum { HALF = 2, STEPS = 2 * BATCHES * LAYERS * HALF };

/* When the stage's next step begins: half a layer of one microbatch. INFINITY: not known yet. */
static double next_start(const struct stage *s)
{
	uint32_t p = (uint32_t)(s - stages), batch = s->n_done / (LAYERS * HALF);
	bool is_forward = batch < BATCHES;
	const struct stage *from = is_forward ? p ? s - 1 : NULL : p + 1 < PP ? s + 1 : NULL;
	double t = s->last ? fmax(s->ready_ns, s->last->end_ns) : 0;
	const struct played *needed;

	if (s->n_done == STEPS)
		return INFINITY;
	if (s->n_done % (LAYERS * HALF) || !from)
		return t;
	needed = is_forward ? from->forward[batch] : from->backward[batch - BATCHES];
	return needed ? fmax(t, needed->end_ns) : INFINITY;
}

static double bucket_start(const struct stage *s, double t)
{
	return s->last_bucket ? fmax(t, s->last_bucket->end_ns) : t;
}

static void step(struct overlap *o, struct stage *s, double start_ns)
{
	uint32_t batch = s->n_done / (LAYERS * HALF), part = s->n_done % (LAYERS * HALF);
	bool is_forward = batch < BATCHES, is_last = part + 1 == LAYERS * HALF;
	bool has_peer = s->ops[is_forward ? SHAPE_FORWARD : SHAPE_BACKWARD].usage;
	double t = start_ns + LAYER_NS / HALF * (is_forward ? 1 : 2);

	/* gathered weights of the first microbatch, gradients of the last one */
	if (batch == 0 && part % HALF == 0)
		s->last_bucket = play(o, &s->ops[SHAPE_GATHER], bucket_start(s, start_ns));
	s->last = play(o, &s->ops[SHAPE_TP], t);
	s->ready_ns = t;
	if (is_last && has_peer && is_forward)
		s->forward[batch] = play(o, &s->ops[SHAPE_FORWARD], s->last->end_ns);
	else if (is_last && has_peer)
		s->backward[batch - BATCHES] = play(o, &s->ops[SHAPE_BACKWARD], s->last->end_ns);
	if (batch + 1 == 2 * BATCHES && part % HALF)
		s->last_bucket = play(o, &s->ops[SHAPE_SCATTER], bucket_start(s, s->last->end_ns));
	s->n_done++;
}

/* Return: the iteration's end, ns. @o: NULL: nobody shares. */
static double iterate(struct overlap *o)
{
	double end = 0;

	n_played = 0;
	for (uint32_t p = 0; p < PP; p++) {
		struct stage *s = &stages[p];

		s->n_done = 0;
		s->ready_ns = 0;
		s->last = s->last_bucket = NULL;
		for (uint32_t b = 0; b < BATCHES; b++)
			s->forward[b] = s->backward[b] = NULL;
	}
	for (;;) {
		struct stage *first = NULL;
		double t = INFINITY;

		for (uint32_t p = 0; p < PP; p++) {
			double start = next_start(&stages[p]);

			if (start < t) {
				t = start;
				first = &stages[p];
			}
		}
		if (!first)
			break;
		step(o, first, t);
	}
	for (uint32_t i = 0; i < n_played; i++)
		end = fmax(end, played[i].end_ns);
	return end;
}

void bench_iteration(struct bench_output *out)
{
	double begin = bench_now_s(), usage_s, overlap_s, alone_ns, shared_ns;
	struct bench_world w = bench_world("dgx-h100", RANKS / 8, FABRIC_LEAF_SPINE, 2);
	struct overlap *o;

	for (uint32_t p = 0; p < PP; p++)
		make_stage(&w, p);
	usage_s = bench_now_s() - begin;
	played = calloc(PP * STEPS * 3, sizeof(*played));
	if (!played || overlap_new(&(struct overlap_sink){moved, forgotten, NULL}, &o))
		bench_fail("no memory");
	alone_ns = iterate(NULL);
	begin = bench_now_s();
	shared_ns = iterate(o);
	overlap_s = bench_now_s() - begin;
	printf("\none iteration of %u ranks (tp %u, pp %u, dp %u) over leaf-spine 2:1, %u ops, one core\n"
	       "  usages and times of %u shapes on %u stages  %8.2f s\n"
	       "  ends of all ops                           %8.2f s, %.1f us an op\n"
	       "  the iteration: as if alone %.1f ms, with overlap %.1f ms\n",
	       RANKS, TP, PP, DP, n_played, SHAPES, PP, usage_s, overlap_s,
	       overlap_s / n_played * 1e6, alone_ns / 1e6, shared_ns / 1e6);
	bench_row(out,
		  "{\"what\": \"iteration\", \"ranks\": %u, \"ops\": %u, \"usage_s\": %.3f, "
		  "\"overlap_s\": %.3f, \"alone_ms\": %.3f, \"shared_ms\": %.3f}",
		  RANKS, n_played, usage_s, overlap_s, alone_ns / 1e6, shared_ns / 1e6);
	overlap_free(o);
	free(played);
	for (uint32_t p = 0; p < PP; p++)
		for (uint32_t i = 0; i < SHAPES; i++)
			usage_unref(stages[p].ops[i].usage);
	bench_world_end(&w);
}
