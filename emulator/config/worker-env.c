/* What a worker's libnbox.so has to know of the configuration, as the variables that it reads. */
#include <errno.h>
#include <stdio.h>

#include "config/config.h"

static int set_number(config_set_env *set, void *ctx, enum option_id id, uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return set(ctx, options[id].variable, text);
}

int config_worker_env(const struct config *c, config_set_env *set, void *ctx)
{
	const char *real = config_text(c, CONFIG_REAL);
	int r = set_number(set, ctx, CONFIG_NODES, c->topology.n_nodes);

	if (r == 0)
		r = set_number(set, ctx, CONFIG_GPUS_PER_NODE, c->topology.gpus_per_node);
	if (r == 0)
		r = real ? set(ctx, options[CONFIG_REAL].variable, real)
			 : set_number(set, ctx, CONFIG_AS_NODE, c->as_node);
	if (r == 0 && c->nccl == NCCL_FULL)
		r = set(ctx, options[CONFIG_NCCL].variable, "full");
	if (r == 0 && c->net_devices)
		r = set(ctx, "NBOX_NET_DEVICES", c->net_devices);
	for (int id = CONFIG_PAYLOAD_WORK; r == 0 && id <= CONFIG_PAYLOAD_MEMORY; id++)
		if (c->exchange == EXCHANGE_PAYLOAD)
			r = set(ctx, options[id].variable, config_text(c, id));
	for (int id = CONFIG_IB_HCA; r == 0 && id <= CONFIG_IB_POLL; id++)
		if (config_text(c, id))
			r = set(ctx, options[id].variable, config_text(c, id));
	return r;
}
