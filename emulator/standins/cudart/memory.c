/* The interval map is a sorted array. Programs look up often and hold thousands of allocations at
 * most, so an insertion may move some tens of KB. */
#include "memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
	pthread_rwlock_t lock;
	struct memory_range *ranges; /* by start; they never overlap */
	size_t n, capacity;
} map = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* Return: the index of the first range that starts after @at. Called with the lock held. */
static size_t map_after(uintptr_t at)
{
	size_t low = 0, high = map.n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (map.ranges[middle].start <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Return: the range that @at lies in, or NULL. Called with the lock held. */
static struct memory_range *map_at(uintptr_t at)
{
	size_t after = map_after(at);
	struct memory_range *range = after ? &map.ranges[after - 1] : NULL;

	return range && at - range->start < range->size ? range : NULL;
}

static int map_grow(void)
{
	size_t capacity = map.capacity ? map.capacity * 2 : 64;
	struct memory_range *ranges;

	if (map.n < map.capacity)
		return 0;
	ranges = realloc(map.ranges, capacity * sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	map.ranges = ranges;
	map.capacity = capacity;
	return 0;
}

int memory_map_add(const struct memory_range *range)
{
	size_t at;
	int r;

	pthread_rwlock_wrlock(&map.lock);
	at = map_after(range->start);
	if (map_at(range->start) ||
	    (at < map.n && map.ranges[at].start - range->start < range->size))
		r = -EEXIST;
	else
		r = map_grow();
	if (r == 0) {
		memmove(&map.ranges[at + 1], &map.ranges[at], (map.n - at) * sizeof(*range));
		map.ranges[at] = *range;
		map.n++;
	}
	pthread_rwlock_unlock(&map.lock);
	return r;
}

bool memory_map_find(const void *ptr, struct memory_range *ret)
{
	struct memory_range *range;
	bool is_found;

	pthread_rwlock_rdlock(&map.lock);
	range = map_at((uintptr_t)ptr);
	is_found = range != NULL;
	if (range)
		*ret = *range;
	pthread_rwlock_unlock(&map.lock);
	return is_found;
}

bool memory_map_remove(const void *ptr, struct memory_range *ret)
{
	struct memory_range *range;
	size_t rest;
	bool is_found;

	pthread_rwlock_wrlock(&map.lock);
	range = map_at((uintptr_t)ptr);
	is_found = range && range->start == (uintptr_t)ptr;
	if (is_found) {
		*ret = *range;
		rest = map.n - (size_t)(range - map.ranges) - 1;
		memmove(range, range + 1, rest * sizeof(*range));
		map.n--;
	}
	pthread_rwlock_unlock(&map.lock);
	return is_found;
}

bool memory_map_leave(const void *ptr)
{
	struct memory_range *range;
	bool is_leaving;

	pthread_rwlock_wrlock(&map.lock);
	range = map_at((uintptr_t)ptr);
	is_leaving = range && range->start == (uintptr_t)ptr && !range->is_leaving &&
		     (range->origin == MEMORY_DEVICE || range->origin == MEMORY_MANAGED);
	if (is_leaving)
		range->is_leaving = true;
	pthread_rwlock_unlock(&map.lock);
	return is_leaving;
}

static bool range_holds(const struct memory_range *range, const void *ptr, size_t n)
{
	return n <= range->size - ((uintptr_t)ptr - range->start);
}

bool memory_is_device_usable(const void *ptr, size_t n)
{
	struct memory_range range;

	return memory_map_find(ptr, &range) && range_holds(&range, ptr, n);
}

bool memory_is_host_usable(const void *ptr, size_t n)
{
	struct memory_range range;

	if (!memory_map_find(ptr, &range))
		return ptr != NULL;
	/* The end of registered memory is not the end of the program's own memory. */
	return range.origin == MEMORY_REGISTERED ||
	       (range.origin != MEMORY_DEVICE && range_holds(&range, ptr, n));
}
