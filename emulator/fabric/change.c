/* See fabric.h: links that are not what the class or the network says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fabric/fabric.h"

static void set(struct fabric_change *c, double bytes_per_ns, double latency_ns)
{
	if (bytes_per_ns >= 0)
		c->bytes_per_ns = bytes_per_ns;
	if (latency_ns >= 0)
		c->latency_ns = latency_ns;
}

/* Adds the links to the changes; both are in order. A second change of a link overrides what it
 * gives. */
static int merge(struct fabric *f, const uint64_t *links, size_t n, double bytes_per_ns,
		 double latency_ns)
{
	size_t end = f->n_changes + n, at = f->n_changes, old;
	struct fabric_change *all = realloc(f->changes, end * sizeof(*all));

	if (!all)
		return -ENOMEM;
	f->changes = all;
	while (at > 0 && all[at - 1].link >= links[0])
		at--;
	old = at + n; /* those from here on make room, and come back one by one */
	memmove(&all[old], &all[at], (f->n_changes - at) * sizeof(*all));
	for (size_t i = 0; i < n; i++) {
		while (old < end && all[old].link < links[i])
			all[at++] = all[old++];
		if (old < end && all[old].link == links[i])
			all[at] = all[old++];
		else
			all[at] = (struct fabric_change){links[i], -1, -1};
		set(&all[at++], bytes_per_ns, latency_ns);
	}
	memmove(&all[at], &all[old], (end - old) * sizeof(*all));
	f->n_changes = at + end - old;
	return 0;
}

int fabric_change(struct fabric *f, const char *name, double bytes_per_ns, double latency_ns,
		  struct err *err)
{
	CLEANUP(freep) uint64_t *links = NULL;
	size_t n = 0;
	int r = fabric_links_named(f, name, &links, &n, err);

	if (r < 0)
		return r;
	if ((!(bytes_per_ns < 0) && !fabric_is_rate(bytes_per_ns)) ||
	    (!(latency_ns < 0) && !fabric_is_latency(latency_ns)))
		return err_set(err, EINVAL, "'%.64s': bandwidth or latency is impossible", name);
	return merge(f, links, n, bytes_per_ns, latency_ns) < 0
		       ? err_set(err, ENOMEM, "out of memory for changes of links")
		       : 0;
}
