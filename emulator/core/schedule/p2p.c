/* SendRecv: a group of point-to-point calls, as one rank sees it. Each call has a thread, with
 * one step a chunk. The k-th call between two ranks in a direction has lane k, so each call is a
 * connection of its own. A send to oneself copies to the receive from oneself with the same lane;
 * the thread of that receive is empty, as is the thread of a call without bytes. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "schedule/algo.h"

/* Order: direction, peer, bytes or none, place in the group. */
static int by_peer(const void *a, const void *b, void *ctx)
{
	const struct sched_p2p *calls = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (calls[i].is_send != calls[k].is_send)
		return calls[i].is_send ? -1 : 1;
	if (calls[i].peer != calls[k].peer)
		return calls[i].peer < calls[k].peer ? -1 : 1;
	if ((calls[i].bytes == 0) != (calls[k].bytes == 0))
		return calls[i].bytes ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* The call of that connection, or -1. */
static int64_t find(const struct sched *s, bool is_send, uint32_t peer, uint32_t lane)
{
	uint32_t low = 0, high = s->n_p2p;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct sched_p2p *c = &s->p2p[s->p2p[mid].sorted];
		bool before;

		if (c->is_send != is_send)
			before = c->is_send;
		else if (c->peer != peer)
			before = c->peer < peer;
		else
			before = c->lane < lane;
		if (before)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < s->n_p2p) {
		const struct sched_p2p *c = &s->p2p[s->p2p[low].sorted];

		if (c->is_send == is_send && c->peer == peer && c->lane == lane && c->bytes > 0)
			return s->p2p[low].sorted;
	}
	return -1;
}

static int check_calls(const struct sched *s, struct err *err)
{
	if (s->p2p_rank >= s->n_ranks)
		return err_set(err, EINVAL, "SendRecv of rank %u: the communicator has %u ranks",
			       s->p2p_rank, s->n_ranks);
	for (uint32_t i = 0; i < s->n_p2p; i++) {
		const struct sched_p2p *c = &s->p2p[i];

		if (c->peer >= s->n_ranks)
			return err_set(err, EINVAL, "%s %u: the communicator has %u ranks",
				       c->is_send ? "send to" : "receive from", c->peer,
				       s->n_ranks);
		if (c->bytes > SCHED_MAX_BYTES)
			return err_set(err, EINVAL, "%s %u of %llu bytes: too many",
				       c->is_send ? "send to" : "receive from", c->peer,
				       (unsigned long long)c->bytes);
	}
	return 0;
}

/* Sends to oneself and receives from oneself, one to one. */
static int pair_own(struct sched *s, struct err *err)
{
	for (uint32_t i = 0; i < s->n_p2p; i++) {
		struct sched_p2p *c = &s->p2p[i];
		int64_t other;

		c->pair = UINT32_MAX;
		if (c->peer != s->p2p_rank || c->bytes == 0)
			continue;
		other = find(s, !c->is_send, c->peer, c->lane);
		if (other < 0 || s->p2p[other].bytes != c->bytes)
			return err_set(err, EINVAL,
				       "rank %u %s itself %llu bytes, but no %s call of the group "
				       "matches",
				       c->peer, c->is_send ? "sends" : "receives from",
				       (unsigned long long)c->bytes,
				       c->is_send ? "receive" : "send");
		c->pair = (uint32_t)other;
	}
	return 0;
}

int sched_p2p_number(struct sched *s, struct err *err)
{
	CLEANUP(freep) uint32_t *order = NULL;
	const struct sched_p2p *last = NULL;
	int r = check_calls(s, err);

	if (r < 0 || s->n_p2p == 0)
		return r;
	order = malloc(s->n_p2p * sizeof(*order));
	if (!order)
		return err_set(err, ENOMEM, "no memory for %u calls", s->n_p2p);
	for (uint32_t i = 0; i < s->n_p2p; i++)
		order[i] = i;
	qsort_r(order, s->n_p2p, sizeof(*order), by_peer, s->p2p);
	for (uint32_t i = 0; i < s->n_p2p; i++) {
		struct sched_p2p *c = &s->p2p[order[i]];

		s->p2p[i].sorted = order[i];
		c->lane = 0;
		if (last && last->is_send == c->is_send && last->peer == c->peer) {
			if (last->lane == UINT16_MAX)
				return err_set(err, EINVAL, "more than 65536 calls for rank %u",
					       c->peer);
			c->lane = (uint16_t)(last->lane + 1);
		}
		last = c;
	}
	return pair_own(s, err);
}

static uint64_t call_messages(const struct sched *s, const struct sched_p2p *c)
{
	return div_up(c->bytes, s->step_bytes);
}

static bool is_own(const struct sched *s, const struct sched_p2p *c)
{
	return c->peer == s->p2p_rank;
}

static uint32_t n_threads(const struct sched *s, uint32_t rank)
{
	assert(rank == s->p2p_rank);
	(void)rank;
	return s->n_p2p;
}

static uint64_t n_steps(const struct sched *s, uint32_t rank, uint32_t thread)
{
	const struct sched_p2p *c = &s->p2p[thread];

	(void)rank;
	return is_own(s, c) && !c->is_send ? 0 : call_messages(s, c);
}

static void step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t t,
		 struct sched_step *ret)
{
	const struct sched_p2p *c = &s->p2p[thread];
	struct span d = span_piece((struct span){0, c->bytes}, t, s->step_bytes);

	assert(rank == s->p2p_rank);
	(void)rank;
	ret->bytes = d.bytes;
	ret->flags = c->is_send ? STEP_INPUT : STEP_OUTPUT;
	if (c->is_send)
		ret->in_off = c->off + d.off;
	else
		ret->out_off = c->off + d.off;
	if (is_own(s, c)) {
		ret->flags |= STEP_OUTPUT;
		ret->out_off = s->p2p[c->pair].off + d.off;
	} else if (c->is_send) {
		step_send(ret, c->peer, c->lane, t);
	} else {
		step_recv(ret, c->peer, c->lane, t);
	}
}

static void conns(const struct sched *s, uint32_t rank, struct conn_list *l)
{
	assert(rank == s->p2p_rank);
	for (uint32_t i = 0; i < s->n_p2p; i++) {
		const struct sched_p2p *c = &s->p2p[i];

		if (is_own(s, c))
			continue;
		if (c->is_send)
			conn_out(l, rank, c->peer, c->lane, call_messages(s, c));
		else
			conn_in(l, c->peer, rank, c->lane, call_messages(s, c));
	}
}

static int64_t find_conn(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (src == s->p2p_rank)
		return find(s, true, dst, lane);
	return dst == s->p2p_rank ? find(s, false, src, lane) : -1;
}

static uint64_t n_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	int64_t i = find_conn(s, src, dst, lane);

	return i < 0 ? 0 : call_messages(s, &s->p2p[i]);
}

static uint64_t message_bytes(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane,
			      uint64_t index)
{
	struct span all = {0, s->p2p[find_conn(s, src, dst, lane)].bytes};

	return span_piece(all, index, s->step_bytes).bytes;
}

static uint64_t total(const struct sched *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->n_p2p; i++)
		if (!is_own(s, &s->p2p[i]))
			sum += call_messages(s, &s->p2p[i]);
	return sum;
}

static uint32_t thread_of(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	return (uint32_t)find_conn(s, src, dst, lane);
}

const struct sched_ops sched_p2p_ops = {
	.n_threads = n_threads,
	.n_steps = n_steps,
	.step = step,
	.conns = conns,
	.n_messages = n_messages,
	.message_bytes = message_bytes,
	.total = total,
	.recv_thread = thread_of,
	.send_thread = thread_of,
};
