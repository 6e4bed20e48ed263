/* See scratch.h. */
#include "shim/scratch.h"

#include <errno.h>
#include <stdlib.h>

#define SCRATCH_MIN (1u << 20)

struct scratch_area {
	struct scratch_area *next;
	char *mem;
	size_t bytes;
};

int scratch_take(struct scratch *s, int (*alloc)(void **, size_t), const char *what,
		    uint64_t bytes, char **ret, struct err *err)
{
	struct scratch_area *a = s->areas;
	size_t want;
	void *mem;

	bytes = (bytes + 255) & ~UINT64_C(255);
	if (!a || a->bytes - s->used < bytes) {
		want = a ? 2 * a->bytes : SCRATCH_MIN;
		while (want < bytes)
			want *= 2;
		a = calloc(1, sizeof(*a));
		if (!a || alloc(&mem, want)) {
			free(a);
			return err_set(err, ENOMEM, "no %zu bytes of %s memory", want, what);
		}
		a->mem = mem;
		a->bytes = want;
		a->next = s->areas;
		s->areas = a;
		s->used = 0;
	}
	*ret = a->mem + s->used;
	s->used += bytes;
	return 0;
}

void scratch_free(struct scratch *s, void (*release)(void *))
{
	struct scratch_area *a;

	while ((a = s->areas)) {
		s->areas = a->next;
		release(a->mem);
		free(a);
	}
}
