/* Whom a communicator waits for, as a sentence. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "bootstrap/barrier.h"
#include "bootstrap/gather.h"

#define NAMED_MAX 8 /* ranks of a list; of the others the number */

struct text {
	char *buf;
	size_t size, at;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->at, t->size - t->at, fmt, ap);
	va_end(ap);
	t->at = n < 0 || (size_t)n >= t->size - t->at ? t->size - 1 : t->at + (size_t)n;
}

/* "<what> ranks 1, 5", of those where @is says so; nothing where there are none. */
static void add_ranks(struct text *t, const struct bootstrap_comm *comm, const char *what,
		      bool (*is)(const struct bootstrap_comm *, const struct member *,
				 const void *),
		      const void *of)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < comm->n_real; k++) {
		if (!is(comm, &comm->members[k], of))
			continue;
		if (n == 0)
			add(t, "%s%s", t->at ? "; " : "", what);
		if (n++ < NAMED_MAX)
			add(t, "%s%u", n == 1 ? " " : ", ", comm->members[k].rank);
	}
	if (n > NAMED_MAX)
		add(t, " and %u others", n - NAMED_MAX);
}

static bool not_checked_in(const struct bootstrap_comm *comm, const struct member *m,
			   const void *of)
{
	(void)comm;
	(void)of;
	return !m->has_checked_in;
}

static bool not_rung(const struct bootstrap_comm *comm, const struct member *m, const void *of)
{
	(void)comm;
	(void)of;
	return m->has_checked_in && !m->has_rung;
}

static bool not_joined(const struct bootstrap_comm *comm, const struct member *m, const void *of)
{
	(void)comm;
	(void)of;
	return m->child != NULL;
}

static bool not_begun(const struct bootstrap_comm *comm, const struct member *m, const void *of)
{
	const struct gather *g = of;
	const struct bootstrap_conn *c = m->next;

	(void)comm;
	return m->n_begun <= g->number || (c && c->in.gather == g->number && c->in.step == 0);
}

static bool not_at_barrier(const struct bootstrap_comm *comm, const struct member *m,
			   const void *of)
{
	return barrier_waits(comm, m, *(const int *)of);
}

char *bootstrap_comm_waits(const struct bootstrap_comm *comm, char *buf, size_t size)
{
	struct text t = {buf, size, 0};
	const struct gather *g;
	char what[128], name[64];

	buf[0] = '\0';
	if (comm->is_over)
		return buf;
	add_ranks(&t, comm, "the root waits for ranks", not_checked_in, NULL);
	add_ranks(&t, comm, "the ring waits for ranks", not_rung, NULL);
	DL_FOREACH(comm->gathers, g) {
		snprintf(what, sizeof(what), "%s waits for ranks",
			 gather_name(comm, g, name, sizeof(name)));
		if (!g->is_ready)
			add_ranks(&t, comm, what, not_begun, g);
	}
	for (int i = 0; i < COMM_BARRIERS_MAX && comm->records->barrier_tags[i]; i++) {
		snprintf(what, sizeof(what), "barrier %u (tag %#x) waits for ranks",
			 comm->n_barriers[i], (unsigned)comm->records->barrier_tags[i]);
		add_ranks(&t, comm, what, not_at_barrier, &i);
	}
	add_ranks(&t, comm, "a split waits for ranks", not_joined, NULL);
	return buf;
}
