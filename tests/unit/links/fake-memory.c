/* Registered memory: keys and bounds. See fake-verbs.h. */
#include "fake-private.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct region {
	struct ibv_mr mr;
	int access;
	struct region *next;
};

static struct region *regions;
static uint32_t next_key = 0x1000;

struct ibv_mr *fake_reg_mr(struct ibv_pd *pd, void *p, size_t n, int access)
{
	struct region *r;

	if (fake_faults.reg_errno && n >= fake_faults.reg_bytes) {
		errno = fake_faults.reg_errno;
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	pthread_mutex_lock(&fake_lock);
	r->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = p, .length = n};
	r->mr.lkey = r->mr.rkey = next_key += 7;
	r->access = access;
	r->next = regions;
	regions = r;
	fake_alive++;
	pthread_mutex_unlock(&fake_lock);
	return &r->mr;
}

int fake_dereg_mr(struct ibv_mr *mr)
{
	struct region **at;

	pthread_mutex_lock(&fake_lock);
	for (at = &regions; *at && &(*at)->mr != mr; at = &(*at)->next)
		;
	if (!*at)
		abort();
	*at = (*at)->next;
	fake_alive--;
	pthread_mutex_unlock(&fake_lock);
	free(container_of(mr, struct region, mr));
	return 0;
}

bool fake_may_touch(uint32_t key, uint64_t addr, uint64_t n, int access)
{
	struct region *r;

	for (r = regions; r; r = r->next)
		if (r->mr.lkey == key && (r->access & access) == access &&
		    addr >= (uintptr_t)r->mr.addr && addr + n <= (uintptr_t)r->mr.addr + r->mr.length)
			return true;
	return false;
}
