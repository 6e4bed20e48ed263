/* See p2p.h. Posts: from ARRIVE to DONE, and their messages. What they wait for: p2p-wait.c. */
#include "nboxd/op/p2p.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/op-find.h"

static void post_free(struct p2p_post *post)
{
	struct comm *c = post->comm;

	DL_DELETE(c->p2p->posts[post->member], post);
	c->p2p->n_posts--;
	c->comms->ops->n_open_ops--;
	free(post->pair.calls);
	free(post->calls);
	free(post->flows);
	free(post);
}

void p2p_post_maybe_free(struct p2p_post *post)
{
	if (post->is_done && post->n_runs == 0)
		post_free(post);
}

void p2p_free(struct comm *c)
{
	struct p2p_run *run, *next_run;
	struct p2p_post *post, *next;

	if (!c->p2p)
		return;
	DL_FOREACH_SAFE(c->p2p->runs, run, next_run) {
		if (run->engine_op)
			engine_cancel(c->comms->ops->engine, run->engine_op);
		p2p_run_free(run);
	}
	for (uint32_t i = 0; c->p2p->posts && i < c->n_real; i++)
		DL_FOREACH_SAFE(c->p2p->posts[i], post, next)
			post_free(post);
	pairing_free(c->p2p->pairing);
	free(c->p2p->posts);
	free(c->p2p);
	c->p2p = NULL;
}

static int p2p_make(struct comm *c)
{
	if (c->p2p)
		return 0;
	c->p2p = calloc(1, sizeof(*c->p2p));
	if (!c->p2p)
		return -ENOMEM;
	c->p2p->posts = calloc(c->n_real, sizeof(struct p2p_post *));
	c->p2p->pairing = pairing_new();
	if (c->p2p->posts && c->p2p->pairing)
		return 0;
	p2p_free(c);
	return -ENOMEM;
}

uint32_t p2p_n_open(const struct comm *c)
{
	return c->p2p ? c->p2p->n_posts : 0;
}

/* --- arrivals ---------------------------------------------------------------------- */

static struct p2p_post *post_new(struct comm *c, size_t member, uint64_t seq,
				 const struct wire_arrive *a)
{
	struct p2p_post *post = calloc(1, sizeof(*post));

	if (!post)
		return NULL;
	post->pair.rank = c->real[member].rank;
	post->pair.n_calls = a->n_p2p;
	post->pair.calls = calloc((size_t)a->n_p2p + 1, sizeof(*post->pair.calls));
	post->calls = calloc((size_t)a->n_p2p + 1, sizeof(*post->calls));
	post->flows = calloc((size_t)a->n_p2p + 1, sizeof(*post->flows));
	post->comm = c;
	post->member = member;
	post->seq = seq;
	post->arrive = *a;
	post->moved_ns = clock_now_ns();
	post->warn_ns = post->moved_ns + WARN_NS;
	DL_APPEND(c->p2p->posts[member], post);
	c->p2p->n_posts++;
	c->comms->ops->n_open_ops++;
	if (post->pair.calls && post->calls && post->flows)
		return post;
	post_free(post);
	return NULL;
}

/* Reads the calls, and makes the schedule that the worker has too. */
static int post_fill(struct p2p_post *post, const char *list, struct err *err)
{
	struct comm *c = post->comm;
	const struct config *config = c->comms->config;
	int r;

	for (uint32_t i = 0; i < post->pair.n_calls; i++) {
		struct wire_p2p p;

		memcpy(&p, list + i * sizeof(p), sizeof(p));
		if (p.peer >= c->n_ranks)
			return err_set(err, EPROTO, "a call to rank %u of %u ranks", p.peer,
				       c->n_ranks);
		post->calls[i] =
			(struct sched_p2p){.peer = p.peer, .is_send = p.is_send, .bytes = p.bytes};
		post->pair.calls[i] =
			(struct pair_call){.peer = p.peer, .is_send = p.is_send, .bytes = p.bytes};
	}
	post->sched = (struct sched){
		.kind = COLL_SENDRECV,
		.algo = (enum sched_algo)config->algo[COLL_SENDRECV],
		.n_ranks = c->n_ranks,
		.ranks_per_node = c->ranks_per_node,
		.n_channels = config->channels,
		.elem_bytes = (uint32_t)coll_dtype_bytes(post->arrive.dtype),
		.chunk_bytes = config->chunk_bytes,
		.p2p = post->calls,
		.n_p2p = post->pair.n_calls,
		.p2p_rank = post->pair.rank,
	};
	r = sched_init(&post->sched, err);
	return r < 0 ? r : call_check_bytes(c, &post->sched, err);
}

/* A peer that has freed the communicator will not call; nobody may wait for it. */
static bool is_left_alone(struct p2p_post *post)
{
	const struct pair_call *call = p2p_waits_for(post->comm, NULL, post);
	char what[160];

	if (!call)
		return false;
	comm_abort(post->comm, NULL, ECANCELED,
		   "point-to-point op %llu of rank %u cannot start: its %s meets nobody: that rank "
		   "has freed the communicator",
		   wire_seq_number(post->seq), post->pair.rank,
		   p2p_call_text(call, what, sizeof(what)));
	return true;
}

static int post_arrive(struct comm *c, size_t i, const struct wire_hdr *h,
		       const struct wire_arrive *a, const char *list, struct err *err)
{
	struct pair_post *ready = NULL;
	struct p2p_post *post = post_new(c, i, h->seq, a);
	int r;

	if (!post)
		return err_set(err, ENOMEM, "out of memory");
	r = post_fill(post, list, err);
	if (r == 0)
		r = pairing_add(c->p2p->pairing, &post->pair, &c->is_real, &ready, err);
	if (r < 0 || is_left_alone(post) || !ready)
		return r;
	return p2p_run_start(c, ready, err);
}

int p2p_on_arrive(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct comm *c = NULL;
	struct comm_member *member = op_find_member(ops, w, h, &c);
	struct err err = {""};
	struct wire_arrive a;
	int r;

	if (!member)
		return 0;
	memcpy(&a, body, sizeof(a));
	if (op_check_arrive(w, c, h, &a) < 0)
		return 0;
	if (h->seq != (WIRE_SEQ_P2P | member->next_p2p))
		return worker_refuse(w, EPROTO,
				     "rank %u of communicator %u arrives at point-to-point "
				     "op %llu instead of %llu",
				     h->rank, h->comm, wire_seq_number(h->seq),
				     (unsigned long long)member->next_p2p);
	if (op_is_full(c) || failures_on_op(ops->failures, c, COLL_SENDRECV))
		return 0;
	r = p2p_make(c);
	op_leave_out_setup(member, &a);
	member->next_p2p++;
	if (r == 0)
		r = post_arrive(c, (size_t)(member - c->real), h, &a,
				(const char *)body + sizeof(a), &err);
	else
		err_set(&err, ENOMEM, "out of memory");
	if (r < 0)
		comm_abort(c, NULL, -r, "point-to-point op %llu of rank %u: %s",
			   wire_seq_number(h->seq), h->rank, err.text);
	return 0;
}

/* --- messages ------------------------------------------------------------------------ */

/* False: swallow the frame (the communicator is dead), or the worker was refused. */
static bool post_find(struct ops *ops, struct worker *w, const struct wire_hdr *h,
		      struct p2p_post **ret)
{
	struct comm *c = NULL;
	struct comm_member *m = op_find_member(ops, w, h, &c);
	struct p2p_post *post;

	if (!m)
		return false;
	if (c->p2p) {
		DL_FOREACH(c->p2p->posts[m - c->real], post) {
			if (post->seq != h->seq)
				continue;
			*ret = post;
			return true;
		}
	}
	worker_refuse(w, EPROTO,
		      "%s for point-to-point op %llu of rank %u, communicator %u, which is "
		      "not open",
		      wire_type_name(h->type), wire_seq_number(h->seq), h->rank, h->comm);
	return false;
}

static void unexpected(struct p2p_post *post, const struct wire_hdr *h, const char *why)
{
	comm_abort(post->comm, NULL, EPROTO,
		   "point-to-point op %llu: message %llu from rank %u to rank %u, lane %u: %s",
		   wire_seq_number(post->seq), (unsigned long long)h->index, h->rank, h->peer,
		   h->lane, why);
}

/* Finds what a message is; whatever it may not be aborts the communicator. */
static bool message_find(struct ops *ops, struct worker *w, const struct wire_hdr *h,
			 struct p2p_post **ret, struct p2p_flow **ret_flow)
{
	uint32_t i = UINT32_MAX;
	struct p2p_flow *flow;
	char why[128];
	uint64_t n;

	if (!post_find(ops, w, h, ret))
		return false;
	if (ops->config->exchange == EXCHANGE_NONE) {
		unexpected(*ret, h, "no messages are exchanged (exchange none)");
		return false;
	}
	if (h->peer != h->rank)
		i = sched_send_thread(&(*ret)->sched, h->rank, h->peer, h->lane);
	if (i == UINT32_MAX) {
		unexpected(*ret, h, "no such connection in this op");
		return false;
	}
	flow = &(*ret)->flows[i];
	n = sched_conn_messages(&(*ret)->sched, h->rank, h->peer, h->lane);
	if (h->index != flow->n_arrived || h->index >= n) {
		if (flow->n_arrived < n)
			snprintf(why, sizeof(why), "message %llu of %llu was expected",
				 (unsigned long long)flow->n_arrived, (unsigned long long)n);
		else
			snprintf(why, sizeof(why), "all %llu were here", (unsigned long long)n);
		unexpected(*ret, h, why);
		return false;
	}
	*ret_flow = flow;
	return true;
}

int p2p_on_message_header(struct ops *ops, struct worker *w, const struct wire_hdr *h,
			  void **ret_body)
{
	struct p2p_post *post;
	struct p2p_flow *flow;
	uint64_t bytes = 0;
	char why[96];

	*ret_body = NULL;
	if (!message_find(ops, w, h, &post, &flow))
		return w->state == WORKER_READY ? 0 : 1;
	if (ops->config->exchange == EXCHANGE_PAYLOAD)
		bytes = sched_message_bytes(&post->sched, h->rank, h->peer, h->lane, h->index);
	if (h->body_bytes != bytes) {
		snprintf(why, sizeof(why), "it has %llu bytes instead of %llu",
			 (unsigned long long)h->body_bytes, (unsigned long long)bytes);
		unexpected(post, h, why);
		return 0;
	}
	if (bytes)
		*ret_body = payload_sink(&ops->payload, h->index, bytes,
					 post->calls[flow - post->flows].bytes);
	return 0;
}

int p2p_on_message(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct err err = {""};
	struct p2p_post *post;
	struct p2p_flow *flow;

	(void)body;
	if (!message_find(ops, w, h, &post, &flow))
		return 0;
	ops->n_messages_in++;
	post->n_messages++;
	flow->n_arrived++;
	if (clock_now_ns() > post->moved_ns)
		post->moved_ns = clock_now_ns();
	if (flow->run &&
	    engine_arrived(ops->engine, flow->run->engine_op, flow->out, h->index, &err))
		unexpected(post, h, err.text);
	return 0;
}

/* --- the end --------------------------------------------------------------------------- */

static void record_done(const struct p2p_post *post, const struct wire_done *done)
{
	const struct comm *c = post->comm;
	struct ops *ops = c->comms->ops;
	struct record_row row = {
		.number = post->number,
		.seq = wire_seq_number(post->seq),
		.comm = c->number,
		.rank = post->pair.rank,
		.world_rank = c->real[post->member].world_rank,
		.kind = COLL_SENDRECV,
		.dtype = post->arrive.dtype,
		.algo = post->sched.algo,
		.n_ranks = c->n_ranks,
		.n_real_ranks = c->n_real,
		.how = post->how,
		.arrive_ns = post->arrive.arrive_ns,
		.start_ns = post->start_ns,
		.due_ns = post->end_ns,
		.release_ns = done->release_ns,
		.local_done_ns = done->local_done_ns,
		.model_ns = post->model_ns,
		.injected_ns = post->injected_ns,
		.n_messages = post->n_messages,
	};

	for (uint32_t i = 0; i < post->pair.n_calls; i++)
		row.bytes += post->pair.calls[i].bytes;
	row.flags = comm_record_flags(c) | (post->arrive.flags & 1 ? RECORD_REPLAYED : 0) |
		    (post->is_below_bound ? RECORD_BELOW_BOUND : 0) |
		    (post->is_of_model ? RECORD_OF_MODEL : 0);
	record_write(ops->record, &row);
}

int p2p_on_done(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct p2p_post *post = NULL;
	struct wire_done done;

	if (!post_find(ops, w, h, &post))
		return 0;
	memcpy(&done, body, sizeof(done));
	if (!post->is_released || post->is_done)
		return worker_refuse(w, EPROTO,
				     "DONE for point-to-point op %llu of communicator %u, "
				     "which rank %u %s",
				     wire_seq_number(h->seq), h->comm, h->rank,
				     post->is_done ? "finished before" : "has not begun");
	post->is_done = true;
	post->moved_ns = clock_now_ns();
	record_done(post, &done);
	p2p_post_maybe_free(post);
	return 0;
}
