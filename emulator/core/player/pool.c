/* See pool.h. The pool keeps blocks for the next op, because fresh pages for megabytes of staging
 * would cost more than the op. Thread-safe: several threads of a process may play. */
#include "player/pool.h"

#include <pthread.h>
#include <stdlib.h>

#define POOL_BLOCKS 8
#define POOL_BYTES_MAX ((size_t)256 << 20)

static struct {
	pthread_mutex_t lock;
	struct block {
		void *memory;
		size_t bytes;
	} blocks[POOL_BLOCKS];
	size_t bytes;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

void *pool_take(size_t bytes, size_t *ret_bytes)
{
	struct block *best = NULL;
	void *memory = NULL;
	int i;

	pthread_mutex_lock(&pool.lock);
	for (i = 0; i < POOL_BLOCKS; i++) {
		struct block *b = &pool.blocks[i];

		if (b->memory && b->bytes >= bytes && (!best || b->bytes < best->bytes))
			best = b;
	}
	if (best) {
		memory = best->memory;
		*ret_bytes = best->bytes;
		pool.bytes -= best->bytes;
		best->memory = NULL;
	}
	pthread_mutex_unlock(&pool.lock);
	if (memory)
		return memory;
	if (posix_memalign(&memory, POOL_ALIGN, bytes))
		return NULL;
	*ret_bytes = bytes;
	return memory;
}

/* Kept when there is room; else the smallest that is kept makes way for a bigger
 * one, so that one kind of op does not keep the pool full of what others cannot use. */
void pool_give(void *memory, size_t bytes)
{
	struct block *place = NULL;
	void *drop = memory;
	int i;

	if (!memory)
		return;
	pthread_mutex_lock(&pool.lock);
	for (i = 0; i < POOL_BLOCKS; i++) {
		struct block *b = &pool.blocks[i];

		if (!b->memory) {
			place = b;
			break;
		}
		if (b->bytes < bytes && (!place || b->bytes < place->bytes))
			place = b;
	}
	if (place) {
		size_t freed = place->memory ? place->bytes : 0;

		if (pool.bytes - freed + bytes <= POOL_BYTES_MAX) {
			drop = place->memory;
			pool.bytes += bytes - freed;
			*place = (struct block){memory, bytes};
		}
	}
	pthread_mutex_unlock(&pool.lock);
	free(drop);
}

/* At the end of the process, so that leak checkers see a clean house. */
__attribute__((destructor)) static void pool_drain(void)
{
	int i;

	pthread_mutex_lock(&pool.lock);
	for (i = 0; i < POOL_BLOCKS; i++) {
		free(pool.blocks[i].memory);
		pool.blocks[i].memory = NULL;
	}
	pool.bytes = 0;
	pthread_mutex_unlock(&pool.lock);
}
