/* See usage-walk.h. */
#include "engine/usage-walk.h"

#include "fabric/link-number.h"

static int add_ports(const struct usage_walk *w, uint32_t src, uint32_t dst, double bytes)
{
	const struct topology *t = w->price->topology;
	uint32_t a = membership_world(w->price->members, src),
		 b = membership_world(w->price->members, dst);
	bool is_inter = topology_hop(t, a, b) == HOP_INTER;
	enum link_kind kind = is_inter ? LINK_NIC : LINK_GPU;
	double capacity = (is_inter ? t->inter : t->intra).bytes_per_ns;
	int r = usage_maker_add(w->maker, link_number(kind, a, 0, LINK_OUT), capacity, bytes, 1,
				w->is_own);

	return r ? r
		 : usage_maker_add(w->maker, link_number(kind, b, 0, LINK_IN), capacity, bytes, 1,
				   w->is_own);
}

int usage_add_connection(const struct usage_walk *w, uint32_t src, uint32_t dst, uint16_t lane,
			 double bytes)
{
	const struct fabric *f = w->routes ? delay_fabric(w->price->delay) : NULL;
	uint64_t links[FABRIC_PATH_MAX];
	int n, r = 0;

	if (!w->routes)
		return add_ports(w, src, dst, bytes);
	n = routes_links(w->routes, src, dst, lane, links);
	for (int i = 0; i < n && r == 0; i++) {
		struct fabric_link link;

		fabric_link(f, links[i], &link);
		r = usage_maker_add(w->maker, links[i], link.bytes_per_ns, bytes, 1, w->is_own);
	}
	return r;
}
