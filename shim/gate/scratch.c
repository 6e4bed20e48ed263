/* See scratch.h. */
#include "shim/gate/scratch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define SCRATCH_MIN (1u << 20)

struct scratch_area {
	struct scratch_area *next;
	int (*alloc)(void **, size_t); /* tells device memory from pinned memory */
	int device;
	char *mem;
	size_t bytes;
};

/* Areas of communicators that have ended. */
static struct {
	pthread_mutex_t lock;
	struct scratch_area *areas;
} spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

void scratch_in_child(void)
{
	pthread_mutex_init(&spare.lock, NULL);
}

/* The smallest spare area that is large enough; NULL: none. */
static struct scratch_area *spare_take(int (*alloc)(void **, size_t), int device, size_t bytes)
{
	struct scratch_area **best = NULL, *a;

	pthread_mutex_lock(&spare.lock);
	for (struct scratch_area **at = &spare.areas; (a = *at); at = &a->next)
		if (a->alloc == alloc && a->device == device && a->bytes >= bytes &&
		    (!best || a->bytes < (*best)->bytes))
			best = at;
	a = best ? *best : NULL;
	if (best)
		*best = a->next;
	pthread_mutex_unlock(&spare.lock);
	return a;
}

static struct scratch_area *area_new(int (*alloc)(void **, size_t), int device, size_t bytes)
{
	struct scratch_area *a = spare_take(alloc, device, bytes);
	void *mem;

	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a || alloc(&mem, bytes)) {
		free(a);
		return NULL;
	}
	a->alloc = alloc;
	a->device = device;
	a->mem = mem;
	a->bytes = bytes;
	return a;
}

int scratch_take(struct scratch *s, int (*alloc)(void **, size_t), const char *what, uint64_t bytes,
		 char **ret, struct err *err)
{
	struct scratch_area *a = s->areas;
	size_t want;

	bytes = (bytes + 255) & ~UINT64_C(255);
	if (!a || a->bytes - s->used < bytes) {
		want = a ? 2 * a->bytes : SCRATCH_MIN;
		while (want < bytes)
			want *= 2;
		a = area_new(alloc, s->device, want);
		if (!a)
			return err_set(err, ENOMEM, "no %zu bytes of %s memory", want, what);
		a->next = s->areas;
		s->areas = a;
		s->used = 0;
	}
	*ret = a->mem + s->used;
	s->used += bytes;
	return 0;
}

void scratch_give(struct scratch *s)
{
	struct scratch_area *a;

	pthread_mutex_lock(&spare.lock);
	while ((a = s->areas)) {
		s->areas = a->next;
		a->next = spare.areas;
		spare.areas = a;
	}
	pthread_mutex_unlock(&spare.lock);
}
