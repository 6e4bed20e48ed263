/* See capacity.h. The kernel gives the lowest free descriptor: when that is near the limit, all
 * below it are in use. */
#include "nboxd/loop/capacity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nboxd/loop/worker.h"

#define SPARE_FDS 16 /* for files, ports and what a link needs besides its socket */

void capacity_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool is_short_of_fds(void)
{
	struct rlimit limit;
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (next < 0)
		return errno == EMFILE || errno == ENFILE;
	close(next);
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	       (rlim_t)next + SPARE_FDS >= limit.rlim_cur;
}

bool capacity_make(struct capacity *c, bool is_full, const void *newcomer)
{
	uint64_t other_ns = UINT64_MAX;
	struct worker *w;

	if (!is_full && !is_short_of_fds())
		return true;
	w = workers_oldest_silent(c->workers, newcomer);
	if (!is_full && c->ctx)
		other_ns = c->silent_until(c->ctx, newcomer);
	if (other_ns != UINT64_MAX && (!w || other_ns < w->deadline_ns))
		c->oust_silent(c->ctx, newcomer);
	else if (w)
		worker_oust(w);
	else
		return !is_full;
	return true;
}
