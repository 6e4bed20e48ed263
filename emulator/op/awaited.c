/* See awaited.h. */
#include "op/awaited.h"

#include <math.h>
#include <stdlib.h>

struct awaited *awaited_new(struct ops *ops, struct timeline_node *node, uint32_t n)
{
	struct awaited *a = calloc(1, sizeof(*a) + n * sizeof(a->of[0]));

	if (!a)
		return NULL;
	*a = (struct awaited){.n_refs = 1,
			      .n = n,
			      .ops = ops,
			      .node = timeline_node_hold(node),
			      .from = {-INFINITY, -INFINITY}};
	for (uint32_t i = 0; i < n; i++)
		a->of[i] = (struct awaited_call){.at = {-INFINITY, -INFINITY},
						 .alone = {-INFINITY, -INFINITY}};
	return a;
}

struct awaited *awaited_ref(struct awaited *a)
{
	a->n_refs++;
	return a;
}

struct awaited *awaited_unref(struct awaited *a)
{
	if (a && --a->n_refs == 0) {
		timeline_node_release(a->node);
		free(a);
	}
	return NULL;
}

const struct awaited_call *awaited_last(const struct awaited *a, bool is_plain)
{
	const struct awaited_call *last = NULL;
	double at = a->from[is_plain];

	for (uint32_t i = 0; i < a->n; i++)
		if (a->of[i].at[is_plain] > at) {
			last = &a->of[i];
			at = last->at[is_plain];
		}
	return last;
}

double awaited_end(const struct awaited *a, bool is_plain)
{
	const struct awaited_call *last = awaited_last(a, is_plain);

	return last ? last->at[is_plain] : a->from[is_plain];
}

double awaited_alone(const struct awaited *a)
{
	double alone = a->from[0];

	for (uint32_t i = 0; i < a->n; i++)
		alone = fmax(alone, a->of[i].alone[0]);
	return alone;
}

double awaited_shared(const struct awaited *a)
{
	return fmax(0, awaited_end(a, false) - awaited_alone(a));
}

static double later(void *ctx, double end)
{
	return end + *(const double *)ctx;
}

void awaited_move(struct awaited *a, uint32_t call, bool is_plain, double at)
{
	bool has_plain = config_moves_times(a->ops->config);
	double before = awaited_end(a, is_plain), ns, debt_ns;

	a->of[call].at[is_plain] = at;
	if (!has_plain) /* the plain end is this one */
		a->of[call].at[1] = at;
	ns = awaited_end(a, is_plain) - before;
	if (ns == 0 || !a->is_told)
		return;
	debt_ns = timeline_move_end(a->node, is_plain, later, &ns);
	if (!has_plain)
		timeline_move_end(a->node, true, later, &ns);
	if (debt_ns > 0 && !is_plain)
		a->ops->sink->debt(a->ops, debt_ns);
	if (a->run && !is_plain)
		a->ops->sink->moved(a->run);
}
