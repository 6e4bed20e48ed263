/* See message.h. */
#include "nboxd/full/message.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "nboxd/full/own.h"
#include "nboxd/loop/worker.h"

/* --- from real ranks --------------------------------------------------------------- */

/* The communicator that a frame is of. NULL: swallow it, or the worker was refused. */
static struct full_comm *find(struct full *f, struct worker *w, const struct wire_hdr *h)
{
	struct comm *c = NULL;

	if (!comm_frame_member(f->comms, w, h, &c) || c->is_dead || (c->full && c->full->code))
		return NULL;
	if (!c->full) {
		comm_abort(c, NULL, EPROTO,
			   "%s of rank %u, but nboxd has made no id for this communicator",
			   wire_type_name(h->type), h->rank);
		return NULL;
	}
	if (h->peer < c->n_ranks && h->peer != h->rank)
		return c->full;
	full_fail(c->full, EPROTO, "%s of rank %u: no message is to or from rank %u of %u",
		  wire_type_name(h->type), h->rank, h->peer, c->n_ranks);
	return NULL;
}

static struct traffic_at place_of(const struct wire_hdr *h)
{
	return (struct traffic_at){.seq = h->seq,
				   .rank = h->rank,
				   .peer = h->peer,
				   .channel = h->lane};
}

static void fail_if(struct full_comm *fc, int r, const struct err *err)
{
	if (r < 0)
		full_fail(fc, -r, "%s", err->text);
}

int full_on_flow(struct full *f, struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct full_comm *fc = find(f, w, h);
	struct traffic_at at = place_of(h);
	struct err err = {"out of memory"};
	struct traffic_flow flow;
	struct wire_flow m;

	if (!fc)
		return 0;
	memcpy(&m, body, sizeof(m));
	flow = (struct traffic_flow){
		.is_send = m.is_send != 0,
		.reads = h->flags & WIRE_FLOW_READS,
		.algorithm = m.algorithm,
		.protocol = m.protocol,
		.n_channels = m.n_channels,
		.n_messages = m.n_messages,
		.message_bytes = m.message_bytes,
	};
	fail_if(fc, traffic_flow(fc->traffic, &at, &flow, &err), &err);
	return 0;
}

int full_on_want(struct full *f, struct worker *w, const struct wire_hdr *h)
{
	struct full_comm *fc = find(f, w, h);
	struct traffic_at at = place_of(h);
	struct err err = {"out of memory"};

	if (fc)
		fail_if(fc, traffic_want(fc->traffic, &at, h->index, &err), &err);
	return 0;
}

int full_on_message_header(struct full *f, struct worker *w, const struct wire_hdr *h,
			   void **ret_body)
{
	struct full_comm *fc = find(f, w, h);
	struct traffic_at at = place_of(h);
	struct err err = {"out of memory"};
	int r;

	*ret_body = NULL;
	if (!fc)
		return w->state != WORKER_READY;
	if (h->body_bytes && !f->bodies) {
		full_fail(fc, EPROTO,
			  "message %llu of rank %u to rank %u has %llu bytes, but no bodies are "
			  "exchanged (exchange messages)",
			  (unsigned long long)h->index, h->rank, h->peer,
			  (unsigned long long)h->body_bytes);
		return 0;
	}
	r = traffic_expect(fc->traffic, &at, h->index, h->body_bytes, &w->coming, &err);
	fail_if(fc, r, &err);
	if (w->coming)
		*ret_body = w->coming->at;
	return 0;
}

int full_on_message(struct full *f, struct worker *w, const struct wire_hdr *h)
{
	struct traffic_body *body = steal_ptr(w->coming);
	struct full_comm *fc = find(f, w, h);
	struct traffic_at at = place_of(h);
	struct err err = {"out of memory"};

	if (fc)
		fail_if(fc, traffic_arrived(fc->traffic, &at, h->index, body, &err), &err);
	else
		traffic_body_unref(body);
	return 0;
}

void full_worker_gone(struct worker *w)
{
	traffic_body_unref(steal_ptr(w->coming));
}

/* --- to real ranks ----------------------------------------------------------------- */

void full_on_sent(uint64_t cookie)
{
	traffic_body_unref((struct traffic_body *)(uintptr_t)cookie);
}

/* At least @bytes of no meaning. NULL: no memory. */
static struct traffic_body *fill(struct full *f, uint64_t bytes)
{
	if (f->fill && f->fill->bytes >= bytes)
		return f->fill;
	traffic_body_unref(steal_ptr(f->fill));
	f->fill = traffic_body_new(f->bodies, bytes);
	return f->fill;
}

void full_send(void *full, void *tag, const struct traffic_message *m)
{
	struct full *f = full;
	struct full_comm *fc = tag;
	struct worker *w = comm_member(fc->comm, m->at.rank)->worker;
	uint64_t bytes = f->bodies ? m->bytes : 0;
	struct traffic_body *body;
	struct wire_hdr h;

	if (!w || fc->code)
		return;
	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.comm = fc->comm->number;
	h.seq = m->at.seq;
	h.rank = m->at.rank;
	h.peer = m->at.peer;
	h.lane = m->at.channel;
	h.index = m->index;
	h.flags = m->is_identity ? WIRE_MESSAGE_IDENTITY : 0;
	if (link_queued_bytes(w->back ? w->back->link : w->link) > f->queue_max_bytes) {
		full_fail(
			fc, ENOBUFS,
			"rank %u does not take what comes for it: %llu MiB of messages wait, more "
			"than an eighth of this machine's memory, and it asks for more; is its "
			"process stopped?",
			m->at.rank, (unsigned long long)(f->queue_max_bytes >> 20));
		return;
	}
	if (!bytes) {
		worker_send_message(w, &h, NULL);
		return;
	}
	body = m->body ? m->body : fill(f, bytes);
	if (body)
		worker_send_lent(w, &h, body->at, m->reads && !m->is_identity,
				 (uintptr_t)traffic_body_ref(body));
	else
		full_fail(fc, ENOMEM, "no memory for a message of %llu bytes",
			  (unsigned long long)bytes);
}
