/* See chakra.h. A file is messages, each behind its length: GlobalMetadata, then Nodes. Names,
 * field numbers and enums are those of mlcommons/chakra, schema/protobuf/et_def.proto; types of
 * attributes those that its feeder (src/feeder/et_feeder_node.cpp) asks for. */
#include "nbox/export/chakra.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/export/out.h"
#include "nbox/export/protobuf.h"
#include "schedule/coll.h"
#include "trace/spans.h"

#define SCHEMA_VERSION "0.0.4"

enum { METADATA_VERSION = 1 };
enum {
	NODE_ID = 1,
	NODE_NAME,
	NODE_TYPE,
	NODE_CTRL_DEPS,
	NODE_DATA_DEPS,
	NODE_START_TIME_MICROS,
	NODE_DURATION_MICROS,
	NODE_INPUTS,
	NODE_OUTPUTS,
	NODE_ATTR
};
enum { IO_VALUES = 1 };
enum { ATTR_NAME = 1, ATTR_INT32 = 7, ATTR_INT64 = 9, ATTR_BOOL = 27, ATTR_STRING = 29 };
enum { METADATA_NODE = 1, COMP_NODE = 4, COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE };

static const uint32_t comm_types[COLL_KINDS] = {
	[COLL_ALLREDUCE] = 0, [COLL_REDUCE] = 1,    [COLL_ALLGATHER] = 2, [COLL_GATHER] = 3,
	[COLL_SCATTER] = 4,   [COLL_BROADCAST] = 5, [COLL_ALLTOALL] = 6,  [COLL_REDUCESCATTER] = 7,
};

/* The nodes that are over when a span is: the calls of an op, or one. */
struct ends {
	uint64_t first, n;
};

struct graph {
	const struct record *rec;
	const struct span *all; /* of all ranks: deps are indices of it */
	struct ends *ends;      /* borrowed; by span */
	struct protobuf node, attr;
	uint64_t last; /* node */
	FILE *to;
};

/* --- a node ------------------------------------------------------------------------ */

static uint64_t begin(struct graph *g, const char *name, uint32_t type, uint64_t from_ns,
		      uint64_t end_ns)
{
	uint64_t start_ns = g->rec->header.start_ns;
	uint64_t from = from_ns > start_ns ? (from_ns - start_ns) / 1000 : 0;
	uint64_t end = end_ns > start_ns ? (end_ns - start_ns) / 1000 : 0;

	g->node.n = 0;
	protobuf_uint(&g->node, NODE_ID, ++g->last);
	protobuf_text(&g->node, NODE_NAME, name);
	protobuf_uint(&g->node, NODE_TYPE, type);
	protobuf_uint(&g->node, NODE_START_TIME_MICROS, from);
	protobuf_uint(&g->node, NODE_DURATION_MICROS, end > from ? end - from : 0);
	return g->last;
}

static void attribute(struct graph *g, const char *name, uint32_t type, uint64_t value)
{
	g->attr.n = 0;
	protobuf_text(&g->attr, ATTR_NAME, name);
	protobuf_uint(&g->attr, type, value);
	protobuf_message(&g->node, NODE_ATTR, &g->attr);
}

static void wait_for(struct graph *g, size_t span, uint32_t field)
{
	for (uint64_t k = 0; k < g->ends[span].n; k++)
		protobuf_uint(&g->node, field, g->ends[span].first + k);
}

/* Computation that the host went on with had begun before it returned. */
static bool waits_for_host(const struct graph *g, const struct span *s)
{
	return s->host != SPAN_NONE && g->all[s->host].end_ns <= s->from_ns;
}

/* What the span waited for; @before: the node of it that comes first; 0: none. */
static void wait_for_all(struct graph *g, const struct span *s, uint64_t before)
{
	if (before) {
		protobuf_uint(&g->node, NODE_DATA_DEPS, before);
		return;
	}
	for (size_t i = 0; i < s->n_deps; i++)
		wait_for(g, s->deps[i], NODE_DATA_DEPS);
	if (waits_for_host(g, s))
		wait_for(g, s->host, NODE_CTRL_DEPS);
}

/* --- a span ------------------------------------------------------------------------ */

/* Return: the node's number. */
static uint64_t work(struct graph *g, const struct span *s, const char *name, bool is_host,
		     uint64_t from_ns, uint64_t end_ns, uint64_t before)
{
	uint64_t id = begin(g, name, COMP_NODE, from_ns, end_ns);

	wait_for_all(g, s, before);
	attribute(g, "is_cpu_op", ATTR_BOOL, is_host);
	protobuf_write(&g->node, g->to);
	return id;
}

static void op_attributes(struct graph *g, const struct record_op *op, uint64_t bytes)
{
	char group[16];

	attribute(g, "is_cpu_op", ATTR_BOOL, false);
	attribute(g, "comm_size", ATTR_INT64, bytes);
	snprintf(group, sizeof(group), "%u", op->comm);
	g->attr.n = 0;
	protobuf_text(&g->attr, ATTR_NAME, "pg_name");
	protobuf_text(&g->attr, ATTR_STRING, group);
	protobuf_message(&g->node, NODE_ATTR, &g->attr);
}

static void collective(struct graph *g, const struct span *s, uint64_t before)
{
	const struct record_op *op = s->op;

	begin(g, coll_kind_name(op->kind), COMM_COLL_NODE, s->at_ns, s->end_ns);
	wait_for_all(g, s, before);
	op_attributes(g, op,
		      coll_input_bytes(op->kind, op->bytes, op->of->n_ranks, op->rank == op->root));
	attribute(g, "comm_type", ATTR_INT64, comm_types[op->kind]);
	protobuf_write(&g->node, g->to);
}

static void call(struct graph *g, const struct span *s, const struct record_call *c,
		 uint64_t before)
{
	const struct record_comm *of = s->op->of;
	uint32_t peer = c->peer < of->n_ranks ? record_world_rank(of, c->peer) : 0;

	begin(g, c->is_send ? "Send" : "Recv", c->is_send ? COMM_SEND_NODE : COMM_RECV_NODE,
	      s->at_ns, s->end_ns);
	wait_for_all(g, s, before);
	op_attributes(g, s->op, c->bytes);
	attribute(g, "comm_src", ATTR_INT32, c->is_send ? s->world_rank : peer);
	attribute(g, "comm_dst", ATTR_INT32, c->is_send ? peer : s->world_rank);
	attribute(g, "comm_tag", ATTR_INT32, s->op->comm);
	protobuf_write(&g->node, g->to);
}

/* When all that the span waits for is over; its own begin where that is nothing. */
static uint64_t ready_ns(const struct graph *g, const struct span *s)
{
	uint64_t ready = 0;

	for (size_t i = 0; i < s->n_deps; i++)
		if (g->all[s->deps[i]].end_ns > ready)
			ready = g->all[s->deps[i]].end_ns;
	if (waits_for_host(g, s) && g->all[s->host].end_ns > ready)
		ready = g->all[s->host].end_ns;
	return ready ? ready : s->from_ns;
}

static void span(struct graph *g, const struct span *s)
{
	struct ends *ends = &g->ends[s - g->all];
	uint64_t before = 0, ready = ready_ns(g, s);

	if (ready < s->from_ns)
		before = work(g, s, "host", true, ready, s->from_ns, 0);
	if (s->from_ns < s->at_ns || (s->point && !before))
		before = work(g, s, "computation", false, s->from_ns, s->at_ns, before);
	*ends = (struct ends){before, 1};
	if (!s->op)
		return;
	ends->first = g->last + 1;
	for (uint32_t i = 0; i < s->op->n_calls; i++)
		call(g, s, &s->op->calls[i], before);
	if (s->op->n_calls == 0)
		collective(g, s, before);
	ends->n = g->last + 1 - ends->first;
}

/* --- a file ------------------------------------------------------------------------ */

/* The groups, as PyTorch's execution traces have them: a list as JSON in quotes in brackets; no
 * ranks: all. Return: 0; -ENOMEM. */
static int groups(struct graph *g)
{
	CLEANUP(freep) char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return -ENOMEM;
	fputs("['[", f);
	for (uint64_t i = 0; i < g->rec->n_comms; i++) {
		const struct record_comm *c = &g->rec->comms[i];
		bool is_world = c->n_ranks == g->rec->header.world_size && !c->n_members;

		fprintf(f, "%s{\"pg_name\": \"%u\", \"group_size\": %u, \"ranks\": [",
			i ? ", " : "", c->number, c->n_ranks);
		for (uint32_t k = 0; k < c->n_ranks && !is_world; k++)
			fprintf(f, "%s%u", k ? ", " : "", record_world_rank(c, k));
		fputs("]}", f);
	}
	fputs("]']", f);
	if (fclose(f) != 0)
		return -ENOMEM;
	begin(g, "## process_group:init ##", METADATA_NODE, 0, 0);
	g->attr.n = 0;
	protobuf_text(&g->attr, IO_VALUES, text);
	protobuf_message(&g->node, NODE_INPUTS, &g->attr);
	return protobuf_write(&g->node, g->to);
}

static int write_rank(struct graph *g, const struct span *list, size_t n, const char *prefix,
		      struct err *err)
{
	char path[PATH_MAX];
	int r, finished;

	snprintf(path, sizeof(path), "%s.%u.et", prefix, list->world_rank);
	r = out_create(path, &g->to, err);
	if (r < 0)
		return r;
	g->last = 0;
	g->node.n = 0;
	protobuf_text(&g->node, METADATA_VERSION, SCHEMA_VERSION);
	protobuf_write(&g->node, g->to);
	r = groups(g);
	for (size_t i = 0; r == 0 && i < n; i++) {
		span(g, &list[i]);
		r = g->node.error ? g->node.error : g->attr.error;
	}
	finished = file_finish(g->to, path, err);
	return r < 0 ? r : finished;
}

int chakra_write(const struct record *rec, const char *prefix, struct err *err)
{
	CLEANUP(spans_deinit) struct spans s = {0};
	CLEANUP(freep) struct ends *ends = NULL;
	struct graph g = {.rec = rec};
	int r = spans_find(rec, &s);

	if (r < 0)
		return r;
	ends = calloc(s.n + 1, sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	g.all = s.list;
	g.ends = ends;
	for (size_t i = 0, end; r == 0 && i < s.n; i = end) {
		end = spans_rank_end(&s, i);
		r = write_rank(&g, &s.list[i], end - i, prefix, err);
	}
	protobuf_deinit(&g.node);
	protobuf_deinit(&g.attr);
	return r;
}
