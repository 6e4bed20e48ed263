/* See rule.h. */
#include "nboxd/op/rule.h"

#include <math.h>

#include "engine/price.h"

int rule_is_ready(struct op *op, struct pair_post **ret_ready, struct err *err)
{
	int r;

	*ret_ready = NULL;
	if (!op->p2p)
		return op->n_arrived == op->n_posts;
	r = pairing_add(&op->comm->open->pairing, &op->p2p->pair, &op->comm->is_real, ret_ready,
			err);
	return r < 0 ? r : *ret_ready != NULL;
}

/* nbox_op.host while arrivals are asked for: which post's. */
struct asked {
	const struct run *run;
	uint32_t i;
};

/* Whether @world_rank is the member of the post or arrives as that does. */
static int has_rank(const struct nbox_op *nbox_op, uint32_t world_rank)
{
	const struct asked *a = nbox_op->host;
	const struct post *post = a->run->posts[a->i];
	const struct op *op = post->op;
	const struct comm *c = op->comm;
	int64_t rank = membership_rank(&c->members.map, world_rank);

	if (rank < 0)
		return 0;
	if (!op->p2p)
		return template_of(&c->templates, (uint32_t)rank) ==
		       (uint32_t)(post->member - c->real);
	if (bitmap_test(&c->is_real, (uint64_t)rank))
		return rank == post->member->rank;
	for (uint32_t k = 0; k < op->n_flows; k++)
		if (op->flows[k].turn == a->run->turn && op->p2p->calls[k].peer == rank)
			return 1;
	return 0;
}

/* How many ranks the delay models may look at for a post. Of the calls to virtual ranks one each
 * way is to each, as a rule. */
static uint32_t count_ranks(const struct run *run, const struct post *post)
{
	const struct op *op = post->op;
	uint32_t n[2] = {0, 0};

	if (!op->p2p)
		return op->comm->n_ranks;
	for (uint32_t k = 0; k < op->n_flows; k++)
		n[op->p2p->calls[k].is_send] +=
			op->flows[k].turn == run->turn &&
			!bitmap_test(&op->comm->is_real, op->p2p->calls[k].peer);
	return 1 + (n[0] > n[1] ? n[0] : n[1]);
}

static bool has_virtual(const struct run *run)
{
	if (run->call)
		return run->comm->n_real < run->comm->n_ranks;
	for (uint32_t i = 0; i < run->n_posts; i++)
		if (count_ranks(run, run->posts[i]) > 1)
			return true;
	return false;
}

static int find_start(struct run *run, struct err *err)
{
	const struct ops *ops = run->comm->comms->ops;
	struct asked asked = {.run = run};
	uint64_t start_ns = 0;
	double last = 0, late;
	struct price price;

	for (uint32_t i = 0; i < run->n_posts; i++)
		if (run->posts[i]->arrive.arrive_ns > start_ns)
			start_ns = run->posts[i]->arrive.arrive_ns;
	if (ops->config->n_what_ifs && has_virtual(run)) {
		price_init(&price, run->posts[0]->op->sched, ops->cluster->topology,
			   &run->comm->members.map, ops->delay, run->number, err);
		price.op.has_rank = has_rank;
		price.op.host = &asked;
		for (; asked.i < run->n_posts; asked.i++) {
			const struct wire_arrive *a = &run->posts[asked.i]->arrive;
			int r;

			price.op.n_ranks = count_ranks(run, run->posts[asked.i]);
			r = delay_arrival(ops->delay, &price.op, (double)a->compute_ns, &late, err);
			if (r < 0)
				return r;
			late -= (double)(start_ns - a->arrive_ns);
			last = r == 0 && late > last ? late : last;
		}
	}
	run->late_ns = ceil(last);
	run->start_ns = start_ns + (uint64_t)run->late_ns;
	return 0;
}

int rule_apply(struct run *run, struct err *err)
{
	const struct timing *t = &run->timing;
	int r = find_start(run, err);

	if (r < 0)
		return r;
	run->end_ns = run->start_ns + (uint64_t)ceil(t->end_ns);
	for (uint32_t i = 0; i < run->n_posts; i++) {
		struct post *post = run->posts[i];

		if (run->end_ns < post->end_ns)
			continue; /* an earlier run of the post ends later */
		post->number = run->number;
		post->start_ns = run->start_ns;
		post->end_ns = run->end_ns;
		post->model_ns = t->model_ns;
		post->injected_ns = t->end_ns - t->model_ns + run->late_ns;
		post->how = t->how;
		post->flags = (t->end_ns < t->bound_ns ? RECORD_BELOW_BOUND : 0) |
			      (t->is_of_model ? RECORD_OF_MODEL : 0);
	}
	return 0;
}
