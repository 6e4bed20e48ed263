/* See honest.h. */
#include "nbox/ask/honest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

bool honest_is_below(const struct answer *a)
{
	return a->model_ns < a->bound_ns * (1 - 1e-9);
}

bool honest_is_far_above(const struct answer *a, uint64_t size)
{
	return a->bound_ns > 0 && size >= HONEST_LARGE_BYTES &&
	       a->model_ns > HONEST_TIMES * a->bound_ns;
}

struct text {
	char *buf;
	size_t size, used;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;

	if (t->used >= t->size)
		return;
	va_start(ap, fmt);
	t->used += (size_t)vsnprintf(t->buf + t->used, t->size - t->used, fmt, ap);
	va_end(ap);
}

/* What keeps the message's bytes: a link that lanes share, or what one lane carries at most. */
static void add_narrowest(struct text *t, const struct asked_message *m, const struct nbox_plan *p)
{
	double least = 0, rate;
	uint32_t at = 0;
	bool is_inter = false;

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
		add(t, "a lane carries %.1f GB/s at most, and there are %u", rate, p->n_lanes);
	else
		add(t, "%u lanes share the %.1f GB/s of %s", m->links[at].flows,
		    m->links[at].bytes_per_ns, m->names[at]);
}

int honest_why(struct ask *ask, enum coll_kind kind, uint64_t bytes, uint32_t elem_bytes,
	       const struct answer *a, char *buf, size_t size, struct err *err)
{
	struct text t = {.buf = buf, .size = size};
	struct asked_message m = {.n_links = 0};
	const struct nbox_plan *p = &a->plan;
	char bound[32], one[32], other[32];
	int r = ask_slowest(ask, kind, bytes, elem_bytes, &m, err);

	if (r < 0)
		return r;
	add(&t, "%.2f x the bound (%s%s%s)", a->model_ns / a->bound_ns,
	    units_print_time(a->bound_ns, bound, sizeof(bound)), a->bound_at[0] ? " at " : "",
	    a->bound_at);
	if (!p->n_lanes)
		add(&t, ": the model knows no rails and gives a node one port");
	else if (!m.n_links && p->whole_ns >= 0)
		add(&t, ": %s %s has no messages here, the model gives its whole time",
		    ask_algo_name(p->algo), ask_proto_name(p->proto));
	else if (!m.n_links)
		add(&t, ": %s %s, and each of %u channels to a rank carries %.1f GB/s at most",
		    ask_algo_name(p->algo), ask_proto_name(p->proto), p->n_lanes,
		    p->lane_bytes_per_ns[NBOX_INTER]);
	if (!m.n_links)
		return 0;
	add(&t, ": ");
	if (p->wire_factor > 1.01)
		add(&t, "%s puts %.2f bytes on the wire for each; ", ask_proto_name(p->proto),
		    p->wire_factor);
	add_narrowest(&t, &m, p);
	if (m.delay.latency_ns > 0.1 * m.delay.occupancy_ns)
		add(&t, "; each message of %s waits %s besides %s of bytes", ask_algo_name(p->algo),
		    units_print_time(m.delay.latency_ns, one, sizeof(one)),
		    units_print_time(m.delay.occupancy_ns, other, sizeof(other)));
	return 0;
}
