/* Inside links/: a ring of bytes in memory that two processes share. One process writes, the
 * other reads. Each counts its bytes in a word that only it writes; the bytes lie at the count
 * modulo the ring's size.
 *
 * The order of accesses matters on aarch64; x86-64 mostly gives it for nothing:
 *
 * 1. The writer releases @tail (ring_publish_tail()), the reader acquires it
 * (ring_refresh_tail()). So a reader that sees a count sees the bytes before it.
 *
 * 2. The reader releases @head (ring_publish_head()), the writer acquires it
 * (ring_refresh_head()). So the reader has loaded the bytes before the writer stores others in
 * their place.
 *
 * 3. A reader that goes to sleep writes @reader_sleeps and then reads @tail; the writer writes
 * @tail and then reads @reader_sleeps. The same holds for @writer_sleeps and @head. At least one
 * of the two must see the other's store, or one sleeps for ever. No machine keeps a store before
 * a later load unasked, so all four accesses are sequentially consistent. Taking a flag back only
 * decides whether a bell rings once more: relaxed.
 *
 * The bell is a byte on a socket. It orders nothing: a woken side loads the count again, by 1 or
 * 2. test-shm-ring.c has both ends in one process, where ThreadSanitizer sees a broken 1 or 2 on
 * any machine. It cannot see a broken 3. */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "links/shm-greeting.h"

#define RING_LINE 128 /* two cache lines, as the prefetcher takes them */

struct ring_words {
	_Alignas(RING_LINE) _Atomic uint64_t tail; /* bytes written; the writer's word */
	_Alignas(RING_LINE) _Atomic uint64_t head; /* bytes read; the reader's word */
	/* set by a sleeper; cleared by the partner that rings, or by the sleeper */
	_Alignas(RING_LINE) _Atomic uint32_t reader_sleeps;
	_Atomic uint32_t writer_sleeps;
};

struct ring_area {
	struct ring_words ring[2]; /* 0: from the accepting side, 1: to it */
};
_Static_assert(sizeof(struct ring_area) <= SHM_HEAD_BYTES, "the words fit");

/* One end of a ring, the writer's or the reader's. */
struct ring {
	struct ring_words *words;
	unsigned char *data;
	uint64_t size;      /* a power of two */
	uint64_t pos;       /* ours: bytes written or read */
	uint64_t published; /* as far as the partner knows */
	uint64_t seen;      /* the partner's position when last read */
};

static inline void ring_init(struct ring *r, void *area, unsigned int which, uint64_t ring_bytes)
{
	r->words = &((struct ring_area *)area)->ring[which];
	r->data = (unsigned char *)area + SHM_HEAD_BYTES + which * ring_bytes;
	r->size = ring_bytes;
}

/* --- the writer's end ------------------------------------------------------------ */

/* Return: whether the reader sleeps, and the caller has to ring. */
static inline bool ring_publish_tail(struct ring *r)
{
	if (r->published == r->pos)
		return false;
	r->published = r->pos;
	atomic_store_explicit(&r->words->tail, r->pos, memory_order_seq_cst);          /* 1, 3 */
	return atomic_load_explicit(&r->words->reader_sleeps, memory_order_seq_cst) && /* 3 */
	       atomic_exchange_explicit(&r->words->reader_sleeps, 0, memory_order_relaxed);
}

/* Return: 0; -EPROTO: the reader claims bytes that were not written. */
static inline int ring_refresh_head(struct ring *r)
{
	r->seen = atomic_load_explicit(&r->words->head, memory_order_acquire); /* 2 */
	return r->pos - r->seen <= r->size ? 0 : -EPROTO;
}

static inline uint64_t ring_room(const struct ring *r)
{
	return r->size - (r->pos - r->seen);
}

/* @n: at most ring_room(). */
static inline void ring_copy_in(struct ring *r, const void *src, uint64_t n)
{
	uint64_t at = r->pos & (r->size - 1), first = n < r->size - at ? n : r->size - at;

	memcpy(r->data + at, src, first);
	if (first < n)
		memcpy(r->data, (const char *)src + first, n - first);
	r->pos += n;
}

/* Return: false: there is room, do not sleep. */
static inline bool ring_arm_writer(struct ring *r)
{
	atomic_store_explicit(&r->words->writer_sleeps, 1, memory_order_seq_cst); /* 3 */
	return r->pos - atomic_load_explicit(&r->words->head, memory_order_seq_cst) == r->size;
}

static inline void ring_disarm_writer(struct ring *r)
{
	atomic_store_explicit(&r->words->writer_sleeps, 0, memory_order_relaxed);
}

/* --- the reader's end ------------------------------------------------------------- */

/* Return: whether the writer sleeps, and the caller has to ring. */
static inline bool ring_publish_head(struct ring *r)
{
	if (r->published == r->pos)
		return false;
	r->published = r->pos;
	atomic_store_explicit(&r->words->head, r->pos, memory_order_seq_cst);          /* 2, 3 */
	return atomic_load_explicit(&r->words->writer_sleeps, memory_order_seq_cst) && /* 3 */
	       atomic_exchange_explicit(&r->words->writer_sleeps, 0, memory_order_relaxed);
}

/* Return: 0; -EPROTO: the writer claims more bytes than the ring has. */
static inline int ring_refresh_tail(struct ring *r)
{
	r->seen = atomic_load_explicit(&r->words->tail, memory_order_acquire); /* 1 */
	return r->seen - r->pos <= r->size ? 0 : -EPROTO;
}

static inline uint64_t ring_filled(const struct ring *r)
{
	return r->seen - r->pos;
}

/* @n: at most ring_filled(). @dst NULL: the bytes are passed over. */
static inline void ring_copy_out(struct ring *r, void *dst, uint64_t n)
{
	uint64_t at = r->pos & (r->size - 1), first = n < r->size - at ? n : r->size - at;

	if (dst) {
		memcpy(dst, r->data + at, first);
		if (first < n)
			memcpy((char *)dst + first, r->data, n - first);
	}
	r->pos += n;
}

/* Return: false: there is something to read, do not sleep. */
static inline bool ring_arm_reader(struct ring *r)
{
	atomic_store_explicit(&r->words->reader_sleeps, 1, memory_order_seq_cst); /* 3 */
	return atomic_load_explicit(&r->words->tail, memory_order_seq_cst) == r->pos;
}

static inline void ring_disarm_reader(struct ring *r)
{
	atomic_store_explicit(&r->words->reader_sleeps, 0, memory_order_relaxed);
}
