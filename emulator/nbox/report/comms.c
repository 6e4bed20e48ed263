/* See comms.h. */
#include "nbox/report/comms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "members/members.h"

static int by_size(const void *pa, const void *pb)
{
	const struct report_comms *a = pa, *b = pb;

	if (a->n_ranks != b->n_ranks)
		return a->n_ranks > b->n_ranks ? -1 : 1;
	return a->axes != b->axes ? (a->axes > b->axes) - (a->axes < b->axes)
				  : (a->source > b->source) - (a->source < b->source);
}

/* Adds one communicator. */
static void add(struct report *rep, const struct record_comm *comm, uint64_t n_ops)
{
	struct report_comms c = {.n_ranks = comm->n_ranks,
				 .n_real = comm->n_real,
				 .source = comm->source,
				 .sure = comm->sure,
				 .axes = comm->axes};
	uint32_t i = 0;

	for (; i < rep->n_comms; i++) {
		const struct report_comms *d = &rep->comms[i];

		if (d->n_ranks == c.n_ranks && d->n_real == c.n_real && d->source == c.source &&
		    d->sure == c.sure && d->axes == c.axes)
			break;
	}
	if (i == REPORT_COMMS_MAX)
		return;
	if (i == rep->n_comms)
		rep->comms[rep->n_comms++] = c;
	rep->comms[i].n++;
	rep->comms[i].n_ops += n_ops;
}

int report_comms(const struct record *rec, struct report *ret)
{
	CLEANUP(freep) uint64_t *n_ops = calloc(rec->n_comms + 1, sizeof(*n_ops));

	if (!n_ops)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_ops; i++)
		n_ops[rec->ops[i].of - rec->comms]++;
	for (uint64_t i = 0; i < rec->n_comms; i++)
		if (n_ops[i])
			add(ret, &rec->comms[i], n_ops[i]);
	qsort(ret->comms, ret->n_comms, sizeof(ret->comms[0]), by_size);
	return 0;
}

/* A job that believes in a smaller world than the virtual one. */
static void warn_all_real(struct report *r)
{
	uint32_t largest = 0;

	for (uint32_t i = 0; i < r->n_comms; i++) {
		if (r->comms[i].n_real < r->comms[i].n_ranks)
			return;
		largest = r->comms[i].n_ranks > largest ? r->comms[i].n_ranks : largest;
	}
	if (largest && r->header.n_real < r->header.world_size)
		report_warn(
			r,
			"no virtual rank took part in any op: the largest communicator has %u ranks, the world %u; a "
			"program that starts its ranks itself must be told by its own arguments how many nodes there are",
			largest, r->header.world_size);
}

void report_comms_warn(struct report *r)
{
	uint64_t n = 0, n_ops = 0;

	warn_all_real(r);
	for (uint32_t i = 0; i < r->n_comms; i++) {
		if (r->comms[i].sure != MEMBERS_GUESSED)
			continue;
		n += r->comms[i].n;
		n_ops += r->comms[i].n_ops;
	}
	if (n)
		report_warn(
			r, "who is in %llu communicators (%llu ops of real ranks) was guessed: %s",
			(unsigned long long)n, (unsigned long long)n_ops,
			r->header.layout[0]
				? "what the real ranks say of them fits more than one group of --layout, or none"
				: "declare the axes of the job, such as --layout tp=8,dp=64");
}

/* "tp+pp" of the layouts in the header; "" for none. */
static char *axes_of(const struct report *r, uint32_t axes, char *buf, size_t size)
{
	struct layout layouts[4];
	char text[sizeof(r->header.layout)], *save = NULL, *one;
	size_t n = 0;

	snprintf(text, sizeof(text), "%s", r->header.layout);
	for (one = strtok_r(text, ";", &save); one && n < ARRAY_SIZE(layouts);
	     one = strtok_r(NULL, ";", &save))
		if (layout_parse(one, r->header.world_size, &layouts[n++], NULL) < 0)
			return members_axes_name(NULL, 0, 0, buf, size);
	return members_axes_name(layouts, n, axes, buf, size);
}

void report_comms_print(const struct report *r, FILE *to)
{
	char axes[128];

	for (uint32_t i = 0; i < r->n_comms; i++) {
		const struct report_comms *c = &r->comms[i];

		axes_of(r, c->axes, axes, sizeof(axes));
		if (r->header.layout[0] && !axes[0] && c->n_ranks < r->header.world_size)
			snprintf(axes, sizeof(axes), "of no axes");
		fprintf(to, "   %-14s %llu of %u rank%s%s%s, %u real: %s, %s\n",
			i ? "" : "communicators", (unsigned long long)c->n, c->n_ranks,
			c->n_ranks == 1 ? "" : "s", axes[0] ? ", " : "", axes, c->n_real,
			members_source_name(c->source), members_sure_name(c->sure));
	}
}

json_t *report_comms_json(const struct report *r)
{
	json_t *list = json_array();
	char axes[128];

	for (uint32_t i = 0; i < r->n_comms; i++) {
		const struct report_comms *c = &r->comms[i];

		json_array_append_new(list,
				      json_pack("{s:I, s:i, s:i, s:s, s:s, s:s, s:I}",
						"communicators", (json_int_t)c->n, "ranks",
						(int)c->n_ranks, "real", (int)c->n_real, "axes",
						axes_of(r, c->axes, axes, sizeof(axes)), "members",
						members_source_name(c->source), "sure",
						members_sure_name(c->sure), "ops",
						(json_int_t)c->n_ops));
	}
	return list;
}
