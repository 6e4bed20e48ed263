/* none: communication costs no time. What remains of an iteration is computation, and what the
 * emulation itself adds. */
#include "nbox-delaymodel.h"

static int none_create(const struct nbox_host *host, const struct nbox_next *next,
		       const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	(void)host, (void)next, (void)kv, (void)n_kv;
	*ret_model = NULL;
	return 0;
}

static void none_destroy(void *model)
{
	(void)model;
}

static int none_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	(void)model, (void)op;
	*ret_ns = 0;
	return 0;
}

static int none_message(void *model, const struct nbox_op *op, const struct nbox_message *msg,
			struct nbox_delay *ret)
{
	(void)model, (void)op, (void)msg;
	*ret = (struct nbox_delay){0, 0};
	return 0;
}

static const struct nbox_param params[] = {{0}};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "none",        .summary = "communication costs no time",
	.flags = NBOX_UNIFORM, .params = params,
	.create = none_create, .destroy = none_destroy,
	.op = none_op,         .message = none_message,
};
