/* See transfer.h. A request that NCCL begins goes on a stack that any thread pushes to; one note
 * takes all that are there to the progress thread. Receives wait in a table for their message,
 * sends in a list for the link. */
#include "shim/plugin/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/link.h"
#include "schedule/coll.h"
#include "shim/plugin/fill.h"
#include "shim/progress/note.h"
#include "shim/progress/session.h"
#include "shim/progress/waiters.h"

#define CLOSE_NS (5 * NS_PER_S)
#define LOOK_NS (10 * NS_PER_MS)
#define BUCKETS 4096  /* of 2^n */
#define LINE_MOST 128 /* bytes of a line with a flag; the last one may be short */

static void run_begun(struct note *n);

static struct {
	_Atomic(struct request *) begun; /* the last one first */
	struct note note;                /* posted by whoever finds @begun empty */

	/* The progress thread's. */
	struct request *wanted[BUCKETS];
	struct request *lent;
	struct request *landing; /* whose body a link is about to give us; links do one by one */
	void *staging;           /* where a body with flags lands */
	size_t staging_bytes;
} g = {.note = {.run = run_begun}};

/* --- the proxy's side ------------------------------------------------------------------- */

struct end *end_new(void)
{
	struct end *e = calloc(1, sizeof(*e));

	for (size_t i = 0; e && i < REQUESTS_MAX; i++)
		e->requests[i].of = e;
	return e;
}

struct request *request_get(struct end *e)
{
	int i = __builtin_ffs((int)~e->in_use);

	if (!i)
		return NULL;
	e->in_use |= 1u << (i - 1);
	return &e->requests[i - 1];
}

static void request_put(struct request *r)
{
	r->of->in_use &= ~(1u << (r - r->of->requests));
}

void request_begin(struct request *r)
{
	struct request *first = atomic_load_explicit(&g.begun, memory_order_relaxed);

	comm_ref(r->comm);
	r->is_lent = r->is_landing = false;
	r->to_self = NULL;
	r->got = 0;
	atomic_store_explicit(&r->is_done, false, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->of->n_busy, 1, memory_order_relaxed);
	/* release: run_begun() sees the request, and may post the note again when it has taken all
	 */
	do
		r->next = first;
	while (!atomic_compare_exchange_weak_explicit(&g.begun, &first, r, memory_order_acq_rel,
						      memory_order_relaxed));
	if (!first)
		note_post(&g.note, NOTE_WAKE);
}

bool request_test(struct request *r, size_t *ret_bytes)
{
	/* acquire: pairs with finish(), the bytes are there */
	if (!atomic_load_explicit(&r->is_done, memory_order_acquire))
		return false;
	if (ret_bytes)
		*ret_bytes = r->got;
	request_put(r);
	return true;
}

/* --- the ends of a request ---------------------------------------------------------------- */

static void link_in(struct request **list, struct request *r)
{
	r->next = *list;
	r->to_self = list;
	if (r->next)
		r->next->to_self = &r->next;
	*list = r;
}

static void link_out(struct request *r)
{
	if (!r->to_self)
		return;
	*r->to_self = r->next;
	if (r->next)
		r->next->to_self = r->to_self;
	r->to_self = NULL;
}

static void finish(struct request *r, size_t got)
{
	struct end *e = r->of;
	bool is_closing = atomic_load_explicit(&e->is_closing, memory_order_acquire);

	link_out(r);
	comm_unref(r->comm);
	region_done(r->region);
	r->got = got;
	/* release: request_test() reads what came. Then @r may be in use again, and after the
	 * second store @e be gone. */
	atomic_store_explicit(&r->is_done, true, memory_order_release);
	atomic_fetch_sub_explicit(&e->n_busy, 1, memory_order_release);
	if (is_closing)
		waiters_signal();
}

/* The element that changes nothing, for as much as a kernel may read. */
static void fill(struct request *r)
{
	uint64_t identity = r->flow->identity;

	if (r->protocol == PLUGIN_LL) {
		fill_lines(r->data, r->bytes, NULL, identity, PLUGIN_LL, r->step);
		return;
	}
	if (!identity) {
		region_clear(r->region, r->data, r->bytes);
		if (r->protocol == PLUGIN_LL128)
			fill_flags(r->data, r->bytes, r->step);
		return;
	}
	region_mark(r->region, r->data, r->bytes);
	if (r->protocol == PLUGIN_LL128)
		fill_lines(r->data, r->bytes, NULL, identity, PLUGIN_LL128, r->step);
	else
		fill_words(r->data, r->bytes, identity);
}

/* Its communicator has failed: NCCL's kernels shall end. */
static void give_up(struct request *r)
{
	if (!r->flow->is_send)
		fill(r);
	finish(r, r->flow->is_send ? 0 : r->bytes);
}

/* --- requests that have begun --------------------------------------------------------------- */

static bool is_dead(struct comm *c)
{
	return comm_error(c) || !session_link();
}

static struct request **bucket(const struct comm *c, uint64_t seq, uint32_t peer, uint16_t channel,
			       uint64_t index)
{
	uint64_t key = (uintptr_t)c ^ seq * 31 ^ (uint64_t)peer << 32 ^ (uint64_t)channel << 20 ^
		       index << 8;

	return &g.wanted[key * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

static bool has_flags(const struct request *r)
{
	return r->protocol != PLUGIN_SIMPLE;
}

/* Where the bodies of a receive can be read to, which others are copied to. NULL: nowhere. */
static struct link_memory *reads_to(const struct request *r)
{
	struct link_memory *to;

	if (has_flags(r) || !link_reads(session_link()) ||
	    session_welcome()->exchange != EXCHANGE_PAYLOAD ||
	    !region_lend(r->region, session_link(), &to))
		return NULL;
	return to;
}

static struct wire_hdr header(const struct request *r, enum wire_type type, size_t bytes)
{
	const struct flow *f = r->flow;
	struct wire_hdr h;

	wire_hdr_init(&h, type, bytes);
	h.comm = r->comm->number;
	h.rank = r->comm->rank;
	h.peer = f->peer;
	h.seq = f->seq;
	h.lane = f->channel;
	if (type != WIRE_FLOW)
		h.index = r->index;
	else if (!f->is_send && reads_to(r))
		h.flags = WIRE_FLOW_READS;
	return h;
}

static int send_copy(const struct request *r, enum wire_type type, const void *body, size_t bytes)
{
	struct wire_hdr h = header(r, type, bytes);

	return link_send_copy(session_link(), &h, body);
}

static int tell_flow(struct request *r)
{
	struct flow *f = r->flow;
	struct wire_flow body = {
		.is_send = f->is_send,
		.algorithm = f->algorithm,
		.protocol = f->is_direct ? r->protocol : f->protocol,
		.n_channels = f->n_channels,
		.n_messages = f->n_messages,
		.message_bytes = r->message_bytes,
	};

	if (f->is_told)
		return 0;
	f->is_told = true;
	return send_copy(r, WIRE_FLOW, &body, sizeof(body));
}

static int send_message(struct request *r)
{
	bool has_body = r->bytes && session_welcome()->exchange == EXCHANGE_PAYLOAD;
	struct link_memory *from;
	struct wire_hdr h;
	int e;

	if (!has_body || !region_lend(r->region, session_link(), &from)) {
		e = send_copy(r, WIRE_MESSAGE, has_body ? r->data : NULL, has_body ? r->bytes : 0);
		if (!e)
			finish(r, r->bytes);
		return e;
	}
	h = header(r, WIRE_MESSAGE, r->bytes);
	e = link_send_from(session_link(), &h, r->data, from, (uintptr_t)r);
	if (e)
		return e;
	r->is_lent = true;
	link_in(&g.lent, r);
	return 0;
}

static void begin(struct request *r)
{
	struct flow *f = r->flow;
	int e;

	region_begin(r->region);
	if (is_dead(r->comm)) {
		give_up(r);
		return;
	}
	e = tell_flow(r);
	if (!e && f->is_send) {
		e = send_message(r);
	} else if (!e) {
		link_in(bucket(r->comm, f->seq, f->peer, f->channel, r->index), r);
		e = send_copy(r, WIRE_WANT, NULL, 0);
	}
	if (!e)
		return;
	if (e != -EPIPE) /* else the link says so itself */
		flow_refuse(f->of, "op %llu: message %llu %s rank %u on channel %u: %s",
			    wire_seq_number(f->seq), (unsigned long long)r->index,
			    f->is_send ? "to" : "from", f->peer, f->channel, strerror(-e));
	if (f->is_send)
		give_up(r); /* receives wait for failed() */
}

static void run_begun(struct note *n)
{
	/* acquire: pairs with request_begin() */
	struct request *r = atomic_exchange_explicit(&g.begun, NULL, memory_order_acq_rel);
	struct request *first = NULL;

	(void)n;
	while (r) {
		struct request *before = r->next;

		r->next = first;
		first = r;
		r = before;
	}
	while (first) {
		r = first;
		first = r->next;
		r->next = NULL;
		begin(r);
	}
}

/* --- what comes ------------------------------------------------------------------------------ */

static struct request *find(const struct comm *c, const struct wire_hdr *h)
{
	struct request *r = *bucket(c, h->seq, h->peer, h->lane, h->index);

	for (; r; r = r->next) {
		const struct flow *f = r->flow;

		if (r->comm == c && f->seq == h->seq && f->peer == h->peer &&
		    f->channel == h->lane && r->index == h->index)
			return r;
	}
	return NULL;
}

static void *staging_for(size_t bytes)
{
	void *bigger;

	if (bytes <= g.staging_bytes)
		return g.staging;
	bigger = malloc(bytes);
	if (!bigger)
		return NULL;
	free(g.staging);
	g.staging = bigger;
	g.staging_bytes = bytes;
	return bigger;
}

static bool is_identity(const struct wire_hdr *h)
{
	return h->flags & WIRE_MESSAGE_IDENTITY;
}

/* The bytes of an identity mean nothing, and may be some more than NCCL has room for. */
static bool fits(const struct request *r, const struct wire_hdr *h)
{
	return is_identity(h) || h->body_bytes <= r->bytes;
}

/* The flags in a body are its sender's, and a kernel that waits for flags reads on as they come: so
 * such a body lands elsewhere. An identity lands nowhere. */
static void *body_for(struct comm *c, const struct wire_hdr *h)
{
	struct request *r = find(c, h);
	void *at = NULL;

	if (!r || !fits(r, h))
		return NULL; /* received() says so */
	if (!is_identity(h)) {
		at = has_flags(r) ? staging_for(h->body_bytes + LINE_MOST) : r->data;
		if (!at)
			return NULL;
	}
	if (at == r->data)
		link_lands_in(session_link(), reads_to(r));
	r->is_landing = true;
	g.landing = r;
	return at;
}

static int misfit(const struct request *r, const struct wire_hdr *h, struct err *err)
{
	char why[128] = "NCCL has not posted its receive";

	if (r && !fits(r, h))
		snprintf(why, sizeof(why), "it has %llu bytes, NCCL's buffer %zu",
			 (unsigned long long)h->body_bytes, r->bytes);
	else if (r)
		snprintf(why, sizeof(why), "no memory for its bytes");
	return err_set(err, EPROTO, "op %llu: message %llu from rank %u on channel %u: %s",
		       wire_seq_number(h->seq), (unsigned long long)h->index, h->peer, h->lane,
		       why);
}

static int received(struct comm *c, const struct wire_hdr *h, struct err *err)
{
	bool has_data = session_welcome()->exchange == EXCHANGE_PAYLOAD && !is_identity(h);
	struct request *r = h->body_bytes ? g.landing : c ? find(c, h) : NULL;

	if (!r) {
		if (!c || is_dead(c))
			return 0;
		return misfit(find(c, h), h, err);
	}
	g.landing = NULL;
	r->is_landing = false;
	if (atomic_load_explicit(&r->of->is_closing, memory_order_relaxed)) {
		finish(r, 0);
		return 0;
	}
	if (!is_identity(h))
		region_mark(r->region, r->data, h->body_bytes);
	if (is_dead(r->comm)) {
		give_up(r);
		return 0;
	}
	if (!has_data)
		fill(r);
	else if (has_flags(r))
		fill_lines(r->data, h->body_bytes, g.staging, 0, r->protocol, r->step);
	finish(r, has_data ? h->body_bytes : r->bytes);
	return 0;
}

static void sent(uint64_t cookie)
{
	struct request *r = (struct request *)(uintptr_t)cookie;

	finish(r, r->bytes);
}

/* Bodies that a link has or fills end with it. */
static void failed(struct comm *c)
{
	bool is_lost = !session_link();

	if (is_lost) {
		g.landing = NULL;
		while (g.lent)
			finish(g.lent, 0);
	}
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct request *r = g.wanted[i], *next; r; r = next) {
			next = r->next;
			if (r->comm == c && (is_lost || !r->is_landing))
				give_up(r);
		}
	}
}

static void passed(struct comm *c, uint64_t seq)
{
	calls_passed(c, seq);
}

const struct traffic_events transfer_events = {
	.body_for = body_for,
	.received = received,
	.sent = sent,
	.failed = failed,
	.passed = passed,
};

/* --- the end of a connection -------------------------------------------------------------- */

struct closing {
	struct note note;
	struct end *of;
	const struct region *region; /* NULL: all */
};

static void run_closing(struct note *n)
{
	CLEANUP(freep) struct closing *c = container_of(n, struct closing, note);

	for (size_t i = 0; i < REQUESTS_MAX; i++) {
		struct request *r = &c->of->requests[i];

		if (r->to_self && !r->is_lent && !r->is_landing &&
		    (!c->region || r->region == c->region))
			finish(r, 0);
	}
	/* release: pairs with end_free() */
	atomic_fetch_sub_explicit(&c->of->n_busy, 1, memory_order_release);
	waiters_signal();
}

static bool is_busy(const struct end *e, const struct region *region)
{
	/* acquire: pairs with finish() */
	if (!region)
		return atomic_load_explicit(&e->n_busy, memory_order_acquire);
	for (size_t i = 0; i < REQUESTS_MAX; i++) {
		const struct request *r = &e->requests[i];

		if (e->in_use >> i & 1 && r->region == region &&
		    !atomic_load_explicit(&r->is_done, memory_order_acquire))
			return true;
	}
	return false;
}

void end_settle(struct end *e, const struct region *region)
{
	uint64_t now = clock_now_ns(), until = now + CLOSE_NS;
	struct closing *c;

	if (!is_busy(e, region) || note_is_child())
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->note.run = run_closing;
	c->of = e;
	c->region = region;
	atomic_fetch_add_explicit(&e->n_busy, 1, memory_order_relaxed); /* the note */
	note_post(&c->note, NOTE_WAKE);
	pthread_mutex_lock(&waiters.lock);
	for (; is_busy(e, region) && now < until; now = clock_now_ns())
		waiters_wait(now + LOOK_NS);
	pthread_mutex_unlock(&waiters.lock);
}

void end_free(struct end *e)
{
	if (!e)
		return;
	atomic_store_explicit(&e->is_closing, true, memory_order_release);
	end_settle(e, NULL);
	if (!is_busy(e, NULL))
		free(e);
}
