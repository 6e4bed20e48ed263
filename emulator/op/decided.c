/* See decided.h. */
#include "op/decided.h"

#include <stdio.h>

#include "engine/delay.h"
#include "engine/solve-plan.h"
#include "nccl-plugin/words.h"

static bool is_same(const struct sched_took *a, const struct wire_took *b)
{
	return a->algorithm == b->algorithm && a->protocol == b->protocol &&
	       a->n_channels == b->n_channels;
}

static void warn_differs(const struct post *post)
{
	struct ops *ops = post->op->comm->ops;
	char name[OP_NAME_MAX];

	if (ops->decided.is_difference_told)
		return;
	ops->decided.is_difference_told = true;
	ops_warn(
		ops,
		"%s: NCCL takes another algorithm, protocol or number of channels in rank %u than in "
		"rank %u, by which the times go: do their processes have the same NCCL_ variables?",
		op_name(post->op->key.seq, post->member->rank, post->op->comm->number, name,
			sizeof(name)),
		post->member->rank, op_first_arrived(post->op)->member->rank);
}

int decided_take(struct post *post, struct err *err)
{
	struct op *op = post->op;
	struct call *call;
	int r;

	if (!op->call || op->call->has_border || !post->arrive.took.n_channels ||
	    is_same(&op->call->key.took, &post->arrive.took))
		return 0;
	if (op->call->key.took.n_channels) {
		warn_differs(post);
		return 0;
	}
	r = call_get(op->comm, &op->comm->open->calls, &post->arrive, &call, err);
	if (r < 0)
		return r;
	op->call->n_users--;
	op->call = call;
	op->sched = &call->sched;
	return 0;
}

static void warn_not_taken(const struct run *run)
{
	struct ops *ops = run->comm->ops;
	const struct post *first = run->posts[0];
	char name[OP_NAME_MAX];

	if (ops->decided.is_other_told)
		return;
	ops->decided.is_other_told = true;
	ops_warn(ops, "%s (%s): the model %s does not time what NCCL took, but its own choice: %s",
		 op_name(first->op->key.seq, first->member->rank, run->comm->number, name,
			 sizeof(name)),
		 coll_kind_name(run->call->key.kind), delay_describe(ops->delay),
		 run->timing.plan.why_not_taken);
}

/* What NCCL took beside what a record of decisions says. */
static void warn_not_told(const struct run *run, const struct sched_took *took)
{
	const struct nbox_plan *plan = &run->timing.plan;
	struct ops *ops = run->comm->ops;
	const struct post *first = run->posts[0];
	char name[OP_NAME_MAX];

	if (ops->decided.is_not_told_told)
		return;
	ops->decided.is_not_told_told = true;
	ops_warn(ops, "%s (%s of %llu bytes): NCCL took %s %s, and by %.200s it takes %s %s",
		 op_name(first->op->key.seq, first->member->rank, run->comm->number, name,
			 sizeof(name)),
		 coll_kind_name(run->call->key.kind), (unsigned long long)run->call->sched.bytes,
		 plugin_algorithm_name(took->algorithm), plugin_protocol_name(took->protocol),
		 delay_told_by(ops->delay),
		 plugin_algorithm_name(price_nccl_algorithm(plan->told_algo)),
		 plugin_protocol_name(plan->told_proto));
}

static void count_told(const struct run *run)
{
	const struct nbox_plan *plan = &run->timing.plan;
	struct ops_decided *n = &run->comm->ops->decided;
	const struct sched_took *took = &run->call->key.took;

	if (price_nccl_algorithm(plan->told_algo) != took->algorithm ||
	    plan->told_proto != took->protocol) {
		n->n_not_told++;
		warn_not_told(run, took);
	} else if (plan->told_lanes != took->n_channels) {
		n->n_other_channels++;
	} else {
		n->n_as_told++;
	}
}

void decided_count(const struct run *run)
{
	struct ops_decided *n = &run->comm->ops->decided;

	n->n++;
	n->n_by_nccl += run->timing.plan.is_taken;
	if (run->timing.plan.is_taken && run->timing.plan.told_lanes)
		count_told(run);
	if (run->timing.plan.why_not_taken)
		warn_not_taken(run);
}

_Static_assert(WIRE_KINDS_TUNED == COLL_REDUCE + 1, "NCCL's tuner hears of these");

bool decided_ask(const struct comm *c, struct wire_tune *m)
{
	bool is_shared = m->kind == COLL_ALLGATHER || m->kind == COLL_REDUCESCATTER;
	struct sched s = {
		.kind = (enum coll_kind)m->kind,
		.n_ranks = m->n_ranks,
		.elem_bytes = 1,
		.bytes = is_shared ? m->bytes / m->n_ranks : m->bytes,
		/* as if NCCL had decided: so it is no op that the rules decide */
		.took = {PLUGIN_RING, PLUGIN_SIMPLE, 1},
	};
	struct nbox_plan plan;
	struct price p;
	struct err err;

	if (c->n_ranks != m->n_ranks)
		return false;
	price_init(&p, &s, c->ops->cluster->topology, &c->members.map, c->ops->delay, 0, &err);
	if (p.n_nodes != m->n_nodes)
		return false;
	/* an error comes again with the op */
	if (planned_ask(&p, &plan, &err) < 0)
		return true;
	m->n_of_comm = plan.told_of_comm;
	if (plan.told_lanes)
		m->took = (struct wire_took){.algorithm = price_nccl_algorithm(plan.told_algo),
					     .protocol = plan.told_proto,
					     .n_channels = plan.told_lanes};
	return m->n_of_comm || m->took.n_channels;
}

/* ", 180 of them as h100.txt says, 20 but for the channels, 3 otherwise"; "": no record has one of
 * them. */
static char *print_told(const struct ops *ops, char *buf, size_t size)
{
	const struct ops_decided *n = &ops->decided;
	const char *by = delay_told_by(ops->delay);
	char channels[48] = "", other[48] = "";

	buf[0] = '\0';
	if (!by || !(n->n_as_told + n->n_other_channels + n->n_not_told))
		return buf;
	if (n->n_other_channels)
		snprintf(channels, sizeof(channels), ", %llu but for the channels",
			 (unsigned long long)n->n_other_channels);
	if (n->n_not_told)
		snprintf(other, sizeof(other), ", %llu otherwise",
			 (unsigned long long)n->n_not_told);
	snprintf(buf, size, ", %llu of them as %s says%s%s", (unsigned long long)n->n_as_told, by,
		 channels, other);
	return buf;
}

char *decided_print(const struct ops *ops, char *buf, size_t size)
{
	const struct ops_decided *n = &ops->decided;
	const char *rule = ops->delay ? delay_decided_by(ops->delay) : NULL;
	/* NCCL's tuner asks, too */
	const char *nccl = ops->delay && n->n_by_nccl ? delay_taken_by(ops->delay) : NULL;
	char told[360];

	if (nccl)
		snprintf(buf, size, "%s (%llu of %llu collectives)%s%s%s", nccl,
			 (unsigned long long)n->n_by_nccl, (unsigned long long)n->n,
			 print_told(ops, told, sizeof(told)), rule ? "; else " : "",
			 rule ? rule : "");
	else
		snprintf(buf, size, "%s", rule ? rule : "");
	return buf;
}
