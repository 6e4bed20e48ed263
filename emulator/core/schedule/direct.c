/* Direct: AllToAll, Gather, Scatter. Each pair of ranks has its own messages, one
 * thread a channel, peer and direction, and one for what a rank keeps. Nothing
 * depends on anything but the order on a connection. Lane = channel.
 *
 * Threads of a channel, for a rank that sends to all and receives from all (n is
 * the number of ranks): 0 keeps; 1..n-1 send to rank+1, rank+2, ...; n..2n-2
 * receive from rank-1, rank-2, ... A Gather's or Scatter's root has 0..n-1, its
 * other ranks have one thread. */
#include "schedule/algo.h"

enum role { KEEP, SEND, RECV };

static uint32_t channel_threads(const struct sched *s, uint32_t rank)
{
	if (s->kind == COLL_ALLTOALL)
		return 2 * s->n_ranks - 1;
	return rank == s->root ? s->n_ranks : 1;
}

static enum role role_of(const struct sched *s, uint32_t rank, uint32_t thread,
			 uint32_t *ret_channel, uint32_t *ret_peer)
{
	uint32_t per_channel = channel_threads(s, rank), u = thread % per_channel;

	*ret_channel = thread / per_channel;
	if (s->kind != COLL_ALLTOALL && rank != s->root) {
		*ret_peer = s->root;
		return s->kind == COLL_GATHER ? SEND : RECV;
	}
	if (u == 0) {
		*ret_peer = rank;
		return KEEP;
	}
	if (s->kind == COLL_GATHER || u >= s->n_ranks) {
		*ret_peer = rank_before(s, rank, s->kind == COLL_GATHER ? u : u - s->n_ranks + 1);
		return RECV;
	}
	*ret_peer = rank_after(s, rank, u);
	return SEND;
}

static uint32_t n_threads(const struct sched *s, uint32_t rank)
{
	return channel_threads(s, rank) * s->n_channels;
}

static uint64_t n_steps(const struct sched *s, uint32_t rank, uint32_t thread)
{
	return plain_messages(s, thread / channel_threads(s, rank));
}

static void step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t t,
		 struct sched_step *ret)
{
	uint32_t channel, peer;
	enum role role = role_of(s, rank, thread, &channel, &peer);
	struct span d = plain_piece(s, channel, t);

	ret->bytes = d.bytes;
	ret->in_off = ret->out_off = d.off;
	/* the parts of the big buffers: one a destination, one a source */
	if (s->kind != COLL_GATHER && role != RECV)
		ret->in_off += peer * s->bytes;
	if (s->kind != COLL_SCATTER && role != SEND)
		ret->out_off += peer * s->bytes;
	ret->flags = (role != RECV ? STEP_INPUT : 0) | (role != SEND ? STEP_OUTPUT : 0);
	if (role == RECV)
		step_recv(ret, peer, channel, t);
	if (role == SEND)
		step_send(ret, peer, channel, t);
}

static void conns(const struct sched *s, uint32_t rank, struct conn_list *l)
{
	for (uint32_t c = 0; c < s->n_channels; c++) {
		uint64_t n = plain_messages(s, c);
		uint32_t n_peers = channel_threads(s, rank);

		for (uint32_t u = 0; n > 0 && u < n_peers; u++) {
			uint32_t channel, peer;
			enum role role = role_of(s, rank, c * n_peers + u, &channel, &peer);

			if (role == RECV)
				conn_in(l, peer, rank, c, n);
			if (role == SEND)
				conn_out(l, rank, peer, c, n);
		}
	}
}

static uint64_t n_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (lane >= s->n_channels || (s->kind == COLL_GATHER && dst != s->root) ||
	    (s->kind == COLL_SCATTER && src != s->root))
		return 0;
	return plain_messages(s, lane);
}

static uint64_t total(const struct sched *s)
{
	uint64_t sum = 0, n = s->n_ranks;

	for (uint32_t c = 0; c < s->n_channels; c++)
		sum += plain_messages(s, c);
	return sum * (s->kind == COLL_ALLTOALL ? n * (n - 1) : n - 1);
}

static uint32_t recv_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t u = rank_before(s, dst, src);

	if (s->kind == COLL_SCATTER)
		u = 0;
	else if (s->kind == COLL_ALLTOALL)
		u += s->n_ranks - 1;
	return lane * channel_threads(s, dst) + u;
}

static uint32_t send_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	uint32_t u = s->kind == COLL_GATHER ? 0 : rank_before(s, dst, src);

	return lane * channel_threads(s, src) + u;
}

const struct sched_ops sched_direct = {
	.n_threads = n_threads,
	.n_steps = n_steps,
	.step = step,
	.conns = conns,
	.n_messages = n_messages,
	.message_bytes = plain_message_bytes,
	.total = total,
	.recv_thread = recv_thread,
	.send_thread = send_thread,
};
