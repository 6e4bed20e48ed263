/* See meet.h. */
#include "shim/progress/meet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "shim/job/env.h"
#include "shim/progress/known.h"
#include "shim/progress/waiters.h"

/* struct comm's @meet, under waiters.lock. */
enum { MEET_NONE, MEET_PROMISED, MEET_ALL, MEET_OFF };

int meet_promise(struct comm *c, struct err *err)
{
	if (comm_error(c))
		return err_set(err, ECANCELED, "%s", c->why);
	pthread_mutex_lock(&waiters.lock);
	if (c->meet == MEET_NONE) /* the link may be lost already */
		c->meet = MEET_PROMISED;
	pthread_mutex_unlock(&waiters.lock);
	return known_send(c, WIRE_MEET, NULL, 0) ? err_set(err, ENOMEM, "no memory") : 0;
}

int meet_wait_all(struct comm *c, struct err *err)
{
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	int r = 0;

	pthread_mutex_lock(&waiters.lock);
	while (c->meet == MEET_PROMISED && !r)
		r = waiters_wait(until);
	if (c->meet == MEET_ALL)
		r = 0;
	else if (c->meet == MEET_OFF)
		r = err_set(err, ECANCELED, "%s", c->why);
	else
		r = err_set(
			err, ETIMEDOUT,
			"the other real members did not come to make the real communicator within "
			"NBOX_INIT_TIMEOUT (%.0f s)",
			(double)env_get()->timeout_ns / 1e9);
	pthread_mutex_unlock(&waiters.lock);
	return r;
}

int meet_send_id(struct comm *c, const void *id)
{
	static const uint8_t none[WIRE_ID_BYTES];

	return known_send(c, WIRE_LOCAL_ID, id ? id : none, WIRE_ID_BYTES);
}

int meet_wait_id(struct comm *c, struct err *err)
{
	static const uint8_t none[WIRE_ID_BYTES];
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	char sender[48] = "nboxd";
	int r = 0;

	if (c->index == 0 && !c->is_full)
		return 0;
	if (!c->is_full)
		snprintf(sender, sizeof(sender), "real member 0 (rank %u)", c->members[0].rank);
	pthread_mutex_lock(&waiters.lock);
	/* to a communicator that has failed nboxd sends none */
	while (!c->has_local_id && !r && !(c->is_full && comm_error(c)))
		r = waiters_wait(until);
	if (c->is_full && comm_error(c))
		r = err_set(err, ECANCELED, "%s", c->why);
	else if (!c->has_local_id)
		r = err_set(err, ETIMEDOUT, "%s sent no id within NBOX_INIT_TIMEOUT", sender);
	else if (!memcmp(c->local_id, none, sizeof(none)))
		r = err_set(err, EPIPE, "%s made no id for the real communicator", sender);
	else
		r = 0;
	pthread_mutex_unlock(&waiters.lock);
	return r;
}

/* --- the progress thread ---------------------------------------------------------------- */

/* Once it is agreed, it stays so. */
static void answer(struct comm *c, int how)
{
	pthread_mutex_lock(&waiters.lock);
	c->meet = c->meet == MEET_ALL ? MEET_ALL : how;
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
}

void meet_on_all(struct comm *c)
{
	answer(c, MEET_ALL);
}

void meet_on_id(struct comm *c, const void *body)
{
	pthread_mutex_lock(&waiters.lock);
	memcpy(c->local_id, body, WIRE_ID_BYTES);
	c->has_local_id = true;
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
}

void meet_is_off(struct comm *c)
{
	answer(c, MEET_OFF);
}

void meet_lost(struct comm *c)
{
	answer(c, MEET_OFF);
	pthread_mutex_lock(&waiters.lock);
	c->has_local_id = true; /* an id that has not come stays all zeros: no id */
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
}
