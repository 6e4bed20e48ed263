/* See counts.h. */
#include "replay/counts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

static int count_of(const struct record_op *op, uint32_t n_ranks, uint64_t *ret,
		    struct counts_told *told, struct err *err)
{
	uint32_t before = op->of->n_ranks;

	*ret = op->count;
	if (n_ranks == before)
		return 0;
	switch ((enum coll_kind)op->kind) {
	case COLL_ALLREDUCE:
	case COLL_BROADCAST:
	case COLL_REDUCE:
		told->n_kept++;
		return 0;
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
		told->n_total++;
		*ret = (op->count * before + n_ranks - 1) / n_ranks;
		return 0;
	case COLL_ALLTOALL:
	case COLL_GATHER:
	case COLL_SCATTER:
	case COLL_SENDRECV:
	case COLL_KINDS:
		break;
	}
	return err_set(
		err, EINVAL,
		"communicator %u has %u ranks in the new world instead of %u, and %s in it: how "
		"much each rank sends then the record does not say; nbox run plays the job there",
		op->comm, n_ranks, before, coll_kind_name(op->kind));
}

int counts_make(const struct record *rec, const uint32_t *n_ranks, uint64_t **ret,
		struct counts_told *told, struct err *err)
{
	CLEANUP(freep) uint64_t *counts = calloc(rec->n_ops + 1, sizeof(*counts));
	int r = 0;

	*told = (struct counts_told){0};
	if (!counts)
		return err_set(err, ENOMEM, "out of memory");
	for (uint64_t i = 0; i < rec->n_ops && r == 0; i++)
		r = count_of(&rec->ops[i], n_ranks[rec->ops[i].of - rec->comms], &counts[i], told,
			     err);
	if (r == 0)
		*ret = steal_ptr(counts);
	return r;
}
