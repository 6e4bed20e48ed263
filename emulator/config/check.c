/* What each option may be, and what contradicts what; see config.h. Where nboxd listens:
 * check-link.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/suggest.h"
#include "base/units.h"
#include "calibrate/skew.h"
#include "config/check-fabric.h"
#include "config/check-link.h"
#include "config/check-nccl.h"
#include "config/convert.h"
#include "config/did-you-mean.h"
#include "config/rack-nodes.h"
#include "config/spec.h"
#include "schedule/schedule.h"
#include "wire/wire.h"

#define ALLTOALL_BYTES_MAX (16u << 20) /* as of other files that a run folder keeps */

#define POLL_MAX_NS 1e9
#define RATIO_MAX 1000.0
#define WAIT_MAX_NS (86400.0 * 1e9)

/* --- the cluster ---------------------------------------------------------- */

static int check_world(struct config *c, struct err *err)
{
	uint64_t nodes = 0, gpus = 0, world = 0;
	char where[VALUE_WHERE_MAX];
	int r;

	if ((r = value_count(c, CONFIG_GPUS_PER_NODE, 1, WIRE_WORLD_MAX, &gpus, err)) < 0 ||
	    (r = value_count(c, CONFIG_NODES, 1, WIRE_WORLD_MAX, &nodes, err)) < 0 ||
	    (r = value_count(c, CONFIG_WORLD, 1, WIRE_WORLD_MAX, &world, err)) < 0)
		return r;
	if (world && !config_is_set(c, CONFIG_NODES)) {
		if (world % gpus)
			return value_refuse(
				c, CONFIG_WORLD, 0, err,
				"a world of %llu is no multiple of %llu gpus per node (%s)",
				(unsigned long long)world, (unsigned long long)gpus,
				config_where(c, CONFIG_GPUS_PER_NODE, 0, where, sizeof(where)));
		nodes = world / gpus;
	}
	if (world && world != nodes * gpus)
		return value_refuse(
			c, CONFIG_WORLD, 0, err,
			"a world of %llu contradicts %llu nodes x %llu gpus per node = %llu (%s)",
			(unsigned long long)world, (unsigned long long)nodes,
			(unsigned long long)gpus, (unsigned long long)(nodes * gpus),
			config_where(c, CONFIG_NODES, 0, where, sizeof(where)));
	if (nodes * gpus > WIRE_WORLD_MAX)
		return value_refuse(
			c, config_is_set(c, CONFIG_NODES) ? CONFIG_NODES : CONFIG_GPUS_PER_NODE, 0,
			err, "%llu nodes x %llu gpus per node are more than %d ranks",
			(unsigned long long)nodes, (unsigned long long)gpus, WIRE_WORLD_MAX);
	topology_default(&c->topology);
	c->topology.n_nodes = (uint32_t)nodes;
	c->topology.gpus_per_node = (uint32_t)gpus;
	c->world = (uint32_t)(nodes * gpus);
	return 0;
}

static int check_as_node(struct config *c, struct err *err)
{
	const char *text = config_text(c, CONFIG_AS_NODE), *near;
	static const char *const names[] = {"first", "last"};
	struct config_value *real = &c->values[CONFIG_REAL];
	uint32_t nodes = c->topology.n_nodes;
	char where[VALUE_WHERE_MAX];
	uint64_t k = 0;

	c->as_node = 0;
	if (config_is_set(c, CONFIG_AS_NODE) && config_is_set(c, CONFIG_REAL)) {
		if (real->source == c->values[CONFIG_AS_NODE].source)
			return value_refuse(c, CONFIG_AS_NODE, 0, err,
					    "as-node says which ranks are real, and so does "
					    "%s: give one of them",
					    config_where(c, CONFIG_REAL, 0, where, sizeof(where)));
		if (real->source > c->values[CONFIG_AS_NODE].source)
			return 0;
		value_clear(real);
	}
	if (strcmp(text, "first") == 0)
		return 0;
	if (strcmp(text, "last") == 0) {
		c->as_node = nodes - 1;
		return 0;
	}
	if (units_count(text, &k, NULL) < 0) {
		near = suggest(text, names, ARRAY_SIZE(names));
		return value_refuse(c, CONFIG_AS_NODE, 0, err,
				    "'%.32s' is no node: first, last, or a number "
				    "from 0%s%s%s",
				    text, near ? "; did you mean '" : "", near ? near : "",
				    near ? "'?" : "");
	}
	if (k >= nodes)
		return value_refuse(c, CONFIG_AS_NODE, 0, err,
				    "there is no node %llu among %u nodes: they are "
				    "counted from 0",
				    (unsigned long long)k, nodes);
	c->as_node = (uint32_t)k;
	return 0;
}

static int check_real(struct config *c, struct err *err)
{
	char where[VALUE_WHERE_MAX];
	int r = check_as_node(c, err);

	if (r < 0)
		return r;
	free(c->real);
	c->real = NULL;
	if (!config_text(c, CONFIG_REAL)) {
		c->n_real = c->topology.gpus_per_node;
		c->real = calloc(c->n_real, sizeof(*c->real));
		if (!c->real)
			return err_set(err, ENOMEM, "out of memory");
		for (size_t i = 0; i < c->n_real; i++)
			c->real[i] = c->as_node * c->topology.gpus_per_node + (uint32_t)i;
		return 0;
	}
	r = units_ranks(config_text(c, CONFIG_REAL), c->world, &c->real, &c->n_real, err);
	if (r == -ERANGE)
		return value_refuse(
			c, CONFIG_REAL, 0, err,
			"real ranks '%.64s' are outside the world of %u (%u nodes x %u, %s)",
			config_text(c, CONFIG_REAL), c->world, c->topology.n_nodes,
			c->topology.gpus_per_node,
			config_where(c, CONFIG_NODES, 0, where, sizeof(where)));
	return r < 0 ? value_refuse_text(c, CONFIG_REAL, err) : 0;
}

/* A layout that a former run was declared with follows the nodes of this one. */
static int grow_layout(struct config *c, size_t item, struct err *err)
{
	struct config_item *of = &c->values[CONFIG_LAYOUT].items[item];
	char text[LAYOUT_TEXT_MAX];
	struct layout l;
	char *grown;
	int r;

	if (!c->is_of_run || c->values[CONFIG_LAYOUT].source != SOURCE_FILE ||
	    layout_parse(of->text, c->world, &l, NULL) == 0)
		return 0;
	r = layout_grow(of->text, c->world, text, err);
	grown = r == 0 ? strdup(text) : NULL;
	if (!grown)
		return r < 0 ? r : err_set(err, ENOMEM, "out of memory");
	free(of->text);
	of->text = grown;
	return 0;
}

static int check_layouts(struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_LAYOUT];
	struct err why = {""};
	char name[64];

	c->n_layouts = 0;
	if (v->n_items > CONFIG_LAYOUTS_MAX)
		return value_refuse(c, CONFIG_LAYOUT, CONFIG_LAYOUTS_MAX, err,
				    "more than %d layouts; give the dense and the expert one",
				    CONFIG_LAYOUTS_MAX);
	for (size_t i = 0; i < v->n_items; i++) {
		if (grow_layout(c, i, &why) < 0 ||
		    layout_parse(v->items[i].text, c->world, &c->layouts[i], &why) < 0)
			return value_refuse(c, CONFIG_LAYOUT, i, err, "%s%s",
					    value_name(c, CONFIG_LAYOUT, name, sizeof(name)),
					    why.text);
		if (value_is_again(v, i))
			return value_refuse(c, CONFIG_LAYOUT, i, err, "%s is given twice",
					    v->items[i].text);
		c->n_layouts++;
	}
	return 0;
}

static int check_classes(struct config *c, struct err *err)
{
	struct err why;
	int r;

	classes_deinit(&c->classes);
	r = classes_make(config_text(c, CONFIG_CLASSES), c->layouts, c->n_layouts, c->fabric,
			 c->world, c->topology.gpus_per_node, &c->classes, &why);
	return r < 0 ? value_refuse(c, CONFIG_CLASSES, 0, err, "%s", why.text) : 0;
}

static int check_data_for(struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_DATA_FOR];
	struct err why;

	free(c->data_for);
	c->n_data_for = 0;
	c->data_for = calloc(v->n_items + 1, sizeof(*c->data_for));
	if (!c->data_for)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < v->n_items; i++) {
		struct data_for *f = &c->data_for[c->n_data_for];

		if (data_for_parse(v->items[i].text, c->layouts, c->n_layouts, f, &why))
			return value_refuse(c, CONFIG_DATA_FOR, i, err, "%s", why.text);
		for (size_t j = 0; j < c->n_data_for; j++)
			if (c->data_for[j].kind == f->kind && !strcmp(c->data_for[j].axes, f->axes))
				return value_refuse(
					c, CONFIG_DATA_FOR, i, err,
					"a second policy for the same; there was '%s' before",
					v->items[j].text);
		c->n_data_for++;
	}
	return 0;
}

static int check_bandwidth(struct config *c, enum option_id id, double *ret_bytes_per_ns,
			   struct err *err)
{
	if (config_text(c, id) && units_bandwidth(config_text(c, id), ret_bytes_per_ns, err) < 0)
		return value_refuse_text(c, id, err);
	return 0;
}

/* A ratio of at least @least. */
static int check_ratio(struct config *c, enum option_id id, double least, double *ret,
		       struct err *err)
{
	double x;

	if (!config_text(c, id))
		return 0;
	if (units_ratio(config_text(c, id), &x, err) < 0)
		return value_refuse_text(c, id, err);
	if (!(x >= least && x <= RATIO_MAX))
		return value_refuse(c, id, 0, err, "%s %.32s: from %g to %g", options[id].name,
				    config_text(c, id), least, RATIO_MAX);
	*ret = x;
	return 0;
}

static int check_hop(struct config *c, enum option_id latency, enum option_id bandwidth,
		     struct hop_cost *hop, struct err *err)
{
	int r = value_time(c, latency, WAIT_MAX_NS, &hop->latency_ns, err);

	return r < 0 ? r : check_bandwidth(c, bandwidth, &hop->bytes_per_ns, err);
}

/* --- schedules ------------------------------------------------------------ */

static int check_algo(struct config *c, size_t item, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_ALGO];
	const char *text = v->items[item].text, *eq = strchr(text, '=');
	const char *names[COLL_KINDS + SCHED_ALGOS];
	char name[32], near[96];
	int kind, algo, r;

	for (int i = 0; i < COLL_KINDS; i++)
		names[i] = coll_kind_name((uint32_t)i);
	for (int i = 0; i < SCHED_ALGOS; i++)
		names[COLL_KINDS + i] = sched_algo_name((uint32_t)i);
	if (!eq)
		return value_refuse(c, CONFIG_ALGO, item, err,
				    "'%.64s' is no KIND=ALGO, such as allreduce=tree", text);
	snprintf(name, sizeof(name), "%.*s", (int)(eq - text), text);
	kind = coll_kind_parse(name);
	if (kind < 0) {
		did_you_mean(name, names, COLL_KINDS, near, sizeof(near));
		return value_refuse(c, CONFIG_ALGO, item, err, "unknown collective '%s'%s", name,
				    near[0] ? near : "; there are allreduce, allgather, ...");
	}
	algo = sched_algo_parse(eq + 1);
	if (algo < 0) {
		did_you_mean(eq + 1, names + COLL_KINDS, SCHED_ALGOS, near, sizeof(near));
		return value_refuse(c, CONFIG_ALGO, item, err, "unknown algorithm '%.32s'%s",
				    eq + 1,
				    near[0] ? near : "; there are ring, tree, direct, chain");
	}
	if (kind != COLL_SENDRECV) {
		struct sched s = {.kind = (enum coll_kind)kind,
				  .algo = (enum sched_algo)algo,
				  .n_ranks = 2,
				  .ranks_per_node = 1,
				  .n_channels = 1,
				  .elem_bytes = 4,
				  .bytes = 1024};
		struct err why = {""};

		r = sched_init(&s, &why);
		if (r < 0)
			return value_refuse(c, CONFIG_ALGO, item, err, "%s", why.text);
	} else if (algo != SCHED_DIRECT) {
		return value_refuse(c, CONFIG_ALGO, item, err, "SendRecv is always direct");
	}
	for (size_t i = 0; i < item; i++) {
		size_t len = strcspn(v->items[i].text, "=");

		snprintf(name, sizeof(name), "%.*s", (int)len, v->items[i].text);
		if (coll_kind_parse(name) == kind)
			return value_refuse(c, CONFIG_ALGO, item, err,
					    "a second algorithm for %s; there was '%s' before",
					    coll_kind_name((uint32_t)kind), v->items[i].text);
	}
	c->algo[kind] = (uint8_t)algo;
	c->has_algo[kind] = true;
	return 0;
}

static int check_schedule(struct config *c, struct err *err)
{
	uint64_t channels = 0;
	int r;

	for (int k = 0; k < COLL_KINDS; k++)
		c->algo[k] = (uint8_t)sched_default_algo((enum coll_kind)k);
	for (size_t i = 0; i < c->values[CONFIG_ALGO].n_items; i++)
		if ((r = check_algo(c, i, err)) < 0)
			return r;
	r = value_count(c, CONFIG_CHANNELS, 1, SCHED_MAX_CHANNELS, &channels, err);
	if (r < 0)
		return r;
	c->channels = (uint32_t)channels;
	if (units_bytes(config_text(c, CONFIG_CHUNK), &c->chunk_bytes, err) < 0)
		return value_refuse_text(c, CONFIG_CHUNK, err);
	/* 16: the largest element (8 bytes) twice, so that a step is never empty */
	if (c->chunk_bytes < 16 || c->chunk_bytes > (UINT64_C(1) << 30))
		return value_refuse(c, CONFIG_CHUNK, 0, err, "chunk must be 16B to 1GiB, not %s",
				    config_text(c, CONFIG_CHUNK));
	return 0;
}

static int check_steps(struct config *c, struct err *err)
{
	struct err why;

	c->steps = (struct step_rule){.n_ops = 0};
	if (config_text(c, CONFIG_STEPS) &&
	    step_rule_parse(config_text(c, CONFIG_STEPS), &c->steps, &why) < 0)
		return value_refuse(c, CONFIG_STEPS, 0, err, "%s", why.text);
	if (data_for_check_axes(c->steps.target.communicator, c->layouts, c->n_layouts, &why) < 0)
		return value_refuse(c, CONFIG_STEPS, 0, err, "%s", why.text);
	return 0;
}

static int check_expects(struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_EXPECT];
	struct err why;

	free(c->expects);
	c->n_expects = 0;
	if (v->n_items > CONFIG_EXPECTS_MAX)
		return value_refuse(c, CONFIG_EXPECT, CONFIG_EXPECTS_MAX, err,
				    "more than %d expectations", CONFIG_EXPECTS_MAX);
	c->expects = calloc(v->n_items + 1, sizeof(*c->expects));
	if (!c->expects)
		return err_set(err, ENOMEM, "out of memory");
	for (; c->n_expects < v->n_items; c->n_expects++)
		if (expect_parse(v->items[c->n_expects].text, &c->expects[c->n_expects], &why) < 0)
			return value_refuse(c, CONFIG_EXPECT, c->n_expects, err, "%s", why.text);
	return 0;
}

/* --- the rest ------------------------------------------------------------- */

/* Of what-ifs that name ranks: racks become nodes. */
static int name_nodes(struct config *c, struct err *err)
{
	struct config_value *v = &c->values[CONFIG_WHAT_IF];

	for (size_t i = 0; i < v->n_items; i++) {
		struct err why;
		char *text;

		if (link_change_is_one(v->items[i].text) || resharding_is_one(v->items[i].text))
			continue;
		if (rack_nodes(v->items[i].text, c->fabric, &text, &why) < 0)
			return value_refuse(c, CONFIG_WHAT_IF, i, err, "%s", why.text);
		if (!text)
			continue;
		free(v->items[i].text);
		v->items[i].text = text;
	}
	return 0;
}

static int check_model(struct config *c, struct err *err)
{
	const struct config_value *v = &c->values[CONFIG_WHAT_IF];

	c->model = config_text(c, CONFIG_MODEL);
	c->links = config_text(c, CONFIG_LINKS);
	if (!c->model[0])
		return value_refuse(c, CONFIG_MODEL, 0, err,
				    "no model is named; `nbox models` lists them");
	free(c->what_ifs);
	failures_free(c->failures, c->n_failures);
	link_changes_free(c->link_changes, c->n_link_changes);
	reshardings_free(c->reshardings, c->n_reshardings);
	c->n_what_ifs = c->n_failures = c->n_link_changes = c->n_reshardings = 0;
	c->what_ifs = calloc(v->n_items + 1, sizeof(*c->what_ifs));
	c->failures = calloc(v->n_items + 1, sizeof(*c->failures));
	c->link_changes = calloc(v->n_items + 1, sizeof(*c->link_changes));
	c->reshardings = calloc(v->n_items + 1, sizeof(*c->reshardings));
	if (!c->what_ifs || !c->failures || !c->link_changes || !c->reshardings)
		return err_set(err, ENOMEM, "out of memory");
	if (name_nodes(c, err) < 0)
		return -EINVAL;
	for (size_t i = 0; i < v->n_items; i++) {
		const char *text = v->items[i].text;
		bool is_failure = failure_is_one(text), is_link = link_change_is_one(text);
		bool is_resharding = resharding_is_one(text);
		struct err why;
		int r = 0;

		if (strcmp(text, "none") == 0 && v->n_items == 1)
			break;
		if (!text[0])
			return value_refuse(c, CONFIG_WHAT_IF, i, err, "an empty what-if");
		if (value_is_again(v, i))
			return value_refuse(
				c, CONFIG_WHAT_IF, i, err,
				"'%.200s' is given twice: make it once as large, or leave one out",
				text);
		if (is_failure)
			r = failure_parse(text, &c->topology, &c->failures[c->n_failures], &why);
		else if (is_link)
			r = link_change_parse(text, c->fabric, &c->link_changes[c->n_link_changes],
					      &why);
		else if (is_resharding)
			r = resharding_parse(text, &c->topology, c->fabric,
					     &c->reshardings[c->n_reshardings], &why);
		else
			c->what_ifs[c->n_what_ifs++] = text;
		if (r < 0)
			return value_refuse(c, CONFIG_WHAT_IF, i, err, "%s", why.text);
		c->n_failures += is_failure;
		c->n_link_changes += is_link;
		c->n_reshardings += is_resharding;
		if (!c->steps.n_ops &&
		    ((is_failure && c->failures[c->n_failures - 1].at.is_steps) ||
		     (is_link && when_has_steps(&c->link_changes[c->n_link_changes - 1].when))))
			return value_refuse(c, CONFIG_WHAT_IF, i, err, CONFIG_NEEDS_STEPS, text);
	}
	return 0;
}

static int check_alltoall(struct config *c, struct err *err)
{
	const char *file = config_text(c, CONFIG_ALLTOALL);
	CLEANUP(freep) char *text = NULL;
	struct err why;
	size_t n;
	int r;

	free(c->alltoall);
	c->alltoall = NULL;
	if (!file || strcmp(file, "none") == 0)
		return 0;
	r = file_read(file, ALLTOALL_BYTES_MAX, &text, &n, &why);
	r = r < 0 ? r : skew_read(file, text, &c->alltoall, &c->n_alltoall, &why);
	return r < 0 ? value_refuse(c, CONFIG_ALLTOALL, 0, err, "%s", why.text) : 0;
}

static int check_choices(struct config *c, struct err *err)
{
	int data = 0, split = 0, work = 0, memory = 0, level = 0, r;
	char where[VALUE_WHERE_MAX];

	if ((r = check_exchange(c, err)) < 0 ||
	    (r = value_choice(c, CONFIG_DATA, &data, err)) < 0 ||
	    (r = value_choice(c, CONFIG_SPLIT, &split, err)) < 0 ||
	    (r = value_choice(c, CONFIG_PAYLOAD_WORK, &work, err)) < 0 ||
	    (r = value_choice(c, CONFIG_PAYLOAD_MEMORY, &memory, err)) < 0 ||
	    (r = value_choice(c, CONFIG_LOG, &level, err)) < 0)
		return r;
	if (c->n_reshardings && c->exchange != EXCHANGE_NONE && !c->is_of_run)
		return value_refuse(c, CONFIG_EXCHANGE, 0, err,
				    "'%.64s': a plan's times have no messages that could cross the "
				    "link: --exchange none",
				    c->reshardings[0].text);
	c->data = (uint32_t)data;
	c->split = (enum split_policy)split;
	c->payload_work = (enum config_payload_work)work;
	c->payload_memory = (enum config_payload_memory)memory;
	c->log_level = level;
	for (int i = CONFIG_PAYLOAD_WORK; i <= CONFIG_PAYLOAD_MEMORY; i++)
		if (config_is_set(c, i) && c->nccl == NCCL_FULL)
			return value_refuse(
				c, i, 0, err,
				"%s means nothing with nccl full (%s): the bytes are NCCL's own",
				options[i].name,
				config_where(c, CONFIG_NCCL, 0, where, sizeof(where)));
		else if (config_is_set(c, i) && c->exchange != EXCHANGE_PAYLOAD)
			return value_refuse(
				c, i, 0, err,
				"%s means nothing without exchange payload (it is %s, %s)",
				options[i].name, wire_exchange_name(c->exchange),
				config_where(c, CONFIG_EXCHANGE, 0, where, sizeof(where)));
	return 0;
}

static int check_times(struct config *c, struct err *err)
{
	double poll = 0, settle = 0, timeout = 0;
	uint64_t seed = 0;
	int r;

	if ((r = value_time(c, CONFIG_POLL, POLL_MAX_NS, &poll, err)) < 0 ||
	    (r = value_time(c, CONFIG_SETTLE, WAIT_MAX_NS, &settle, err)) < 0 ||
	    (r = value_time(c, CONFIG_TIMEOUT, WAIT_MAX_NS, &timeout, err)) < 0 ||
	    (r = value_count(c, CONFIG_SEED, 0, UINT64_MAX, &seed, err)) < 0)
		return r;
	if (timeout < 1e9)
		return value_refuse(c, CONFIG_TIMEOUT, 0, err,
				    "timeout must be at least 1s, not %s",
				    config_text(c, CONFIG_TIMEOUT));
	if (settle > timeout)
		return value_refuse(c, CONFIG_SETTLE, 0, err,
				    "settle must not be longer than timeout");
	c->poll_ns = (uint64_t)poll;
	c->settle_ns = (uint64_t)settle;
	c->timeout_ns = (uint64_t)timeout;
	c->seed = seed;
	c->out = config_text(c, CONFIG_OUT);
	if (c->out && !c->out[0])
		return value_refuse(c, CONFIG_OUT, 0, err, "no directory is named");
	return 0;
}

static int check_rdma(struct config *c, struct err *err)
{
	char where[VALUE_WHERE_MAX];
	int r = 0;

	rdma_options_init(&c->rdma);
	for (int id = CONFIG_IB_HCA; r == 0 && id <= CONFIG_IB_POLL; id++) {
		if (!config_text(c, id))
			continue;
		r = rdma_options_set(&c->rdma, options[id].variable + strlen("NBOX_IB_"),
				     config_text(c, id), err);
		if (r < 0)
			err_prefix(err, r, "%s", config_where(c, id, 0, where, sizeof(where)));
	}
	return r;
}

int config_finish(struct config *c, struct err *err)
{
	int r;

	if ((r = config_scenario(c, err)) < 0 || (r = check_expects(c, err)) < 0 ||
	    (r = check_nodes_of_fabric(c, err)) < 0 || (r = check_world(c, err)) < 0 ||
	    (r = check_fabric(c, err)) < 0 || (r = check_real(c, err)) < 0 ||
	    (r = check_layouts(c, err)) < 0 || (r = check_classes(c, err)) < 0 ||
	    (r = check_data_for(c, err)) < 0 ||
	    (r = check_hop(c, CONFIG_INTRA_LATENCY, CONFIG_INTRA_BANDWIDTH, &c->topology.intra,
			   err)) < 0 ||
	    (r = check_hop(c, CONFIG_INTER_LATENCY, CONFIG_INTER_BANDWIDTH, &c->topology.inter,
			   err)) < 0 ||
	    (r = check_links_of_fabric(c, err)) < 0 ||
	    (r = check_bandwidth(c, CONFIG_REDUCE_BANDWIDTH, &c->topology.reduce_bytes_per_ns,
				 err)) < 0 ||
	    (r = check_ratio(c, CONFIG_GPU_SPEED, 1 / RATIO_MAX, &c->topology.gpu_speed, err)) <
		    0 ||
	    (r = check_steps(c, err)) < 0 || (r = check_model(c, err)) < 0 ||
	    (r = check_alltoall(c, err)) < 0 || (r = check_choices(c, err)) < 0 ||
	    (r = check_schedule(c, err)) < 0 || (r = check_addresses(c, err)) < 0 ||
	    (r = check_times(c, err)) < 0 || (r = check_rdma(c, err)) < 0 ||
	    (r = check_full(c, err)) < 0)
		return r;
	return 0;
}
