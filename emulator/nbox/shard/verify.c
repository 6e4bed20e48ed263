#include "nbox/shard/verify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/record-rows.h"
#include "replay/replay.h"
#include "schedule/coll.h"

#define BEGIN_NS UINT64_C(1000000) /* 0 would be a time that is not known */

/* One rank's group of calls, the @k-th: at @wall_ns, @name_before: of the one before it; 0: none.
 */
static int add_exchange(struct record *rec, const struct shard_job *job, const struct shard_plan *p,
			uint32_t rank, uint32_t k, uint64_t wall_ns)
{
	uint32_t n = job->n_gpus;
	struct record_call *calls = record_keep(rec, 2 * (size_t)n * sizeof(*calls));
	struct record_dep *dep = record_keep(rec, sizeof(*dep));
	struct record_op *op = &rec->ops[rec->n_ops++];
	uint64_t name = (uint64_t)rank << 32 | (k + 1);

	if (!calls || !dep)
		return -ENOMEM;
	*dep = (struct record_dep){name - 1, 1, 0};
	*op = (struct record_op){.number = rec->n_ops,
				 .seq = k,
				 .name = name,
				 .call_ns = 1,
				 .arrive_ns = wall_ns,
				 .due_ns = wall_ns,
				 .release_ns = wall_ns,
				 .order = rec->n_ops,
				 .done_order = rec->n_ops,
				 .comm = 1,
				 .rank = rank,
				 .world_rank = rank,
				 .kind = COLL_SENDRECV,
				 .n_deps = k > 0,
				 .of = rec->comms,
				 .calls = calls,
				 .deps = dep};
	for (uint32_t i = 1; i < n; i++) {
		uint32_t peer = (rank + i) % n;
		/* forward a rank has bytes of its tables for each; back come the gradients */
		uint64_t sends = p->matrix[k ? (size_t)peer * n + rank : (size_t)rank * n + peer];
		uint64_t receives =
			p->matrix[k ? (size_t)rank * n + peer : (size_t)peer * n + rank];

		if (sends)
			calls[op->n_calls++] = (struct record_call){peer, 1, sends};
		if (receives)
			calls[op->n_calls++] = (struct record_call){peer, 0, receives};
	}
	return 0;
}

static int make_record(const struct config *c, const struct shard_job *job,
		       const struct shard_plan *p, struct record *rec)
{
	uint32_t n = job->n_gpus;
	struct record_member *real;
	int r = 0;

	*rec = (struct record){.header = {.n_real = n,
					  .world_size = n,
					  .n_nodes = c->topology.n_nodes,
					  .gpus_per_node = c->topology.gpus_per_node}};
	rec->comms = calloc(1, sizeof(*rec->comms));
	rec->ops = calloc(2 * (size_t)n, sizeof(*rec->ops));
	real = record_keep(rec, n * sizeof(*real));
	if (!rec->comms || !rec->ops || !real)
		return -ENOMEM;
	for (uint32_t g = 0; g < n; g++)
		real[g] = (struct record_member){g, g};
	rec->n_comms = 1;
	rec->comms[0] = (struct record_comm){
		.number = 1, .n_ranks = n, .stride = 1, .n_real = n, .real = real};
	for (uint32_t g = 0; g < n && r == 0; g++) {
		uint64_t wall_ns = BEGIN_NS + (uint64_t)llround(p->gpus[g].forward_ns);

		r = add_exchange(rec, job, p, g, 0, wall_ns);
		r = r < 0 ? r
			  : add_exchange(rec, job, p, g, 1,
					 wall_ns + (uint64_t)llround(job->dense_ns));
	}
	return r;
}

int verify_plan(const struct config *c, const char *models, const struct shard_job *job,
		const struct shard_plan *p, double *ret_ns, struct err *err)
{
	const char *const dirs[] = {models, NULL};
	CLEANUP(record_deinit) struct record rec = {.n_ops = 0};
	CLEANUP(record_deinit) struct record played = {.n_ops = 0};
	struct replay in = {.config = c, .dirs = dirs};
	struct replay_told told;
	struct rows_graph graph;
	int r = make_record(c, job, p, &rec);

	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	r = rows_graph_make(&rec, &graph, err);
	if (r < 0)
		return r;
	in.graph = &graph;
	r = replay_play(&in, &played, &told, err);
	rows_graph_deinit(&graph);
	if (r < 0)
		return r;
	*ret_ns = 0;
	for (uint64_t i = 0; i < played.n_ops; i++) {
		const struct record_op *op = &played.ops[i];

		*ret_ns = fmax(*ret_ns, (double)(op->virtual_end_ns - BEGIN_NS) +
						p->gpus[op->world_rank].backward_ns);
	}
	return 0;
}
