/* Ring: r sends to r+1 only. One thread and one lane a channel. Ranks are meant as places on the
 * channel's ring (rails.h).
 *
 * A loop has S positions, a message each (times slices): AllReduce 2(n-1),
 * AllGather and ReduceScatter n-1. The message at position s out of rank r is
 * chunk r-1-s (AllGather: r-s) of the loop, as in NCCL 2.28. Rank r executes S+1
 * steps a loop: send; S-1 times receive, combine, send; receive.
 *
 * Positions are counted through all loops, and the first send of a loop follows
 * the last receive of the loop before, slice by slice:
 *
 *   send 0.0  send 0.1 | recv 0.0 send 1.0  recv 0.1 send 1.1 | ... |
 *   recv S-1.0  send S.0  recv S-1.1  send S.1 | ...
 *
 * so that everywhere message i out depends on message i - slices in: program
 * order, and a constant shift for whoever folds ranks away. */
#include "schedule/algo.h"
#include "schedule/rails.h"

static uint64_t loop_positions(const struct sched *s)
{
	uint64_t n = s->n_ranks;

	return s->kind == COLL_ALLREDUCE ? 2 * (n - 1) : n - 1;
}

static uint64_t channel_loops(const struct sched *s, uint32_t channel)
{
	return div_up(channel_span(s, channel).bytes, s->loop_bytes);
}

static uint64_t channel_messages(const struct sched *s, uint32_t channel)
{
	return channel_loops(s, channel) * loop_positions(s) * s->n_slices;
}

/* A slice of a loop's chunk. AllReduce: @chunk is a part of the loop. Other kinds: it is the rank
 * whose part of the big buffer is meant, and the span is relative to that part. */
static struct span piece(const struct sched *s, uint32_t channel, uint64_t loop, uint32_t chunk,
			 uint64_t slice)
{
	struct span p = span_piece(channel_span(s, channel), loop, s->loop_bytes);

	if (s->kind == COLL_ALLREDUCE) {
		uint64_t bytes = align_up(div_up(p.bytes, s->n_ranks), s->grain);

		p = span_piece(p, chunk, min_u64(bytes, s->step_bytes));
	}
	return slice_span(s, p, slice);
}

/* The chunk that @rank sends at @position of a loop. */
static uint32_t chunk_sent(const struct sched *s, uint32_t rank, uint64_t position)
{
	uint32_t back = (uint32_t)(position % s->n_ranks);

	if (s->kind != COLL_ALLGATHER)
		rank = rank_before(s, rank, 1);
	return rank_before(s, rank, back);
}

static uint32_t n_threads(const struct sched *s, uint32_t rank)
{
	(void)rank;
	return s->n_channels;
}

static uint64_t n_steps(const struct sched *s, uint32_t rank, uint32_t thread)
{
	(void)rank;
	return channel_loops(s, thread) * (loop_positions(s) + 1) * s->n_slices;
}

/* What step @t of a channel is: position @s of @loop, where 0 only sends and the
 * last, S, only receives. */
struct place {
	uint64_t loop, position, slice;
};

static struct place place_of(const struct sched *s, uint64_t n_loops, uint64_t t)
{
	uint64_t positions = loop_positions(s), slices = s->n_slices;
	uint64_t block = (positions + 1) * slices, inner, u;
	struct place p;

	if (s->n_ranks == 1) /* one local step a slice */
		return (struct place){t / slices, 0, t % slices};
	if (t < slices)
		return (struct place){0, 0, t};
	/* blocks of: the inner positions, then last receives and next first sends */
	inner = (positions - 1) * slices;
	p.loop = (t - slices) / block;
	u = (t - slices) % block;
	if (u < inner) {
		p.position = 1 + u / slices;
		p.slice = u % slices;
		return p;
	}
	u -= inner;
	p.position = positions;
	if (p.loop == n_loops - 1) {
		p.slice = u;
		return p;
	}
	p.slice = u / 2;
	if (u % 2) {
		p.loop++;
		p.position = 0;
	}
	return p;
}

static uint32_t flags_of(const struct sched *s, uint64_t position)
{
	uint64_t n = s->n_ranks;

	switch ((uint32_t)s->kind) {
	case COLL_ALLGATHER:
		return position == 0 ? STEP_INPUT | STEP_OUTPUT : STEP_OUTPUT;
	case COLL_REDUCESCATTER:
		if (position == n - 1)
			return STEP_INPUT | STEP_REDUCE | STEP_OUTPUT | STEP_FINAL;
		break;
	default:
		if (position == n - 1)
			return STEP_INPUT | STEP_REDUCE | STEP_OUTPUT | STEP_FINAL;
		if (position >= n)
			return STEP_OUTPUT;
	}
	return position == 0 ? STEP_INPUT : STEP_INPUT | STEP_REDUCE;
}

static void step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t t,
		 struct sched_step *ret)
{
	uint64_t positions = loop_positions(s);
	struct place p = place_of(s, channel_loops(s, thread), t);
	uint32_t chunk = chunk_sent(s, sched_place_of(s, thread, rank), p.position);
	struct span d = piece(s, thread, p.loop, chunk, p.slice);
	uint64_t index = (p.loop * positions + p.position) * s->n_slices + p.slice;

	ret->bytes = d.bytes;
	ret->in_off = ret->out_off = d.off;
	if (s->kind == COLL_ALLGATHER)
		ret->out_off += sched_rank_at(s, thread, chunk) * s->bytes;
	if (s->kind == COLL_REDUCESCATTER)
		ret->in_off += sched_rank_at(s, thread, chunk) * s->bytes;
	ret->flags = flags_of(s, p.position);
	if (p.position > 0)
		step_recv(ret, sched_previous(s, thread, rank), thread, index - s->n_slices);
	if (p.position < positions)
		step_send(ret, sched_next(s, thread, rank), thread, index);
}

static void conns(const struct sched *s, uint32_t rank, struct conn_list *l)
{
	for (uint32_t c = 0; c < s->n_channels; c++) {
		conn_in(l, sched_previous(s, c, rank), rank, c, channel_messages(s, c));
		conn_out(l, rank, sched_next(s, c, rank), c, channel_messages(s, c));
	}
}

static uint64_t n_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (lane >= s->n_channels || dst != sched_next(s, lane, src))
		return 0;
	return channel_messages(s, lane);
}

static uint64_t message_bytes(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane,
			      uint64_t index)
{
	uint64_t positions = loop_positions(s), at = index / s->n_slices;

	(void)dst;
	return piece(s, lane, at / positions,
		     chunk_sent(s, sched_place_of(s, lane, src), at % positions),
		     index % s->n_slices)
		.bytes;
}

static uint64_t total(const struct sched *s)
{
	uint64_t sum = 0;

	for (uint32_t c = 0; c < s->n_channels; c++)
		sum += channel_messages(s, c);
	return sum * s->n_ranks;
}

const struct sched_ops sched_ring = {
	.n_threads = n_threads,
	.n_steps = n_steps,
	.step = step,
	.conns = conns,
	.n_messages = n_messages,
	.message_bytes = message_bytes,
	.total = total,
	.recv_thread = lane_thread,
	.send_thread = lane_thread,
};
