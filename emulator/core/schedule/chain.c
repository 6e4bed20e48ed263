/* Chain: Broadcast and Reduce as a pipeline over all ranks, as NCCL does them on its ring. The data
 * of a Broadcast goes root, root+1, ..., root-1; that of a Reduce root+1, root+2, ..., root. A
 * channel has one lane. Each message goes once over every connection of the chain: a rank sends
 * message i when it has received message i. */
#include "schedule/algo.h"

/* Place of @rank in the pipeline: 0 is where the data starts. */
static uint32_t place_of(const struct sched *s, uint32_t rank)
{
	uint32_t place = rank_before(s, rank, s->root);

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
	uint32_t place = place_of(s, rank);
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
		step_recv(ret, rank_before(s, rank, 1), thread, t);
	if (!last)
		step_send(ret, rank_after(s, rank, 1), thread, t);
}

static void conns(const struct sched *s, uint32_t rank, struct conn_list *l)
{
	uint32_t place = place_of(s, rank);

	for (uint32_t c = 0; c < s->n_channels; c++) {
		if (place > 0)
			conn_in(l, rank_before(s, rank, 1), rank, c, plain_messages(s, c));
		if (place < s->n_ranks - 1)
			conn_out(l, rank, rank_after(s, rank, 1), c, plain_messages(s, c));
	}
}

static uint64_t n_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (lane >= s->n_channels || dst != rank_after(s, src, 1) ||
	    place_of(s, src) == s->n_ranks - 1)
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
