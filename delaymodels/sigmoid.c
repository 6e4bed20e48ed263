/* sigmoid: small messages get less of a link's bandwidth, by an S-shaped curve in three regions.
 *
 *   up to m1     the time of m1
 *   up to m2     bytes / (bandwidth x share), log10(share) = -L (1 - 1 / (1 + e^(-k (x - x0)))),
 *                x = log2(bytes), x0 = log2(mid)
 *   above m2     bytes / bandwidth, but not less than at m2
 *
 * So the least share is 10^-L, and that of mid 10^-(L/2). L k above 4 log10(2) is refused: more
 * bytes would take less time. Source: the form of Lin et al., "Towards Universal Performance
 * Modeling for Machine Learning Training on Multi-GPU Platforms", for one message. */
#include <math.h>
#include <stdlib.h>

#include "path.h"

struct sigmoid {
	uint64_t m1, m2, mid;
	double L, k;
};

#define STEEPEST (4 * 0.30102999566398120) /* 4 log10(2) */
#define DECADES_MAX 12                     /* between the least bandwidth and the whole */

static int check(const struct nbox_host *h, const struct sigmoid *m)
{
	if (!m->m1 || m->m1 >= m->m2 || !m->mid)
		h->error(h, "m1, m2, mid: at least one byte each, and m1 is below m2");
	else if (m->L > DECADES_MAX)
		h->error(h, "L is %g: so many decades; at most %d", m->L, DECADES_MAX);
	else if (!(m->L * m->k <= STEEPEST))
		h->error(
			h,
			"L x k is %g: above %.4f more bytes would take less time; take a smaller k",
			m->L * m->k, STEEPEST);
	else
		return 0;
	return -1;
}

static int sigmoid_create(const struct nbox_host *h, const struct nbox_next *next,
			  const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct sigmoid *m = calloc(1, sizeof(*m));

	(void)next;
	if (!m) {
		h->error(h, "out of memory");
		return -1;
	}
	if (h->parse_bytes(h, "m1", nbox_value(kv, n_kv, "m1"), &m->m1) < 0 ||
	    h->parse_bytes(h, "m2", nbox_value(kv, n_kv, "m2"), &m->m2) < 0 ||
	    h->parse_bytes(h, "mid", nbox_value(kv, n_kv, "mid"), &m->mid) < 0 ||
	    h->parse_ratio(h, "L", nbox_value(kv, n_kv, "L"), &m->L) < 0 ||
	    h->parse_ratio(h, "k", nbox_value(kv, n_kv, "k"), &m->k) < 0 || check(h, m) < 0) {
		free(m);
		return -1;
	}
	*ret_model = m;
	return 0;
}

static double middle_ns(const struct sigmoid *m, double bytes, double ns_per_byte)
{
	double x = log2(bytes / (double)m->mid);

	return bytes * ns_per_byte * pow(10, m->L * (1 - 1 / (1 + exp(-m->k * x))));
}

static int sigmoid_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			   struct nbox_delay *ret)
{
	const struct sigmoid *m = model;
	struct path p = path_of(op, msg);
	double inside = fmax((double)m->m1, fmin(p.bytes, (double)m->m2));
	double ns = middle_ns(m, inside, p.ns_per_byte);

	*ret = (struct nbox_delay){0, 0};
	if (msg->hop == NBOX_SELF)
		return 0;
	ns = fmax(ns, fmax(p.bytes * p.ns_per_byte, p.least_ns));
	*ret = (struct nbox_delay){p.latency_ns, ns};
	return 0;
}

static const struct nbox_param params[] = {
	{"m1", "bytes", NULL, "smaller messages take as long as one of this size"},
	{"m2", "bytes", NULL, "larger messages have the whole bandwidth"},
	{"mid", "bytes", NULL, "the size in the middle of the S"},
	{"L", "ratio", NULL, "decades between the least bandwidth and the whole"},
	{"k", "ratio", NULL, "how steep the S is, an octave of bytes"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "sigmoid",
	.summary = "small messages get less of a link's bandwidth, by an S-shaped curve",
	.flags = NBOX_UNIFORM,
	.params = params,
	.create = sigmoid_create,
	.destroy = free,
	.message = sigmoid_message,
};
