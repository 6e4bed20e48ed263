/* Sends and receives of random programs, played by nbox, end as in a plain model of messages: one
 * flow each, first come first served between two ranks, fair shares of the ports of both. The
 * buffers take the first 4 MiB of it before its receiver comes. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmocka-all.h"
#include "config/config.h"
#include "engine/record-rows.h"
#include "replay/replay.h"
#include "rng.h"

enum { RANKS = 4, STEPS = 14, POSTS_MAX = 2 * STEPS, PROGRAMS = 150 };

#define MIB (UINT64_C(1) << 20)
#define BUFFERS (4 * MIB)
#define NS_MS UINT64_C(1000000)

/* The ports carry a byte a nanosecond. */
static const char *const words[] = {
	"--nodes",           "4",     "--gpus-per-node", "1",   "--real", "0-3", "--model", "ring",
	"--inter-bandwidth", "1GB/s", "--inter-latency", "0ns", NULL};

struct post {
	uint64_t gap_ns; /* after the rank's post before */
	uint32_t peer;
	uint64_t sends, receives; /* bytes; 0: does not */
	/* as played plainly */
	double start, end;
	struct flow *out, *in;
};

struct flow {
	uint32_t src, dst;
	double bytes, sent, rate;
	double handed, there;        /* INFINITY: not yet */
	const struct post *receiver; /* NULL: has not come */
};

struct program {
	struct post posts[RANKS][POSTS_MAX];
	uint32_t n[RANKS];
	struct flow flows[POSTS_MAX]; /* as sent */
	uint32_t n_flows;
};

static void add(struct program *p, struct rng *rng, uint32_t rank, uint32_t peer, uint64_t sends,
		uint64_t receives)
{
	/* all begin together: the first of the record is the epoch */
	uint64_t gap_ns = p->n[rank] ? NS_MS / 5 + below(rng, 8 * NS_MS) : 0;

	p->posts[rank][p->n[rank]++] =
		(struct post){.gap_ns = gap_ns, .peer = peer, .sends = sends, .receives = receives};
}

/* In an order in which nobody waits for ever. */
static void write_program(struct program *p, struct rng *rng)
{
	*p = (struct program){.n_flows = 0};
	for (int i = 0; i < STEPS; i++) {
		uint64_t most = below(rng, 3) ? BUFFERS : 5 * BUFFERS;
		uint64_t to = 1 + below(rng, most), back = 1 + below(rng, most);
		uint32_t a = (uint32_t)below(rng, RANKS);
		uint32_t b = (a + 1 + (uint32_t)below(rng, RANKS - 1)) % RANKS;

		back = below(rng, 2) ? back : 0;
		add(p, rng, a, b, to, back);
		add(p, rng, b, a, back, to);
	}
}

/* --- played plainly --------------------------------------------------------------------------- */

/* The first message from @src to @dst that is not there. */
static struct flow *head(struct program *p, uint32_t src, uint32_t dst)
{
	for (uint32_t i = 0; i < p->n_flows; i++)
		if (p->flows[i].src == src && p->flows[i].dst == dst && isinf(p->flows[i].there))
			return &p->flows[i];
	return NULL;
}

/* How far it may go now. */
static double limit(const struct flow *f)
{
	return f->receiver ? f->bytes : fmin(f->bytes, (double)BUFFERS);
}

/* Max-min: all rise together until a port is full. */
static void set_rates(struct program *p)
{
	struct flow *of[RANKS * RANKS];
	double left[2 * RANKS];
	uint32_t n = 0, n_rising;

	for (uint32_t i = 0; i < RANKS * RANKS; i++) {
		struct flow *f = head(p, i / RANKS, i % RANKS);

		if (!f || f->sent >= limit(f))
			continue;
		f->rate = -1;
		of[n++] = f;
	}
	for (uint32_t i = 0; i < 2 * RANKS; i++)
		left[i] = 1;
	for (n_rising = n; n_rising;) {
		uint32_t users[2 * RANKS] = {0};
		double level = INFINITY;

		for (uint32_t i = 0; i < n; i++)
			if (of[i]->rate < 0) {
				users[of[i]->src]++;
				users[RANKS + of[i]->dst]++;
			}
		for (uint32_t i = 0; i < 2 * RANKS; i++)
			if (users[i])
				level = fmin(level, left[i] / users[i]);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t out = of[i]->src, in = RANKS + of[i]->dst;

			if (of[i]->rate >= 0 || (left[out] > level * users[out] * (1 + 1e-12) &&
						 left[in] > level * users[in] * (1 + 1e-12)))
				continue;
			of[i]->rate = level;
		}
		for (uint32_t i = 0; i < 2 * RANKS; i++)
			left[i] = 1;
		n_rising = 0;
		for (uint32_t i = 0; i < n; i++) {
			left[of[i]->src] -= fmax(0, of[i]->rate);
			left[RANKS + of[i]->dst] -= fmax(0, of[i]->rate);
			n_rising += of[i]->rate < 0;
		}
	}
}

static struct flow *flow_of(struct program *p, uint32_t src, uint32_t dst, uint32_t number)
{
	for (uint32_t i = 0; i < p->n_flows; i++)
		if (p->flows[i].src == src && p->flows[i].dst == dst && number-- == 0)
			return &p->flows[i];
	return NULL;
}

/* When @post is over; INFINITY: not known yet. */
static double end_of(const struct post *post)
{
	double end = post->start;

	if (post->sends > BUFFERS)
		end = fmax(end, post->out->receiver
					? fmax(post->out->handed, post->out->receiver->start)
					: INFINITY);
	if (post->receives)
		end = fmax(end, post->in ? post->in->there : INFINITY);
	return end;
}

static void play_plainly(struct program *p)
{
	uint32_t at[RANKS] = {0}, received[RANKS][RANKS] = {{0}};
	double next[RANKS], now = 0;
	bool is_in[RANKS] = {0};

	for (uint32_t r = 0; r < RANKS; r++)
		next[r] = p->n[r] ? (double)p->posts[r][0].gap_ns : INFINITY;
	for (;;) {
		double then = INFINITY;

		for (uint32_t r = 0; r < RANKS; r++) {
			struct post *post = &p->posts[r][at[r]];

			if (next[r] > now || is_in[r])
				continue;
			is_in[r] = true;
			next[r] = INFINITY;
			post->start = now;
			if (!post->sends)
				continue;
			p->flows[p->n_flows] = (struct flow){.src = r,
							     .dst = post->peer,
							     .bytes = (double)post->sends,
							     .handed = INFINITY,
							     .there = INFINITY};
			post->out = &p->flows[p->n_flows++];
		}
		for (uint32_t r = 0; r < RANKS; r++) {
			struct post *post = &p->posts[r][at[r]];

			if (!is_in[r] || !post->receives || post->in)
				continue;
			post->in = flow_of(p, post->peer, r, received[post->peer][r]);
			if (!post->in)
				continue;
			received[post->peer][r]++;
			post->in->receiver = post;
		}
		for (uint32_t r = 0; r < RANKS; r++) {
			struct post *post = &p->posts[r][at[r]];

			if (!is_in[r] || end_of(post) > now)
				continue;
			post->end = now;
			is_in[r] = false;
			if (++at[r] < p->n[r])
				next[r] = now + (double)post[1].gap_ns;
			then = now; /* look again */
		}
		set_rates(p);
		for (uint32_t i = 0; i < p->n_flows; i++) {
			const struct flow *f = &p->flows[i];
			bool is_head = head(p, f->src, f->dst) == f && f->sent < limit(f);

			if (is_head)
				then = fmin(then, now + (limit(f) - f->sent) / f->rate);
			if (is_head && f->sent < f->bytes - (double)BUFFERS)
				then = fmin(then,
					    now + (f->bytes - (double)BUFFERS - f->sent) / f->rate);
		}
		for (uint32_t r = 0; r < RANKS; r++)
			then = fmin(then, next[r]);
		if (isinf(then))
			return;
		for (uint32_t i = 0; i < RANKS * RANKS; i++) {
			struct flow *f = head(p, i / RANKS, i % RANKS);

			if (!f || f->sent >= limit(f))
				continue;
			f->sent += f->rate * (then - now);
			if (f->sent > limit(f) - 1e-3)
				f->sent = limit(f);
			if (isinf(f->handed) && f->sent > f->bytes - (double)BUFFERS - 1e-3)
				f->handed = then;
			if (f->sent >= f->bytes)
				f->there = then;
		}
		now = then;
	}
}

/* --- played by nbox --------------------------------------------------------------------------- */

static const void *keep(struct record *rec, const void *from, size_t bytes)
{
	void *to = record_keep(rec, bytes);

	assert_non_null(to);
	return memcpy(to, from, bytes);
}

static void add_row(struct record *rec, uint32_t rank, uint32_t k, const struct post *post,
		    uint64_t *wall, uint64_t *name)
{
	struct record_call calls[2];
	struct record_op *op = &rec->ops[rec->n_ops++];
	const struct record_dep dep = {*name, 1, 0};

	*wall += post->gap_ns;
	*op = (struct record_op){.number = rec->n_ops,
				 .seq = k,
				 .name = (uint64_t)rank << 32 | (k + 1),
				 .call_ns = 1,
				 .arrive_ns = *wall,
				 .due_ns = *wall,
				 .release_ns = *wall,
				 .order = rec->n_ops,
				 .done_order = rec->n_ops,
				 .comm = 1,
				 .rank = rank,
				 .world_rank = rank,
				 .kind = COLL_SENDRECV,
				 .n_deps = *name != 0,
				 .of = rec->comms};
	if (post->sends)
		calls[op->n_calls++] = (struct record_call){post->peer, 1, post->sends};
	if (post->receives)
		calls[op->n_calls++] = (struct record_call){post->peer, 0, post->receives};
	op->calls = keep(rec, calls, op->n_calls * sizeof(calls[0]));
	op->deps = op->n_deps ? keep(rec, &dep, sizeof(dep)) : NULL;
	*name = op->name;
}

static void make_record(struct record *rec, const struct program *p)
{
	struct record_member real[RANKS];

	*rec = (struct record){.header = {.n_real = RANKS,
					  .world_size = RANKS,
					  .n_nodes = RANKS,
					  .gpus_per_node = 1}};
	rec->comms = calloc(1, sizeof(*rec->comms));
	rec->ops = calloc(RANKS * POSTS_MAX, sizeof(*rec->ops));
	assert_true(rec->comms && rec->ops);
	for (uint32_t r = 0; r < RANKS; r++)
		real[r] = (struct record_member){r, r};
	rec->n_comms = 1;
	rec->comms[0] = (struct record_comm){.number = 1,
					     .n_ranks = RANKS,
					     .stride = 1,
					     .n_real = RANKS,
					     .real = keep(rec, real, sizeof(real))};
	for (uint32_t r = 0; r < RANKS; r++) {
		uint64_t wall = NS_MS, name = 0;

		for (uint32_t k = 0; k < p->n[r]; k++)
			add_row(rec, r, k, &p->posts[r][k], &wall, &name);
	}
}

static struct config *configure(void)
{
	struct config *c;
	struct err err = {""};

	assert_int_equal(config_new(&c), 0);
	for (const char *const *w = words; *w; w += 2)
		for (int id = 0; id < CONFIG_OPTIONS; id++)
			if (strcmp(options[id].name, w[0] + 2) == 0)
				assert_int_equal(config_set(c, (enum option_id)id, SOURCE_FLAG,
							    w[1]),
						 0);
	if (config_finish(c, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static void play_by_nbox(const struct program *p, struct record *rec, struct record *out)
{
	char models[PATH_MAX];
	const char *const dirs[] = {models, NULL};
	struct config *c = configure();
	struct replay in = {.config = c, .dirs = dirs};
	struct rows_graph graph;
	struct replay_told told;
	struct err err = {""};

	assert_int_equal(file_own_folder(models, sizeof(models) - 32), 0);
	strcat(models, "/../../../delaymodels");
	make_record(rec, p);
	if (rows_graph_make(rec, &graph, &err) < 0)
		fail_msg("%s", err.text);
	in.graph = &graph;
	if (replay_play(&in, out, &told, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(told.n_lost, 0);
	rows_graph_deinit(&graph);
	config_free(c);
}

static void messages_end_as_in_a_plain_model(void **state)
{
	struct program p;

	(void)state;
	for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
		struct rng rng;
		struct record rec, out = {.n_ops = 0};
		uint64_t first = UINT64_MAX, i = 0;
		double first_plain = INFINITY;

		rng_seed(&rng, seed, 0);
		write_program(&p, &rng);
		play_plainly(&p);
		play_by_nbox(&p, &rec, &out);
		for (uint32_t r = 0; r < RANKS; r++)
			first_plain = fmin(first_plain, p.n[r] ? p.posts[r][0].start : INFINITY);
		for (i = 0; i < out.n_ops; i++)
			first = out.ops[i].virtual_arrive_ns < first ? out.ops[i].virtual_arrive_ns
								     : first;
		i = 0;
		for (uint32_t r = 0; r < RANKS; r++)
			for (uint32_t k = 0; k < p.n[r]; k++, i++) {
				double end = (double)(out.ops[i].virtual_end_ns - first);
				double want = p.posts[r][k].end - first_plain;

				if (fabs(end - want) > 5)
					fail_msg("seed %llu: post %u of rank %u ends at %.0f ns, "
						 "plainly at %.0f",
						 (unsigned long long)seed, k, r, end, want);
			}
		/* each was told in time */
		assert_int_equal(out.end.n_debts, 0);
		record_deinit(&out);
		record_deinit(&rec);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_end_as_in_a_plain_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
