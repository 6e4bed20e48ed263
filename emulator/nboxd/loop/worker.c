/* See worker.h. Callbacks run inside link_progress(), where no link may be freed:
 * they only change states; server-loop.c removes who is over. */
#include "nboxd/loop/worker.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host-facts.h"
#include "base/log.h"
#include "links/endpoint.h"
#include "nboxd/comm/comm.h"
#include "nboxd/comm/groups.h"
#include "nboxd/job/notes.h"
#include "nboxd/job/results.h"
#include "nboxd/loop/capacity.h"
#include "nboxd/loop/warn.h"
#include "nboxd/op/message.h"
#include "nboxd/op/op.h"

#define BIT(n) (1u << (n))
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
	if (link_send(w->back ? w->back->link : w->link, h, body, 0) == -ENOMEM)
		worker_refuse(w, ENOMEM, "nboxd is out of memory");
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
	if (w->server->is_stopping)
		log_info("%s: %s", worker_name(w, name, sizeof(name)), text.text);
	else if (w->state == WORKER_HELLO)
		warn_stranger("%s: %s", worker_name(w, name, sizeof(name)), text.text);
	else
		warn_run("%s: %s", worker_name(w, name, sizeof(name)), text.text);
	wire_hdr_init(&h, WIRE_ERROR, sizeof(text));
	link_send_copy(w->link, &h, &text);
	worker_set_state(w, WORKER_DRAINING);
	w->deadline_ns = clock_now_ns() + SERVER_DRAIN_NS;
	return 0;
}

/* "world rank 3, worker 1 (pid 17 on node0)"; its first rank. */
static const char *rank_name(const struct worker *w, char *buf, size_t size)
{
	const struct server *s = w->server;
	char name[WORKER_NAME_MAX];

	worker_name(w, name, sizeof(name));
	snprintf(buf, size, "%s", name);
	for (size_t i = s->cluster.n_real; i-- > 0;)
		if (s->players[i] == w)
			snprintf(buf, size, "world rank %u, %s", s->cluster.real[i], name);
	return buf;
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
	const struct config *c = w->server->config;
	struct wire_welcome m = {
		.now_ns = clock_now_ns(),
		.worker = w->number,
		.world = c->world,
		.n_nodes = c->topology.n_nodes,
		.gpus_per_node = c->topology.gpus_per_node,
		.n_real = (uint32_t)c->n_real,
		.exchange = c->exchange,
		.data = c->data,
		.same_clock = w->is_same_clock,
		.wants_groups = groups_are_wanted(w->server),
	};
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_WELCOME, sizeof(m));
	worker_send(w, &h, &m);
}

/* For --once: neither who asks for the status nor a worker's second connection is one of the job's.
 */
static void note_most(struct server *s)
{
	const struct worker *w;
	uint32_t n = 0;

	DL_FOREACH(s->workers, w)
		n += w->state == WORKER_READY || w->state == WORKER_LEAVING;
	if (n > s->n_workers_max)
		s->n_workers_max = n;
}

/* Of the first worker; its pid means something here if it is on this host (and in this container:
 * the same name). */
static void note_command(const struct worker *w)
{
	struct server *s = w->server;
	struct host_facts h;

	if (s->has_command || !s->config->out || !w->is_same_clock)
		return;
	host_facts_read(&h);
	s->has_command = strncmp(w->host, h.host, sizeof(w->host) - 1) == 0;
	if (s->has_command)
		results_note_command(s->config, w->pid);
}

/* The second connection of the worker that @m names. */
static int join(struct worker *w, const struct wire_hello *m)
{
	struct worker *main;

	DL_FOREACH(w->server->workers, main)
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
	if (!is_same_token(m.token, w->server->config->token))
		return worker_refuse(
			w, EACCES,
			"wrong token: NBOX_TOKEN of the worker and of nboxd must be equal");
	w->hello_ns = clock_now_ns();
	w->is_same_clock = memcmp(m.boot_id, w->server->boot_id, sizeof(m.boot_id)) == 0;
	if (m.role == WIRE_ROLE_BACK)
		return join(w, &m);
	worker_set_state(w, m.role == WIRE_ROLE_WORKER ? WORKER_READY : WORKER_CLIENT);
	if (w->state == WORKER_READY) {
		note_most(w->server);
		note_command(w);
	}
	log_info("%s: connected over %s%s", worker_name(w, name, sizeof(name)), link_kind(w->link),
		 w->is_same_clock || w->is_client ? "" : ", another host");
	welcome(w);
	return 0;
}

static int answer_ping(struct worker *w, const void *body)
{
	struct wire_ping m;
	struct wire_hdr h;

	memcpy(&m, body, sizeof(m));
	m.daemon_ns = clock_now_ns();
	w->clock_error_ns = m.rtt_ns / 2; /* the last one knows best */
	wire_hdr_init(&h, WIRE_PING, sizeof(m));
	worker_send(w, &h, &m);
	return 0;
}

static int answer_status(struct worker *w)
{
	CLEANUP(freep) char *text = status_json(w->server);
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
	if (link_queued_bytes(w->link) < QUEUE_MAX)
		return false;
	worker_refuse(w, ENOBUFS, "asks on and on, but does not read the answers");
	return true;
}

static int ready_on_frame(struct worker *w, const struct wire_hdr *h, const void *body)
{
	char name[WORKER_NAME_MAX + 24];

	switch (h->type) {
	case WIRE_COMM_INIT: /* its clock is known by now */
		record_clock_error(w->server->ops.record, w->clock_error_ns);
		return gather_on_init(w, h, body);
	case WIRE_GROUP:
		return groups_on_told(w, h, body);
	case WIRE_NOTE:
		return notes_on_told(w, body);
	case WIRE_COMM_SPLIT:
		return gather_on_split(w, h, body);
	case WIRE_COMM_SHRINK:
		return gather_on_shrink(w, h, body);
	case WIRE_COMM_FREE:
		return comm_on_free(w, h);
	case WIRE_MEET:
		return meet_on_promise(w, h);
	case WIRE_LOCAL_ID:
		return meet_on_id(w, h, body);
	case WIRE_ABORT:
		return comm_on_abort(w, h, body);
	case WIRE_ARRIVE:
		return op_on_arrive(&w->server->ops, w, h, body);
	case WIRE_MESSAGE:
		return op_on_message(&w->server->ops, w, h, body);
	case WIRE_DONE:
		return op_on_done(&w->server->ops, w, h, body);
	case WIRE_PING:
		return is_choked(w) ? 0 : answer_ping(w, body);
	case WIRE_STATUS:
		return is_choked(w) ? 0 : answer_status(w);
	case WIRE_BYE:
		if (h->seq)
			notes_add(w->server, RECORD_ENDS, &w->server->n_ends,
				  "%s, ended with exit code %llu", rank_name(w, name, sizeof(name)),
				  (unsigned long long)h->seq);
		worker_set_state(w, WORKER_LEAVING);
		door_on_bye(w->server, (pid_t)w->pid);
		comm_worker_gone(w->server, w, NULL);
		return 0;
	default:
		return worker_refuse(w, EPROTO, "a worker may not send %s",
				     wire_type_name(h->type));
	}
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
	/* the link makes room for a body before it has come: for who has no token yet, that of a
	 * HELLO */
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
	return op_on_message_header(&w->server->ops, w, h, ret_body) ? LINK_HOLD : 0;
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
	(void)owner;
	(void)l;
	(void)cookie;
}

static void worker_on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct worker *w = owner;
	char name[WORKER_NAME_MAX + 24];

	(void)l;
	why = why && why[0] ? why : code < 0 ? strerror(-code) : "";
	if (code < 0 && w->state == WORKER_HELLO)
		warn_stranger("%s: link closed: %s", worker_name(w, name, sizeof(name)), why);
	else if (code < 0 && w->state != WORKER_DRAINING && w->state != WORKER_LEAVING)
		warn_run("%s: link closed: %s", worker_name(w, name, sizeof(name)), why);
	else
		log_info("%s: link closed%s%s", worker_name(w, name, sizeof(name)),
			 why[0] ? ": " : "", why);
	if (w->state == WORKER_READY) {
		why = why[0] ? why : strerror(ECONNRESET);
		notes_add(w->server, RECORD_ENDS, &w->server->n_ends,
			  "%s, vanished (killed, or ended by _exit()): %s",
			  rank_name(w, name, sizeof(name)), why);
		comm_worker_gone(w->server, w, why);
	}
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

int worker_accept(struct server *s, struct listener *from, struct err *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(err, ENOMEM, "out of memory");
	w->server = s;
	r = link_accept(from, &worker_link_events, w, &w->link, err);
	if (r) {
		free(w);
		return r;
	}
	w->number = s->n_accepted++;
	w->deadline_ns = clock_now_ns() + SERVER_HELLO_NS;
	DL_APPEND(s->workers, w);
	s->n_workers++;
	if (!places_make(s, s->n_workers > SERVER_WORKERS_MAX, w, NULL))
		worker_refuse(w, EMFILE, "more than %d links", SERVER_WORKERS_MAX);
	return 0;
}

bool worker_has_gone(struct worker *w)
{
	if (w->state != WORKER_CLOSED) {
		link_arm(w->link); /* so that it looks for its end, which links do seldom while
				      frames keep nboxd awake */
		worker_progress(w);
	}
	return w->state == WORKER_CLOSED;
}

struct worker *worker_oldest_silent(struct server *s, const struct worker *but)
{
	struct worker *w;

	DL_FOREACH(s->workers, w) {
		if (w == but || w->state != WORKER_HELLO)
			continue;
		worker_progress(w); /* its HELLO may lie there, unread */
		if (w->state == WORKER_HELLO)
			return w;
	}
	return NULL;
}

void worker_oust(struct worker *w)
{
	worker_refuse(w, EMFILE, "another connection needs its place, and it has said nothing yet");
	worker_progress(w); /* the sentence goes out if it can */
	worker_remove(w);
}

void worker_remove(struct worker *w)
{
	struct server *s = w->server;

	part(w);
	/* Whoever was refused while ready still has members. */
	comm_worker_gone(s, w, "nboxd has closed its link");
	if (s->turn == w)
		s->turn = w->next;
	DL_DELETE(s->workers, w);
	s->n_workers--;
	if (w->event)
		event_free(w->event);
	link_free(w->link);
	free(w);
}

bool worker_progress(struct worker *w)
{
	if (w->state == WORKER_CLOSED)
		return false;
	return link_progress(w->link) != 0;
}

bool worker_is_over(const struct worker *w, uint64_t now_ns)
{
	if (w->state == WORKER_CLOSED)
		return true;
	if (w->state == WORKER_DRAINING)
		return link_queued_bytes(w->link) == 0 || now_ns >= w->deadline_ns;
	return false;
}
