/* See part.h. */
#include "replay/part.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int no_memory(struct err *err)
{
	return err_set(err, ENOMEM, "out of memory");
}

/* What the new record says of it. */
static int keep_comm(struct part *p, const struct part_comm *c, struct record_comm *ret)
{
	const struct membership *m = &c->members.map;
	struct record_member *real = record_keep(&p->out, c->n_real * sizeof(*real));
	uint32_t *table = m->table ? record_keep(&p->out, m->n_ranks * sizeof(*table)) : NULL;

	if (!real || (m->table && !table))
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_real; i++)
		real[i] = (struct record_member){c->real[i].rank, c->real[i].world_rank};
	if (table)
		memcpy(table, m->table, m->n_ranks * sizeof(*table));
	ret->n_ranks = m->n_ranks;
	ret->base = m->base;
	ret->stride = m->stride;
	ret->n_members = table ? m->n_ranks : 0;
	ret->members = table;
	ret->real = real;
	return 0;
}

static int make_comm(struct part *p, uint64_t i, struct err *err)
{
	const struct record_comm *from = &p->rec->comms[i];
	struct part_comm *c = &p->comms[i];
	int r;

	c->real = calloc((size_t)from->n_real + 1, sizeof(*c->real));
	if (!c->real)
		return no_memory(err);
	r = world_members(from, &p->from, &p->to, &c->members, err);
	if (r < 0)
		return r;
	for (; c->n_real < from->n_real; c->n_real++) {
		uint32_t rank = part_rank(p, from->real[c->n_real].world_rank);

		c->real[c->n_real] =
			(struct wire_member){(uint32_t)membership_rank(&c->members.map, rank),
					     rank};
	}
	members_sort(c->real, c->n_real);
	return keep_comm(p, c, &p->out.comms[i]) < 0 ? no_memory(err) : 0;
}

/* memcpy() of nothing may not be from NULL. */
static void copy(void *to, const void *from, size_t bytes)
{
	if (bytes)
		memcpy(to, from, bytes);
}

static int move_rank(struct part *p, uint32_t *rank, struct err *err)
{
	uint32_t was = *rank;

	*rank = part_rank(p, was);
	return *rank == UINT32_MAX ? err_set(err, EINVAL,
					     "what rank %u of the run computes nobody does in a "
					     "world of %u ranks",
					     was, p->to.size)
				   : 0;
}

static int copy_record(struct part *p, const struct config *c, struct err *err)
{
	const struct record *rec = p->rec;
	struct record *out = &p->out;
	int r = 0;

	out->header = rec->header;
	out->header.world_size = c->world;
	out->header.n_nodes = c->topology.n_nodes;
	out->header.gpus_per_node = c->topology.gpus_per_node;
	out->header.seed = c->seed;
	memset(out->header.layout, 0, sizeof(out->header.layout));
	for (size_t i = 0, used = 0; i < c->n_layouts && used < sizeof(out->header.layout); i++)
		used += (size_t)snprintf(out->header.layout + used,
					 sizeof(out->header.layout) - used, "%s%s", i ? ";" : "",
					 c->values[CONFIG_LAYOUT].items[i].text);
	memset(out->header.model, 0, sizeof(out->header.model));
	config_model(c, out->header.model, sizeof(out->header.model));
	out->end = (struct record_end){.n_lost = rec->end.n_lost};
	out->comms = calloc(rec->n_comms + 1, sizeof(*out->comms));
	out->ops = calloc(rec->n_ops + 1, sizeof(*out->ops));
	out->points = calloc(rec->n_points + 1, sizeof(*out->points));
	if (!out->comms || !out->ops || !out->points)
		return no_memory(err);
	copy(out->comms, rec->comms, rec->n_comms * sizeof(*out->comms));
	copy(out->ops, rec->ops, rec->n_ops * sizeof(*out->ops));
	copy(out->points, rec->points, rec->n_points * sizeof(*out->points));
	out->n_comms = rec->n_comms;
	out->n_ops = rec->n_ops;
	out->n_points = rec->n_points;
	out->is_truncated = rec->is_truncated;
	out->job = rec->job;
	out->job_bytes = rec->job_bytes;
	for (uint64_t i = 0; i < out->n_ops && r == 0; i++) {
		out->ops[i].of = &out->comms[rec->ops[i].of - rec->comms];
		r = move_rank(p, &out->ops[i].world_rank, err);
	}
	for (uint64_t i = 0; i < out->n_points && r == 0; i++)
		r = move_rank(p, &out->points[i].world_rank, err);
	return r;
}

static int find_counts(struct part *p, const struct sizes *sizes,
		       const struct declared_counts *declared, struct err *err)
{
	CLEANUP(freep) struct membership *maps = calloc(p->n_comms + 1, sizeof(*maps));

	if (!maps)
		return no_memory(err);
	for (uint64_t i = 0; i < p->n_comms; i++)
		maps[i] = p->comms[i].members.map;
	return counts_change(&(struct counts_ask){.rec = p->rec,
						  .from = &p->from,
						  .to = &p->to,
						  .maps = maps,
						  .sizes = sizes,
						  .declared = declared},
			     &p->out, &p->told, err);
}

/* Whether the run's cluster has the same nodes, but perhaps another number of them. */
static bool has_same_nodes(const struct config *c)
{
	static const enum option_id ids[] = {CONFIG_PRESET, CONFIG_FABRIC, CONFIG_INTER,
					     CONFIG_INTER_BANDWIDTH, CONFIG_DOMAIN_NODES};
	bool is_same = c->is_of_run;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		is_same = is_same && c->values[ids[i]].source <= SOURCE_FILE;
	return is_same;
}

/* What NCCL took for an op says nothing of one that has other bytes, ranks or nodes. */
static void forget_taken(struct part *p, const struct config *c)
{
	bool is_same = has_same_nodes(c);

	for (uint64_t i = 0; i < p->out.n_ops; i++) {
		struct record_op *op = &p->out.ops[i];
		const struct record_op *was = &p->rec->ops[i];

		if (!is_same || op->count != was->count || op->of->n_ranks != was->of->n_ranks)
			op->took_algorithm = op->took_protocol = op->took_channels = 0;
	}
}

int part_make(const struct record *rec, const struct config *config, const struct sizes *sizes,
	      const struct declared_counts *declared, struct part *ret, struct err *err)
{
	CLEANUP(part_deinit) struct part p = {.rec = rec};
	int r;

	if (rec->header.gpus_per_node != config->topology.gpus_per_node)
		return err_set(
			err, EINVAL,
			"the run was recorded on nodes of %u GPUs, not %u: which rank computes "
			"what would be another",
			rec->header.gpus_per_node, config->topology.gpus_per_node);
	p.comms = calloc(rec->n_comms + 1, sizeof(*p.comms));
	if (!p.comms)
		return no_memory(err);
	p.n_comms = rec->n_comms;
	world_of_config(config, &p.to);
	r = world_of_record(&rec->header, &p.from, err);
	if (r == 0)
		r = world_check(&p.from, &p.to, err);
	if (r == 0)
		r = copy_record(&p, config, err);
	for (uint64_t i = 0; i < p.n_comms && r == 0; i++)
		r = make_comm(&p, i, err);
	if (r == 0)
		r = find_counts(&p, sizes, declared, err);
	if (r < 0)
		return r;
	forget_taken(&p, config);
	*ret = p;
	p = (struct part){.n_comms = 0};
	return 0;
}

void part_deinit(struct part *p)
{
	for (uint64_t i = 0; i < p->n_comms; i++) {
		members_deinit(&p->comms[i].members);
		free(p->comms[i].real);
	}
	free(p->comms);
	record_deinit(&p->out);
}
