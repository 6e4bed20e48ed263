/* See windows.h. */
#include "shim/data/windows.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
	struct entry *next;
	struct window window;
	ncclWindow_t *place; /* the job's, for a handle that is not known yet; NULL: it is */
	pthread_t thread;    /* whose group that waits for */
};

static struct entry *entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

ncclWindow_t *windows_add(const struct window *w, ncclWindow_t *place)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->window = *w;
	e->window.handle = w->is_real ? NULL : (ncclWindow_t)(void *)e;
	e->place = w->is_real ? place : NULL;
	e->thread = pthread_self();
	*place = e->window.handle;
	pthread_mutex_lock(&lock);
	e->next = entries;
	entries = e;
	pthread_mutex_unlock(&lock);
	return &e->window.handle;
}

/* @at alone, or where that is NULL all of @c. */
static void drop(const struct comm *c, const struct entry *at)
{
	for (struct entry **p = &entries; *p;) {
		struct entry *e = *p;

		if (at ? e != at : e->window.comm != c) {
			p = &e->next;
			continue;
		}
		*p = e->next;
		free(e);
	}
}

void windows_end_group(void)
{
	struct entry *next;

	pthread_mutex_lock(&lock);
	for (struct entry *e = entries; e; e = next) {
		next = e->next;
		if (!e->place || !pthread_equal(e->thread, pthread_self()))
			continue;
		*e->place = e->window.handle;
		e->place = NULL;
		if (!e->window.handle) /* it has failed, or there are none on this machine */
			drop(NULL, e);
	}
	pthread_mutex_unlock(&lock);
}

static struct entry *find(const struct comm *c, ncclWindow_t handle)
{
	struct entry *e = entries;

	/* what has a place is the other thread's yet */
	while (e && (e->place || e->window.comm != c || e->window.handle != handle))
		e = e->next;
	return e;
}

bool windows_find(const struct comm *c, ncclWindow_t handle, struct window *ret)
{
	const struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(c, handle);
	if (e)
		*ret = e->window;
	pthread_mutex_unlock(&lock);
	return e;
}

bool windows_take(const struct comm *c, ncclWindow_t handle, struct window *ret)
{
	const struct entry *e;

	pthread_mutex_lock(&lock);
	e = find(c, handle);
	if (e) {
		*ret = e->window;
		drop(NULL, e);
	}
	pthread_mutex_unlock(&lock);
	return e;
}

bool windows_hold(const struct comm *c, const void *at, uint64_t bytes)
{
	bool is_held = false;

	pthread_mutex_lock(&lock);
	for (const struct entry *e = entries; e && !is_held; e = e->next) {
		const struct window *w = &e->window;
		uintptr_t from = (uintptr_t)at, base = (uintptr_t)w->base;

		is_held = w->comm == c && w->is_symmetric && from >= base &&
			  from - base <= w->bytes && bytes <= w->bytes - (from - base);
	}
	pthread_mutex_unlock(&lock);
	return is_held;
}

void windows_forget(const struct comm *c)
{
	pthread_mutex_lock(&lock);
	drop(c, NULL);
	pthread_mutex_unlock(&lock);
}
