/* See usage-walk.h. */
#include "engine/usage-walk.h"

#include "fabric/link-number.h"

static int port_links(const struct price *p, uint32_t src, uint32_t dst,
		      uint64_t ret_links[FABRIC_PATH_MAX], double ret_bytes_per_ns[FABRIC_PATH_MAX])
{
	const struct topology *t = p->topology;
	uint32_t a = membership_world(p->members, src), b = membership_world(p->members, dst);
	bool is_inter = topology_hop(t, a, b) == HOP_INTER;
	enum link_kind kind = is_inter ? LINK_NIC : LINK_GPU;

	ret_links[0] = link_number(kind, a, 0, LINK_OUT);
	ret_links[1] = link_number(kind, b, 0, LINK_IN);
	ret_bytes_per_ns[0] = ret_bytes_per_ns[1] = (is_inter ? t->inter : t->intra).bytes_per_ns;
	return 2;
}

int usage_links(const struct price *p, const struct routes *routes, uint32_t src, uint32_t dst,
		uint16_t lane, uint64_t ret_links[FABRIC_PATH_MAX],
		double ret_bytes_per_ns[FABRIC_PATH_MAX])
{
	const struct fabric *f = delay_fabric(p->delay);
	int n;

	if (!routes)
		return port_links(p, src, dst, ret_links, ret_bytes_per_ns);
	n = routes_links(routes, src, dst, lane, ret_links);
	if (n > 0)
		fabric_ecmp(f, membership_world(p->members, src), membership_world(p->members, dst),
			    lane, ret_links, (uint32_t)n);
	for (int i = 0; i < n; i++) {
		struct fabric_link link;

		fabric_link(f, ret_links[i], &link);
		ret_bytes_per_ns[i] = link.bytes_per_ns;
	}
	return n;
}

double usage_wire_factor(const struct price *p)
{
	return p->plan ? p->plan->wire_factor : 1;
}

int usage_add_connection(const struct usage_walk *w, uint32_t src, uint32_t dst, uint16_t lane,
			 double bytes)
{
	uint64_t links[FABRIC_PATH_MAX];
	double bytes_per_ns[FABRIC_PATH_MAX];
	int n = usage_links(w->price, w->routes, src, dst, lane, links, bytes_per_ns), r = 0;

	for (int i = 0; i < n && r == 0; i++) {
		/* the op's own time knows nothing of cables on which its connections meet */
		bool is_cable = w->routes && link_kind(links[i]) == LINK_LEAF && link_b(links[i]);

		r = usage_maker_add(w->maker, links[i], bytes_per_ns[i],
				    bytes * usage_wire_factor(w->price), 1, w->is_own && !is_cable);
	}
	return r;
}

int usage_add_near(const struct usage_walk *w, uint32_t src, uint32_t dst, uint16_t lane,
		   double bytes)
{
	const struct fabric *f = delay_fabric(w->price->delay);
	uint64_t links[FABRIC_PATH_MAX];
	int n = fabric_path(f, src, dst, FABRIC_NIC_NEAR, links), r = 0;

	if (n > 0)
		fabric_ecmp(f, src, dst, lane, links, (uint32_t)n);
	for (int i = 0; i < n && r == 0; i++) {
		struct fabric_link link;

		fabric_link(f, links[i], &link);
		r = usage_maker_add(w->maker, links[i], link.bytes_per_ns,
				    bytes * usage_wire_factor(w->price), 1, false);
	}
	return r;
}
