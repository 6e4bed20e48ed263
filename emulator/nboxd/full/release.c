/* See release.h. */
#include "nboxd/full/release.h"

#include "base/clock.h"
#include "nboxd/full/own.h"
#include "op/table.h"
#include "schedule/coll.h"
#include "topology/template.h"
#include "wire/wire.h"

/* Of a group of sends and receives, those of the largest. */
static uint64_t call_bytes(const struct post *post)
{
	const struct wire_arrive *a = &post->arrive;
	const struct p2p *p2p = post->op->p2p;
	uint64_t bytes = 0;

	if (!p2p)
		return a->count * coll_dtype_bytes(a->dtype);
	for (uint32_t i = 0; i < p2p->pair.n_calls; i++)
		if (p2p->calls[i].bytes > bytes)
			bytes = p2p->calls[i].bytes;
	return bytes;
}

/* Whom NCCL has as the root: for a virtual one under mirror, its template (shim/data/data-full.c).
 */
static uint32_t root_of(const struct post *post)
{
	const struct comm *c = post->op->comm;
	uint32_t root = post->arrive.root;
	uint8_t data[COLL_KINDS];

	if (post->arrive.kind != COLL_BROADCAST || root >= c->n_ranks)
		return root;
	comm_policies(c, data);
	return data[COLL_BROADCAST] == DATA_MIRROR ? c->real[template_of(&c->templates, root)].rank
						   : root;
}

void full_on_released(const struct post *post)
{
	struct full_comm *fc = post->op->comm->full;
	const struct wire_arrive *a = &post->arrive;
	const struct sched_took *took = &post->op->sched->took;
	struct traffic_call call = {
		.kind = a->kind,
		.dtype = a->dtype,
		.redop = a->redop,
		.root = root_of(post),
		.bytes = call_bytes(post),
		.start_ns = post->start_ns,
		.end_ns = post->end_ns,
	};
	struct err err = {"out of memory"};
	int r;

	if (!fc || fc->code)
		return;
	if (took->n_channels && post == post->op->posts)
		took_add(&fc->full->took, a->kind, took->algorithm, took->protocol,
			 took->n_channels);
	r = traffic_call(fc->traffic, post->member->rank, post->op->key.seq, &call, &err);
	if (r < 0)
		full_fail(fc, -r, "%s", err.text);
}

void full_on_moved(const struct post *post)
{
	struct full_comm *fc = post->op->comm->full;

	if (fc && !fc->code)
		traffic_move(fc->traffic, post->member->rank, post->op->key.seq, clock_now_ns(),
			     post->end_ns);
}

void full_on_passed(const struct post *post)
{
	const struct op *op = post->op;
	struct full_comm *fc = op->comm->full;

	if (fc && !fc->code)
		traffic_passed(fc->traffic, post->member->rank, op->key.seq);
}
