/* See whole-links.h. */
#include "engine/whole-links.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fabric/link-number.h"
#include "schedule/dtree.h"

struct walk {
	const struct fabric *f;
	const struct membership *members;
	struct usage_maker *maker;
	bool is_own;
	uint32_t *first; /* owned; the first member of each domain, then the number of members */
	uint32_t n;      /* domains */
};

/* Return: 0; -ENOMEM. */
static int find_domains(struct walk *w)
{
	const struct membership *m = w->members;
	uint32_t last = UINT32_MAX;

	w->first = malloc(((size_t)m->n_ranks + 1) * sizeof(*w->first));
	if (!w->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_ranks; i++) {
		uint32_t domain = fabric_domain(w->f, membership_world(m, i));

		if (domain != last)
			w->first[w->n++] = i;
		last = domain;
	}
	w->first[w->n] = m->n_ranks;
	return 0;
}

/* What domain @a sends to domain @b, evenly from its ranks' NICs. */
static int add_between(const struct walk *w, uint32_t a, uint32_t b, double bytes)
{
	uint32_t n_a = w->first[a + 1] - w->first[a], n_b = w->first[b + 1] - w->first[b];
	uint64_t links[FABRIC_PATH_MAX];
	int r = 0;

	for (uint32_t i = 0; i < n_a && r == 0; i++) {
		int n = fabric_path(w->f, membership_world(w->members, w->first[a] + i),
				    membership_world(w->members, w->first[b] + i % n_b),
				    FABRIC_NIC_NEAR, links);

		for (int k = 0; k < n && r == 0; k++) {
			struct fabric_link l;

			if (link_kind(links[k]) < LINK_LEAF)
				continue;
			fabric_link(w->f, links[k], &l);
			r = usage_maker_add(w->maker, links[k], l.bytes_per_ns, bytes / n_a, 1,
					    w->is_own);
		}
	}
	return r;
}

int whole_links_add(const struct price *p, const struct nbox_plan *plan, struct usage_maker *maker,
		    bool is_own)
{
	struct walk w = {.f = delay_fabric(p->delay),
			 .members = p->members,
			 .maker = maker,
			 .is_own = is_own};
	double half = (double)p->op.bytes / 2; /* each tree carries it, up and down */
	int32_t parent, child[2];
	int r = plan->algo == NBOX_NVLS_TREE ? find_domains(&w) : 0;

	for (uint32_t i = 0; i < w.n; i++)
		for (int tree = 0; tree < 2 && r == 0; tree++) {
			sched_dtree(w.n, i, tree, &parent, child);
			if (parent >= 0)
				r = add_between(&w, i, (uint32_t)parent, half);
			if (parent >= 0 && r == 0)
				r = add_between(&w, (uint32_t)parent, i, half);
		}
	free(w.first);
	return r;
}

double whole_links_ns(const struct price *p, const struct nbox_plan *plan)
{
	CLEANUP(usage_maker_deinit) struct usage_maker maker = {0};
	double ns = 0;

	if (whole_links_add(p, plan, &maker, true) < 0)
		return 0;
	for (uint32_t i = 0; i < maker.n; i++)
		ns = fmax(ns, maker.links[i].own_bytes / maker.links[i].capacity);
	return ns;
}
