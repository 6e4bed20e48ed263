/* Memory for one group of calls after the other, on the device or pinned on the host. There are
 * ever more areas: earlier groups may still use what they took. What a communicator no longer needs
 * goes to the next one, and is never freed. cudaFree and cudaFreeHost wait for the whole device,
 * where another thread's op may wait for a rank that waits in the same call. A communicator with
 * captured ops keeps its own, which replays may use. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct scratch {
	struct scratch_area *areas; /* all ever made; the newest first */
	size_t used;                /* of the newest, by this group */
	int device;                 /* current when memory is taken */
};

/* Takes @bytes until the next group begins (used = 0), by @alloc where there is no room. @what: for
 * the sentence. Return: 0; -ENOMEM with the sentence. */
int scratch_take(struct scratch *s, int (*alloc)(void **, size_t), const char *what, uint64_t bytes,
		 char **ret, struct err *err);
/* No group uses it any more: other communicators may have it. */
void scratch_give(struct scratch *s);
/* In the child of a fork. */
void scratch_in_child(void);
