/* See table.h. */
#include "op/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "op/awaited.h"

struct comm_ops *comm_ops_get(struct comm *c)
{
	if (!c->open)
		c->open = calloc(1, sizeof(*c->open) + c->n_real * sizeof(c->open->members[0]));
	return c->open;
}

static void p2p_free(struct p2p *p2p)
{
	if (!p2p)
		return;
	for (uint32_t i = 0; p2p->sent && i < p2p->pair.n_calls; i++)
		for (int k = 0; k < 2; k++)
			if (p2p->sent[i].claim[k])
				p2p->sent[i].claim[k]->p2p = NULL;
	if (p2p->awaited)
		p2p->awaited->run = NULL;
	awaited_unref(p2p->awaited);
	free(p2p->sent);
	free(p2p->assumed_ns);
	free(p2p->pair.calls);
	free(p2p->calls);
	free(p2p);
}

struct run *run_free(struct run *run)
{
	if (!run)
		return NULL;
	for (int i = 0; i < 2; i++)
		if (run->claim[i])
			run->claim[i]->run = NULL;
	usage_unref(run->usage);
	border_deinit(&run->p2p_border);
	timing_deinit(&run->timing);
	free(run->posts);
	free(run->to);
	free(run->ends);
	free(run);
	return NULL;
}

/* The posts of @op go, and with them the runs that were there for these alone. */
static void leave_runs(struct comm_ops *o, const struct op *op)
{
	struct run *run, *next;

	DL_FOREACH_SAFE(o->runs, run, next) {
		uint32_t n_left = 0;

		for (uint32_t i = 0; i < run->n_posts; i++) {
			if (run->posts[i] && run->posts[i]->op == op)
				run->posts[i] = NULL;
			n_left += run->posts[i] != NULL;
		}
		if (n_left || run->engine_op)
			continue;
		DL_DELETE(o->runs, run);
		run_free(run);
	}
}

static void op_free(struct op *op)
{
	struct comm_ops *o = op->comm->open;

	leave_runs(o, op);
	op->comm->ops->n_open--;
	HASH_DELETE(hh, o->ops, op);
	if (op->call)
		op->call->n_users--;
	for (uint32_t i = 0; i < op->n_posts; i++)
		timeline_node_release(op->posts[i].node);
	p2p_free(op->p2p);
	free(op->flows);
	for (uint32_t i = 0; i < op->n_posts; i++)
		free(op->posts[i].deps);
	free(op);
}

void op_maybe_free(struct op *op)
{
	if (op->n_done == op->n_posts && op->n_runs == 0 && !(op->p2p && op->p2p->pair.n_unplayed))
		op_free(op);
}

void run_end(struct run *run)
{
	bool is_last = true;

	for (uint32_t i = 0; i < run->n_posts; i++)
		run->posts[i]->op->n_runs--;
	for (uint32_t i = 0; i < run->n_posts; i++)
		if (run->posts[i])
			op_maybe_free(run->posts[i]->op);
	run->engine_op = NULL;
	for (uint32_t i = 0; i < run->n_posts; i++)
		is_last &= !run->posts[i];
	if (!is_last)
		return;
	DL_DELETE(run->comm->open->runs, run);
	run_free(run);
}

void comm_ops_free(struct comm *c)
{
	struct comm_ops *o = c->open;
	struct run *run, *next_run;
	struct op *op, *next;

	if (!o)
		return;
	DL_FOREACH_SAFE(o->runs, run, next_run) {
		run_free(run);
	}
	o->runs = NULL;
	solver_forget(c->ops->solver, c->number);
	HASH_ITER(hh, o->ops, op, next)
		op_free(op);
	free(o->busy);
	calls_deinit(&o->calls);
	pairing_deinit(&o->pairing);
	free(o);
	c->open = NULL;
}

static struct op_key key_of(uint64_t seq, size_t member)
{
	return (struct op_key){seq, seq_is_p2p(seq) ? member : 0};
}

struct op *op_find(const struct comm *c, uint64_t seq, size_t member)
{
	const struct op_key key = key_of(seq, member);
	struct op *op = NULL;

	if (c->open)
		HASH_FIND(hh, c->open->ops, &key, sizeof(key), op);
	return op;
}

struct op *op_new(struct comm *c, uint64_t seq, size_t member)
{
	uint32_t n = seq_is_p2p(seq) ? 1 : c->n_real;
	struct op *op = calloc(1, sizeof(*op) + n * sizeof(op->posts[0]));

	if (!op)
		return NULL;
	op->key = key_of(seq, member);
	op->comm = c;
	op->n_posts = n;
	for (uint32_t i = 0; i < n; i++) {
		op->posts[i].op = op;
		op->posts[i].member = &c->real[op->key.member + i];
	}
	HASH_ADD(hh, c->open->ops, key, sizeof(op->key), op);
	c->ops->n_open++;
	return op;
}

struct post *op_post(struct op *op, const struct comm_member *member)
{
	return &op->posts[(size_t)(member - op->comm->real) - op->key.member];
}

const struct post *op_post_with(const struct op *op, uint32_t rank, uint32_t world_rank)
{
	uint32_t template = timelines_template(op->comm->ops->timelines, world_rank);

	for (uint32_t i = 0; i < op->n_posts; i++)
		if (op->posts[i].member->world_rank == template)
			return &op->posts[i];
	return &op->posts[template_of(&op->comm->templates, rank)];
}

const struct post *op_first_arrived(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_posts; i++)
		if (op->posts[i].node)
			return &op->posts[i];
	return &op->posts[0];
}

/* --- names ----------------------------------------------------------------------- */

char *op_title(uint64_t seq, uint32_t kind, char *buf, size_t size)
{
	if (seq_is_p2p(seq))
		snprintf(buf, size, "point-to-point op %llu", wire_seq_number(seq));
	else
		snprintf(buf, size, "op %llu (%s)", wire_seq_number(seq), coll_kind_name(kind));
	return buf;
}

char *op_name(uint64_t seq, uint32_t rank, uint32_t comm, char *buf, size_t size)
{
	if (seq_is_p2p(seq))
		snprintf(buf, size, "point-to-point op %llu of rank %u, communicator %u",
			 wire_seq_number(seq), rank, comm);
	else
		snprintf(buf, size, "op %llu of communicator %u", wire_seq_number(seq), comm);
	return buf;
}
