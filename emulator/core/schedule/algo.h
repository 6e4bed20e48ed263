/* Inside schedule/: the questions that each algorithm answers, and how all of them cut data into
 * channels, loops and slices.
 *
 *   bytes = channels x channel_bytes       (the last channels may have less or none)
 *   channel = loops x loop_bytes           (the last loop may have less)
 *   ring: loop = n chunks; others: loop = one chunk of at most step_bytes
 *   chunk = n_slices slices, a step and a message each; the last may be empty
 *
 * AllGather, ReduceScatter and the direct kinds cut the bytes of one rank (or pair) like that,
 * and repeat it for each rank. */
#pragma once

#include "base/err.h"
#include "schedule/sched.h"

/* Connections in the making; conns is NULL while they are only counted. */
struct conn_list {
	struct sched_conn *in, *out;
	uint32_t n_in, n_out;
};

struct sched_ops {
	uint32_t (*n_threads)(const struct sched *s, uint32_t rank);
	uint64_t (*n_steps)(const struct sched *s, uint32_t rank, uint32_t thread);
	void (*step)(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t step,
		     struct sched_step *ret);
	void (*conns)(const struct sched *s, uint32_t rank, struct conn_list *l);
	/* 0: no such connection; src and dst are below n_ranks */
	uint64_t (*n_messages)(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);
	/* of a message that is there */
	uint64_t (*message_bytes)(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane,
				  uint64_t index);
	uint64_t (*total)(const struct sched *s);
	/* of a connection that is there */
	uint32_t (*recv_thread)(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);
	uint32_t (*send_thread)(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane);
};

extern const struct sched_ops sched_ring, sched_chain, sched_tree, sched_direct, sched_p2p_ops;

/* COLL_SENDRECV: completes the calls. Return: 0; -EINVAL; -ENOMEM. */
int sched_p2p_number(struct sched *s, struct err *err);

struct span {
	uint64_t off, bytes;
};

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t div_up(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

static inline uint64_t align_up(uint64_t a, uint64_t b)
{
	return div_up(a, b) * b;
}

/* Piece @i of @whole, cut into pieces of @piece_bytes; empty beyond the end. */
static inline struct span span_piece(struct span whole, uint64_t i, uint64_t piece_bytes)
{
	uint64_t skip = min_u64(i * piece_bytes, whole.bytes);

	return (struct span){whole.off + skip, min_u64(whole.bytes - skip, piece_bytes)};
}

static inline struct span channel_span(const struct sched *s, uint32_t channel)
{
	return span_piece((struct span){0, s->bytes}, channel, s->channel_bytes);
}

static inline uint64_t slice_bytes(const struct sched *s, uint64_t chunk)
{
	return s->n_slices == 1 ? chunk
				: min_u64(chunk, align_up(div_up(chunk, s->n_slices), s->grain));
}

static inline struct span slice_span(const struct sched *s, struct span chunk, uint64_t slice)
{
	return s->n_slices == 1 ? chunk : span_piece(chunk, slice, slice_bytes(s, chunk.bytes));
}

/* Of algorithms that send a channel's bytes as they lie there, a slice a message: the messages, and
 * what each of them has. */
static inline uint64_t plain_messages(const struct sched *s, uint32_t channel)
{
	return div_up(channel_span(s, channel).bytes, s->loop_bytes) * s->n_slices;
}

static inline struct span plain_piece(const struct sched *s, uint32_t channel, uint64_t index)
{
	struct span p = channel_span(s, channel);

	p = span_piece(p, index / s->n_slices, s->step_bytes);
	return slice_span(s, p, index % s->n_slices);
}

/* For struct sched_ops, of algorithms whose lane is the channel ... */
static inline uint64_t plain_message_bytes(const struct sched *s, uint32_t src, uint32_t dst,
					   uint16_t lane, uint64_t index)
{
	(void)src;
	(void)dst;
	return plain_piece(s, lane, index).bytes;
}

/* ... and whose lane is the thread. */
static inline uint32_t lane_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	(void)s;
	(void)src;
	(void)dst;
	return lane;
}

/* Next and previous on the ring of ranks, at distance below n. */
static inline uint32_t rank_after(const struct sched *s, uint32_t rank, uint32_t distance)
{
	uint32_t r = rank + distance;

	return r >= s->n_ranks ? r - s->n_ranks : r;
}

static inline uint32_t rank_before(const struct sched *s, uint32_t rank, uint32_t distance)
{
	return rank >= distance ? rank - distance : rank + s->n_ranks - distance;
}

static inline void step_recv(struct sched_step *t, uint32_t peer, uint32_t lane, uint64_t index)
{
	t->recv[t->n_recv++] = peer;
	t->recv_lane = (uint16_t)lane;
	t->recv_index = index;
}

static inline void step_send(struct sched_step *t, uint32_t peer, uint32_t lane, uint64_t index)
{
	t->send[t->n_send++] = peer;
	t->send_lane = (uint16_t)lane;
	t->send_index = index;
}

static inline void conn_in(struct conn_list *l, uint32_t src, uint32_t dst, uint32_t lane,
			   uint64_t n_messages)
{
	if (n_messages == 0)
		return;
	if (l->in)
		l->in[l->n_in] = (struct sched_conn){src, dst, (uint16_t)lane, n_messages};
	l->n_in++;
}

static inline void conn_out(struct conn_list *l, uint32_t src, uint32_t dst, uint32_t lane,
			    uint64_t n_messages)
{
	if (n_messages == 0)
		return;
	if (l->out)
		l->out[l->n_out] = (struct sched_conn){src, dst, (uint16_t)lane, n_messages};
	l->n_out++;
}
