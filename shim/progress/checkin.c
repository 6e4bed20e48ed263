/* See checkin.h. */
#include "shim/progress/checkin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "links/link.h"
#include "shim/job/env.h"
#include "shim/progress/comm.h"
#include "shim/progress/meet.h"
#include "shim/progress/play.h"
#include "shim/progress/progress-internal.h"
#include "shim/progress/session.h"

/* The progress thread's. */
static struct {
	struct comm *pending; /* sent, not answered */
	struct comm *known;   /* from COMM_READY to COMM_FREE */
	uint32_t next_cookie;
} g;

static void send_abort(uint32_t number, uint32_t rank, uint64_t seq, int code, const char *text)
{
	struct wire_text body = {.code = code};
	struct wire_hdr h;

	if (!session_link())
		return;
	snprintf(body.text, sizeof(body.text), "%s", text);
	wire_hdr_init(&h, WIRE_ABORT, sizeof(body));
	h.comm = number;
	h.rank = rank;
	h.seq = seq;
	link_send_copy(session_link(), &h, &body);
}

static void kill_comm(struct comm *c)
{
	play_kill(c);
	progress_signal_idle();
}

void checkin_fail_comm(struct comm *c, ncclResult_t result, const char *text)
{
	if (atomic_load(&c->async) == ncclSuccess) {
		log_error("communicator %u, rank %u of %u: %s", c->number, c->rank, c->n_ranks,
			  text);
		send_abort(c->number, c->rank, 0, EPROTO, text);
	}
	comm_fail(c, result, "%s", text);
	kill_comm(c);
}

/* --- check-ins --------------------------------------------------------------------- */

/* @c is checked in, or is not and checkin_err says why: under the lock. */
static void answer_locked(struct comm *c, int code)
{
	c->checkin = code ? CHECKIN_FAILED : CHECKIN_OK;
	c->checkin_code = code;
	pthread_cond_broadcast(&progress_waiters.cond);
}

static void refuse(struct comm *c, int code, const char *why)
{
	pthread_mutex_lock(&progress_waiters.lock);
	if (c->checkin == CHECKIN_SENT) { /* else nobody waits any more */
		err_set(&c->checkin_err, EPROTO, "%s", why);
		answer_locked(c, code);
	}
	pthread_mutex_unlock(&progress_waiters.lock);
}

static void list_remove(struct comm **list, const struct comm *c)
{
	for (; *list; list = &(*list)->next) {
		if (*list == c) {
			*list = c->next;
			return;
		}
	}
}

static struct comm *find_pending(uint32_t cookie)
{
	for (struct comm *c = g.pending; c; c = c->next)
		if (c->cookie == cookie)
			return c;
	return NULL;
}

struct comm *checkin_find(uint32_t number, uint32_t rank)
{
	for (struct comm *c = g.known; c; c = c->next)
		if (c->number == number && c->rank == rank)
			return c;
	return NULL;
}

static void run_checkin(struct note *n)
{
	struct comm *c = container_of(n, struct comm, checkin_note);
	struct wire_hdr h;

	if (!session_link()) {
		refuse(c, -EPIPE, "the link to nboxd is lost");
		comm_unref(c);
		return;
	}
	c->cookie = g.next_cookie++;
	switch (c->checkin_type) {
	case WIRE_COMM_INIT:
		((struct wire_comm_init *)c->checkin_body)->cookie = c->cookie;
		break;
	case WIRE_COMM_SPLIT:
		((struct wire_comm_split *)c->checkin_body)->cookie = c->cookie;
		break;
	default:
		((struct wire_comm_shrink *)c->checkin_body)->cookie = c->cookie;
		break;
	}
	wire_hdr_init(&h, c->checkin_type, c->checkin_bytes);
	h.comm = c->checkin_parent;
	h.rank = c->checkin_rank;
	c->next = g.pending;
	g.pending = c;
	link_send_copy(session_link(), &h, c->checkin_body);
}

void checkin_begin(struct comm *c, enum wire_type type, uint32_t parent, uint32_t rank,
		   const void *body, size_t bytes)
{
	c->checkin_body = malloc(bytes);
	if (!c->checkin_body)
		return; /* checkin_wait() says so */
	memcpy(c->checkin_body, body, bytes);
	c->checkin_bytes = bytes;
	c->checkin_type = (uint16_t)type;
	c->checkin_parent = parent;
	c->checkin_rank = rank;
	c->checkin = CHECKIN_SENT;
	c->checkin_note.run = run_checkin;
	comm_ref(c); /* the progress thread's */
	progress_post(&c->checkin_note, PROGRESS_WAKE);
}

/* Why @c's check-in is not waited for any more: under the lock. */
static const char *given_up(const struct comm *c)
{
	return atomic_load(&c->cancelled) ? "aborted by ncclCommAbort"
					  : "its NBOX_INIT_TIMEOUT is over";
}

static void run_withdraw(struct note *n)
{
	struct comm *c = container_of(n, struct comm, withdraw_note);

	if (find_pending(c->cookie) == c)
		send_abort(WIRE_NO_COMM, 0, c->cookie, ECONNABORTED, given_up(c));
	comm_unref(c);
}

/* Not under the lock: at the process's end notes run under the queue's, and take it. The other
 * members need not wait for us; an answer that is on its way is sent back. */
static void withdraw(struct comm *c)
{
	c->withdraw_note.run = run_withdraw;
	comm_ref(c);
	progress_post(&c->withdraw_note, PROGRESS_WAKE);
}

/* Under the lock. Return: 0; -ETIMEDOUT; -ECANCELED. */
static int wait_more(const struct comm *c, uint64_t until_ns)
{
	struct timespec ts = progress_timespec(until_ns);

	if (atomic_load(&c->cancelled))
		return -ECANCELED;
	return pthread_cond_clockwait(&progress_waiters.cond, &progress_waiters.lock,
				      CLOCK_MONOTONIC, &ts) == ETIMEDOUT
		       ? -ETIMEDOUT
		       : 0;
}

int checkin_wait(struct comm *c, struct err *err)
{
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	bool is_given_up;
	int rc = 0;

	pthread_mutex_lock(&progress_waiters.lock);
	while (c->checkin == CHECKIN_SENT && !rc)
		rc = wait_more(c, until);
	is_given_up = c->checkin == CHECKIN_SENT;
	if (is_given_up) {
		c->checkin = CHECKIN_FAILED;
		if (rc == -ECANCELED)
			err_set(err, ECANCELED, "aborted");
		else
			err_set(err, ETIMEDOUT,
				"the other real members of the communicator did not check in "
				"within NBOX_INIT_TIMEOUT (%.0f s)",
				(double)env_get()->timeout_ns / 1e9);
	} else if (c->checkin == CHECKIN_FAILED) {
		*err = c->checkin_err;
		rc = c->checkin_code;
	} else {
		rc = c->checkin == CHECKIN_OK ? 0 : err_set(err, ENOMEM, "no memory");
	}
	pthread_mutex_unlock(&progress_waiters.lock);
	if (is_given_up)
		withdraw(c);
	return rc;
}

static void run_kill(struct note *n)
{
	kill_comm(container_of(n, struct comm, kill_note));
	comm_unref(container_of(n, struct comm, kill_note));
}

void checkin_kill(struct comm *c)
{
	if (atomic_exchange(&c->kill_posted, true))
		return;
	c->kill_note.run = run_kill;
	comm_ref(c);
	progress_post(&c->kill_note, PROGRESS_WAKE);
	progress_signal_idle(); /* those that wait for a check-in */
}

/* --- frames for nboxd --------------------------------------------------------------- */

struct send_note {
	struct note note;
	struct comm *comm; /* owned reference; NULL: of the worker as a whole */
	struct wire_hdr hdr;
	char body[];
};

static void run_send(struct note *n)
{
	struct send_note *s = container_of(n, struct send_note, note);
	struct comm *c = s->comm;

	s->hdr.comm = c->number;
	s->hdr.rank = c->rank;
	/* not checked in yet, or freed by another thread meanwhile: nboxd would not know of whom it
	 * is */
	if (session_link() && checkin_find(c->number, c->rank) == c)
		link_send_copy(session_link(), &s->hdr, s->hdr.body_bytes ? s->body : NULL);
	if (s->hdr.type == WIRE_COMM_FREE) {
		struct comm **list = &g.known;

		while (*list && *list != c)
			list = &(*list)->next;
		if (*list) {
			*list = c->next;
			comm_unref(c);
		}
	}
	comm_unref(c);
	free(s);
}

static void run_tell(struct note *n)
{
	struct send_note *s = container_of(n, struct send_note, note);

	if (session_link())
		link_send_copy(session_link(), &s->hdr, s->body);
	free(s);
}

/* @c: NULL for a frame of the worker as a whole. */
static int post_frame(struct comm *c, enum wire_type type, const void *body, size_t bytes)
{
	struct send_note *s;

	if (progress_is_child())
		return 0;
	s = calloc(1, sizeof(*s) + bytes);
	if (!s)
		return -ENOMEM;
	s->note.run = c ? run_send : run_tell;
	s->comm = c ? comm_ref(c) : NULL;
	wire_hdr_init(&s->hdr, type, bytes);
	if (bytes)
		memcpy(s->body, body, bytes);
	progress_post(&s->note, PROGRESS_WAKE);
	return 0;
}

int checkin_send(struct comm *c, enum wire_type type, const void *body, size_t bytes)
{
	return post_frame(c, type, body, bytes);
}

int checkin_tell(enum wire_type type, const void *body, size_t bytes)
{
	return post_frame(NULL, type, body, bytes);
}

/* --- frames from nboxd ------------------------------------------------------------------ */

static void send_free(uint32_t number, uint32_t rank)
{
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_COMM_FREE, 0);
	h.comm = number;
	h.rank = rank;
	link_send_copy(session_link(), &h, NULL);
}

void checkin_on_ready(const struct wire_hdr *h, const struct wire_comm_ready *r)
{
	struct comm *c = find_pending(r->cookie);
	const struct wire_member *members = (const struct wire_member *)(const void *)(r + 1);
	const uint32_t *world_ranks = (const uint32_t *)(const void *)(members + r->n_real);
	bool has_list = (const char *)world_ranks < (const char *)r + h->body_bytes;
	bool is_wanted;
	int rc = 0;

	if (!c)
		return;
	list_remove(&g.pending, c);
	/* who waits may give up: what is said of @c is of one piece with its being checked in */
	pthread_mutex_lock(&progress_waiters.lock);
	is_wanted = c->checkin == CHECKIN_SENT;
	if (is_wanted) {
		rc = comm_set_members(c, r, members, has_list ? world_ranks : NULL, h->comm,
				      &c->checkin_err);
		answer_locked(c, rc);
	}
	pthread_mutex_unlock(&progress_waiters.lock);
	if (is_wanted && !rc && r->n_ranks) {
		c->next = g.known;
		g.known = c;
		return;
	}
	if (r->n_ranks) {
		send_abort(h->comm, r->rank, 0, ECONNABORTED,
			   is_wanted ? c->checkin_err.text : given_up(c));
		send_free(h->comm, r->rank);
	}
	comm_unref(c);
}

/* The other side of an op that is wrong; or a member that is gone. */
static ncclResult_t result_of(int code)
{
	return code == EPROTO || code == EINVAL ? ncclInvalidUsage : ncclRemoteError;
}

/* Of a check-in: a member that has gone or has aborted is one thing, what does not fit together
 * another. */
static int checkin_result_of(int code)
{
	return code == ECONNRESET || code == ECONNABORTED || code == ECANCELED
		       ? (int)ncclRemoteError
		       : -EPROTO;
}

void checkin_on_abort(const struct wire_hdr *h, const struct wire_text *t)
{
	struct comm *c;

	if (h->comm == WIRE_NO_COMM) {
		c = find_pending((uint32_t)h->seq);
		if (!c)
			return;
		list_remove(&g.pending, c);
		refuse(c, checkin_result_of(t->code), t->text);
		comm_unref(c);
		return;
	}
	for (c = g.known; c; c = c->next) {
		if (c->number != h->comm)
			continue;
		if (atomic_load(&c->async) == ncclSuccess) {
			log_error("communicator %u, rank %u of %u: %s", c->number, c->rank,
				  c->n_ranks, t->text);
			comm_fail(c, result_of(t->code), "%s", t->text);
			kill_comm(c);
		}
		meet_is_off(c);
	}
}

/* --- the end -------------------------------------------------------------------- */

bool checkin_lose(const char *text)
{
	bool is_news = false;
	struct comm *c;

	while ((c = g.pending)) {
		g.pending = c->next;
		refuse(c, -EPIPE, text);
		comm_unref(c);
		is_news = true;
	}
	for (c = g.known; c; c = c->next) {
		is_news = is_news || atomic_load(&c->async) == ncclSuccess;
		comm_fail(c, ncclSystemError, "%s", text);
		play_kill(c);
		meet_lost(c);
	}
	return is_news;
}

void checkin_stop(void)
{
	for (struct comm *c = g.known; c; c = c->next) {
		comm_fail(c, ncclSystemError, "the process is ending");
		play_kill(c);
		meet_lost(c);
	}
}
