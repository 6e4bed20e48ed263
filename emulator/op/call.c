/* See call.h. */
#include "op/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/border-collective.h"
#include "op/ops.h"

#define IDLE_MAX 64 /* at least so many are kept for the next equal call */

static void call_free(struct call *call)
{
	border_deinit(&call->border);
	bitmap_deinit(&call->reduces);
	bitmap_deinit(&call->keeps);
	free(call);
}

static void call_freep(struct call **call)
{
	if (*call)
		call_free(*call);
}

static bool wants_border(const struct comm *c)
{
	return c->ops->config->exchange != EXCHANGE_NONE;
}

static struct sched_took took_of(const struct wire_arrive *a)
{
	return (struct sched_took){a->took.algorithm, a->took.protocol, a->took.n_channels};
}

static int fill_sched(const struct comm *c, const struct wire_arrive *a, struct sched *s,
		      struct err *err)
{
	const struct config *config = c->ops->config;

	*s = (struct sched){
		.kind = (enum coll_kind)a->kind,
		.algo = (enum sched_algo)config->algo[a->kind],
		.n_ranks = c->n_ranks,
		.root = a->root,
		.ranks_per_node = c->ranks_per_node,
		.n_channels = config->channels,
		.elem_bytes = (uint32_t)coll_dtype_bytes(a->dtype),
		.bytes = a->count * coll_dtype_bytes(a->dtype),
		.chunk_bytes = config->chunk_bytes,
		.took = took_of(a),
	};
	return sched_init(s, err);
}

/* Marks the messages of a connection that its virtual receiver reduces. */
static void mark_reduces(struct call *call, const struct border_conn *conn)
{
	const struct sched *s = &call->sched;
	uint32_t thread = sched_recv_thread(s, conn->src, conn->dst, conn->lane);
	uint64_t n_steps = sched_n_steps(s, conn->dst, thread);

	for (uint64_t i = 0; i < n_steps; i++) {
		struct sched_step step;

		sched_step(s, conn->dst, thread, i, &step);
		for (uint32_t k = 0; step.flags & STEP_REDUCE && k < step.n_recv; k++) {
			if (step.recv[k] != conn->src || step.recv_lane != conn->lane ||
			    step.recv_index >= conn->n_messages)
				continue;
			bitmap_set(&call->reduces, conn->first_bit + step.recv_index);
			if (step.flags & STEP_OUTPUT)
				bitmap_set(&call->keeps, conn->first_bit + step.recv_index);
		}
	}
}

static int find_reduces(struct comm *c, struct call *call, struct err *err)
{
	const struct border *b = &call->border;

	if (bitmap_init(&call->reduces, b->n_out_messages) < 0 ||
	    bitmap_init(&call->keeps, b->n_out_messages) < 0)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < b->n_out; i++)
		if (!bitmap_test(&c->has_process, b->out[i].dst))
			mark_reduces(call, &b->out[i]);
	call->has_reduces = true;
	return 0;
}

static bool does_reduce(const struct comm *c, uint32_t kind)
{
	const struct config *config = c->ops->config;

	return config->exchange == EXCHANGE_PAYLOAD && config->payload_work == WORK_REDUCE &&
	       coll_reduces(kind);
}

int call_check_bytes(const struct comm *c, const struct sched *s, struct err *err)
{
	const struct ops *ops = c->ops;

	if (ops->config->exchange != EXCHANGE_PAYLOAD ||
	    sched_max_step_bytes(s) <= ops->config->chunk_bytes)
		return 0;
	return err_set(err, EFBIG, "messages of %llu bytes are longer than the chunk (%llu)",
		       (unsigned long long)sched_max_step_bytes(s),
		       (unsigned long long)ops->config->chunk_bytes);
}

static void sweep(struct calls *calls, bool all)
{
	struct call *call, *next;

	HASH_ITER(hh, calls->by_key, call, next) {
		if (!all && call->n_users)
			continue;
		HASH_DELETE(hh, calls->by_key, call);
		call_free(call);
	}
	calls->n_swept = HASH_COUNT(calls->by_key);
}

int call_get(struct comm *c, struct calls *calls, const struct wire_arrive *a, struct call **ret,
	     struct err *err)
{
	const struct call_key key = {.kind = a->kind,
				     .dtype = a->dtype,
				     .root = a->root,
				     .took = took_of(a),
				     .count = a->count};
	CLEANUP(call_freep) struct call *call = NULL;
	struct call *kept;
	int r;

	HASH_FIND(hh, calls->by_key, &key, sizeof(key), kept);
	if (kept) {
		kept->n_users++;
		*ret = kept;
		return 0;
	}
	/* sweeps cost less than the calls that were made between them */
	if (HASH_COUNT(calls->by_key) >= 2 * calls->n_swept + IDLE_MAX)
		sweep(calls, false);
	call = calloc(1, sizeof(*call));
	if (!call)
		return err_set(err, ENOMEM, "out of memory");
	call->key = key;
	if ((r = fill_sched(c, a, &call->sched, err)) < 0 ||
	    (r = call_check_bytes(c, &call->sched, err)) < 0)
		return r;
	if (wants_border(c)) {
		r = border_make(&call->sched, &c->has_process, &call->border, err);
		if (r < 0)
			return r;
		if (does_reduce(c, a->kind) && (r = find_reduces(c, call, err)) < 0)
			return r;
		call->has_border = true;
	}
	call->n_users = 1;
	*ret = steal_ptr(call);
	HASH_ADD(hh, calls->by_key, key, sizeof(key), *ret);
	return 0;
}

void calls_deinit(struct calls *calls)
{
	sweep(calls, true);
}
