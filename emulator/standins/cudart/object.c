/* See object.h. */
#include "object.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* A handle is MAGIC | generation (20 bits) | slot (20 bits) | kind (4 bits) | 4 bits that are 0.
 * MAGIC makes it a non-canonical address: whoever dereferences one learns it at once. The
 * generation of a slot changes with each use, so that a stale handle is told from its successor.
 * The low bits are 0 as an address's are: PyTorch keeps marks of its own in a stream's. */
#define MAGIC (UINT64_C(0x6e62) << 48)
#define GENERATIONS (1u << 20)
#define MAX_SLOTS (1u << 20)

struct slot {
	struct object *object;
	uint32_t generation;
	uint32_t next_free; /* index + 1; 0 ends the list */
};

static struct {
	pthread_mutex_t lock;
	struct slot *slots;
	uint32_t n_slots;
	uint32_t free_head, free_tail; /* index + 1: first freed, first reused */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void object_init(struct object *object, enum object_kind kind, void (*free_fn)(struct object *))
{
	atomic_init(&object->n_refs, 1);
	object->kind = kind;
	object->handle = 0;
	object->free = free_fn;
}

static void slot_release(uint32_t index)
{
	table.slots[index].next_free = 0;
	if (table.free_tail)
		table.slots[table.free_tail - 1].next_free = index + 1;
	else
		table.free_head = index + 1;
	table.free_tail = index + 1;
}

static int table_grow(void)
{
	uint32_t n = table.n_slots ? table.n_slots * 2 : 64;
	struct slot *slots;

	if (n > MAX_SLOTS)
		return -ENOMEM;
	slots = realloc(table.slots, n * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	table.slots = slots;
	for (uint32_t i = table.n_slots; i < n; i++) {
		slots[i] = (struct slot){0};
		slot_release(i);
	}
	table.n_slots = n;
	return 0;
}

int object_publish(struct object *object)
{
	struct slot *slot;
	uint32_t index;
	int r = 0;

	pthread_mutex_lock(&table.lock);
	if (!table.free_head)
		r = table_grow();
	if (r == 0) {
		index = table.free_head - 1;
		slot = &table.slots[index];
		table.free_head = slot->next_free;
		if (!table.free_head)
			table.free_tail = 0;
		object_ref(object);
		slot->object = object;
		object->handle = MAGIC | (uint64_t)slot->generation << 28 | (uint64_t)index << 8 |
				 (uint64_t)object->kind << 4;
	}
	pthread_mutex_unlock(&table.lock);
	return r;
}

/* Called with the lock held. */
static struct slot *slot_find(enum object_kind kind, uintptr_t handle)
{
	uint32_t index = (uint32_t)(handle >> 8) & (MAX_SLOTS - 1);
	struct slot *slot;

	if (index >= table.n_slots)
		return NULL;
	slot = &table.slots[index];
	if (!slot->object || slot->object->handle != handle || slot->object->kind != kind)
		return NULL;
	return slot;
}

void *object_get(enum object_kind kind, uintptr_t handle)
{
	struct object *object = NULL;
	struct slot *slot;

	pthread_mutex_lock(&table.lock);
	slot = slot_find(kind, handle);
	if (slot) {
		object = slot->object;
		object_ref(object);
	}
	pthread_mutex_unlock(&table.lock);
	return object;
}

void *object_retire(enum object_kind kind, uintptr_t handle)
{
	struct object *object = NULL;
	struct slot *slot;

	pthread_mutex_lock(&table.lock);
	slot = slot_find(kind, handle);
	if (slot) {
		object = slot->object;
		slot->object = NULL;
		slot->generation = (slot->generation + 1) % GENERATIONS;
		slot_release((uint32_t)(slot - table.slots));
	}
	pthread_mutex_unlock(&table.lock);
	return object;
}

void object_ref(struct object *object)
{
	/* Relaxed: a new reference is always made from one that is held. */
	atomic_fetch_add_explicit(&object->n_refs, 1, memory_order_relaxed);
}

void object_unref(struct object *object)
{
	/* Release pairs with the acquire of the last one: it sees what all others did. */
	if (object && atomic_fetch_sub_explicit(&object->n_refs, 1, memory_order_acq_rel) == 1)
		object->free(object);
}
