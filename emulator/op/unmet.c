/* See unmet.h. */
#include "op/unmet.h"

#include <stdarg.h>
#include <stdio.h>

struct listener {
	void (*tell)(void *ctx, const char *sentence);
	void *ctx;
};

static void say(const struct listener *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void say(const struct listener *l, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	l->tell(l->ctx, text);
}

/* Those of plug-ins that had no part in any answer: a ramp has many. */
static void say_unused(const struct ops *ops, const struct listener *l)
{
	const struct config *c = ops->config;
	const char *first = NULL;
	bool is_ahead = false;
	size_t n = 0;

	for (size_t i = 0; i < c->n_what_ifs; i++) {
		if (delay_n_used(ops->delay, i))
			continue;
		is_ahead = first ? is_ahead : delay_is_ahead(ops->delay, i);
		first = first ? first : c->what_ifs[i];
		n++;
	}
	if (n == 1)
		say(l, "what-if %.200s: it never took effect%s", first,
		    is_ahead ? ": the run has no all-to-all that it is for" : "");
	else if (n)
		say(l, "what-if %.200s, and %zu more: they never took effect", first, n - 1);
}

void ops_tell_unmet(const struct ops *ops, void (*tell)(void *ctx, const char *sentence), void *ctx)
{
	const struct listener l = {tell, ctx};
	const struct config *c = ops->config;

	if (!ops->n_ops)
		return;
	for (uint32_t i = 0; i < c->n_link_changes; i++)
		if (!overlap_is_met(ops->overlap[0], i))
			say(&l, "what-if %.200s: no op used a link of it while it held",
			    c->link_changes[i].text);
	for (uint32_t i = 0; i < c->n_reshardings; i++)
		if (!(ops->planned >> (i & 63) & 1))
			say(&l, "what-if %.200s: no resharding step as it says was seen",
			    c->reshardings[i].text);
	if (c->alltoall && !ops->is_matrix_met)
		say(&l,
		    "--alltoall %.200s: no all-to-all of sends and receives among %u ranks has its "
		    "rows and columns",
		    config_text(c, CONFIG_ALLTOALL), c->n_alltoall);
	if (c->steps.n_ops && step_count_last(ops->steps) == 0)
		say(&l,
		    "no step was recognised: no rank had %llu ops as --steps %.200s counts them",
		    (unsigned long long)(c->steps.skip + 1), config_text(c, CONFIG_STEPS));
	say_unused(ops, &l);
}
