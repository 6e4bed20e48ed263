/* See dump.h. */
#include "nbox/export/dump.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "engine/timing.h"
#include "members/members.h"
#include "nbox/export/json-text.h"
#include "nccl-plugin/words.h"
#include "schedule/coll.h"
#include "schedule/schedule.h"
#include "wire/wire.h"

enum shape { U32, U64, F64, TEXT };

struct field {
	const char *name;
	enum shape shape;
	size_t at;
	const char *(*word)(uint32_t); /* NULL: it is a number */
};

static const char *point_name(uint32_t kind)
{
	return kind == RECORD_POINT_HOST ? "host" : "stream";
}

#define FIELD(type, name, shape)                             \
	{                                                    \
#name, shape, offsetof(struct type, name), 0 \
	}
#define WORD(type, name, word)                                 \
	{                                                      \
#name, U32, offsetof(struct type, name), &word \
	}

static const struct field header_fields[] = {
	FIELD(record_header, world_size, U32),
	FIELD(record_header, n_nodes, U32),
	FIELD(record_header, gpus_per_node, U32),
	FIELD(record_header, n_real, U32),
	WORD(record_header, exchange, wire_exchange_name),
	WORD(record_header, data, wire_data_name),
	FIELD(record_header, seed, U64),
	FIELD(record_header, start_ns, U64),
	FIELD(record_header, start_unix_ns, U64),
	FIELD(record_header, model, TEXT),
	FIELD(record_header, layout, TEXT),
	FIELD(record_header, data_for, TEXT),
	FIELD(record_header, retimed_of, TEXT),
	FIELD(record_header, n_warm_up, U64),
	WORD(record_header, nccl, wire_nccl_name),
};
static const struct field end_fields[] = {
	FIELD(record_end, n_lost, U64),       FIELD(record_end, clock_error_ns, U64),
	FIELD(record_end, n_lost_notes, U32), FIELD(record_end, lost_errno, U32),
	FIELD(record_end, n_debts, U64),      FIELD(record_end, debt_ns, U64),
};
static const struct field comm_fields[] = {
	FIELD(record_comm, number, U32),
	FIELD(record_comm, parent, U32),
	FIELD(record_comm, n_ranks, U32),
	FIELD(record_comm, base, U32),
	FIELD(record_comm, stride, U32),
	WORD(record_comm, source, members_source_name),
	WORD(record_comm, sure, members_sure_name),
	FIELD(record_comm, axes, U32),
};
static const struct field op_fields[] = {
	FIELD(record_op, number, U64),
	FIELD(record_op, seq, U64),
	FIELD(record_op, name, U64),
	FIELD(record_op, host, U64),
	FIELD(record_op, bytes, U64),
	FIELD(record_op, count, U64),
	FIELD(record_op, call_ns, U64),
	FIELD(record_op, arrive_ns, U64),
	FIELD(record_op, start_ns, U64),
	FIELD(record_op, due_ns, U64),
	FIELD(record_op, release_ns, U64),
	FIELD(record_op, local_done_ns, U64),
	FIELD(record_op, virtual_arrive_ns, U64),
	FIELD(record_op, virtual_end_ns, U64),
	FIELD(record_op, plain_arrive_ns, U64),
	FIELD(record_op, plain_end_ns, U64),
	FIELD(record_op, model_ns, F64),
	FIELD(record_op, injected_ns, F64),
	FIELD(record_op, n_messages, U64),
	FIELD(record_op, comm, U32),
	FIELD(record_op, rank, U32),
	FIELD(record_op, world_rank, U32),
	FIELD(record_op, stream, U32),
	WORD(record_op, kind, coll_kind_name),
	WORD(record_op, dtype, coll_dtype_name),
	FIELD(record_op, redop, U32),
	FIELD(record_op, root, U32),
	WORD(record_op, algo, sched_algo_name),
	WORD(record_op, how, solve_how_name),
	FIELD(record_op, flags, U32),
	FIELD(record_op, waited_for, U32),
	FIELD(record_op, exposed_ns, U64),
	FIELD(record_op, work_ns, U64),
	FIELD(record_op, order, U64),
	FIELD(record_op, done_order, U64),
	FIELD(record_op, shared_ns, F64),
	FIELD(record_op, queued_ns, F64),
	FIELD(record_op, waited_ns, F64),
	WORD(record_op, took_algorithm, plugin_algorithm_name),
	WORD(record_op, took_protocol, plugin_protocol_name),
	FIELD(record_op, took_channels, U32),
};
#define N_TOOK 3 /* the last ones: words of nothing where NCCL did not tell */
static const struct field point_fields[] = {
	FIELD(record_point, name, U64),          FIELD(record_point, host, U64),
	FIELD(record_point, call_ns, U64),       FIELD(record_point, time_ns, U64),
	FIELD(record_point, virtual_ns, U64),    FIELD(record_point, plain_ns, U64),
	FIELD(record_point, exposed_ns, U64),    FIELD(record_point, world_rank, U32),
	FIELD(record_point, stream, U32),        WORD(record_point, kind, point_name),
	FIELD(record_point, is_host_bound, U32), FIELD(record_point, work_ns, U64),
	FIELD(record_point, order, U64),
};

/* A field that is new lies behind these. */
#define LAST(type, field, bytes)                                                           \
	_Static_assert(offsetof(struct type, field) + sizeof(((struct type *)0)->field) == \
			       (bytes),                                                    \
		       "a field of " #type " is not dumped")
LAST(record_header, unused, sizeof(struct record_header));
LAST(record_end, debt_ns, sizeof(struct record_end));
LAST(record_comm, axes, RECORD_COMM_BYTES);
LAST(record_op, unused, RECORD_OP_BYTES);
LAST(record_point, order, RECORD_POINT_BYTES);

const char *const dump_kinds[] = {"header", "end", "comm", "op", "point", "job", NULL};

enum record_kind dump_kind(const char *name)
{
	for (int i = 0; dump_kinds[i]; i++)
		if (strcasecmp(name, dump_kinds[i]) == 0)
			return (enum record_kind)(RECORD_HEADER + i);
	return (enum record_kind)0;
}

/* --- a row ------------------------------------------------------------------------------------ */

struct printer {
	const struct dump *what;
	FILE *to;
};

static void name(const struct printer *p, const char *text)
{
	fprintf(p->to, p->what->is_json ? ", \"%s\": " : " %s=", text);
}

/* Return: false: it is zero, and longer than a rank or such is. */
static bool is_set(const struct field *f, const char *at)
{
	static const char zeros[8];

	return f->shape == U32 || (f->shape == TEXT ? *at != 0 : memcmp(at, zeros, 8) != 0);
}

static void text(const struct printer *p, const char *at)
{
	char plain[sizeof(((struct record_header *)0)->model)];

	snprintf(plain, sizeof(plain), "%s", at);
	json_text(plain_text(plain), p->to);
}

static void value(const struct printer *p, const struct field *f, const char *at)
{
	const uint32_t *u32 = (const void *)at;

	if (f->shape == TEXT)
		text(p, at);
	else if (f->word && p->what->is_json)
		json_text(f->word(*u32), p->to);
	else if (f->word)
		fputs(f->word(*u32), p->to);
	else if (f->shape == U32)
		fprintf(p->to, "%" PRIu32, *u32);
	else if (f->shape == U64)
		fprintf(p->to, "%" PRIu64, *(const uint64_t *)(const void *)at);
	else
		fprintf(p->to, p->what->is_json ? "%.17g" : "%.3f",
			*(const double *)(const void *)at);
}

static void begin(const struct printer *p, const char *row, const void *fields,
		  const struct field *list, size_t n)
{
	fprintf(p->to, p->what->is_json ? "{\"row\": \"%s\"" : "%-6s", row);
	for (size_t i = 0; i < n; i++) {
		const char *at = (const char *)fields + list[i].at;

		if (!p->what->is_json && !is_set(&list[i], at))
			continue;
		name(p, list[i].name);
		value(p, &list[i], at);
	}
}

/* A list in the text form is left out where it is empty. Return: false then. */
static bool begin_list(const struct printer *p, const char *text, uint32_t n)
{
	if (!p->what->is_json && n == 0)
		return false;
	name(p, text);
	putc('[', p->to);
	return true;
}

static const char *between(const struct printer *p, uint32_t i)
{
	return i == 0 ? "" : p->what->is_json ? ", " : ",";
}

static void deps(const struct printer *p, const struct record_dep *list, uint32_t n)
{
	if (!begin_list(p, "deps", n))
		return;
	for (uint32_t i = 0; i < n; i++)
		fprintf(p->to,
			p->what->is_json ? "%s{\"name\": %" PRIu64 ", \"is_same_stream\": %u}"
					 : "%s%" PRIu64 "%.*s",
			between(p, i), list[i].name, (int)list[i].is_same_stream, "*");
	putc(']', p->to);
}

static void calls(const struct printer *p, const struct record_op *op)
{
	if (!begin_list(p, "calls", op->n_calls))
		return;
	for (uint32_t i = 0; i < op->n_calls; i++) {
		const struct record_call *c = &op->calls[i];

		if (p->what->is_json)
			fprintf(p->to, "%s{\"peer\": %u, \"is_send\": %u, \"bytes\": %" PRIu64 "}",
				between(p, i), c->peer, c->is_send, c->bytes);
		else
			fprintf(p->to, "%s%s%u:%" PRIu64, between(p, i), c->is_send ? "to" : "from",
				c->peer, c->bytes);
	}
	putc(']', p->to);
}

static void end(const struct printer *p)
{
	fputs(p->what->is_json ? "}\n" : "\n", p->to);
}

/* --- the rows of each kind ---------------------------------------------------------------------
 */

static void comm(const struct printer *p, const struct record_comm *c)
{
	begin(p, "COMM", c, comm_fields, ARRAY_SIZE(comm_fields));
	if (begin_list(p, "members", c->n_members)) {
		for (uint32_t i = 0; i < c->n_members; i++)
			fprintf(p->to, "%s%u", between(p, i), c->members[i]);
		putc(']', p->to);
	}
	if (begin_list(p, "real", c->n_real)) {
		for (uint32_t i = 0; i < c->n_real; i++)
			fprintf(p->to,
				p->what->is_json ? "%s{\"rank\": %u, \"world_rank\": %u}"
						 : "%s%u:%u",
				between(p, i), c->real[i].rank, c->real[i].world_rank);
		putc(']', p->to);
	}
	end(p);
}

/* What the last job told. */
static void job(const struct printer *p, const struct record *rec)
{
	begin(p, "JOB", NULL, NULL, 0);
	if (begin_list(p, "texts", rec->job_bytes)) {
		for (uint32_t at = 0, i = 0; at < rec->job_bytes;
		     at += (uint32_t)strlen(rec->job + at) + 1, i++) {
			fputs(between(p, i), p->to);
			text(p, rec->job + at);
		}
		putc(']', p->to);
	}
	end(p);
}

static bool is_wanted(const struct dump *what, enum record_kind kind, int64_t world_rank)
{
	return (!what->kind || what->kind == kind) &&
	       (what->world_rank < 0 || world_rank < 0 || what->world_rank == world_rank);
}

void dump_print(const struct record *rec, const struct dump *what, FILE *to)
{
	const struct printer p = {what, to};

	if (is_wanted(what, RECORD_HEADER, -1)) {
		begin(&p, "HEADER", &rec->header, header_fields, ARRAY_SIZE(header_fields));
		end(&p);
	}
	for (uint64_t i = 0; i < rec->n_comms && is_wanted(what, RECORD_COMM, -1); i++)
		comm(&p, &rec->comms[i]);
	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (is_wanted(what, RECORD_OP, rec->ops[i].world_rank)) {
			bool is_whole = what->is_json || rec->ops[i].took_channels;

			begin(&p, "OP", &rec->ops[i], op_fields,
			      ARRAY_SIZE(op_fields) - (is_whole ? 0 : N_TOOK));
			deps(&p, rec->ops[i].deps, rec->ops[i].n_deps);
			calls(&p, &rec->ops[i]);
			end(&p);
		}
	for (uint64_t i = 0; i < rec->n_points; i++)
		if (is_wanted(what, RECORD_POINT, rec->points[i].world_rank)) {
			begin(&p, "POINT", &rec->points[i], point_fields, ARRAY_SIZE(point_fields));
			deps(&p, rec->points[i].deps, rec->points[i].n_deps);
			end(&p);
		}
	if (rec->job && is_wanted(what, RECORD_JOB, -1))
		job(&p, rec);
	if (!rec->is_truncated && is_wanted(what, RECORD_END, -1)) {
		begin(&p, "END", &rec->end, end_fields, ARRAY_SIZE(end_fields));
		end(&p);
	}
}
