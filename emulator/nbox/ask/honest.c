/* See honest.h. */
#include "nbox/ask/honest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "nbox/topo/words.h"

bool honest_is_below(const struct answer *a)
{
	return a->model_ns < a->bound_ns * (1 - 1e-9);
}

bool honest_is_far_above(const struct answer *a, uint64_t size)
{
	return a->bound_ns > 0 && size >= HONEST_LARGE_BYTES &&
	       a->model_ns > HONEST_TIMES * a->bound_ns;
}

/* What keeps the message's bytes: a link that flows share, or what one lane carries at most. */
static void print_narrowest(const struct asked_message *m, const struct nbox_plan *p, FILE *to)
{
	double least = 0, rate;
	uint32_t at = 0;
	bool is_inter = false;
	char text[32];

	for (uint32_t i = 0; i < m->n_links; i++) {
		rate = m->links[i].bytes_per_ns / m->links[i].flows;
		is_inter |= strstr(m->names[i], ".nic") != NULL;
		if (i == 0 || rate < least) {
			least = rate;
			at = i;
		}
	}
	rate = p->lane_bytes_per_ns[is_inter];
	if (rate > 0 && rate < least)
		fprintf(to, "a channel carries %s at most, and there are %u",
			topo_rate(rate, text, sizeof(text)), p->n_lanes);
	else
		fprintf(to, "%u flow%s the %s of %s", m->links[at].flows,
			m->links[at].flows == 1 ? " has" : "s share",
			topo_rate(m->links[at].bytes_per_ns, text, sizeof(text)), m->names[at]);
}

static void print_why(const struct answer *a, const struct asked_message *m, FILE *to)
{
	const struct nbox_plan *p = &a->plan;
	char bound[32], one[32], other[32];

	fprintf(to, "%.2f x the bound (%s%s%s)", a->model_ns / a->bound_ns,
		units_print_time(a->bound_ns, bound, sizeof(bound)), a->bound_at[0] ? " at " : "",
		a->bound_at);
	if (!p->n_lanes)
		fprintf(to, ": the model knows no rails and gives a node one port");
	else if (!m->n_links && p->whole_ns >= 0)
		fprintf(to, ": %s %s has no messages here, the model gives its whole time",
			ask_algo_name(p->algo), ask_proto_name(p->proto));
	else if (!m->n_links)
		fprintf(to, ": %s %s, and each of %u channels to a rank carries %s at most",
			ask_algo_name(p->algo), ask_proto_name(p->proto), p->n_lanes,
			topo_rate(p->lane_bytes_per_ns[NBOX_INTER], one, sizeof(one)));
	if (!m->n_links)
		return;
	fprintf(to, ": ");
	if (p->wire_factor > 1.01)
		fprintf(to, "%s puts %.2f bytes on the wire for each; ", ask_proto_name(p->proto),
			p->wire_factor);
	print_narrowest(m, p, to);
	if (m->delay.latency_ns > 0.1 * m->delay.occupancy_ns)
		fprintf(to, "; each message of %s waits %s besides %s of bytes",
			ask_algo_name(p->algo),
			units_print_time(m->delay.latency_ns, one, sizeof(one)),
			units_print_time(m->delay.occupancy_ns, other, sizeof(other)));
}

int honest_why(struct ask *ask, enum coll_kind kind, uint64_t bytes, uint32_t elem_bytes,
	       const struct answer *a, char *buf, size_t size, struct err *err)
{
	struct asked_message m = {.n_links = 0};
	int r = ask_slowest(ask, kind, bytes, elem_bytes, &m, err);
	FILE *to = r < 0 ? NULL : fmemopen(buf, size, "w");

	if (r == 0 && !to)
		return err_set(err, ENOMEM, "out of memory");
	if (r < 0)
		return r;
	print_why(a, &m, to);
	if (ask_config(ask)->fabric && ask_config(ask)->fabric->network.ecmp)
		fputs("; connections meet on cables of leaves (ECMP)", to);
	fclose(to);
	return 0;
}
