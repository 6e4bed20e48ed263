/* Chain: Broadcast and Reduce as a pipeline over all ranks, as NCCL does them on its ring. The data
 * of a Broadcast goes root, root+1, ..., root-1; that of a Reduce root+1, root+2, ..., root. A
 * channel has one lane. Each message goes once over every connection of the chain: a rank sends
 * message i when it has received message i. */
#include "schedule/algo.h"
#include "schedule/rails.h"

/* Place of @rank in the channel's pipeline: 0 is where the data starts. */
static uint32_t place_of(const struct sched *s, uint32_t channel, uint32_t rank)
{
	uint32_t place = rank_before(s, sched_place_of(s, channel, rank),
				     sched_place_of(s, channel, s->root));

	return s->kind == COLL_REDUCE ? rank_before(s, place, 1) : place;
}

static uint32_t n_threads(const struct sched *s, uint32_t rank)
{
	(void)rank;
	return s->n_channels;
}

static uint64_t n_steps(const struct sched *s, uint32_t rank, uint32_t thread)
{
	(void)rank;
	return plain_messages(s, thread);
}

static void step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t t,
		 struct sched_step *ret)
{
	uint32_t place = place_of(s, thread, rank);
	bool first = place == 0, last = place == s->n_ranks - 1;
	struct span d = plain_piece(s, thread, t);

	ret->bytes = d.bytes;
	ret->in_off = ret->out_off = d.off;
	if (s->kind == COLL_BROADCAST) {
		ret->flags = first ? STEP_INPUT | STEP_OUTPUT : STEP_OUTPUT;
	} else {
		ret->flags = first ? STEP_INPUT : STEP_INPUT | STEP_REDUCE;
		if (last)
			ret->flags |= STEP_REDUCE | STEP_OUTPUT | STEP_FINAL;
	}
	if (!first)
		step_recv(ret, sched_previous(s, thread, rank), thread, t);
	if (!last)
		step_send(ret, sched_next(s, thread, rank), thread, t);
}

static void conns(const struct sched *s, uint32_t rank, struct conn_list *l)
{
	for (uint32_t c = 0; c < s->n_channels; c++) {
		uint32_t place = place_of(s, c, rank);

		if (place > 0)
			conn_in(l, sched_previous(s, c, rank), rank, c, plain_messages(s, c));
		if (place < s->n_ranks - 1)
			conn_out(l, rank, sched_next(s, c, rank), c, plain_messages(s, c));
	}
}

static uint64_t n_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (lane >= s->n_channels || dst != sched_next(s, lane, src) ||
	    place_of(s, lane, src) == s->n_ranks - 1)
		return 0;
	return plain_messages(s, lane);
}

static uint64_t total(const struct sched *s)
{
	uint64_t sum = 0;

	for (uint32_t c = 0; c < s->n_channels; c++)
		sum += plain_messages(s, c);
	return sum * (s->n_ranks - 1);
}

const struct sched_ops sched_chain = {
	.n_threads = n_threads,
	.n_steps = n_steps,
	.step = step,
	.conns = conns,
	.n_messages = n_messages,
	.message_bytes = plain_message_bytes,
	.total = total,
	.recv_thread = lane_thread,
	.send_thread = lane_thread,
};
