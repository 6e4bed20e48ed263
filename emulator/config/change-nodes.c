/* See change-nodes.h. */
#include "config/change-nodes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "config/convert.h"

/* "8x400Gbps,2us" */
struct nics {
	uint64_t n;
	double bytes_per_ns, latency_ns; /* latency negative: not said */
};

static int parse_nics(const struct config *c, struct nics *ret, struct err *err)
{
	const char *text = config_text(c, CONFIG_INTER), *x = strchr(text, 'x');
	const char *comma = strchr(text, ',');
	char n[16], rate[32];
	struct nics nics = {.latency_ns = -1};
	int r;

	if (!x || x - text >= (long)sizeof(n) || (comma && comma < x) || strlen(x) >= sizeof(rate))
		return value_refuse(c, CONFIG_INTER, 0, err,
				    "'%.64s' is no number of NICs and their rate, such as "
				    "8x400Gbps or 8x400Gbps,2us",
				    text);
	snprintf(n, sizeof(n), "%.*s", (int)(x - text), text);
	snprintf(rate, sizeof(rate), "%.*s", comma ? (int)(comma - x - 1) : 31, x + 1);
	r = units_count(n, &nics.n, err);
	if (r == 0)
		r = units_bandwidth(rate, &nics.bytes_per_ns, err);
	if (r == 0 && comma)
		r = units_time(comma + 1, &nics.latency_ns, err);
	if (r < 0)
		return value_refuse_text(c, CONFIG_INTER, err);
	if (nics.n < 1 || nics.n > FABRIC_NICS_MAX)
		return value_refuse(c, CONFIG_INTER, 0, err, "a node has 1 to %d NICs, not %s",
				    FABRIC_NICS_MAX, n);
	*ret = nics;
	return 0;
}

static void set_nics(struct fabric *f, const struct nics *nics)
{
	for (uint32_t i = 0; i < f->n_classes; i++) {
		struct fabric_class *k = &f->classes[i];

		k->n_nics = (uint32_t)nics->n;
		k->nic_bytes_per_ns = nics->bytes_per_ns;
		fabric_spread_nics(k);
	}
	if (nics->latency_ns >= 0)
		f->network.latency_ns = nics->latency_ns;
}

int change_nodes(struct config *c, struct err *err)
{
	enum option_id which = config_text(c, CONFIG_INTER) ? CONFIG_INTER : CONFIG_DOMAIN_NODES;
	struct nics nics = {0};
	struct err why = {""};
	uint64_t n = 0;
	int r = 0;

	if (!config_text(c, which))
		return 0;
	if (!c->fabric)
		return value_refuse(c, which, 0, err,
				    "there is no fabric whose nodes could be otherwise: give "
				    "--preset or --fabric");
	if (config_text(c, CONFIG_INTER)) {
		r = parse_nics(c, &nics, err);
		if (r == 0)
			set_nics(c->fabric, &nics);
	}
	if (r == 0 && config_text(c, CONFIG_DOMAIN_NODES))
		r = value_count(c, CONFIG_DOMAIN_NODES, 1, WIRE_WORLD_MAX, &n, err);
	for (uint32_t i = 0; r == 0 && n && i < c->fabric->n_classes; i++)
		c->fabric->classes[i].domain_nodes = (uint32_t)n;
	if (r == 0)
		r = fabric_check(c->fabric, &why);
	return why.text[0] ? value_refuse(c, which, 0, err, "%s", why.text) : r;
}
