/* See print.h. */
#include "nbox/why/print.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "schedule/coll.h"

#define LATE_SHOWN 5
#define PART_SHOWN 5e-4 /* of the iteration */

static const char *group_name(const struct why *w, uint32_t group)
{
	return group < w->n_groups ? w->groups[group].name : "?";
}

char *why_part_text(const struct why *w, const struct why_part *p, char *buf, size_t size)
{
	const char *of = group_name(w, p->group), *op = coll_kind_name(p->op);
	char rank[64] = "";

	if (p->own != p->template && p->kind == WHY_COMPUTED)
		snprintf(rank, sizeof(rank), " of rank %u, which computes as rank %u", p->own,
			 p->template);
	else if (w->has_ranks && p->kind < WHY_MODELLED)
		snprintf(rank, sizeof(rank), " of rank %u", p->own);
	switch (p->kind) {
	case WHY_COMPUTED:
		snprintf(buf, size, "computation on stream %u%s", p->stream, rank);
		break;
	case WHY_SLOWED:
		snprintf(buf, size, "what what-ifs add to computation on stream %u%s", p->stream,
			 rank);
		break;
	case WHY_HOST:
		snprintf(buf, size, "the host%s", rank);
		break;
	case WHY_MODELLED:
		snprintf(buf, size, "%s of %s, by the model", op, of);
		break;
	case WHY_INJECTED:
		snprintf(buf, size, "%s of %s, by what-ifs", op, of);
		break;
	case WHY_SHARED:
		snprintf(buf, size, "%s of %s, for links that other ops used", op, of);
		break;
	case WHY_WAITED:
		snprintf(buf, size, "%s of %s, until rank %u had come", op, of, p->rank);
		break;
	case WHY_OTHER:
		snprintf(buf, size, "before the first row");
		break;
	}
	return buf;
}

/* --- the headline ----------------------------------------------------------------------------- */

/* A clause of it. */
struct clause {
	char text[192];
	double ns;
};

static int by_length(const void *pa, const void *pb)
{
	const struct clause *a = pa, *b = pb;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

/* @text, and " RANK" where what-ifs add to the computation of that rank alone. */
static void slowed_text(const struct why *w, const char *text, uint32_t rank, char *buf,
			size_t size)
{
	bool is_one = true;

	for (uint32_t i = 0; i < w->n_parts; i++)
		is_one = is_one && (w->parts[i].kind != WHY_SLOWED || w->parts[i].own == rank);
	snprintf(buf, size, "%s", text);
	if (is_one)
		snprintf(buf + strlen(text), size - strlen(text), " of rank %u", rank);
}

/* "computation", and " of RANK" where nearly all of it is that of another rank by itself. */
static void computed_text(const struct why *w, const struct why_part *of, char *buf, size_t size)
{
	double all = 0, own = 0;

	for (uint32_t i = 0; i < w->n_parts; i++) {
		const struct why_part *p = &w->parts[i];

		all += p->kind == WHY_COMPUTED ? p->ns : 0;
		own += p->kind == WHY_COMPUTED && p->own == of->own ? p->ns : 0;
	}
	snprintf(buf, size, "computation");
	if (of->own != w->rank && of->own == of->template && own > 0.99 * all)
		snprintf(buf, size, "computation of rank %u", of->own);
}

static void clause_text(const struct why *w, const struct why_part *p, char *buf, size_t size)
{
	switch (p->kind) {
	case WHY_COMPUTED:
		computed_text(w, p, buf, size);
		break;
	case WHY_SLOWED:
		slowed_text(w, "what what-ifs add to that", p->own, buf, size);
		break;
	case WHY_WAITED:
		snprintf(buf, size, "waits of ops of %s for rank %u", group_name(w, p->group),
			 p->rank);
		break;
	case WHY_MODELLED:
	case WHY_INJECTED:
	case WHY_SHARED:
		snprintf(buf, size, "ops of %s", group_name(w, p->group));
		break;
	case WHY_HOST:
	case WHY_OTHER:
		snprintf(buf, size, "the host's");
		break;
	}
}

static void bound_text(const struct why *w, const struct why_part *p, char *buf, size_t size)
{
	const char *of = group_name(w, p->group), *op = coll_kind_name(p->op);

	switch (p->kind) {
	case WHY_COMPUTED:
		snprintf(buf, size, "computation");
		break;
	case WHY_SLOWED:
		slowed_text(w, "what-ifs on computation", p->own, buf, size);
		break;
	case WHY_INJECTED:
		snprintf(buf, size, "what-ifs");
		break;
	case WHY_MODELLED:
		snprintf(buf, size, "%s of %s", op, of);
		break;
	case WHY_SHARED:
		snprintf(buf, size, "shared links, in %s of %s", op, of);
		break;
	case WHY_WAITED:
		snprintf(buf, size, "waits for rank %u", p->rank);
		break;
	case WHY_HOST:
		snprintf(buf, size, "the host");
		break;
	case WHY_OTHER:
		snprintf(buf, size, "before the first row");
		break;
	}
}

typedef void part_text(const struct why *w, const struct why_part *p, char *buf, size_t size);

enum { OF_OTHERS, OF_RANKS, OF_ALL };

static bool is_of_ranks(const struct why_part *p)
{
	return p->kind == WHY_COMPUTED || p->kind == WHY_HOST || p->kind == WHY_OTHER;
}

/* Parts with one clause in one, the longest first; @of: which. Return: how many. */
static size_t find_clauses(const struct why *w, part_text *text, int of, struct clause *ret,
			   size_t size)
{
	size_t n = 0;

	for (uint32_t i = 0; i < w->n_parts; i++) {
		struct clause c = {.ns = w->parts[i].ns};
		size_t k = 0;

		if (of != OF_ALL && is_of_ranks(&w->parts[i]) != (of == OF_RANKS))
			continue;
		text(w, &w->parts[i], c.text, sizeof(c.text));
		while (k < n && strcmp(ret[k].text, c.text) != 0)
			k++;
		if (k < n)
			ret[k].ns += c.ns;
		else if (n < size)
			ret[n++] = c;
	}
	qsort(ret, n, sizeof(*ret), by_length);
	return n;
}

static size_t add(char *buf, size_t size, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static size_t add(char *buf, size_t size, size_t at, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = at < size ? vsnprintf(buf + at, size - at, fmt, args) : 0;
	va_end(args);
	return at + (size_t)(n > 0 ? n : 0);
}

/* Milliseconds as a sentence has them. Return: @buf. */
static char *ms_text(double ns, char *buf, size_t size)
{
	double ms = ns / 1e6;

	snprintf(buf, size, ms < 1000 ? "%.3g" : "%.0f", ms);
	return buf;
}

char *why_headline(const struct why *w, char *buf, size_t size)
{
	struct clause clauses[16];
	char ms[32];
	size_t n = find_clauses(w, clause_text, OF_ALL, clauses, ARRAY_SIZE(clauses)), at;

	at = add(buf, size, 0, "of %s ms %s", ms_text(w->iteration_ns, ms, sizeof(ms)),
		 w->has_steps ? "an iteration" : "in all");
	for (size_t i = 0; i < n && i < 3; i++)
		if (clauses[i].ns >= w->iteration_ns / 1000)
			at = add(buf, size, at, ", %s are %s",
				 ms_text(clauses[i].ns, ms, sizeof(ms)), clauses[i].text);
	if (w->n_won && !w->won[0].refused[0] && w->won[0].ns < 0.999 * w->median_ns)
		add(buf, size, at, "; if %s: %s ms", w->won[0].text,
		    ms_text(w->won[0].ns, ms, sizeof(ms)));
	return buf;
}

char *why_largest(const struct why *w, bool of_ranks, char *buf, size_t size)
{
	struct clause clauses[16];
	size_t n = find_clauses(w, bound_text, of_ranks ? OF_RANKS : OF_OTHERS, clauses,
				ARRAY_SIZE(clauses));

	snprintf(buf, size, "%s", n ? clauses[0].text : "");
	return buf;
}

/* --- as text ---------------------------------------------------------------------------------- */

static const char *label(const char *text, uint32_t i)
{
	return i ? "" : text;
}

static void print_parts(const struct why *w, FILE *to)
{
	char text[256];
	uint32_t n = 0;
	double rest_ns = 0;

	fprintf(to, "   %-14s rank %u, the median of %llu: %.3f ms\n",
		w->has_steps ? "iteration" : "run", w->rank, (unsigned long long)w->n_timed,
		w->iteration_ns / 1e6);
	if (!w->has_steps)
		fprintf(to, "   %-14s %s\n", "no iterations", w->steps_how);
	for (; n < w->n_parts && w->parts[n].ns >= PART_SHOWN * w->iteration_ns; n++)
		fprintf(to, "   %-14s %9.3f ms %5.1f %%  %s\n", label("critical path", n),
			w->parts[n].ns / 1e6, w->parts[n].ns / w->iteration_ns * 100,
			why_part_text(w, &w->parts[n], text, sizeof(text)));
	for (uint32_t i = n; i < w->n_parts; i++)
		rest_ns += w->parts[i].ns;
	if (n < w->n_parts)
		fprintf(to, "   %-14s %9.3f ms %5.1f %%  %u smaller part%s\n",
			label("critical path", n), rest_ns / 1e6, rest_ns / w->iteration_ns * 100,
			w->n_parts - n, w->n_parts - n == 1 ? "" : "s");
	for (uint32_t i = 0; i < w->n_exposed; i++)
		fprintf(to, "   %-14s %9.3f ms  computation waited for ops of %s\n",
			label("exposed", i), w->exposed[i].ns / 1e6,
			group_name(w, w->exposed[i].group));
}

static void print_late(const struct why *w, FILE *to)
{
	if (!w->n_late)
		fprintf(to, "   %-14s nobody: ranks come together\n", "waited for");
	for (uint32_t i = 0; i < w->n_late && i < LATE_SHOWN; i++)
		fprintf(to,
			"   %-14s %9.3f ms  a rank's ops waited for rank %u, which came last at %llu ops of the run\n",
			label("waited for", i), w->late[i].ns / 1e6, w->late[i].rank,
			(unsigned long long)w->late[i].n);
	if (w->n_late > LATE_SHOWN)
		fprintf(to, "   %-14s and %u other ranks\n", "", w->n_late - LATE_SHOWN);
}

/* The least and the most of those of the group and kind of @first. */
static void find_least(const struct why *w, const struct why_slack *first,
		       const struct why_slack **ret_least, const struct why_slack **ret_most)
{
	*ret_least = *ret_most = first;
	for (uint32_t i = 0; i < w->n_slacks; i++) {
		const struct why_slack *s = &w->slacks[i];

		if (s->group != first->group || s->op != first->op)
			continue;
		*ret_least = s->ns < (*ret_least)->ns ? s : *ret_least;
		*ret_most = s->ns > (*ret_most)->ns ? s : *ret_most;
	}
}

static bool is_first(const struct why *w, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (w->slacks[k].group == w->slacks[i].group && w->slacks[k].op == w->slacks[i].op)
			return false;
	return true;
}

static void print_slacks(const struct why *w, FILE *to)
{
	const char *name = "slack";

	for (uint32_t i = 0; i < w->n_slacks; i++) {
		const char *op = coll_kind_name(w->slacks[i].op),
			   *of = group_name(w, w->slacks[i].group);
		const struct why_slack *s, *most;

		if (!is_first(w, i))
			continue;
		find_least(w, &w->slacks[i], &s, &most);
		fprintf(to, "   %-14s ", name);
		name = "";
		if (isinf(s->ns))
			fprintf(to, "    any ms  more may each %s of %s take: nothing waits for it",
				op, of);
		else
			fprintf(to,
				"%9.3f ms  more may each of rank %u's %.3g %s of %s take at no cost",
				s->ns / 1e6, s->rank, s->n, op, of);
		if (!isinf(s->knee_ns))
			fprintf(to, "; from %.3f on, the knee, most of it shows", s->knee_ns / 1e6);
		if (isinf(most->ns) && !isinf(s->ns))
			fprintf(to, "; rank %u's: any", most->rank);
		else if (most->ns > s->ns + w->median_ns / 1000)
			fprintf(to, "; rank %u's: %.3f", most->rank, most->ns / 1e6);
		fputc('\n', to);
	}
}

static void print_won(const struct why *w, FILE *to)
{
	if (w->n_won)
		fprintf(to, "   %-14s %9.3f ms as it is, the median\n", label("re-timed", 0),
			w->median_ns / 1e6);
	for (uint32_t i = 0; i < w->n_won; i++) {
		const struct why_won *x = &w->won[i];
		double ms = (w->median_ns - x->ns) / 1e6;

		if (x->refused[0])
			fprintf(to, "   %-14s        not known  if %s: %s\n", "", x->text,
				x->refused);
		else
			fprintf(to, "   %-14s %9.3f ms, %.3f won, if %s\n", "", x->ns / 1e6,
				ms < 0 && ms > -5e-4 ? 0 : ms, x->text);
	}
}

static void print_pipeline(const struct why_pipeline *p, FILE *to)
{
	bool is_beside;
	char bytes[32];

	if (!p->n_stages)
		return;
	is_beside = strcmp(p->overlap, "on") == 0;
	fprintf(to,
		"   %-14s %9.3f ms  by the schedule: %u stages, %u micro-batches, %s; messages, as comes nearest, %s\n",
		"pipeline", p->ns / 1e6, p->n_stages, p->n_micro, p->schedule,
		is_beside                           ? "keep nobody from computing"
		: strcmp(p->overlap, "sender") == 0 ? "keep senders from computing"
						    : "keep both ends from computing");
	fprintf(to,
		"   %-14s %9.3f ms  of it are exposed messages between stages; the critical path has %.3f of them\n",
		"", (p->ns - p->signal_ns) / 1e6, p->path_ns / 1e6);
	if (!is_beside)
		fprintf(to, "   %-14s %9.3f ms, %.3f won, by %s with messages beside computation\n",
			"", p->beside_ns / 1e6, (p->ns - p->beside_ns) / 1e6, p->schedule);
	if (p->more)
		fprintf(to,
			"   %-14s %9.3f ms, %.3f won, by eager 1F1B: the first stage keeps %u more "
			"activation%s, of %s or more each\n",
			"", p->eager_ns / 1e6, (p->ns - p->eager_ns) / 1e6, p->more,
			p->more == 1 ? "" : "s",
			units_print_bytes(p->message_bytes, bytes, sizeof(bytes)));
}

void why_print(const struct why *w, FILE *to)
{
	char text[1024];

	fprintf(to, "-- nbox why: %s\n", why_headline(w, text, sizeof(text)));
	print_parts(w, to);
	print_late(w, to);
	print_slacks(w, to);
	print_won(w, to);
	print_pipeline(&w->pipeline, to);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static json_t *parts_json(const struct why *w)
{
	static const char *const kinds[] = {"computation", "what-ifs on computation",
					    "host",        "modelled",
					    "injected",    "shared links",
					    "waiting",     "other"};
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->n_parts; i++) {
		const struct why_part *p = &w->parts[i];
		bool is_op = p->kind >= WHY_MODELLED && p->kind <= WHY_WAITED;
		json_t *o = json_pack("{s:s, s:f}", "kind", kinds[p->kind], "ms", p->ns / 1e6);

		if (is_op)
			json_object_update_new(o, json_pack("{s:s, s:s}", "communicator",
							    group_name(w, p->group), "op",
							    coll_kind_name(p->op)));
		if (p->kind == WHY_WAITED)
			json_object_set_new(o, "rank", json_integer(p->rank));
		if (p->kind == WHY_COMPUTED || p->kind == WHY_SLOWED)
			json_object_set_new(o, "stream", json_integer(p->stream));
		if (p->kind < WHY_MODELLED)
			json_object_update_new(o, json_pack("{s:i, s:i}", "of_rank", (int)p->own,
							    "as_rank", (int)p->template));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *exposed_json(const struct why *w)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->n_exposed; i++)
		json_array_append_new(list, json_pack("{s:s, s:f}", "communicator",
						      group_name(w, w->exposed[i].group), "ms",
						      w->exposed[i].ns / 1e6));
	return list;
}

static json_t *late_json(const struct why *w)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->n_late; i++)
		json_array_append_new(list,
				      json_pack("{s:i, s:f, s:I}", "rank", (int)w->late[i].rank,
						"ms", w->late[i].ns / 1e6, "ops",
						(json_int_t)w->late[i].n));
	return list;
}

/* No slack's end is null. */
static json_t *slacks_json(const struct why *w)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->n_slacks; i++) {
		const struct why_slack *s = &w->slacks[i];

		json_array_append_new(
			list,
			json_pack("{s:i, s:s, s:s, s:f, s:o, s:o}", "rank", (int)s->rank,
				  "communicator", group_name(w, s->group), "op",
				  coll_kind_name(s->op), "an_iteration", s->n, "ms",
				  isinf(s->ns) ? json_null() : json_real(s->ns / 1e6), "knee_ms",
				  isinf(s->knee_ns) ? json_null() : json_real(s->knee_ns / 1e6)));
	}
	return list;
}

static json_t *won_json(const struct why *w)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < w->n_won; i++) {
		const struct why_won *x = &w->won[i];

		json_array_append_new(list, x->refused[0]
						    ? json_pack("{s:s, s:s}", "if", x->text,
								"refused", x->refused)
						    : json_pack("{s:s, s:f, s:f}", "if", x->text,
								"ms", x->ns / 1e6, "won_ms",
								(w->median_ns - x->ns) / 1e6));
	}
	return list;
}

static json_t *stages_json(const struct why_pipeline *p)
{
	return json_pack("{s:i, s:i, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:i, s:I}", "stages",
			 (int)p->n_stages, "micro_batches", (int)p->n_micro, "schedule",
			 p->schedule, "overlap", p->overlap, "ms", p->ns / 1e6, "exposed_ms",
			 (p->ns - p->signal_ns) / 1e6, "path_ms", p->path_ns / 1e6, "beside_ms",
			 p->beside_ns / 1e6, "eager_ms", p->eager_ns / 1e6, "more_activations",
			 (int)p->more, "message_bytes", (json_int_t)p->message_bytes);
}

json_t *why_json(const struct why *w)
{
	char text[1024];
	json_t *o;

	o = json_pack("{s:s, s:i, s:b, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "headline",
		      why_headline(w, text, sizeof(text)), "rank", (int)w->rank, "has_iterations",
		      w->has_steps, "iterations", (json_int_t)w->n_timed, "median_ms",
		      w->median_ns / 1e6, "iteration_ms", w->iteration_ns / 1e6, "path",
		      parts_json(w), "exposed", exposed_json(w), "waited_for", late_json(w),
		      "slack", slacks_json(w), "retimed", won_json(w));
	if (o && w->pipeline.n_stages)
		json_object_set_new(o, "pipeline", stages_json(&w->pipeline));
	return o;
}
