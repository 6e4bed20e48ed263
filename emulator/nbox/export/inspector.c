/* See inspector.h. What a rank of this cluster would have logged: its host is its virtual node. */
#include "nbox/export/inspector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "schedule/coll.h"

static uint32_t per_node(const struct record *rec)
{
	return rec->header.gpus_per_node ? rec->header.gpus_per_node : 1;
}

/* Nodes that the communicator's ranks are on; ranks of one node stand together. */
static uint32_t n_nodes_of(const struct record *rec, const struct record_comm *c)
{
	uint32_t each = per_node(rec), n = 1, first = record_world_rank(c, 0) / each;

	if (!c->n_members && c->stride > each)
		return c->n_ranks;
	if (!c->n_members)
		return record_world_rank(c, c->n_ranks - 1) / each - first + 1;
	for (uint32_t i = 1; i < c->n_ranks; i++)
		n += c->members[i] / each != c->members[i - 1] / each;
	return n;
}

static void begin(const struct record *rec, const struct record_op *op, uint32_t n_nodes, FILE *to)
{
	const struct record_header *h = &rec->header;
	uint64_t at = h->start_unix_ns + (op->virtual_end_ns - h->start_ns);

	fprintf(to,
		"{\"header\": {\"id\": \"0x%" PRIx32 "\", \"comm_name\": \"communicator %" PRIu32
		"\", \"rank\": %" PRIu32 ", \"n_ranks\": %" PRIu32 ", \"nnodes\": %" PRIu32
		"}, \"metadata\": {\"inspector_output_format_version\": \"v4.0\", \"git_rev\": "
		"\"nbox " NBOX_VERSION "\", \"rec_mechanism\": \"nbox\", \"dump_timestamp_us\": "
		"%" PRIu64 ", \"hostname\": \"node%" PRIu32 "\", \"pid\": %" PRIu32 "}, ",
		op->comm, op->comm, op->rank, op->of->n_ranks, n_nodes, at / 1000,
		op->world_rank / per_node(rec), op->world_rank);
}

/* @factor: from bytes to nccl-tests' size; @bus: of the bus bandwidth. GB/s are bytes a ns. */
static void end(const char *sort, const struct record_op *op, uint64_t bytes, double factor,
		double bus, FILE *to)
{
	uint64_t ns = op->virtual_end_ns > op->virtual_arrive_ns
			      ? op->virtual_end_ns - op->virtual_arrive_ns
			      : 0;
	double speed = ns ? (double)bytes * factor / (double)ns : 0;

	fprintf(to,
		"\"%s_msg_size_bytes\": %" PRIu64 ", \"%s_exec_time_us\": %" PRIu64
		", \"%s_timing_source\": \"nbox_virtual\", \"%s_algobw_gbs\": %.6f, "
		"\"%s_busbw_gbs\": %.6f}}\n",
		sort, bytes, sort, (ns + 500) / 1000, sort, sort, speed, sort, speed * bus);
}

static void collective(const struct record *rec, const struct record_op *op, uint32_t n_nodes,
		       FILE *to)
{
	uint32_t n = op->of->n_ranks;
	bool is_part =
		op->kind != COLL_ALLREDUCE && op->kind != COLL_BROADCAST && op->kind != COLL_REDUCE;

	begin(rec, op, n_nodes, to);
	fprintf(to, "\"coll_perf\": {\"coll\": \"%s\", \"coll_sn\": %" PRIu64 ", ",
		coll_kind_name(op->kind), op->seq);
	end("coll", op, op->bytes, is_part ? n : 1, coll_busbw_factor(op->kind, n), to);
}

static void call(const struct record *rec, const struct record_op *op, const struct record_call *c,
		 uint32_t n_nodes, FILE *to)
{
	begin(rec, op, n_nodes, to);
	fprintf(to,
		"\"p2p_perf\": {\"p2p\": \"%s\", \"p2p_sn\": %" PRIu64 ", \"p2p_peer\": %" PRIu32
		", ",
		c->is_send ? "Send" : "Recv", op->seq, c->peer);
	end("p2p", op, c->bytes, 1, 1, to);
}

int inspector_print(const struct record *rec, FILE *to)
{
	CLEANUP(freep) uint32_t *n_nodes = calloc(rec->n_comms + 1, sizeof(*n_nodes));

	if (!n_nodes)
		return -ENOMEM;
	for (uint64_t i = 0; i < rec->n_comms; i++)
		n_nodes[i] = n_nodes_of(rec, &rec->comms[i]);
	for (uint64_t i = 0; i < rec->n_ops; i++) {
		const struct record_op *op = &rec->ops[i];
		uint32_t n = n_nodes[op->of - rec->comms];

		if (op->kind != COLL_SENDRECV)
			collective(rec, op, n, to);
		for (uint32_t k = 0; k < op->n_calls; k++)
			call(rec, op, &op->calls[k], n, to);
	}
	return 0;
}
