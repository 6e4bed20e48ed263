/* See worker.h. Callbacks run inside link_progress(), where no link may be freed: they only change
 * states, and workers_remove_over() frees. */
#include "nboxd/loop/worker.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host-facts.h"
#include "base/log.h"
#include "links/endpoint.h"
#include "nboxd/loop/warn.h"

#define BIT(n) (1u << (n))
#define HELLO_NS (10 * NS_PER_S)
#define DRAIN_NS NS_PER_S
#define LAST_WORDS_MAX 1024            /* rounds of a link for what a worker sent before it left */
#define QUEUE_MAX (UINT64_C(16) << 20) /* answers to a peer that does not read */

static int hello_on_frame(struct worker *w, const struct wire_hdr *h, const void *body);
static int ready_on_frame(struct worker *w, const struct wire_hdr *h, const void *body);
static int client_on_frame(struct worker *w, const struct wire_hdr *h, const void *body);
static int back_on_frame(struct worker *w, const struct wire_hdr *h, const void *body);
static int leaving_on_frame(struct worker *w, const struct wire_hdr *h, const void *body);
static int deaf_on_frame(struct worker *w, const struct wire_hdr *h, const void *body);

const struct worker_state_info worker_states[WORKER_STATES] = {
	[WORKER_HELLO] = {"hello",
			  BIT(WORKER_READY) | BIT(WORKER_CLIENT) | BIT(WORKER_BACK) |
				  BIT(WORKER_DRAINING) | BIT(WORKER_CLOSED),
			  hello_on_frame},
	[WORKER_READY] = {"ready", BIT(WORKER_LEAVING) | BIT(WORKER_DRAINING) | BIT(WORKER_CLOSED),
			  ready_on_frame},
	[WORKER_CLIENT] = {"client", BIT(WORKER_DRAINING) | BIT(WORKER_CLOSED), client_on_frame},
	[WORKER_BACK] = {"back", BIT(WORKER_DRAINING) | BIT(WORKER_CLOSED), back_on_frame},
	[WORKER_LEAVING] = {"leaving", BIT(WORKER_DRAINING) | BIT(WORKER_CLOSED), leaving_on_frame},
	[WORKER_DRAINING] = {"draining", BIT(WORKER_CLOSED), deaf_on_frame},
	[WORKER_CLOSED] = {"closed", 0, deaf_on_frame},
};

char *worker_name(const struct worker *w, char *buf, size_t size)
{
	if (w->pid && w->is_client)
		snprintf(buf, size, "status client (pid %u on %.40s)", w->pid, w->host);
	else if (w->pid)
		snprintf(buf, size, "worker %u (pid %u on %.40s)", w->number, w->pid, w->host);
	else
		snprintf(buf, size, "worker %u (%.60s)", w->number, link_peer(w->link));
	return buf;
}

void worker_set_state(struct worker *w, enum worker_state to)
{
	assert(worker_states[w->state].next & BIT(to));
	log_debug("worker %u: %s -> %s", w->number, worker_states[w->state].name,
		  worker_states[to].name);
	w->state = to;
}

void worker_send(struct worker *w, const struct wire_hdr *h, const void *body)
{
	if (w->state == WORKER_CLOSED || w->state == WORKER_DRAINING)
		return;
	if (link_send_copy(w->link, h, body) == -ENOMEM)
		worker_refuse(w, ENOMEM, "nboxd is out of memory");
}

void worker_send_message(struct worker *w, const struct wire_hdr *h, const void *body)
{
	if (w->state == WORKER_CLOSED || w->state == WORKER_DRAINING)
		return;
	w->workers->has_sent = true;
	if (link_send(w->back ? w->back->link : w->link, h, body, 0) == -ENOMEM)
		worker_refuse(w, ENOMEM, "nboxd is out of memory");
}

void worker_send_lent(struct worker *w, const struct wire_hdr *h, const void *body, bool is_offered,
		      uint64_t cookie)
{
	int (*send)(struct link *, const struct wire_hdr *, const void *, uint64_t) =
		is_offered ? link_send_offer : link_send;
	struct worker *on = w->back ? w->back : w;
	int r = -EPIPE;

	if (w->state != WORKER_CLOSED && w->state != WORKER_DRAINING) {
		w->workers->has_sent = true;
		r = lent_reserve(&on->lent);
		r = r < 0 ? r : send(on->link, h, body, cookie);
	}
	if (r == 0)
		lent_add(&on->lent, cookie, h->body_bytes);
	else
		w->workers->sink->on_sent(w->workers->ctx, cookie);
	if (r == -ENOMEM)
		worker_refuse(w, ENOMEM, "nboxd is out of memory");
}

/* All that its link still has: it will not look at it any more. */
static void take_back(struct worker *w)
{
	while (w->lent.n)
		w->workers->sink->on_sent(w->workers->ctx, lent_take(&w->lent));
}

int worker_refuse(struct worker *w, int code, const char *fmt, ...)
{
	struct wire_text text = {.code = code};
	char name[WORKER_NAME_MAX];
	struct wire_hdr h;
	va_list ap;

	if (w->state == WORKER_CLOSED || w->state == WORKER_DRAINING)
		return 0;
	va_start(ap, fmt);
	vsnprintf(text.text, sizeof(text.text), fmt, ap);
	va_end(ap);
	if (w->workers->is_stopping)
		log_info("%s: %s", worker_name(w, name, sizeof(name)), text.text);
	else if (w->state == WORKER_HELLO)
		warn_stranger("%s: %s", worker_name(w, name, sizeof(name)), text.text);
	else
		warn_run("%s: %s", worker_name(w, name, sizeof(name)), text.text);
	wire_hdr_init(&h, WIRE_ERROR, sizeof(text));
	link_send_copy(w->link, &h, &text);
	worker_set_state(w, WORKER_DRAINING);
	w->deadline_ns = clock_now_ns() + DRAIN_NS;
	return 0;
}

/* --- frames ------------------------------------------------------------------ */

static bool is_same_token(const uint8_t *a, const uint8_t *b)
{
	uint8_t difference = 0;

	for (size_t i = 0; i < WIRE_TOKEN_BYTES; i++) /* no early end: tells nothing by time */
		difference |= a[i] ^ b[i];
	return difference == 0;
}

static void welcome(struct worker *w)
{
	struct wire_welcome m = w->workers->welcome;
	struct wire_hdr h;

	if (w->workers->classes && w->state == WORKER_READY) {
		wire_hdr_init(&h, WIRE_CLASSES, m.world * sizeof(*w->workers->classes));
		worker_send(w, &h, w->workers->classes);
	}
	m.now_ns = clock_now_ns();
	m.worker = w->number;
	m.same_clock = w->is_same_clock;
	wire_hdr_init(&h, WIRE_WELCOME, sizeof(m));
	worker_send(w, &h, &m);
}

/* A client, and a worker's second connection, are none of the job's workers. */
static void note_most(struct workers *ws)
{
	const struct worker *w;
	uint32_t n = 0;

	DL_FOREACH(ws->list, w)
		n += w->state == WORKER_READY || w->state == WORKER_LEAVING;
	if (n > ws->n_ready_max)
		ws->n_ready_max = n;
}

bool worker_is_here(const struct worker *w)
{
	struct host_facts h;

	host_facts_read(&h);
	return w->is_same_clock && strncmp(w->host, h.host, sizeof(w->host) - 1) == 0;
}

/* The second connection of the worker that @m names. */
static int join(struct worker *w, const struct wire_hello *m)
{
	struct worker *main;

	DL_FOREACH(w->workers->list, main)
		if (main->state == WORKER_READY && main->number == m->worker && main->pid == m->pid)
			break;
	if (!main || main->back || main->n_members)
		return worker_refuse(w, EPROTO, "no worker %u waits for a second connection",
				     m->worker);
	main->back = w;
	w->back = main;
	worker_set_state(w, WORKER_BACK);
	log_info("worker %u: messages towards it go over a second connection%s", main->number,
		 link_reaches_gpus(w->link) ? ", into memory of its GPU" : "");
	welcome(w);
	return 0;
}

/* Neither connection lives without the other. Inside callbacks: frees nothing. */
static void part(struct worker *w)
{
	struct worker *other = w->back;

	if (!other)
		return;
	w->back = other->back = NULL;
	if (other->state == WORKER_BACK) {
		worker_set_state(other, WORKER_CLOSED);
		return;
	}
	/* a BYE may lie in the other socket, behind much else */
	for (int i = 0; i < LAST_WORDS_MAX && other->state == WORKER_READY; i++)
		if (link_progress(other->link) <= 0)
			break;
	if (other->state == WORKER_READY)
		worker_refuse(other, EPIPE, "its second connection was lost");
}

static int hello_on_frame(struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct wire_hello m;
	char name[WORKER_NAME_MAX];

	if (h->type != WIRE_HELLO)
		return worker_refuse(w, EPROTO, "%s before HELLO", wire_type_name(h->type));
	memcpy(&m, body, sizeof(m));
	w->pid = m.pid;
	w->is_client = m.role == WIRE_ROLE_CLIENT;
	memcpy(w->host, m.host, sizeof(w->host));
	for (char *p = w->host; *p; p++) /* plain ASCII: it goes into logs and JSON */
		if (*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '"' || *p == '\\')
			*p = '?';
	if (!is_same_token(m.token, w->workers->token))
		return worker_refuse(
			w, EACCES,
			"wrong token: NBOX_TOKEN of the worker and of nboxd must be equal");
	w->hello_ns = clock_now_ns();
	w->is_same_clock = memcmp(m.clock_id, w->workers->clock_id, sizeof(m.clock_id)) == 0;
	if (m.role == WIRE_ROLE_BACK)
		return join(w, &m);
	worker_set_state(w, m.role == WIRE_ROLE_WORKER ? WORKER_READY : WORKER_CLIENT);
	if (w->state == WORKER_READY) {
		note_most(w->workers);
		w->workers->sink->on_ready(w->workers->ctx, w);
	}
	log_info("%s: connected over %s%s", worker_name(w, name, sizeof(name)), link_kind(w->link),
		 w->is_same_clock || w->is_client ? "" : ", another clock");
	welcome(w);
	return 0;
}

static int answer_ping(struct worker *w, const void *body)
{
	struct wire_ping m;
	struct wire_hdr h;

	memcpy(&m, body, sizeof(m));
	m.daemon_ns = clock_now_ns();
	wire_hdr_init(&h, WIRE_PING, sizeof(m));
	worker_send(w, &h, &m);
	return 0;
}

static int answer_status(struct worker *w)
{
	CLEANUP(freep) char *text = w->workers->sink->on_status(w->workers->ctx);
	struct wire_hdr h;

	if (!text)
		return worker_refuse(w, ENOMEM, "nboxd is out of memory");
	wire_hdr_init(&h, WIRE_STATUS, strlen(text));
	worker_send(w, &h, text);
	return 0;
}

/* Whether the peer lets answers pile up; it is refused then. */
static bool is_choked(struct worker *w)
{
	if (link_queued_bytes(w->link) < QUEUE_MAX + w->lent.bytes) /* which it may read later */
		return false;
	worker_refuse(w, ENOBUFS, "asks on and on, but does not read the answers");
	return true;
}

static int ready_on_frame(struct worker *w, const struct wire_hdr *h, const void *body)
{
	if (h->type == WIRE_PING)
		return is_choked(w) ? 0 : answer_ping(w, body);
	if (h->type == WIRE_STATUS)
		return is_choked(w) ? 0 : answer_status(w);
	return w->workers->sink->on_frame(w->workers->ctx, w, h, body);
}

static int client_on_frame(struct worker *w, const struct wire_hdr *h, const void *body)
{
	if (h->type == WIRE_PING)
		return is_choked(w) ? 0 : answer_ping(w, body);
	if (h->type == WIRE_STATUS)
		return is_choked(w) ? 0 : answer_status(w);
	if (h->type == WIRE_BYE)
		return 0;
	return worker_refuse(w, EPROTO, "a client may not send %s", wire_type_name(h->type));
}

static int back_on_frame(struct worker *w, const struct wire_hdr *h, const void *body)
{
	(void)body;
	return worker_refuse(w, EPROTO,
			     "%s on a connection that is for messages towards the worker",
			     wire_type_name(h->type));
}

static int leaving_on_frame(struct worker *w, const struct wire_hdr *h, const void *body)
{
	(void)body;
	return worker_refuse(w, EPROTO, "%s after BYE", wire_type_name(h->type));
}

static int deaf_on_frame(struct worker *w, const struct wire_hdr *h, const void *body)
{
	(void)w;
	(void)h;
	(void)body;
	return 0;
}

/* --- the link's callbacks ------------------------------------------------------ */

static int worker_on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	struct worker *w = owner;

	(void)l;
	if (w->state == WORKER_DRAINING || w->state == WORKER_CLOSED)
		return LINK_HOLD;
	/* the link makes room for a body before it has come: a stranger gets room for a
	 * HELLO only */
	if (h->type != WIRE_MESSAGE &&
	    h->body_bytes > (w->state != WORKER_HELLO ? WIRE_CONTROL_MAX
			     : h->type == WIRE_HELLO  ? sizeof(struct wire_hello)
						      : 0)) {
		if (w->state == WORKER_HELLO && h->type != WIRE_HELLO)
			worker_refuse(w, EPROTO, "%s before HELLO", wire_type_name(h->type));
		else
			worker_refuse(w, EPROTO, "%s frame of %llu bytes", wire_type_name(h->type),
				      (unsigned long long)h->body_bytes);
		return LINK_HOLD;
	}
	if (h->type != WIRE_MESSAGE)
		return 0;
	if (w->state != WORKER_READY) {
		worker_refuse(w, EPROTO, "MESSAGE before HELLO");
		return LINK_HOLD;
	}
	return w->workers->sink->on_message_header(w->workers->ctx, w, h, ret_body) ? LINK_HOLD : 0;
}

static int worker_on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct worker *w = owner;
	struct err err = {""};

	(void)l;
	w->n_frames++;
	if (h->type != WIRE_MESSAGE && wire_body_check(h, body, &err) < 0) {
		worker_refuse(w, EPROTO, "%s", err.text);
		return 0;
	}
	return worker_states[w->state].on_frame(w, h, body);
}

static void worker_on_sent(void *owner, struct link *l, uint64_t cookie)
{
	struct worker *w = owner;

	(void)l;
	if (cookie) /* in the order in which they were lent */
		w->workers->sink->on_sent(w->workers->ctx, lent_take(&w->lent));
}

static void worker_on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct worker *w = owner;
	char name[WORKER_NAME_MAX];

	(void)l;
	take_back(w);
	why = why && why[0] ? why : code < 0 ? strerror(-code) : "";
	if (code < 0 && w->state == WORKER_HELLO)
		warn_stranger("%s: link closed: %s", worker_name(w, name, sizeof(name)), why);
	else if (code < 0 && w->state != WORKER_DRAINING && w->state != WORKER_LEAVING)
		warn_run("%s: link closed: %s", worker_name(w, name, sizeof(name)), why);
	else
		log_info("%s: link closed%s%s", worker_name(w, name, sizeof(name)),
			 why[0] ? ": " : "", why);
	if (w->state == WORKER_READY)
		w->workers->sink->on_gone(w->workers->ctx, w, why[0] ? why : strerror(ECONNRESET));
	if (w->state != WORKER_CLOSED)
		worker_set_state(w, WORKER_CLOSED);
	part(w);
}

static const struct link_events worker_link_events = {
	.on_header = worker_on_header,
	.on_frame = worker_on_frame,
	.on_sent = worker_on_sent,
	.on_closed = worker_on_closed,
};

/* --- life ---------------------------------------------------------------------- */

int worker_accept(struct workers *ws, struct listener *from, struct worker **ret, struct err *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(err, ENOMEM, "out of memory");
	w->workers = ws;
	r = link_accept(from, &worker_link_events, w, &w->link, err);
	if (r) {
		free(w);
		return r;
	}
	w->number = ws->n_accepted++;
	w->deadline_ns = clock_now_ns() + HELLO_NS;
	DL_APPEND(ws->list, w);
	ws->n++;
	*ret = w;
	return 0;
}

void worker_remove(struct worker *w)
{
	struct workers *ws = w->workers;

	part(w);
	/* one that was refused while it was ready still has members */
	ws->sink->on_gone(ws->ctx, w, "nboxd has closed its link");
	if (ws->turn == w)
		ws->turn = w->next;
	DL_DELETE(ws->list, w);
	ws->n--;
	if (w->event)
		event_free(w->event);
	link_free(w->link);
	take_back(w);
	lent_deinit(&w->lent);
	free(w);
}

void worker_oust(struct worker *w)
{
	worker_refuse(w, EMFILE, "another connection needs its place, and it has said nothing yet");
	worker_progress(w); /* the sentence goes out if it can */
	worker_remove(w);
}

bool worker_progress(struct worker *w)
{
	return w->state != WORKER_CLOSED && link_progress(w->link) != 0;
}

bool worker_has_gone(struct worker *w)
{
	/* Armed, so that it looks for its end, which links do seldom while frames keep nboxd awake.
	 * Several times, because frames, and bells of shm, may lie before the end. */
	for (int i = 0; i < 8 && w->state != WORKER_CLOSED; i++) {
		link_arm(w->link);
		worker_progress(w);
	}
	return w->state == WORKER_CLOSED;
}

/* --- all of them --------------------------------------------------------------- */

/* Links are added only by libevent's callbacks and removed only by workers_remove_over(). */
bool workers_progress(struct workers *ws)
{
	struct worker *first = ws->turn ? ws->turn : ws->list, *w = first;
	bool moved = false;

	if (!first)
		return false;
	do {
		moved = worker_progress(w) || moved;
		w = w->next ? w->next : ws->list;
	} while (w != first);
	ws->turn = first->next;
	return moved;
}

static bool is_over(const struct worker *w, uint64_t now_ns)
{
	if (w->state == WORKER_DRAINING)
		return link_queued_bytes(w->link) == 0 || now_ns >= w->deadline_ns;
	return w->state == WORKER_CLOSED;
}

void workers_remove_over(struct workers *ws, uint64_t now_ns)
{
	struct worker *w, *next;

	DL_FOREACH_SAFE(ws->list, w, next)
		if (is_over(w, now_ns))
			worker_remove(w);
}

bool workers_tick(struct workers *ws, uint64_t now_ns)
{
	bool has_hello = false;
	struct worker *w;

	DL_FOREACH(ws->list, w) {
		if (w->state != WORKER_HELLO)
			continue;
		has_hello = true;
		if (now_ns >= w->deadline_ns)
			worker_refuse(w, ETIMEDOUT, "said no HELLO within %llu s",
				      (unsigned long long)(HELLO_NS / NS_PER_S));
	}
	return has_hello;
}

bool workers_any_stays(const struct workers *ws)
{
	const struct worker *w;

	DL_FOREACH(ws->list, w)
		if (w->state != WORKER_LEAVING)
			return true;
	return false;
}

struct worker *workers_oldest_silent(struct workers *ws, const void *but)
{
	struct worker *w;

	DL_FOREACH(ws->list, w) {
		if (w == but || w->state != WORKER_HELLO)
			continue;
		worker_progress(w); /* its HELLO may lie there, unread */
		if (w->state == WORKER_HELLO)
			return w;
	}
	return NULL;
}
