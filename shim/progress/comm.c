/* See comm.h. */
#include "shim/progress/comm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/progress/points.h"

#define SLOTS 256

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fail_lock = PTHREAD_MUTEX_INITIALIZER;
static struct comm *registry[SLOTS];

static unsigned int slot_of(const void *p)
{
	uintptr_t x = (uintptr_t)p;

	return (unsigned int)((x >> 6) ^ (x >> 14)) % SLOTS;
}

struct comm *comm_new(const struct device *dev, int device)
{
	struct comm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	atomic_init(&c->state, COMM_STARTING);
	op_pool_init(&c->pool, dev);
	pthread_mutex_init(&c->real_lock, NULL);
	c->dev = dev;
	c->device = c->scratch.device = c->host_scratch.device = c->redop_scratch.device = device;
	c->multiplicity = 1;
	edges_open(dev, &points_sink);
	return c;
}

struct comm *comm_ref(struct comm *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

struct comm *comm_unref(struct comm *c)
{
	/* acq_rel: the last one sees what the others wrote before they let go */
	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return NULL;
	op_pool_deinit(&c->pool);
	free(c->members);
	free((void *)(uintptr_t)c->map.table);
	templates_deinit(&c->templates);
	free(c->checkin_body);
	free(c->redops);
	free(c->real_config);
	pthread_mutex_destroy(&c->real_lock);
	free(c);
	return NULL;
}

void comm_register(struct comm *c)
{
	unsigned int slot = slot_of(c);

	pthread_mutex_lock(&registry_lock);
	c->hash_next = registry[slot];
	registry[slot] = c;
	pthread_mutex_unlock(&registry_lock);
}

bool comm_unregister(struct comm *c)
{
	bool found = false;

	pthread_mutex_lock(&registry_lock);
	for (struct comm **p = &registry[slot_of(c)]; *p; p = &(*p)->hash_next) {
		if (*p == c) {
			*p = c->hash_next;
			found = true;
			break;
		}
	}
	pthread_mutex_unlock(&registry_lock);
	return found;
}

struct comm *comm_find(ncclComm_t handle)
{
	struct comm *c;

	pthread_mutex_lock(&registry_lock);
	for (c = registry[slot_of(handle)]; c; c = c->hash_next)
		if (comm_handle(c) == handle)
			break;
	if (c)
		comm_ref(c);
	pthread_mutex_unlock(&registry_lock);
	return c;
}

void comm_in_child(void)
{
	scratch_in_child();
	pthread_mutex_init(&registry_lock, NULL);
	pthread_mutex_init(&fail_lock, NULL);
}

int comm_member(const struct comm *c, uint32_t rank)
{
	uint32_t lo = 0, hi = c->n_real;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (c->members[mid].rank == rank)
			return (int)mid;
		if (c->members[mid].rank < rank)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

/* How many ranks each real member stands for. */
static int count_templates(struct comm *c, struct err *err)
{
	uint32_t *n = calloc(c->n_real, sizeof(*n));

	if (!n)
		return err_set(err, ENOMEM, "no memory for %u members", c->n_real);
	templates_count(&c->templates, n);
	c->is_even = c->is_periodic = true;
	for (uint32_t i = 1; i < c->n_real; i++)
		c->is_even = c->is_even && n[i] == n[0];
	for (uint32_t rank = 0; rank < c->n_ranks && c->is_periodic; rank++)
		c->is_periodic = template_of(&c->templates, rank) == rank % c->n_real;
	c->multiplicity = n[c->index];
	free(n);
	return 0;
}

int comm_set_members(struct comm *c, const struct wire_comm_ready *ready,
		     const struct wire_member *members, const uint32_t *world_ranks,
		     const uint32_t *classes, uint32_t number, struct err *err)
{
	uint32_t *table = NULL, *ranks;
	int r = -ENOMEM;

	c->number = number;
	c->ready = *ready;
	c->n_ranks = ready->n_ranks;
	c->rank = ready->rank;
	if (ready->n_ranks == 0) /* split without a color */
		return 0;
	c->members = malloc(ready->n_real * sizeof(*members));
	ranks = malloc(ready->n_real * sizeof(*ranks));
	if (world_ranks)
		table = malloc(ready->n_ranks * sizeof(*table));
	c->map = (struct membership){ready->n_ranks, ready->base, ready->stride, table};
	if (c->members && ranks && (table || !world_ranks)) {
		memcpy(c->members, members, ready->n_real * sizeof(*members));
		c->n_real = ready->n_real;
		for (uint32_t i = 0; i < c->n_real; i++)
			ranks[i] = members[i].rank;
		if (table)
			memcpy(table, world_ranks, ready->n_ranks * sizeof(*table));
		r = templates_init(&c->templates, &c->map, ready->gpus_per_node, classes, ranks,
				   c->n_real);
	}
	free(ranks);
	if (r < 0)
		return err_set(err, ENOMEM, "no memory for %u members", ready->n_real);
	c->index = (uint32_t)comm_member(c, c->rank);
	points_set_rank(c->device, c->members[c->index].world_rank);
	return count_templates(c, err);
}

void comm_fail(struct comm *c, int r, const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&fail_lock);
	if (!atomic_load_explicit(&c->async, memory_order_relaxed)) {
		va_start(ap, fmt);
		vsnprintf(c->why, sizeof(c->why), fmt, ap);
		va_end(ap);
		/* release: a reader of @async may read @why */
		atomic_store_explicit(&c->async, r, memory_order_release);
	}
	pthread_mutex_unlock(&fail_lock);
}

struct op *comm_get_op(struct comm *c)
{
	struct op *op = op_get(&c->pool);

	if (op)
		op->comm = c;
	return op;
}

void comm_put_op(struct op *op)
{
	struct comm *c = op->comm;

	if (atomic_load_explicit(&c->state, memory_order_relaxed) == COMM_DEAD)
		op_free(op);
	else
		op_put(&c->pool, op);
}

void comm_list_remove(struct comm **list, const struct comm *c)
{
	while (*list && *list != c)
		list = &(*list)->next;
	if (*list)
		*list = c->next;
}
