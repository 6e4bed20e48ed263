/* See body.h. One range of addresses, whose pages become memory as it fills. Bodies of about one
 * size share a region of it; there are four sizes to a doubling. Regions that nobody uses are cut
 * anew for other sizes once more lies idle than is in use: what was in use for one size serves all.
 */
#include "traffic/body.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <utlist.h>

#define SMALLEST 256
#define CLASSES (1 + 4 * (64 - 8))
#define UNIT_BYTES (UINT64_C(1) << 19) /* sizes from 2 MiB up are whole ones */
#define REGION_BYTES (UINT64_C(1) << 22)
#define NO_UNIT UINT64_MAX

struct region {
	struct traffic_bodies *of;
	struct region *prev, *another; /* of those of its class with free bodies */
	uint64_t unit, n_units;
	uint64_t body_bytes;
	uint64_t n, n_cut; /* bodies that have room; those that were lent once */
	uint64_t n_lent;
	uint32_t class;
	struct traffic_body *free;
	struct traffic_body *bodies; /* owned: those that lie in it */
};

struct traffic_bodies {
	unsigned char *memory;   /* [n_units], of which n_used are memory */
	struct region **regions; /* [n_units] that a unit is of; NULL: none. Owned */
	uint64_t n_units, n_used;
	struct region *open[CLASSES]; /* have free bodies */
	uint64_t lent;
};

struct traffic_bodies *traffic_bodies_new(uint64_t max_bytes)
{
	struct traffic_bodies *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->n_units = max_bytes / UNIT_BYTES;
	b->regions = calloc(b->n_units, sizeof(*b->regions));
	b->memory = mmap(NULL, b->n_units * UNIT_BYTES, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b->regions && b->memory != MAP_FAILED)
		return b;
	if (b->memory != MAP_FAILED)
		munmap(b->memory, b->n_units * UNIT_BYTES);
	free(b->regions);
	free(b);
	return NULL;
}

static void region_free(struct region *r)
{
	for (uint64_t i = 0; i < r->n_units; i++)
		r->of->regions[r->unit + i] = NULL;
	free(r->bodies);
	free(r);
}

struct traffic_bodies *traffic_bodies_free(struct traffic_bodies *b)
{
	if (!b)
		return NULL;
	for (uint64_t i = 0; i < b->n_used; i++)
		if (b->regions[i])
			region_free(b->regions[i]);
	munmap(b->memory, b->n_units * UNIT_BYTES);
	free(b->regions);
	free(b);
	return NULL;
}

/* The size of the smallest class that @bytes fit into. */
static uint64_t class_of(uint64_t bytes, uint32_t *ret_class)
{
	uint32_t power;
	uint64_t step, quarter;

	*ret_class = 0;
	if (bytes <= SMALLEST)
		return SMALLEST;
	power = 63 - (uint32_t)__builtin_clzll(bytes - 1);
	step = UINT64_C(1) << (power - 2);
	quarter = (bytes - 1) / step - 4;
	*ret_class = 1 + 4 * (power - 8) + (uint32_t)quarter;
	return (quarter + 5) * step;
}

/* The first of @n units that were in use once, and now are not. */
static uint64_t find_idle(const struct traffic_bodies *b, uint64_t n)
{
	uint64_t first = 0, i = 0;

	while (i < b->n_used && i - first < n) {
		const struct region *r = b->regions[i];

		i += r ? r->n_units : 1;
		if (r && r->n_lent)
			first = i;
	}
	return i - first < n ? NO_UNIT : first;
}

/* Regions that have some of these units, and lie idle, are none any more. */
static void clear(struct traffic_bodies *b, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++) {
		struct region *r = b->regions[i];

		if (!r)
			continue;
		DL_DELETE2(b->open[r->class], r, prev, another);
		region_free(r);
	}
}

/* @n units that were never in use. */
static uint64_t extend(struct traffic_bodies *b, uint64_t n)
{
	if (n > b->n_units - b->n_used || mprotect(b->memory + b->n_used * UNIT_BYTES,
						   n * UNIT_BYTES, PROT_READ | PROT_WRITE) < 0)
		return NO_UNIT;
	b->n_used += n;
	return b->n_used - n;
}

static int add_region(struct traffic_bodies *b, uint64_t bytes, uint32_t class)
{
	uint64_t n = bytes < REGION_BYTES / 2 ? REGION_BYTES / bytes : 1;
	uint64_t n_units = (n == 1 ? bytes : REGION_BYTES) / UNIT_BYTES, unit = NO_UNIT;
	struct region *r = calloc(1, sizeof(*r));

	if (r)
		r->bodies = malloc(n * sizeof(*r->bodies));
	if (r && r->bodies) {
		if (b->lent < traffic_bodies_mapped(b) / 2)
			unit = find_idle(b, n_units);
		unit = unit != NO_UNIT ? unit : extend(b, n_units);
		unit = unit != NO_UNIT ? unit : find_idle(b, n_units);
	}
	if (unit == NO_UNIT) {
		if (r)
			free(r->bodies);
		free(r);
		return -1;
	}
	clear(b, unit, n_units);
	r->of = b;
	r->unit = unit;
	r->n_units = n_units;
	r->body_bytes = bytes;
	r->n = n;
	r->class = class;
	for (uint64_t i = 0; i < n_units; i++)
		b->regions[unit + i] = r;
	DL_APPEND2(b->open[class], r, prev, another);
	return 0;
}

struct traffic_body *traffic_body_new(struct traffic_bodies *b, uint64_t bytes)
{
	struct traffic_body *body;
	struct region *r;
	uint32_t class;
	uint64_t size;

	if (bytes == 0 || bytes > b->n_units * UNIT_BYTES)
		return NULL;
	size = class_of(bytes, &class);
	if (!b->open[class] && add_region(b, size, class) < 0)
		return NULL;
	r = b->open[class];
	body = r->free;
	if (body) {
		r->free = body->next;
	} else {
		body = &r->bodies[r->n_cut];
		body->at = b->memory + r->unit * UNIT_BYTES + r->n_cut++ * size;
		body->in = r;
	}
	if (++r->n_lent == r->n)
		DL_DELETE2(b->open[class], r, prev, another);
	b->lent += size;
	body->next = NULL;
	body->bytes = bytes;
	body->refs = 1;
	return body;
}

struct traffic_body *traffic_body_ref(struct traffic_body *body)
{
	body->refs++;
	return body;
}

void traffic_body_unref(struct traffic_body *body)
{
	struct region *r;

	if (!body || --body->refs)
		return;
	r = body->in;
	if (r->n_lent-- == r->n)
		DL_PREPEND2(r->of->open[r->class], r, prev, another);
	body->next = r->free;
	r->free = body;
	r->of->lent -= r->body_bytes;
}

uint64_t traffic_body_room(const struct traffic_body *body)
{
	return body->in->body_bytes;
}

uint64_t traffic_bodies_mapped(const struct traffic_bodies *b)
{
	return b->n_used * UNIT_BYTES;
}

uint64_t traffic_bodies_lent(const struct traffic_bodies *b)
{
	return b->lent;
}
