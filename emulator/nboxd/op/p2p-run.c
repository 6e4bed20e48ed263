/* Runs of point-to-point calls; see p2p.h. A run's ranks are those of its posts; two posts
 * of one rank (of different streams) are one list of calls to it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "engine/border-p2p.h"
#include "engine/solve-p2p.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/late.h"
#include "nboxd/op/p2p.h"

struct p2p_run *p2p_run_free(struct p2p_run *run)
{
	if (!run)
		return NULL;
	border_deinit(&run->border);
	timing_deinit(&run->timing);
	free(run->posts);
	free(run->calls);
	free(run->ends);
	free(run->ranks);
	free(run->n_by_rank);
	free(run->by_rank);
	free(run->to);
	free(run);
	return NULL;
}

static void run_freep(struct p2p_run **run)
{
	p2p_run_free(*run);
}

/* --- who takes part ---------------------------------------------------------------- */

static void count_post(struct p2p_run *run, struct p2p_post *post)
{
	if (post->turn == run->turn)
		return;
	post->turn = run->turn;
	run->n_posts++;
}

static void claim_call(struct p2p_run *run, struct p2p_post *post, uint32_t i)
{
	post->flows[i].turn = run->turn;
	post->flows[i].run = run;
	run->n_calls++;
}

/* Marks the calls that the run plays. Its posts are only counted: their turn tells. */
static void claim(struct p2p_run *run, struct pair_post *ready)
{
	for (; ready; ready = ready->next_ready) {
		struct p2p_post *post = p2p_post_of(ready);

		count_post(run, post);
		for (uint32_t i = 0; i < ready->n_calls; i++) {
			struct pair_call *other = ready->calls[i].pair;
			struct p2p_post *peer;

			if (post->flows[i].turn)
				continue;
			claim_call(run, post, i);
			if (!other)
				continue;
			peer = p2p_post_of(other->post);
			count_post(run, peer);
			ready->calls[i].pair = other->pair = NULL;
			claim_call(run, peer, (uint32_t)(other - other->post->calls));
		}
	}
}

static void add_rank(struct p2p_run *run, uint32_t rank, uint32_t first)
{
	run->ranks[run->n_ranks] = rank;
	run->by_rank[run->n_ranks] = &run->calls[first];
	run->n_ranks++;
}

/* Lists what was claimed: posts, ranks, calls. */
static int collect(struct p2p_run *run, struct pair_post *ready)
{
	struct comm *c = run->comm;
	uint32_t n = 0, n_posts = 0;
	struct p2p_post *post;

	claim(run, ready);
	run->posts = calloc(run->n_posts, sizeof(struct p2p_post *));
	run->calls = calloc((size_t)run->n_calls + 1, sizeof(*run->calls));
	run->ends = calloc((size_t)run->n_calls + 1, sizeof(*run->ends));
	run->ranks = calloc(run->n_posts, sizeof(*run->ranks));
	run->n_by_rank = calloc(run->n_posts, sizeof(*run->n_by_rank));
	run->by_rank = calloc(run->n_posts, sizeof(*run->by_rank));
	if (!run->posts || !run->calls || !run->ends || !run->ranks || !run->n_by_rank ||
	    !run->by_rank)
		return -ENOMEM;
	for (uint32_t m = 0; m < c->n_real; m++) {
		uint32_t first = n, n_before = n_posts;

		DL_FOREACH(c->p2p->posts[m], post) {
			if (post->turn != run->turn)
				continue;
			run->posts[n_posts++] = post;
			post->n_runs++;
			for (uint32_t i = 0; i < post->pair.n_calls; i++) {
				const struct pair_call *call = &post->pair.calls[i];

				if (post->flows[i].turn != run->turn)
					continue;
				run->calls[n] = (struct sched_p2p){.peer = call->peer,
								   .is_send = call->is_send,
								   .bytes = call->bytes};
				run->ends[n++] = (struct p2p_end){post, i};
			}
		}
		if (n_posts == n_before)
			continue;
		run->n_by_rank[run->n_ranks] = n - first;
		add_rank(run, c->real[m].rank, first);
	}
	return 0;
}

/* --- when ------------------------------------------------------------------------ */

/* A virtual peer arrives with the post that calls it. */
static bool copies(const void *ctx, size_t i, uint32_t world_rank)
{
	const struct p2p_run *run = ctx;
	const struct p2p_post *post = run->posts[i];
	const struct comm *c = run->comm;
	int64_t rank = membership_rank(&c->members.map, world_rank);

	if (rank < 0 || bitmap_test(&c->is_real, (uint64_t)rank))
		return rank == (int64_t)post->pair.rank;
	for (uint32_t k = 0; k < post->pair.n_calls; k++)
		if (post->flows[k].turn == run->turn && post->pair.calls[k].peer == (uint32_t)rank)
			return true;
	return false;
}

/* How many ranks arrive with @post; of the calls to virtual ranks one each way is to each, as a
 * rule. */
static uint32_t count_with(const struct p2p_run *run, const struct p2p_post *post)
{
	uint32_t n[2] = {0, 0};

	for (uint32_t k = 0; k < post->pair.n_calls; k++)
		n[post->pair.calls[k].is_send] +=
			post->flows[k].turn == run->turn &&
			!bitmap_test(&run->comm->is_real, post->pair.calls[k].peer);
	return 1 + (n[0] > n[1] ? n[0] : n[1]);
}

static int find_start(struct p2p_run *run, struct err *err)
{
	struct comm *c = run->comm;
	struct ops *ops = c->comms->ops;
	const struct late_op late = {.sched = &run->posts[0]->sched,
				     .topology = ops->cluster->topology,
				     .members = &c->members.map,
				     .delay = ops->delay,
				     .number = run->number,
				     .copies = copies,
				     .ctx = run};
	CLEANUP(freep) struct late_member *m = calloc(run->n_posts, sizeof(*m));
	bool has_virtual = false;

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < run->n_posts; i++) {
		m[i] = (struct late_member){&run->posts[i]->arrive, count_with(run, run->posts[i])};
		has_virtual = has_virtual || m[i].n_ranks > 1;
	}
	return late_start(ops->config->n_what_ifs && has_virtual ? &late : NULL, m, run->n_posts,
			  &run->start_ns, &run->late_ns, err);
}

static int solve_run(struct p2p_run *run, struct err *err)
{
	struct comm *c = run->comm;
	struct ops *ops = c->comms->ops;
	uint64_t chunk = run->posts[0]->sched.chunk_bytes;
	bool has_border = ops->config->exchange != EXCHANGE_NONE;
	int r = 0;

	if (has_border)
		r = border_make_p2p(run->ranks, run->n_ranks, run->by_rank, run->n_by_rank, chunk,
				    &c->is_real, &run->border, err);
	if (r == 0)
		r = solve_p2p(run->ranks, run->n_ranks, run->by_rank, run->n_by_rank, chunk,
			      ops->cluster->topology, &c->members.map, ops->delay,
			      has_border ? &run->border : NULL, run->number, &run->timing, err);
	if (r == 0)
		run->end_ns = run->start_ns + (uint64_t)ceil(run->timing.end_ns);
	return r;
}

/* --- the border's connections and the posts' calls --------------------------------- */

/* A connection of the border has a lane among the run's calls, which need not be the one
 * that the member knows: its post may be played by several runs. */
static int index_calls(struct p2p_run *run, struct err *err)
{
	const struct border *b = &run->border;

	run->to = calloc((size_t)b->n_in + 1, sizeof(*run->to));
	if (!run->to)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t k = 0; k < run->n_ranks; k++) {
		uint32_t first = (uint32_t)(run->by_rank[k] - run->calls), rank = run->ranks[k];
		struct sched s;
		int r;

		if (run->n_by_rank[k] == 0)
			continue;
		s = run->ends[first].post->sched;
		s.p2p = &run->calls[first];
		s.n_p2p = run->n_by_rank[k];
		r = sched_init(&s, err);
		if (r < 0)
			return r;
		for (uint32_t i = first; i < first + run->n_by_rank[k]; i++) {
			const struct sched_p2p *call = &run->calls[i];
			const struct p2p_end *end = &run->ends[i];
			int64_t conn;

			if (call->bytes == 0 || call->peer == rank)
				continue;
			conn = call->is_send ? border_find_out(b, rank, call->peer, call->lane)
					     : border_find_in(b, call->peer, rank, call->lane);
			if (conn < 0)
				return err_set(err, EINVAL, "no connection of ranks %u and %u",
					       rank, call->peer);
			if (call->is_send)
				end->post->flows[end->call].out = (uint32_t)conn;
			else
				run->to[conn] = *end;
		}
	}
	return 0;
}

static void send_message(struct engine_user *user, uint32_t in, uint64_t index)
{
	struct p2p_run *run = container_of(user, struct p2p_run, user);
	const struct border_conn *conn = &run->border.in[in];
	struct p2p_post *post = run->to[in].post;
	struct comm *c = run->comm;
	struct comm_member *to = &c->real[post->member];
	const void *body = NULL;
	uint64_t bytes = 0;
	struct wire_hdr h;

	if (c->comms->config->exchange == EXCHANGE_PAYLOAD) {
		bytes = border_message_bytes(&run->border, NULL, conn, index);
		body = payload_source(&c->comms->ops->payload, index, bytes, conn->bytes);
	}
	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.comm = c->number;
	h.seq = post->seq;
	h.rank = conn->dst;
	h.peer = conn->src;
	h.lane = post->calls[run->to[in].call].lane;
	h.index = index;
	post->n_messages++;
	c->comms->ops->n_messages_out++;
	if (to->worker)
		worker_send_message(to->worker, &h, bytes ? body : NULL);
}

static void run_end(struct engine_user *user)
{
	struct p2p_run *run = container_of(user, struct p2p_run, user);

	DL_DELETE(run->comm->p2p->runs, run);
	for (uint32_t i = 0; i < run->n_posts; i++) {
		run->posts[i]->n_runs--;
		p2p_post_maybe_free(run->posts[i]);
	}
	p2p_run_free(run);
}

/* What members sent before the run started. */
static int replay_early(struct p2p_run *run, struct err *err)
{
	for (uint32_t i = 0; i < run->n_calls; i++) {
		const struct p2p_flow *flow = &run->ends[i].post->flows[run->ends[i].call];

		for (uint64_t index = 0; run->calls[i].is_send && index < flow->n_arrived;
		     index++) {
			int r = engine_arrived(run->comm->comms->ops->engine, run->engine_op,
					       flow->out, index, err);

			if (r)
				return r < 0 ? r : -EPROTO;
		}
	}
	return 0;
}

/* --- the start --------------------------------------------------------------------- */

static void release(struct p2p_post *post)
{
	struct comm *c = post->comm;
	struct comm_member *to = &c->real[post->member];
	struct wire_release m = {post->start_ns, post->end_ns, post->number};
	struct wire_hdr h;

	post->is_released = true;
	wire_hdr_init(&h, WIRE_RELEASE, sizeof(m));
	h.comm = c->number;
	h.seq = post->seq;
	h.rank = to->rank;
	if (to->worker)
		worker_send(to->worker, &h, &m);
}

static void warn_below_bound(const struct p2p_run *run)
{
	struct comm *c = run->comm;
	char end[32], bound[32];

	if (run->timing.end_ns >= run->timing.bound_ns || c->comms->ops->is_below_bound_told ||
	    strcmp(c->comms->config->model, "none") == 0)
		return;
	c->comms->ops->is_below_bound_told = true;
	warn_run("point-to-point op %llu of rank %u, communicator %u: the model says %s, but the "
		 "network alone needs %s",
		 wire_seq_number(run->posts[0]->seq), run->posts[0]->pair.rank, c->number,
		 units_print_time(run->timing.end_ns, end, sizeof(end)),
		 units_print_time(run->timing.bound_ns, bound, sizeof(bound)));
}

/* A post is over with the run that ends last. */
static void tell_post(const struct p2p_run *run, struct p2p_post *post)
{
	const struct timing *t = &run->timing;

	if (run->end_ns >= post->end_ns) {
		post->number = run->number;
		post->start_ns = run->start_ns;
		post->end_ns = run->end_ns;
		post->model_ns = t->model_ns;
		post->injected_ns = t->end_ns - t->model_ns + run->late_ns;
		post->how = t->how;
		post->is_below_bound = t->end_ns < t->bound_ns;
		post->is_of_model = t->is_of_model;
	}
	if (post->pair.n_waiting == 0) {
		post->moved_ns = post->end_ns;
		post->warn_ns = post->end_ns + WARN_NS;
		release(post);
	}
}

int p2p_run_start(struct comm *c, struct pair_post *ready, struct err *err)
{
	CLEANUP(run_freep) struct p2p_run *run = calloc(1, sizeof(*run));
	bool has_border = c->comms->config->exchange != EXCHANGE_NONE;
	struct p2p_run *live;
	int r;

	if (!run)
		return err_set(err, ENOMEM, "out of memory");
	run->user = (struct engine_user){send_message, run_end};
	run->comm = c;
	run->number = c->comms->ops->n_ops++;
	run->turn = run->number + 1;
	if (collect(run, ready) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if ((r = find_start(run, err)) < 0 || (r = solve_run(run, err)) < 0 ||
	    (has_border && (r = index_calls(run, err)) < 0))
		return r;
	r = engine_start(c->comms->ops->engine, has_border ? &run->border : NULL, &run->timing,
			 run->start_ns, run->end_ns, &run->user, &run->engine_op);
	if (r < 0)
		return err_set(err, -r, "the engine cannot start the op: %s", strerror(-r));
	live = steal_ptr(run);
	DL_APPEND(c->p2p->runs, live);
	if (has_border && (r = replay_early(live, err)) < 0)
		return r;
	warn_below_bound(live);
	for (uint32_t i = 0; i < live->n_posts; i++)
		tell_post(live, live->posts[i]);
	return 0;
}
