/* See row.h. */
#include "op/row.h"

static uint64_t bytes_of(const struct op *op)
{
	uint64_t bytes = 0;

	if (!op->p2p)
		return op->sched->bytes;
	for (uint32_t i = 0; i < op->p2p->pair.n_calls; i++)
		bytes += op->p2p->calls[i].bytes;
	return bytes;
}

void post_row(const struct post *post, struct record_op *ret)
{
	const struct op *op = post->op;
	const struct wire_arrive *a = &post->arrive;

	*ret = (struct record_op){
		.number = post->number,
		.seq = wire_seq_number(op->key.seq),
		.name = a->name,
		.host = a->host,
		.bytes = bytes_of(op),
		.count = a->count,
		.call_ns = a->call_ns,
		.work_ns = a->work_ns,
		.arrive_ns = a->arrive_ns,
		.start_ns = post->start_ns,
		.due_ns = post->end_ns,
		.virtual_arrive_ns = post->arrival.time_ns,
		.virtual_end_ns = post->end.time_ns,
		.plain_arrive_ns = post->arrival.plain_ns,
		.plain_end_ns = post->end.plain_ns,
		.model_ns = post->model_ns,
		.injected_ns = post->injected_ns,
		.n_messages = post->n_messages,
		.exposed_ns = post->arrival.exposed_ns,
		.shared_ns = post->shared_ns,
		.queued_ns = post->queued_ns,
		.waited_ns = post->waited_ns,
		.waited_for = post->waited_for,
		.comm = op->comm->number,
		.rank = post->member->rank,
		.world_rank = post->member->world_rank,
		.stream = a->stream,
		.kind = op->sched->kind,
		.dtype = a->dtype,
		.redop = a->redop,
		.root = a->root,
		.algo = op->sched->algo,
		.took_algorithm = op->sched->took.algorithm,
		.took_protocol = op->sched->took.protocol,
		.took_channels = op->sched->took.n_channels,
		.how = post->how,
		.flags = post->flags | (a->flags & WIRE_ARRIVE_REPLAYED ? RECORD_REPLAYED : 0) |
			 (a->flags & WIRE_ARRIVE_NO_EDGES ? RECORD_NO_EDGES : 0) |
			 (a->flags & WIRE_ARRIVE_ONESIDED ? RECORD_ONESIDED : 0),
	};
}
