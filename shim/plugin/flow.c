/* See flow.h. */
#include "shim/plugin/flow.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "schedule/coll.h"
#include "shim/plugin/fill.h"
#include "shim/progress/known.h"
#include "shim/progress/play.h"

static __thread struct flow_step *told;

struct flow_step *flow_take_step(void)
{
	struct flow_step *s = told;

	told = NULL;
	return s;
}

void flow_leave_step(struct flow_step *s)
{
	told = s;
}

static _Atomic bool may_lack, is_told;

void flow_set_told(bool is)
{
	atomic_store_explicit(&is_told, is, memory_order_relaxed);
}

bool flow_is_told(void)
{
	return atomic_load_explicit(&is_told, memory_order_relaxed);
}

void flow_set_may_lack(void)
{
	atomic_store_explicit(&may_lack, true, memory_order_relaxed);
}

/* 2.27's parent has two pointers: the step's handle, and what the function reads. */
bool flow_may_ask(const void *parent)
{
	return parent && (!atomic_load_explicit(&may_lack, memory_order_relaxed) ||
			  ((void *const *)parent)[1]);
}

void flow_refuse(struct bound *b, const char *fmt, ...)
{
	struct comm *c = b->comm;
	char text[ERR_TEXT_MAX];
	va_list ap;

	if (comm_error(c))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_error("communicator %u, rank %u of %u: %s", c->number, c->rank, c->n_ranks, text);
	known_abort(c, EPROTO, text);
	comm_fail(c, -EBADMSG, "%s", text);
	play_kill(c);
}

static uint32_t slice_steps(const struct call *c)
{
	uint32_t kind = c->is.kind;
	bool has_slices =
		c->algorithm == PLUGIN_RING && c->protocol == PLUGIN_SIMPLE &&
		(kind == COLL_ALLREDUCE || kind == COLL_ALLGATHER || kind == COLL_REDUCESCATTER);

	return has_slices ? 2 : 1;
}

static struct flow *flow_get(struct bound *b)
{
	struct flow *f;

	pthread_mutex_lock(&b->lock);
	f = b->free_flows;
	if (f)
		b->free_flows = f->next_free;
	else
		f = bound_alloc(b, sizeof(*f));
	pthread_mutex_unlock(&b->lock);
	return f;
}

struct flow *flow_begin(struct call *call, const struct flow_event *e)
{
	struct bound *b = call->of;
	const struct plugin_call *is = &call->is;
	uint32_t slices = slice_steps(call), event_steps = e->is_by_steps ? slices : 1;
	struct flow *f;

	if (e->pid != getpid()) {
		flow_refuse(b,
			    "NCCL sends what process %d launched through process %d (PXN), and "
			    "nbox cannot tell of which op it is: set NCCL_PXN_DISABLE=1",
			    e->pid, (int)getpid());
		return NULL;
	}
	if (e->channel < 0 || e->peer < 0 || (uint32_t)e->peer >= b->comm->n_ranks ||
	    e->n_steps < 1)
		flow_refuse(b,
			    "NCCL tells of %d messages with rank %d on channel %d in op %llu (%s)",
			    e->n_steps, e->peer, e->channel, wire_seq_number(is->seq),
			    coll_kind_name(is->kind));
	f = flow_get(b);
	if (!f) {
		flow_refuse(b, "no memory for messages of NCCL");
		return NULL;
	}
	*f = (struct flow){
		.kind = HANDLE_FLOW,
		.of = b,
		.seq = is->seq,
		.peer = (uint32_t)e->peer,
		.channel = (uint16_t)e->channel,
		.is_send = e->is_send,
		.is_direct = is->kind == COLL_SENDRECV,
		.algorithm = call->algorithm,
		.protocol = call->protocol,
		.n_channels = call->n_channels,
		.n_messages = ((uint64_t)e->n_steps + event_steps - 1) / event_steps,
		.chunk_bytes = e->chunk_bytes > 0 ? (uint64_t)e->chunk_bytes * event_steps : 0,
		.slice_steps = slices,
		.event_steps = event_steps,
		.identity = fill_identity(is->kind, (uint32_t)is->dtype, (int)is->redop),
	};
	for (size_t i = 0; i < FLOW_STEPS; i++)
		f->steps[i] = (struct flow_step){.kind = HANDLE_STEP, .of = f};
	return f;
}

struct flow_step *flow_step(struct flow *f, int step)
{
	uint64_t index = (uint64_t)step / f->event_steps;
	struct flow_step *s = &f->steps[index % FLOW_STEPS];

	s->index = index;
	return s;
}

void flow_end(struct flow *f)
{
	struct bound *b = f->of;

	f->kind = HANDLE_NONE;
	pthread_mutex_lock(&b->lock);
	f->next_free = b->free_flows;
	b->free_flows = f;
	pthread_mutex_unlock(&b->lock);
}
