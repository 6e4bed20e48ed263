/* const: every op takes the same time, whatever its kind, size and ranks. */
#include <stdlib.h>

#include "nbox-delaymodel.h"

struct constant {
	double time_ns;
};

static int const_create(const struct nbox_host *host, const struct nbox_next *next,
			const struct nbox_kv *kv, size_t n_kv, void **ret_model)
{
	struct constant *c = calloc(1, sizeof(*c));

	(void)next;
	if (!c) {
		host->error(host, "out of memory");
		return -1;
	}
	if (host->parse_time(host, "time", nbox_value(kv, n_kv, "time"), &c->time_ns) < 0) {
		free(c);
		return -1;
	}
	*ret_model = c;
	return 0;
}

static int const_op(void *model, const struct nbox_op *op, double *ret_ns)
{
	const struct constant *c = model;

	(void)op;
	*ret_ns = c->time_ns;
	return 0;
}

static const struct nbox_param params[] = {
	{"time", "time", NULL, "how long every op takes"},
	{0},
};

NBOX_EXPORT const struct nbox_delaymodel nbox_delaymodel = {
	NBOX_DELAYMODEL_HEAD, /* its first members */
	.name = "const",        .summary = "every op takes the same time",
	.flags = NBOX_UNIFORM,  .params = params,
	.create = const_create, .destroy = free,
	.op = const_op,
};
