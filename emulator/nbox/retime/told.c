/* See told.h. */
#include "nbox/retime/told.h"

#include <stdio.h>
#include <string.h>

static const char *const hows[COUNTS_HOWS] = {[COUNTS_ASSUMED] = "assumed",
					      [COUNTS_FITTED] = "fitted",
					      [COUNTS_BEYOND] = "extrapolated",
					      [COUNTS_DECLARED] = "declared"};

static const char *const laws[LAW_KINDS] = {[LAW_KEEP] = "each as many bytes as it had",
					    [LAW_TOTAL] = "as many bytes in all as they had",
					    [LAW_GROW] = "bytes in proportion to the ranks",
					    [LAW_FALL] = "a + b / ranks bytes",
					    [LAW_RISE] = "a + b x ranks bytes"};

/* "2, 4 and 8". */
static void list_ranks(const struct sizes *s, char *ret, size_t size)
{
	size_t used = (size_t)snprintf(ret, size, "%u", s->rec->header.world_size);

	for (size_t i = 0; i < s->n && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%u",
					 i + 1 < s->n ? ", " : " and ", s->others[i].world.size);
}

static void tell(struct report *rep, enum counts_how how, uint32_t kind, enum law_kind law,
		 uint64_t n, const char *ranks)
{
	struct report_counts *c = &rep->counts[rep->n_counts];
	const char *name = coll_kind_name(kind);

	if (rep->n_counts < REPORT_COUNTS_MAX) {
		*c = (struct report_counts){.kind = kind, .n_ops = n};
		snprintf(c->how, sizeof(c->how), "%s", hows[how]);
		snprintf(c->law, sizeof(c->law), "%s", law_name(law));
		snprintf(c->text, sizeof(c->text), "%llu %s: %s, %s%s%s%s", (unsigned long long)n,
			 name, laws[law], hows[how], how == COUNTS_DECLARED ? "" : " from runs of ",
			 how == COUNTS_DECLARED ? "" : ranks,
			 how == COUNTS_DECLARED ? "" : " ranks");
		rep->n_counts++;
	}
	if (how == COUNTS_ASSUMED)
		report_warn(rep, "assumed: %llu %s have %s", (unsigned long long)n, name,
			    laws[law]);
	if (how == COUNTS_BEYOND)
		report_warn(
			rep,
			"extrapolated: %llu %s have %s, through what runs of %s ranks had: a run "
			"nearer to this size (--with) would say more",
			(unsigned long long)n, name, laws[law], ranks);
}

static void warn_of_none(const struct counts_told *told, const struct declared_counts *declared,
			 struct report *rep)
{
	for (uint32_t kind = 0; declared && kind < COLL_KINDS; kind++) {
		uint64_t n = 0;

		for (int law = LAW_KEEP; law < LAW_KINDS; law++)
			n += told->n[COUNTS_DECLARED][kind][law];
		if (declared->law[kind] != LAW_NONE && n == 0)
			report_warn(rep,
				    "--counts: no %s is in a communicator that changes its size",
				    coll_kind_name(kind));
	}
}

void told_counts(const struct counts_told *told, const struct sizes *sizes,
		 const struct declared_counts *declared, struct report *rep)
{
	char ranks[128];

	list_ranks(sizes, ranks, sizeof(ranks));
	for (int how = 0; how < COUNTS_HOWS; how++)
		for (uint32_t kind = 0; kind < COLL_KINDS; kind++)
			for (int law = LAW_KEEP; law < LAW_KINDS; law++)
				if (told->n[how][kind][law])
					tell(rep, (enum counts_how)how, kind, (enum law_kind)law,
					     told->n[how][kind][law], ranks);
	warn_of_none(told, declared, rep);
}
