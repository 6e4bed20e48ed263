/* See places.h. The kernel gives the lowest free descriptor: when that is near the limit, all below
 * it are in use. */
#include "nboxd/loop/capacity.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nboxd/loop/worker.h"
#include "nboxd/server.h"
#include "nboxd/store/server.h"

#define SPARE_FDS 16 /* for files, ports and what a link needs besides its socket */

void places_raise_limit(void)
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

bool places_make(struct server *s, bool is_full, const void *link, const void *store_peer)
{
	struct worker *w;
	uint64_t store_ns;

	if (!is_full && !is_short_of_fds())
		return true;
	w = worker_oldest_silent(s, link);
	store_ns =
		is_full || !s->store ? UINT64_MAX : store_server_silent_until(s->store, store_peer);
	if (store_ns != UINT64_MAX && (!w || store_ns < w->deadline_ns))
		store_server_oust_silent(s->store, store_peer);
	else if (w)
		worker_oust(w);
	else
		return !is_full;
	return true;
}
