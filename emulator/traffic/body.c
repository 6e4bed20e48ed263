/* See body.h. Bodies of about one size share regions of memory; there are four sizes to a doubling.
 * A region that nobody uses is cut anew for another size once more lies idle than is in use: what
 * was mapped for one size serves all. */
#include "traffic/body.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <utlist.h>

#define SMALLEST 256
#define LARGEST (UINT64_C(1) << 40)
#define CLASSES (1 + 4 * (40 - 8))
#define REGION_BYTES (UINT64_C(1) << 22) /* no message of NCCL's is longer */

struct region {
	struct traffic_bodies *of;
	struct region *next;           /* of all */
	struct region *prev, *another; /* of those of its class with free bodies */
	unsigned char *memory;
	uint64_t bytes, body_bytes;
	uint64_t n, n_cut; /* bodies that have room; those that were lent once */
	uint64_t n_lent;
	uint32_t class;
	struct traffic_body *free;
	struct traffic_body *bodies; /* owned: those that lie in it */
};

struct traffic_bodies {
	struct region *regions;
	struct region *open[CLASSES]; /* have free bodies */
	uint64_t mapped, lent;
};

struct traffic_bodies *traffic_bodies_new(void)
{
	return calloc(1, sizeof(struct traffic_bodies));
}

struct traffic_bodies *traffic_bodies_free(struct traffic_bodies *b)
{
	struct region *next;

	if (!b)
		return NULL;
	for (struct region *r = b->regions; r; r = next) {
		next = r->next;
		munmap(r->memory, r->bytes);
		free(r->bodies);
		free(r);
	}
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

/* @r, of which nothing is in use and which is in no list, has bodies of @bytes from now on. */
static int cut(struct region *r, uint64_t bytes, uint32_t class)
{
	uint64_t n = r->bytes / bytes;
	struct traffic_body *bodies = malloc(n * sizeof(*bodies));

	if (!bodies)
		return -1;
	free(r->bodies);
	r->bodies = bodies;
	r->body_bytes = bytes;
	r->class = class;
	r->free = NULL;
	r->n = n;
	r->n_cut = 0;
	DL_APPEND2(r->of->open[class], r, prev, another);
	return 0;
}

static int map_region(struct traffic_bodies *b, uint64_t bytes, uint32_t class)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return -1;
	r->of = b;
	r->bytes = bytes < REGION_BYTES ? REGION_BYTES : bytes;
	r->memory =
		mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->memory == MAP_FAILED || cut(r, bytes, class) < 0) {
		if (r->memory != MAP_FAILED)
			munmap(r->memory, r->bytes);
		free(r);
		return -1;
	}
	r->next = b->regions;
	b->regions = r;
	b->mapped += r->bytes;
	return 0;
}

static int add_region(struct traffic_bodies *b, uint64_t bytes, uint32_t class)
{
	struct region *r = b->lent < b->mapped / 2 ? b->regions : NULL;

	while (r && (r->n_lent || r->bytes < bytes))
		r = r->next;
	if (!r)
		return map_region(b, bytes, class);
	DL_DELETE2(b->open[r->class], r, prev, another);
	if (cut(r, bytes, class) == 0)
		return 0;
	DL_APPEND2(b->open[r->class], r, prev, another);
	return -1;
}

struct traffic_body *traffic_body_new(struct traffic_bodies *b, uint64_t bytes)
{
	struct traffic_body *body;
	struct region *r;
	uint32_t class;
	uint64_t size;

	if (bytes == 0 || bytes > LARGEST)
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
		body->at = r->memory + r->n_cut++ * size;
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
	return b->mapped;
}

uint64_t traffic_bodies_lent(const struct traffic_bodies *b)
{
	return b->lent;
}
