/* See result.h. */
#include "nbox/replay/result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number-table.h"
#include "base/plain.h"
#include "nbox/export/json-text.h"
#include "schedule/coll.h"

enum { SHOWN_PARTS = 8, SHOWN_DEVICES = 8, FEW_RANKS = 4 };

void result_deinit(struct result *r)
{
	free(r->parts);
	free(r->devices);
	*r = (struct result){.n_parts = 0};
}

char *result_op_name(const struct job *j, uint32_t op, char *buf, size_t size)
{
	const struct membership *m = &j->comms[j->ops[op].comm].members;
	int n = snprintf(buf, size, "%s of ", coll_kind_name(j->ops[op].kind));

	if (m->n_ranks > FEW_RANKS) {
		snprintf(buf + n, size - (size_t)n, "%u ranks from %u on", m->n_ranks,
			 membership_world(m, 0));
		return buf;
	}
	for (uint32_t i = 0; i < m->n_ranks && (size_t)n < size; i++)
		n += snprintf(buf + n, size - (size_t)n, "%s%u", i ? ", " : "ranks ",
			      membership_world(m, i));
	return buf;
}

/* --- iterations ------------------------------------------------------------------------------- */

static int by_number(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static void sum_up(double *list, uint32_t n, double *ret_mean, double *ret_median)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += list[i];
	qsort(list, n, sizeof(*list), by_number);
	*ret_mean = sum / n;
	*ret_median = n % 2 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
}

static double was_ns(const struct job *j, uint32_t row)
{
	return j->rows[row].op == JOB_NONE ? j->rows[row].at - j->rows[row].ns : j->rows[row].at;
}

static int find_steps(const struct job *j, const struct played *p, struct result *r)
{
	CLEANUP(freep) double *now = calloc((size_t)j->n_steps + 1, sizeof(*now));
	CLEANUP(freep) double *was = calloc((size_t)j->n_steps + 1, sizeof(*was));

	if (!now || !was)
		return -ENOMEM;
	r->has_steps = j->n_steps > 0;
	r->n_steps = r->has_steps ? j->n_steps : 1;
	now[0] = p->end_ns;
	for (uint32_t i = 0; i < j->n_rows; i++)
		was[0] = fmax(was[0], j->rows[i].end);
	for (uint32_t i = 0; i < j->n_steps; i++) {
		now[i] = played_ns(j, p, j->steps[i].to) - played_ns(j, p, j->steps[i].from);
		was[i] = was_ns(j, j->steps[i].to) - was_ns(j, j->steps[i].from);
	}
	sum_up(now, r->n_steps, &r->mean_ns, &r->median_ns);
	sum_up(was, r->n_steps, &r->was_mean_ns, &r->was_median_ns);
	return 0;
}

/* --- the critical path ------------------------------------------------------------------------ */

struct walker {
	const struct job *j;
	const struct played *p;
	struct result *r;
	struct number_table known; /* by what a part is of: place + 1 */
	uint32_t capacity;
};

/* Adds @ns to the part of that kind and name. */
static int add(struct walker *w, unsigned of, uint32_t owner, double ns)
{
	const struct job *j = w->j;
	const struct job_row *row = owner & PLAYED_OP ? NULL : &j->rows[owner];
	const struct job_op *op = row ? NULL : &j->ops[owner & ~PLAYED_OP];
	struct result *r = w->r;
	uint64_t key = op ? UINT64_C(1) << 62 | (uint64_t)op->comm << 8 | op->kind
			  : UINT64_C(1) << 61 | (uint64_t)(row->stream & 0xffffff) << 32 |
				       (row->name & 0xffffff);
	uint32_t *place = number_table_at(&w->known, key << 2 | of | UINT64_C(1) << 63);
	char name[96];

	if (!place)
		return -ENOMEM;
	if (!*place) {
		struct result_part *part;

		if (r->n_parts == w->capacity) {
			uint32_t capacity = w->capacity ? 2 * w->capacity : 64;
			struct result_part *grown = realloc(r->parts, capacity * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			r->parts = grown;
			w->capacity = capacity;
		}
		part = &r->parts[r->n_parts++];
		*part = (struct result_part){.of = of};
		if (op)
			snprintf(part->text, sizeof(part->text), "%s%s",
				 of == PART_WAIT ? "before " : "",
				 result_op_name(j, owner & ~PLAYED_OP, name, sizeof(name)));
		else if (row->stream == JOB_NONE)
			snprintf(part->text, sizeof(part->text),
				 "rank %u: launches, and waits on no stream", j->ranks[row->rank]);
		else
			snprintf(part->text, sizeof(part->text),
				 "%s%.100s%son stream %u of rank %u",
				 of == PART_WAIT ? "gaps before " : "",
				 row->name == JOB_NONE ? "computation" : j->names[row->name], " ",
				 j->streams[row->stream].number, j->ranks[row->rank]);
		plain_text(part->text);
		*place = r->n_parts;
	}
	r->parts[*place - 1].ns += ns;
	r->of_ns[of] += ns;
	return 0;
}

static int walk(struct walker *w, uint32_t vertex, double from_ns)
{
	int r = 0;

	while (vertex != DFG_NONE && r == 0) {
		const struct dfg_op *o = dfg_op(w->p->g, vertex);
		uint32_t owner = w->p->owner[vertex];
		bool is_op = owner & PLAYED_OP;
		double start = fmax(o->start, from_ns), before = from_ns;
		bool is_computation = !is_op && w->j->rows[owner].stream != JOB_NONE;

		if (o->end <= from_ns)
			return 0;
		if (o->end > start)
			r = add(w,
				is_op            ? PART_COMMUNICATION
				: is_computation ? PART_COMPUTATION
						 : PART_WAIT,
				owner, o->end - start);
		if (o->by != DFG_NONE)
			before = fmax(from_ns, dfg_op(w->p->g, o->by)->end);
		if (r == 0 && start > before)
			r = add(w, is_op ? PART_COMMUNICATION : PART_WAIT, owner, start - before);
		vertex = o->by;
	}
	return r;
}

static int by_ns(const void *pa, const void *pb)
{
	const struct result_part *a = pa, *b = pb;

	return (a->ns < b->ns) - (a->ns > b->ns);
}

/* Of the iteration that is nearest to the median. */
static int find_path(const struct job *j, const struct played *p, struct result *r)
{
	struct walker w = {.j = j, .p = p, .r = r};
	double from = 0, best = INFINITY;
	uint32_t vertex;
	int e;

	dfg_end(p->g, &vertex);
	r->path_ns = p->end_ns;
	for (uint32_t i = 0; i < j->n_steps; i++) {
		const struct job_step *s = &j->steps[i];
		double begin = played_ns(j, p, s->from), ns = played_ns(j, p, s->to) - begin;

		if (fabs(ns - r->median_ns) >= best)
			continue;
		best = fabs(ns - r->median_ns);
		from = begin;
		vertex = j->rows[s->to].op == JOB_NONE ? dfg_op(p->g, p->begin[s->to])->by
						       : p->at[s->to];
		r->path_ns = ns;
	}
	e = walk(&w, vertex, from);
	number_table_deinit(&w.known);
	if (r->n_parts)
		qsort(r->parts, r->n_parts, sizeof(*r->parts), by_ns);
	return e;
}

/* --- devices ---------------------------------------------------------------------------------- */

static void name_device(const struct play_device *d, char *buf, size_t size)
{
	uint32_t lane = d->number & 0x7fff;

	if (d->kind == PLAY_STREAM)
		snprintf(buf, size, "stream %u of rank %u", d->number, d->rank);
	else if (d->kind == PLAY_WHOLE)
		snprintf(buf, size, "ops of communicator %u, each as one", d->number);
	else if (d->kind == PLAY_ADDER)
		snprintf(buf, size, "additions at rank %u", d->rank);
	else if (d->rank > UINT32_MAX - 4096 && d->rank != UINT32_MAX)
		snprintf(buf, size, "out of server %u", UINT32_MAX - 1 - d->rank);
	else if (d->peer > UINT32_MAX - 4096 && d->peer != UINT32_MAX)
		snprintf(buf, size, "into server %u", UINT32_MAX - 1 - d->peer);
	else if (d->rank == UINT32_MAX)
		snprintf(buf, size, "into rank %u", d->peer);
	else if (d->peer == UINT32_MAX)
		snprintf(buf, size, "out of rank %u%s, lane %u", d->rank,
			 d->number >> 15 ? ", inside its node" : "", lane);
	else
		snprintf(buf, size, "rank %u to rank %u, lane %u", d->rank, d->peer, lane);
}

static int by_busy(const void *pa, const void *pb)
{
	const struct result_device *a = pa, *b = pb;

	return (a->busy_ns < b->busy_ns) - (a->busy_ns > b->busy_ns);
}

static int find_devices(const struct played *p, struct result *r)
{
	r->n_devices = dfg_devices(p->g);
	r->devices = calloc((size_t)r->n_devices + 1, sizeof(*r->devices));
	if (!r->devices)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_devices; i++) {
		r->devices[i].busy_ns = dfg_busy(p->g, i);
		name_device(&p->devices[i], r->devices[i].text, sizeof(r->devices[i].text));
	}
	qsort(r->devices, r->n_devices, sizeof(*r->devices), by_busy);
	return 0;
}

int result_make(const struct job *j, const struct played *p, struct result *ret)
{
	struct result r = {.end_ns = p->end_ns,
			   .n_ops = dfg_ops(p->g),
			   .n_hops = p->n_hops,
			   .n_by_hops = p->n_by_hops,
			   .n_whole = p->n_whole};
	int e = find_steps(j, p, &r);

	if (e == 0)
		e = find_path(j, p, &r);
	if (e == 0)
		e = find_devices(p, &r);
	if (e < 0)
		result_deinit(&r);
	else
		*ret = r;
	return e;
}

/* --- shown --------------------------------------------------------------------------------------
 */

static const char *const part_names[] = {"computation", "communication", "waiting"};

void result_print(const struct result *r, FILE *to)
{
	double whole = r->path_ns > 0 ? r->path_ns : 1, end = r->end_ns > 0 ? r->end_ns : 1;

	if (r->has_steps)
		fprintf(to, "   iteration      %.3f ms, the median of %u; mean %.3f ms\n",
			r->median_ns / 1e6, r->n_steps, r->mean_ns / 1e6);
	else
		fprintf(to, "   all            %.3f ms; no iterations were found\n",
			r->median_ns / 1e6);
	fprintf(to,
		"   graph          %u ops, %u of them SENDs, and as many RECVs, of %u ops of communicators",
		r->n_ops, r->n_hops, r->n_by_hops);
	if (r->n_whole)
		fprintf(to, "; %u more as one each", r->n_whole);
	fprintf(to,
		"\n   critical path  %.1f %% computation, %.1f %% communication, %.1f %% waiting of %.3f ms\n",
		100 * r->of_ns[0] / whole, 100 * r->of_ns[1] / whole, 100 * r->of_ns[2] / whole,
		r->path_ns / 1e6);
	for (uint32_t i = 0; i < r->n_parts && i < SHOWN_PARTS; i++)
		fprintf(to, "                  %10.3f ms %5.1f %%  %s, %s\n", r->parts[i].ns / 1e6,
			100 * r->parts[i].ns / whole, part_names[r->parts[i].of], r->parts[i].text);
	if (r->n_parts > SHOWN_PARTS)
		fprintf(to, "                  and %u shorter parts\n", r->n_parts - SHOWN_PARTS);
	for (uint32_t i = 0; i < r->n_devices && i < SHOWN_DEVICES; i++)
		fprintf(to, "   %-14s %5.1f %%  %s\n", i ? "" : "busy",
			100 * r->devices[i].busy_ns / end, r->devices[i].text);
	if (r->n_devices > SHOWN_DEVICES)
		fprintf(to, "                  and %u less busy streams and links\n",
			r->n_devices - SHOWN_DEVICES);
}

json_t *result_json(const struct result *r)
{
	json_t *parts = json_array(), *devices = json_array();

	for (uint32_t i = 0; i < r->n_parts; i++)
		json_array_append_new(parts,
				      json_pack("{s:s, s:s, s:f}", "kind",
						part_names[r->parts[i].of], "what",
						r->parts[i].text, "ms", r->parts[i].ns / 1e6));
	for (uint32_t i = 0; i < r->n_devices; i++)
		json_array_append_new(devices,
				      json_pack("{s:s, s:f}", "what", r->devices[i].text,
						"busy_share",
						r->end_ns > 0 ? r->devices[i].busy_ns / r->end_ns
							      : 0.0));
	return json_pack("{s:b, s:i, s:f, s:f, s:f, s:f, s:{s:I, s:I, s:I, s:I}, s:{s:f, s:f, s:f, "
			 "s:f, s:o}, s:o}",
			 "has_iterations", r->has_steps, "iterations", (int)r->n_steps,
			 "iteration_ms", r->median_ns / 1e6, "iteration_mean_ms", r->mean_ns / 1e6,
			 "recorded_iteration_ms", r->was_median_ns / 1e6,
			 "recorded_iteration_mean_ms", r->was_mean_ns / 1e6, "graph", "ops",
			 (json_int_t)r->n_ops, "sends", (json_int_t)r->n_hops, "by_hops",
			 (json_int_t)r->n_by_hops, "as_one", (json_int_t)r->n_whole,
			 "critical_path", "ms", r->path_ns / 1e6, "computation_ms",
			 r->of_ns[0] / 1e6, "communication_ms", r->of_ns[1] / 1e6, "waiting_ms",
			 r->of_ns[2] / 1e6, "parts", parts, "devices", devices);
}

/* --- Chrome's trace events ----------------------------------------------------------------------
 */

static void put_event(FILE *f, const struct job *j, const struct played *p, uint32_t vertex)
{
	const struct dfg_op *o = dfg_op(p->g, vertex);
	const struct play_device *d = &p->devices[o->device];
	uint32_t owner = p->owner[vertex];
	const struct job_row *row = owner & PLAYED_OP ? NULL : &j->rows[owner];
	char name[128], op[96];

	if (row)
		snprintf(name, sizeof(name), "%.120s",
			 row->name == JOB_NONE ? "computation" : j->names[row->name]);
	else
		snprintf(name, sizeof(name), "SEND %s",
			 result_op_name(j, owner & ~PLAYED_OP, op, sizeof(op)));
	fprintf(f,
		",\n{\"ph\": \"X\", \"pid\": %u, \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f, \"cat\": \"%s\", \"name\": ",
		d->kind == PLAY_LINK && d->rank == UINT32_MAX ? d->peer : d->rank,
		d->kind == PLAY_STREAM ? d->number : 1000000 + o->device, o->start / 1e3,
		o->ns / 1e3, row ? "computation" : "communication");
	json_text(name, f);
	fputs("}", f);
}

int result_write_trace(const struct job *j, const struct played *p, const char *path,
		       struct err *err)
{
	FILE *f;
	char name[96];
	int r = file_create(path, &f, err);

	if (r < 0)
		return r;
	fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 0, \"name\": "
	      "\"process_labels\", \"args\": {\"labels\": \"nbox replay\"}}",
	      f);
	for (uint32_t i = 0; i < dfg_devices(p->g); i++) {
		const struct play_device *d = &p->devices[i];

		name_device(d, name, sizeof(name));
		fprintf(f,
			",\n{\"ph\": \"M\", \"pid\": %u, \"tid\": %u, \"name\": \"thread_name\", \"args\": {\"name\": \"%s\"}}",
			d->kind == PLAY_LINK && d->rank == UINT32_MAX ? d->peer : d->rank,
			d->kind == PLAY_STREAM ? d->number : 1000000 + i, name);
	}
	for (uint32_t i = 0; i < dfg_ops(p->g); i++)
		if (dfg_op(p->g, i)->device != DFG_PARALLEL && dfg_op(p->g, i)->ns > 0)
			put_event(f, j, p, i);
	fputs("\n]}\n", f);
	return file_finish(f, path, err);
}
