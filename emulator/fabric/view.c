/* See fabric.h: what an op sees of the fabric. */
#include <math.h>

#include "fabric/census.h"

static void add_class(const struct fabric_class *c, bool is_first, struct fabric_view *v)
{
	double payload = c->nic_bytes_per_ns * fabric_nic_efficiency(c);

	if (is_first) {
		v->sm_min = v->sm_max = c->sm;
		v->intra = c->intra;
		v->cpu = c->cpu;
		v->distance = c->distance;
		v->has_nvls = c->has_nvls;
		v->has_gdr = c->has_gdr;
		v->gpu_bytes_per_ns = c->gpu_bytes_per_ns;
		v->gpu_latency_ns = c->gpu_latency_ns;
		v->pcie_bytes_per_ns = c->pcie_bytes_per_ns;
		v->nic_bytes_per_ns = c->nic_bytes_per_ns;
		v->nic_payload_bytes_per_ns = payload;
		v->has_order = c->nic != FABRIC_EFA;
		return;
	}
	v->sm_min = c->sm < v->sm_min ? c->sm : v->sm_min;
	v->sm_max = c->sm > v->sm_max ? c->sm : v->sm_max;
	v->intra = c->intra > v->intra ? c->intra : v->intra; /* the later is the weaker */
	v->cpu = c->cpu == v->cpu ? v->cpu : FABRIC_OTHER_CPU;
	v->distance = c->distance > v->distance ? c->distance : v->distance;
	v->has_nvls = v->has_nvls && c->has_nvls;
	v->has_gdr = v->has_gdr && c->has_gdr;
	v->gpu_bytes_per_ns = fmin(v->gpu_bytes_per_ns, c->gpu_bytes_per_ns);
	v->gpu_latency_ns = fmax(v->gpu_latency_ns, c->gpu_latency_ns);
	v->nic_bytes_per_ns = fmin(v->nic_bytes_per_ns, c->nic_bytes_per_ns);
	v->nic_payload_bytes_per_ns = fmin(v->nic_payload_bytes_per_ns, payload);
	v->has_order = v->has_order && c->nic != FABRIC_EFA;
	if (c->pcie_bytes_per_ns > 0)
		v->pcie_bytes_per_ns = v->pcie_bytes_per_ns > 0
					       ? fmin(v->pcie_bytes_per_ns, c->pcie_bytes_per_ns)
					       : c->pcie_bytes_per_ns;
}

int fabric_view(const struct fabric *f, const struct membership *m, struct fabric_view *ret)
{
	struct fabric_view v = {.net_latency_ns = f->network.latency_ns};
	const struct fabric_class *last = NULL;
	struct census_domains d;
	struct census c;
	uint32_t at = 0;
	int r = census_take(f, m, &c);

	if (r < 0)
		return r;
	while (census_next(f, &c, &at, &d)) {
		const struct fabric_class *class = fabric_class_of(f, d.first);

		if (class != last)
			add_class(class, !last, &v);
		last = class;
		if (!v.n_domains) {
			v.ranks_per_domain = d.n_ranks;
			v.n_nics = d.n_nics;
		}
		if (d.n_ranks != v.ranks_per_domain)
			v.ranks_per_domain = 0;
		v.most_ranks_per_domain =
			d.n_ranks > v.most_ranks_per_domain ? d.n_ranks : v.most_ranks_per_domain;
		v.n_nics = d.n_nics < v.n_nics ? d.n_nics : v.n_nics;
		v.n_domains += d.times;
	}
	census_deinit(&c);
	*ret = v;
	return 0;
}
