/* loggp: a message of k bytes arrives o + (k - 1) G + L + o after it was sent, and the next one may
 * be sent max(g, o, G) + (k - 1) G after it.
 *
 *   L   latency; that of the path, unless given
 *   o   what sender and receiver each are busy with a message
 *   g   least time between two messages
 *   G   time a byte: 1 / bw, shared by the flows; that of the path, unless given
 *
 * Source: A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman, "LogGP: Incorporating Long Messages
 * into the LogP Model", SPAA 1995. */
#include <stdlib.h>

#include "path.h"

struct loggp {
	double L_ns, o_ns, g_ns; /* L negative: the path's */
	double bytes_per_ns;     /* 0: the path's */
};

static int loggp_create(const struct nbox_host *h, const struct nbox_next *next,
			const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct loggp *m = calloc(1, sizeof(*m));

	(void)next;
	if (!m) {
		h->error(h, "out of memory");
		return -1;
	}
	m->L_ns = -1;
	if (h->parse_time(h, "L", nbox_value(kv, n_kv, "L"), &m->L_ns) < 0 ||
	    h->parse_time(h, "o", nbox_value(kv, n_kv, "o"), &m->o_ns) < 0 ||
	    h->parse_time(h, "g", nbox_value(kv, n_kv, "g"), &m->g_ns) < 0 ||
	    h->parse_bandwidth(h, "bw", nbox_value(kv, n_kv, "bw"), &m->bytes_per_ns) < 0) {
		free(m);
		return -1;
	}
	*ret_model = m;
	return 0;
}

static int loggp_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			 struct nbox_delay *ret)
{
	const struct loggp *m = model;
	struct path p = path_of(op, msg);
	double G = m->bytes_per_ns > 0 ? p.flows / m->bytes_per_ns : p.ns_per_byte;
	double gap = path_longer(path_longer(m->g_ns, m->o_ns), G);
	double L = m->L_ns >= 0 ? m->L_ns : p.latency_ns;

	*ret = (struct nbox_delay){0, 0};
	if (msg->hop == NBOX_SELF)
		return 0;
	ret->occupancy_ns = gap + path_longer(path_longer(p.bytes - 1, 0) * G, p.least_ns);
	ret->latency_ns = path_longer(L + 2 * m->o_ns - gap, 0);
	return 0;
}

static const struct nbox_param params[] = {
	{"L", "time", "the path's", "latency of a message"},
	{"o", "time", "0", "sender and receiver each are busy with a message for so long"},
	{"g", "time", "0", "least time between two messages"},
	{"bw", "bandwidth", "the path's", "1 / G: bytes in a time, behind the first one"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "loggp",
	.summary = "latency, overhead, gap and time a byte of each message",
	.flags = NBOX_UNIFORM,
	.params = params,
	.create = loggp_create,
	.destroy = free,
	.message = loggp_message,
};
