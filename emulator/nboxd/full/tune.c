/* See tune.h. */
#include "nboxd/full/tune.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#include "nboxd/full/own.h"
#include "nboxd/loop/worker.h"
#include "op/decided.h"

int full_on_tune(struct full *f, struct worker *w, const struct wire_hdr *h, const void *body)
{
	const struct full_comm *fc;
	struct wire_hdr answer;
	struct wire_tune m;

	if (link_queued_bytes(w->link) > f->queue_max_bytes)
		return worker_refuse(w, ENOBUFS, "asks on and on, but does not read the answers");
	memcpy(&m, body, sizeof(m));
	m.took = (struct wire_took){.n_channels = 0};
	m.n_of_comm = 0;
	DL_FOREACH(f->list, fc)
		if (decided_ask(fc->comm, &m))
			break;
	wire_hdr_init(&answer, WIRE_TUNE, sizeof(m));
	answer.comm = h->comm;
	answer.rank = h->rank;
	worker_send(w, &answer, &m);
	return 0;
}
