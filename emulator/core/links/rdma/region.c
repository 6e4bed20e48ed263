/* See region.h. The cache registers memory of the owner when a body is first sent from it, and
 * keeps it registered, because registering costs far more than sending.
 *
 * The owner of a link lends memory that stays mapped as it is until link_free() (see
 * link_send()): a mapping that went and came back at the same address would be sent with its old
 * pages. Memory of an owner that cannot promise that (link_lends_passing()) is not kept. What an
 * owner registers itself (link_register()) is no part of the cache, nor of its bound. The cache
 * keeps at most NBOX_IB_MEMORY; beyond that, the region that was used longest ago goes. */
#include "links/rdma/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/units.h"

int rdma_memory_error(struct err *err, int code, size_t bytes)
{
	struct rlimit limit = {0, 0};
	char want[32], have[32];

	units_print_bytes(bytes, want, sizeof(want));
	if (code == ENOMEM && !getrlimit(RLIMIT_MEMLOCK, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY) {
		units_print_bytes(limit.rlim_cur, have, sizeof(have));
		return err_set(
			err, ENOMEM,
			"%s cannot be registered: this process may lock %s (ulimit -l); raise "
			"it (ulimit -l unlimited; LimitMEMLOCK=infinity for a service) or lower "
			"NBOX_IB_RING and NBOX_IB_MEMORY",
			want, have);
	}
	return err_set(err, code, "%s cannot be registered: %s", want, strerror(code));
}

static void region_free(struct rdma_regions *c, struct rdma_region *g)
{
	if (!g->is_own)
		c->bytes -= g->last - g->first;
	c->v->dereg_mr(g->mr);
	free(g);
}

/* Return: whether one could go. */
static bool drop_oldest(struct rdma_regions *c)
{
	struct rdma_region **at, **oldest = NULL, *g;

	for (at = &c->list; *at; at = &(*at)->next)
		if (!(*at)->n_users && (!oldest || (*at)->used_at < (*oldest)->used_at))
			oldest = at;
	if (!oldest)
		return false;
	g = *oldest;
	*oldest = g->next;
	region_free(c, g);
	return true;
}

static struct rdma_region *find(struct rdma_regions *c, uintptr_t first, uintptr_t last)
{
	struct rdma_region **at, *g;

	for (at = &c->list; *at; at = &(*at)->next) {
		g = *at;
		if (g->first > first || g->last < last)
			continue;
		*at = g->next; /* to the front: the next one is likely here too */
		g->next = c->list;
		c->list = g;
		return g;
	}
	return NULL;
}

/* Regions of the cache give way to @g. */
static int register_pages(struct rdma_regions *c, struct rdma_region *g, struct err *err)
{
	uint64_t bytes = g->last - g->first;
	int access = g->is_own ? IBV_ACCESS_LOCAL_WRITE : c->access;

	do
		g->mr = c->v->reg_mr(c->pd, (void *)g->first, bytes, access);
	while (!g->mr && errno == ENOMEM && drop_oldest(c));
	/* memory that we may only read */
	if (!g->mr && errno == EFAULT) {
		access &= ~IBV_ACCESS_LOCAL_WRITE;
		g->mr = c->v->reg_mr(c->pd, (void *)g->first, bytes, access);
	}
	g->is_readable = access & IBV_ACCESS_REMOTE_READ;
	return g->mr ? 0 : rdma_memory_error(err, errno, bytes);
}

static int add(struct rdma_regions *c, const struct rdma_region *pages, struct rdma_region **list,
	       struct rdma_region **ret, struct err *err)
{
	CLEANUP(freep) struct rdma_region *g = malloc(sizeof(*g));
	int r;

	if (!g)
		return err_set(err, ENOMEM, "no memory");
	*g = *pages;
	r = register_pages(c, g, err);
	if (r)
		return r;
	g->next = *list;
	*list = g;
	*ret = steal_ptr(g);
	return 0;
}

static struct rdma_region pages_of(const void *p, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	return (struct rdma_region){.first = (uintptr_t)p & ~(page - 1),
				    .last = ((uintptr_t)p + n + page - 1) & ~(page - 1)};
}

int rdma_region_get(struct rdma_regions *c, const void *p, size_t n, struct rdma_region **ret,
		    struct err *err)
{
	struct rdma_region pages = pages_of(p, n), *g = find(c, pages.first, pages.last);
	uint64_t bytes = pages.last - pages.first;
	int r;

	if (!g) {
		/* Regions in use stay, so there may be more than NBOX_IB_MEMORY: a body that does
		 * not fit could never be sent. */
		while (c->bytes + bytes > c->most_bytes && drop_oldest(c))
			;
		r = add(c, &pages, &c->list, &g, err);
		if (r)
			return r;
		c->bytes += bytes;
	}
	g->n_users++;
	g->used_at = ++c->turn;
	*ret = g;
	return 0;
}

int rdma_region_own(struct rdma_regions *c, const void *p, size_t n, struct rdma_region **ret,
		    struct err *err)
{
	struct rdma_region pages = pages_of(p, n);

	pages.n_users = 1;
	pages.is_own = true;
	return add(c, &pages, &c->own, ret, err);
}

void rdma_region_put(struct rdma_regions *c, struct rdma_region *g, bool is_kept)
{
	struct rdma_region **at = g->is_own ? &c->own : &c->list;

	if (--g->n_users || (is_kept && !g->is_own))
		return;
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	region_free(c, g);
}

void rdma_regions_free(struct rdma_regions *c)
{
	struct rdma_region *g;

	while ((g = c->list) || (g = c->own)) {
		*(g->is_own ? &c->own : &c->list) = g->next;
		region_free(c, g);
	}
}
