/* Scope-bound cleanup: a resource is released where its variable goes out of
 * scope, and handed on by "stealing" it. */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Hands over the pointer in @p and leaves NULL behind. */
#define steal_ptr(p)                         \
	({                                   \
		__typeof__(p) stolen_ = (p); \
		(p) = NULL;                  \
		stolen_;                     \
	})

/* Hands over the descriptor in @fd and leaves -1 behind. */
static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

/* CLEANUP(freep) for any pointer from malloc(). */
static inline void freep(void *p)
{
	free(*(void **)p);
}

/* CLEANUP(closep) for a descriptor; negative ones are ignored. */
static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
