/* See checkin.h. */
#include "shim/progress/checkin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "shim/job/env.h"
#include "shim/progress/known.h"
#include "shim/progress/meet.h"
#include "shim/progress/play.h"
#include "shim/progress/session.h"
#include "shim/progress/traffic.h"
#include "shim/progress/waiters.h"

/* The progress thread's. */
static struct {
	struct comm *pending; /* sent, not answered */
	uint32_t next_cookie;
} g;

/* --- check-ins --------------------------------------------------------------------- */

/* @c is checked in, or is not and checkin_err says why: under the lock. */
static void answer_locked(struct comm *c, int r)
{
	c->checkin = r ? CHECKIN_FAILED : CHECKIN_OK;
	c->checkin_error = r;
	pthread_cond_broadcast(&waiters.cond);
}

static void refuse(struct comm *c, int r, const char *why)
{
	pthread_mutex_lock(&waiters.lock);
	if (c->checkin == CHECKIN_SENT) { /* else nobody waits any more */
		err_set(&c->checkin_err, EPROTO, "%s", why);
		answer_locked(c, r);
	}
	pthread_mutex_unlock(&waiters.lock);
}

static struct comm *find_pending(uint32_t cookie)
{
	for (struct comm *c = g.pending; c; c = c->next)
		if (c->cookie == cookie)
			return c;
	return NULL;
}

static void run_checkin(struct note *n)
{
	struct comm *c = container_of(n, struct comm, checkin_note);

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
	c->next = g.pending;
	g.pending = c;
	session_send(c->checkin_type, c->checkin_parent, c->checkin_rank, 0, c->checkin_body,
		     c->checkin_bytes);
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
	note_post(&c->checkin_note, NOTE_WAKE);
}

/* Why the caller gave up @c's check-in: under the lock. */
static const char *given_up(const struct comm *c)
{
	return atomic_load(&c->cancelled) ? "aborted by ncclCommAbort"
					  : "its NBOX_INIT_TIMEOUT is over";
}

static void run_withdraw(struct note *n)
{
	struct comm *c = container_of(n, struct comm, withdraw_note);

	if (find_pending(c->cookie) == c)
		session_send_abort(WIRE_NO_COMM, 0, c->cookie, ECONNABORTED, given_up(c));
	comm_unref(c);
}

/* Not under the lock: a note that runs at the process's end runs under the lock of the notes, and
 * takes this one. The other members need not wait for this one; run_withdraw or checkin_on_ready()
 * gives back an answer that is on its way. */
static void withdraw(struct comm *c)
{
	c->withdraw_note.run = run_withdraw;
	comm_ref(c);
	note_post(&c->withdraw_note, NOTE_WAKE);
}

int checkin_wait(struct comm *c, struct err *err)
{
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	bool is_given_up;
	int r = 0;

	pthread_mutex_lock(&waiters.lock);
	while (c->checkin == CHECKIN_SENT && !r)
		r = atomic_load(&c->cancelled) ? -ECANCELED : waiters_wait(until);
	is_given_up = c->checkin == CHECKIN_SENT;
	if (is_given_up) {
		c->checkin = CHECKIN_FAILED;
		if (r == -ECANCELED)
			err_set(err, ECANCELED, "aborted");
		else
			err_set(err, ETIMEDOUT,
				"the other real members of the communicator did not check in "
				"within NBOX_INIT_TIMEOUT (%.0f s)",
				(double)env_get()->timeout_ns / 1e9);
	} else if (c->checkin == CHECKIN_FAILED) {
		*err = c->checkin_err;
		r = c->checkin_error;
	} else {
		r = c->checkin == CHECKIN_OK ? 0 : err_set(err, ENOMEM, "no memory");
	}
	pthread_mutex_unlock(&waiters.lock);
	if (is_given_up)
		withdraw(c);
	return r;
}

/* --- frames from nboxd ------------------------------------------------------------------ */

void checkin_on_ready(const struct wire_hdr *h, const struct wire_comm_ready *ready)
{
	struct comm *c = find_pending(ready->cookie);
	const struct wire_member *members = (const struct wire_member *)(const void *)(ready + 1);
	const uint32_t *world_ranks = (const uint32_t *)(const void *)(members + ready->n_real);
	bool has_list = (const char *)world_ranks < (const char *)ready + h->body_bytes;
	bool is_wanted;
	int r = 0;

	if (!c)
		return;
	comm_list_remove(&g.pending, c);
	/* the caller may give up: it must see @c checked in and its members at once, or neither */
	pthread_mutex_lock(&waiters.lock);
	is_wanted = c->checkin == CHECKIN_SENT;
	if (is_wanted) {
		r = comm_set_members(c, ready, members, has_list ? world_ranks : NULL,
				     session_classes(), h->comm, &c->checkin_err);
		c->is_full = traffic_is_full() && c->n_ranks > 1; /* one rank has no messages */
		answer_locked(c, r);
	}
	pthread_mutex_unlock(&waiters.lock);
	if (is_wanted && !r && ready->n_ranks) {
		known_add(c);
		return;
	}
	if (ready->n_ranks) {
		session_send_abort(h->comm, ready->rank, 0, ECONNABORTED,
				   is_wanted ? c->checkin_err.text : given_up(c));
		session_send(WIRE_COMM_FREE, h->comm, ready->rank, 0, NULL, 0);
	}
	comm_unref(c);
}

/* nboxd's code as c->async: members disagree, or a member is gone. */
static int error_of(int code)
{
	return code == EPROTO || code == EINVAL ? -EPROTO : -ECONNRESET;
}

/* The same for a check-in that nboxd refuses: a member is gone, or what the members say does not
 * fit together. */
static int refusal_of(int code)
{
	return code == ECONNRESET || code == ECONNABORTED || code == ECANCELED ? -ECONNRESET
									       : -EPROTO;
}

void checkin_on_abort(const struct wire_hdr *h, const struct wire_text *t)
{
	struct comm *c;

	if (h->comm == WIRE_NO_COMM) {
		c = find_pending((uint32_t)h->seq);
		if (!c)
			return;
		comm_list_remove(&g.pending, c);
		refuse(c, refusal_of(t->code), t->text);
		comm_unref(c);
		return;
	}
	for (c = known_first(); c; c = c->next) {
		if (c->number != h->comm)
			continue;
		if (!comm_error(c)) {
			log_error("communicator %u, rank %u of %u: %s", c->number, c->rank,
				  c->n_ranks, t->text);
			comm_fail(c, error_of(t->code), "%s", t->text);
			play_open_gates(c);
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
	for (c = known_first(); c; c = c->next) {
		is_news = is_news || !comm_error(c);
		comm_fail(c, -EPIPE, "%s", text);
		play_open_gates(c);
		meet_lost(c);
	}
	return is_news;
}

void checkin_stop(void)
{
	for (struct comm *c = known_first(); c; c = c->next) {
		comm_fail(c, -EPIPE, "the process is ending");
		play_open_gates(c);
		meet_lost(c);
	}
}
