/* See tune.h. An answer repeats its question, and is good for all who ask the same. */
#include "shim/progress/tune.h"

#include <errno.h>
#include <stdbool.h>

#include "base/clock.h"
#include "shim/job/env.h"
#include "shim/progress/known.h"
#include "shim/progress/waiters.h"

struct asking {
	struct wire_tune *m;
	bool is_answered;
	struct asking *next;
};

/* Under waiters.lock. */
static struct {
	struct asking *first;
	bool is_lost;
} g;

static void take_out(const struct asking *a)
{
	struct asking **p = &g.first;

	while (*p != a)
		p = &(*p)->next;
	*p = a->next;
}

/* Under the lock. */
static int wait_for(const struct asking *a, struct err *err)
{
	uint64_t until = clock_now_ns() + env_get()->timeout_ns;
	int r = 0;

	while (!a->is_answered && !g.is_lost && !r)
		r = waiters_wait(until);
	if (a->is_answered)
		return 0;
	return g.is_lost ? err_set(err, EPIPE, "the link to nboxd is lost")
			 : err_set(err, ETIMEDOUT, "nboxd did not answer within NBOX_INIT_TIMEOUT");
}

int tune_ask(struct wire_tune *m, struct err *err)
{
	struct wire_tune question = *m; /* @m is the progress thread's until take_out() */
	struct asking a = {.m = m};
	int r;

	pthread_mutex_lock(&waiters.lock);
	a.next = g.first;
	g.first = &a;
	pthread_mutex_unlock(&waiters.lock);
	r = known_send(NULL, WIRE_TUNE, &question, sizeof(question))
		    ? err_set(err, ENOMEM, "no memory")
		    : 0;
	pthread_mutex_lock(&waiters.lock);
	if (r == 0)
		r = wait_for(&a, err);
	take_out(&a);
	pthread_mutex_unlock(&waiters.lock);
	return r;
}

void tune_on_answer(const struct wire_tune *m)
{
	pthread_mutex_lock(&waiters.lock);
	for (struct asking *a = g.first; a; a = a->next) {
		if (a->m->n_ranks != m->n_ranks || a->m->n_nodes != m->n_nodes ||
		    a->m->kind != m->kind || a->m->bytes != m->bytes)
			continue;
		*a->m = *m;
		a->is_answered = true;
	}
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
}

void tune_lost(void)
{
	pthread_mutex_lock(&waiters.lock);
	g.is_lost = true;
	pthread_cond_broadcast(&waiters.cond);
	pthread_mutex_unlock(&waiters.lock);
}
