/* See delay-network.h. A parameter of the model speaks of the network when its default is "the
 * cluster's", or the name of such a parameter (inter_bw: bw). What-ifs are not looked at. */
#include "engine/delay-network.h"

#include <stdio.h>
#include <string.h>

#include "engine/delay-host.h"

#define CLUSTER "the cluster's"

/* Return: what @name was given, or what its default leads to; CLUSTER: the cluster's; NULL: the
 * model has no such parameter. @ret_name: where the value was found. */
static const char *resolve(const struct delay_instance *in, const char *name, const char **ret_name)
{
	for (int depth = 0; depth < DELAY_MAX_PARAMS; depth++) {
		const struct nbox_param *p = delay_param(in, name);
		const char *given = p ? nbox_value(in->kv, in->n_kv, name) : NULL;

		if (!p || !p->default_text)
			return NULL;
		*ret_name = p->name;
		if (given || strcmp(p->default_text, CLUSTER) == 0)
			return given ? given : CLUSTER;
		name = p->default_text;
	}
	return NULL;
}

/* As resolve(), of hop value @i in the order of struct delay_network. */
static const char *resolve_hop(const struct delay_instance *in, int i, const char **ret_name)
{
	static const struct {
		const char *own, *any;
	} names[4] = {
		{"intra_alpha", "alpha"},
		{"intra_bw", "bw"},
		{"inter_alpha", "alpha"},
		{"inter_bw", "bw"},
	};
	const char *v = resolve(in, names[i].own, ret_name);

	return v ? v : resolve(in, names[i].any, ret_name);
}

void delay_network_given(struct delay_chain *d, const struct delay_network *given)
{
	const char *const values[4] = {given->intra_latency, given->intra_bandwidth,
				       given->inter_latency, given->inter_bandwidth};
	static const char *const options[4] = {"intra-latency", "intra-bandwidth", "inter-latency",
					       "inter-bandwidth"};
	const struct delay_instance *in = &d->items[0];

	for (int i = 0; i < 4; i++) {
		const char *name, *v = values[i] ? resolve_hop(in, i, &name) : CLUSTER;

		if (v && strcmp(v, CLUSTER) == 0)
			continue;
		if (v)
			err_set(&d->warning, 0,
				"%s %s may change nothing: model %s has %s=%s of its own, which "
				"counts",
				options[i], values[i], in->plugin.table.name, name, v);
		else
			err_set(&d->warning, 0,
				"%s %s may change nothing: model %s has no parameter of it",
				options[i], values[i], in->plugin.table.name);
	}
}

char *delay_network(const struct delay_chain *d, const struct delay_network *cluster, char *buf,
		    size_t size)
{
	const char *const clusters[4] = {cluster->intra_latency, cluster->intra_bandwidth,
					 cluster->inter_latency, cluster->inter_bandwidth};
	const struct delay_instance *in = &d->items[0];
	const char *values[4], *from[4] = {NULL};
	char own[160] = "";
	int n_known = 0;

	for (int i = 0; i < 4; i++) {
		const char *name = "", *v = resolve_hop(in, i, &name);

		n_known += v != NULL;
		values[i] = v && strcmp(v, CLUSTER) != 0 ? v : clusters[i];
		from[i] = values[i] == v ? name : NULL;
		for (int k = 0; from[i] && k < i; k++)
			if (from[k] && strcmp(from[k], from[i]) == 0)
				from[i] = NULL; /* named already */
		if (from[i])
			snprintf(own + strlen(own), sizeof(own) - strlen(own), "%s%s",
				 own[0] ? ", " : "", from[i]);
	}
	if (strcmp(values[0], values[2]) == 0 && strcmp(values[1], values[3]) == 0)
		snprintf(buf, size, "%s, %s on every hop", values[0], values[1]);
	else
		snprintf(buf, size, "%s, %s inside a node; %s, %s between nodes", values[0],
			 values[1], values[2], values[3]);
	if (n_known == 0)
		snprintf(buf + strlen(buf), size - strlen(buf),
			 " (model %s has no parameter of it)", in->plugin.table.name);
	else if (own[0])
		snprintf(buf + strlen(buf), size - strlen(buf), " (%s: the model's own)", own);
	return buf;
}
