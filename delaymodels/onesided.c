/* onesided: all-to-alls as if each rank stored what it computes in its peers' memory at once, while
 * it goes on: only what computation does not hide is left of the op.
 *
 *   onesided                              each all-to-all of the job
 *   onesided:communicator=ep,header=64B   those of one axis, each message with a header
 *
 * M messages come evenly over the computation before the op, of time C, and take turns on the link,
 * each for s = (T - alpha) / M of the op's own time T, with headers longer. The last one is there
 *
 *     alpha + max(s, M s - C (M-1)/M)
 *
 * after the computation: emulator/onesided's closed form. With C = 0 that is T. */
#include <stdlib.h>

#include "nbox-delaymodel.h"

struct onesided {
	double alpha_ns; /* < 0: the cluster's */
	uint64_t message, header;
};

static int parse(struct onesided *o, const struct nbox_host *h, const struct nbox_kv *kv, size_t n)
{
	if (h->parse_time(h, "alpha", nbox_value(kv, n, "alpha"), &o->alpha_ns) < 0 ||
	    h->parse_bytes(h, "message", nbox_value(kv, n, "message"), &o->message) < 0 ||
	    h->parse_bytes(h, "header", nbox_value(kv, n, "header"), &o->header) < 0)
		return -1;
	if (!o->message) {
		h->error(h, "message=0: a store has one byte at least");
		return -1;
	}
	return 0;
}

static int onesided_create(const struct nbox_host *host, const struct nbox_next *next,
			   const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct onesided *o = malloc(sizeof(*o));

	(void)next;
	if (!o) {
		host->error(host, "out of memory");
		return -1;
	}
	*o = (struct onesided){.alpha_ns = -1, .message = 256};
	if (parse(o, host, kv, n_kv) < 0) {
		free(o);
		return -1;
	}
	host->warn(host, "the job still unpacks what it received, which one-sided stores need not; "
			 "its kernels do not pay for the stores, which they would");
	*ret_model = o;
	return 0;
}

/* That a rank sends. */
static double messages_of(const struct onesided *o, const struct nbox_op *op)
{
	uint64_t bytes = op->kind == NBOX_ALLTOALL ? op->bytes * (op->n_ranks - 1) : op->bytes;

	return (double)((bytes + o->message - 1) / o->message);
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static int onesided_extra(void *model, const struct nbox_op *op, double so_far_ns,
			  int from_messages, double *ret_extra_ns)
{
	const struct onesided *o = model;
	double n = messages_of(o, op), alpha = o->alpha_ns, wire;

	(void)from_messages;
	if (op->struct_size < sizeof(*op) || op->window_ns < 0 || !(n > 0))
		return 1;
	if (alpha < 0)
		alpha = op->n_nodes > 1 ? op->net->inter_latency_ns : op->net->intra_latency_ns;
	alpha = alpha < so_far_ns ? alpha : so_far_ns;
	wire = (so_far_ns - alpha) * (1 + (double)o->header / (double)o->message);
	*ret_extra_ns = alpha + larger(wire / n, wire - op->window_ns * (n - 1) / n) - so_far_ns;
	return 0;
}

static const struct nbox_param params[] = {
	{"alpha", "time", "the cluster's latency", "until a store is there"},
	{"message", "bytes", "256B", "of one store"},
	{"header", "bytes", "0B", "that it takes besides"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "onesided",
	.summary = "all-to-alls as stores during the computation before: only its tail is left",
	.flags = NBOX_DECORATOR | NBOX_UNIFORM | NBOX_AHEAD,
	.params = params,
	.create = onesided_create,
	.destroy = free,
	.extra = onesided_extra,
};
