/* See region.h. */
#include "shim/plugin/region.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "links/link.h"
#include "shim/progress/session.h"

#define PAGE_BYTES 4096

static struct {
	pthread_mutex_t lock;
	struct region *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void region_free(struct region *r)
{
	if (r && r->of && session_link()) /* else the link's end was theirs, too */
		link_unregister(session_link(), r->of);
	if (r)
		bitmap_deinit(&r->dirty);
	free(r);
}

static void run_put(struct note *n)
{
	struct region *r = container_of(n, struct region, put);

	r->is_put = true;
	if (!r->n_requests)
		region_free(r);
}

static void region_freep(struct region **r)
{
	region_free(*r);
}

static struct region *region_new(void *base, size_t bytes)
{
	CLEANUP(region_freep) struct region *r = calloc(1, sizeof(*r));
	uint64_t n_pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;

	if (!r || bitmap_init(&r->dirty, n_pages))
		return NULL;
	r->put.run = run_put;
	r->base = base;
	r->bytes = bytes;
	bitmap_set_range(&r->dirty, 0, n_pages);
	return steal_ptr(r);
}

struct region *region_get(void *base, size_t bytes)
{
	struct region *r;

	pthread_mutex_lock(&all.lock);
	for (r = all.first; r && (r->base != base || r->bytes != bytes);)
		r = r->next;
	if (!r) {
		r = region_new(base, bytes);
		if (r) {
			r->next = all.first;
			all.first = r;
		}
	}
	if (r)
		r->refs++;
	pthread_mutex_unlock(&all.lock);
	return r;
}

void region_put(struct region *r)
{
	struct region **p = &all.first;
	bool is_last;

	if (!r)
		return;
	pthread_mutex_lock(&all.lock);
	is_last = --r->refs == 0;
	if (is_last) {
		while (*p != r)
			p = &(*p)->next;
		*p = r->next;
	}
	pthread_mutex_unlock(&all.lock);
	if (is_last)
		note_post(&r->put, NOTE_LAZY);
}

void region_begin(struct region *r)
{
	r->n_requests++;
}

void region_done(struct region *r)
{
	if (--r->n_requests == 0 && r->is_put)
		region_free(r);
}

/* Once a process: the next one would say the same. */
static void say_refused(const char *why)
{
	static bool is_said;
	struct wire_text text = {.code = 1}; /* any but 0 */

	if (is_said)
		return;
	is_said = true;
	snprintf(
		text.text, sizeof(text.text),
		"NCCL's messages are copied before they are sent, and take more of the CPU: of its "
		"buffers %.300s",
		why);
	session_send(WIRE_NOTE, 0, 0, 0, &text, sizeof(text));
}

bool region_lend(struct region *r, struct link *l, struct link_memory **ret)
{
	struct err err;

	if (!r->is_asked) {
		r->is_asked = true;
		r->is_refused = link_register(l, r->base, r->bytes, &r->of, &err) < 0;
		if (r->is_refused)
			say_refused(err.text);
	}
	*ret = r->of;
	return !r->is_refused;
}

void region_mark(struct region *r, const void *at, size_t n)
{
	size_t from = (size_t)((const unsigned char *)at - r->base), first = from / PAGE_BYTES;

	if (n)
		bitmap_set_range(&r->dirty, first, (from + n - 1) / PAGE_BYTES - first + 1);
}

void region_clear(struct region *r, void *at, size_t n)
{
	size_t from = (size_t)((unsigned char *)at - r->base), end = from + n;
	uint64_t page = bitmap_next_set(&r->dirty, from / PAGE_BYTES);

	for (; page < (end + PAGE_BYTES - 1) / PAGE_BYTES;
	     page = bitmap_next_set(&r->dirty, page + 1)) {
		size_t first = page * PAGE_BYTES, last = first + PAGE_BYTES;

		last = last < r->bytes ? last : r->bytes;
		memset(r->base + (first > from ? first : from), 0,
		       (last < end ? last : end) - (first > from ? first : from));
		if (first >= from && last <= end)
			r->dirty.words[page / 64] &= ~(UINT64_C(1) << page % 64);
	}
}
