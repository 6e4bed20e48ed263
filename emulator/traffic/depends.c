/* See depends.h. */
#include "traffic/depends.h"

#include <errno.h>
#include <stdlib.h>

#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "schedule/dtree.h"
#include "traffic/conn.h"
#include "wire/wire.h"

static const char *const algorithms[] = {
	[PLUGIN_TREE] = "Tree",
	[PLUGIN_RING] = "Ring",
	[PLUGIN_COLLNET_DIRECT] = "CollNetDirect",
	[PLUGIN_COLLNET_CHAIN] = "CollNetChain",
	[PLUGIN_NVLS] = "NVLS",
	[PLUGIN_NVLS_TREE] = "NVLSTree",
	[PLUGIN_PAT] = "PAT",
	[WIRE_NCCL_DIRECT] = "sends and receives",
};

int depends_supports(const struct traffic_flow *f, const char *name, struct err *err)
{
	if (f->algorithm == PLUGIN_RING || f->algorithm == PLUGIN_TREE ||
	    f->algorithm == WIRE_NCCL_DIRECT)
		return 0;
	return err_set(err, EPROTO,
		       "%s: NCCL took the algorithm %s, which nbox does not play at virtual ranks; "
		       "set NCCL_ALGO=Ring,Tree",
		       name, f->algorithm < WIRE_NCCL_ALGORITHMS ? algorithms[f->algorithm] : "?");
}

/* --- rings and chains --------------------------------------------------------------- */

static bool is_chain(const struct op *op)
{
	return op->call.kind == COLL_BROADCAST || op->call.kind == COLL_REDUCE;
}

static int check_ring(const struct nodes *s, const struct flow *f, const char *name,
		      struct err *err)
{
	uint32_t own = s->of[f->key.rank], peer = s->of[f->key.peer];
	uint32_t want = f->key.is_send ? (own + 1) % s->n : (own + s->n - 1) % s->n;

	if (peer != want)
		return err_set(err, EPROTO,
			       "%s: NCCL's rings go from node to node, and node %u %s node %u, not "
			       "%u; are the nodes told as NCCL sees them?",
			       name, own, f->key.is_send ? "sends to" : "receives from", want,
			       peer);
	return 0;
}

static int check_loops(const struct nodes *s, const struct flow *f, const char *name,
		       struct err *err)
{
	if (f->is.n_messages % f->loop)
		return err_set(err, EPROTO,
			       "%s: %llu messages, but %s on a ring of %u ranks has a multiple of "
			       "%llu",
			       name, (unsigned long long)f->is.n_messages,
			       coll_kind_name(f->op->call.kind), s->n_ranks,
			       (unsigned long long)f->loop);
	return 0;
}

static void set_loop(const struct nodes *s, struct flow *f)
{
	f->loop = f->is.n_messages;
	if (is_chain(f->op))
		return;
	f->is_ring = true;
	f->slices = f->is.protocol == PLUGIN_SIMPLE ? 2 : 1;
	f->loop = (uint64_t)(s->n_ranks - 1) * f->slices;
	if (f->op->call.kind == COLL_ALLREDUCE)
		f->loop *= 2;
}

static bool root_is_between(const struct nodes *s, uint32_t i, uint32_t root)
{
	uint32_t node = s->of[root];

	return s->index[node] == NODES_NONE && nodes_is_between(s, i, node);
}

static int one_source(struct flow *f, uint32_t node, uint32_t peer_node)
{
	f->source = flow_source_new(1, 1);
	if (!f->source)
		return -ENOMEM;
	f->source->edges[0].node = node;
	f->source->edges[0].peer_node = peer_node;
	return 0;
}

static uint32_t *exit_of(struct depends *d, uint32_t real, uint32_t channel)
{
	return &d->exits[(uint64_t)real * FLOW_CHANNELS_MAX + channel];
}

void depends_learn_lack(struct depends *d, const struct flow *f)
{
	uint32_t own = d->nodes.index[d->nodes.of[f->key.rank]];

	*exit_of(d, nodes_before(&d->nodes, own), f->key.channel) = f->op->call.root + 1;
}

bool depends_is_unsure(const struct flow *f)
{
	return f->source && f->source->may_lack && !f->source->edges[0].flow;
}

/* Reduce, whose root is on the real node before @f's: the rank there that would send is the root,
 * and sends nothing, or another one. */
static bool is_root_exit(struct depends *d, const struct flow *f, uint32_t before, bool *ret_may_be)
{
	const struct nodes *s = &d->nodes;
	uint32_t root = f->op->call.root, exit;

	*ret_may_be = false;
	if (f->op->call.kind != COLL_REDUCE || s->of[root] != s->real[before])
		return false;
	if (s->n_on[s->of[root]] == 1)
		return true;
	if (s->n_real == 1 && f->key.rank == root)
		return false; /* who enters does not leave */
	if (s->n_real == 1 && s->n_on[s->of[root]] == 2)
		return true;
	exit = *exit_of(d, before, f->key.channel);
	*ret_may_be = exit == 0;
	return exit == root + 1;
}

static int bind_ring(struct depends *d, struct flow *f, const char *name, struct err *err)
{
	const struct nodes *s = &d->nodes;
	uint32_t own = s->index[s->of[f->key.rank]], root = f->op->call.root;
	uint32_t receiver = f->key.is_send ? nodes_after(s, own) : own;
	uint32_t before = nodes_before(s, receiver);
	bool is_cut, may_lack;
	int r;

	set_loop(s, f);
	r = check_loops(s, f, name, err);
	if (r < 0)
		return r;
	if (f->is_ring) {
		f->shift = (uint64_t)s->hops[receiver] * f->slices;
		is_cut = f->shift >= f->loop;
	} else {
		is_cut = root_is_between(s, receiver, root);
	}
	if (f->key.is_send) {
		*exit_of(d, own, f->key.channel) = f->key.rank + 1;
		if (f->op->call.kind == COLL_BROADCAST && s->of[root] == s->real[receiver] &&
		    s->n_on[s->of[root]] == 1)
			is_cut = true; /* who receives there is the root */
		f->users = is_cut ? 0 : 1;
		return 0;
	}
	if (is_cut || is_root_exit(d, f, before, &may_lack))
		return 0;
	r = one_source(f, s->real[before], (s->real[before] + 1) % s->n);
	if (r == 0)
		f->source->may_lack = !f->is_ring && may_lack;
	return r;
}

/* --- trees -------------------------------------------------------------------------- */

static int sum_source(const struct nodes *s, int tree, uint32_t above, uint32_t child,
		      struct flow_source **ret)
{
	uint32_t n = nodes_below(s, tree, above, child, NULL), *below;
	struct flow_source *source;

	if (n == 0)
		return 0;
	below = calloc(n, sizeof(*below));
	source = flow_source_new(n, above == NODES_NONE ? n : 1);
	if (!below || !source) {
		free(below);
		flow_source_unref(source);
		return -ENOMEM;
	}
	nodes_below(s, tree, above, child, below);
	for (uint32_t i = 0; i < n; i++) {
		int32_t parent, children[2];

		source->edges[i].node = s->real[below[i]];
		sched_dtree(s->n, s->real[below[i]], tree, &parent, children);
		source->edges[i].peer_node = (uint32_t)parent;
	}
	free(below);
	*ret = source;
	return 0;
}

static int tree_of(const struct depends *d, const struct flow *f)
{
	return (int)(f->key.channel / d->n_trees % 2);
}

static int check_tree(const struct depends *d, const struct flow *f, const char *name,
		      struct err *err)
{
	const struct nodes *s = &d->nodes;
	uint32_t node = s->of[f->key.rank], peer = s->of[f->key.peer];
	int32_t parent, child[2];

	if (!d->n_trees)
		return err_set(
			err, EPROTO,
			"%s: NCCL took a tree before it was told how many channels its trees "
			"have; set NCCL_ALGO=Ring",
			name);
	sched_dtree(s->n, node, tree_of(d, f), &parent, child);
	if ((int32_t)peer == parent || (int32_t)peer == child[0] || (int32_t)peer == child[1])
		return 0;
	return err_set(err, EPROTO,
		       "%s: node %u's neighbours in tree %d of %u nodes are %d above, %d and "
		       "%d below, not %u",
		       name, node, tree_of(d, f), s->n, parent, child[0], child[1], peer);
}

static int bind_tree(const struct depends *d, struct flow *f)
{
	const struct nodes *s = &d->nodes;
	uint32_t node = s->of[f->key.rank], peer = s->of[f->key.peer], own = s->index[node];
	int tree = tree_of(d, f), r = 0;
	const struct nodes_above *above = &s->above[tree][own];
	int32_t parent, child[2];

	sched_dtree(s->n, node, tree, &parent, child);
	f->loop = f->is.n_messages;
	if ((int32_t)peer == child[0] || (int32_t)peer == child[1]) {
		if (f->key.is_send)
			f->users = nodes_below(s, tree, own, peer, NULL);
		else
			r = sum_source(s, tree, own, peer, &f->source);
		return r;
	}
	if (f->key.is_send) {
		f->users = 1;
		return 0;
	}
	if (above->real != NODES_NONE)
		return one_source(f, s->real[above->real], above->child);
	if (!f->lane->top)
		r = sum_source(s, tree, NODES_NONE, 0, &f->lane->top);
	f->source = f->lane->top;
	if (f->source)
		f->source->refs++;
	return r;
}

/* --- all ---------------------------------------------------------------------------- */

static int check_lane(const struct nodes *s, const struct flow *f, const char *name,
		      struct err *err)
{
	uint32_t own = s->of[f->key.rank], peer = s->of[f->key.peer];
	const struct flow *lists[] = {f->lane->sends, f->lane->receives};

	for (int i = 0; i < 2; i++)
		for (const struct flow *o = lists[i]; o; o = o->next_in_lane) {
			if (o == f)
				continue;
			if (o->is.n_messages != f->is.n_messages ||
			    o->is.algorithm != f->is.algorithm || o->is.protocol != f->is.protocol)
				return err_set(
					err, EPROTO,
					"%s: %llu messages, algorithm %u, protocol %u; rank %u "
					"has %llu, %u and %u on this channel, and all have the "
					"same",
					name, (unsigned long long)f->is.n_messages, f->is.algorithm,
					f->is.protocol, o->key.rank,
					(unsigned long long)o->is.n_messages, o->is.algorithm,
					o->is.protocol);
			if (o->key.is_send == f->key.is_send && s->of[o->key.rank] == own &&
			    s->of[o->key.peer] == peer)
				return err_set(err, EPROTO,
					       "%s: rank %u, on the same node, has said already "
					       "that it does this on the channel",
					       name, o->key.rank);
		}
	return 0;
}

int depends_check(const struct depends *d, const struct flow *f, const char *name, struct err *err)
{
	int r = check_lane(&d->nodes, f, name, err);

	if (r < 0)
		return r;
	return f->is.algorithm == PLUGIN_RING ? check_ring(&d->nodes, f, name, err)
					      : check_tree(d, f, name, err);
}

static int check_kind(const struct flow *f, const char *name, struct err *err)
{
	uint32_t kind = f->op->call.kind;

	if (kind == COLL_ALLREDUCE || (f->is.algorithm == PLUGIN_RING &&
				       (kind == COLL_ALLGATHER || kind == COLL_REDUCESCATTER ||
					kind == COLL_BROADCAST || kind == COLL_REDUCE)))
		return 0;
	return err_set(err, EPROTO, "%s: the job called %s, and NCCL's proxy says it is a %s", name,
		       coll_kind_name(kind), algorithms[f->is.algorithm]);
}

/* Sources that wait for @f's message have it now. */
static void offer(const struct nodes *s, struct flow_source *source, struct flow *f)
{
	for (uint32_t i = 0; source && i < source->n; i++)
		if (source->edges[i].node == s->of[f->key.rank] &&
		    source->edges[i].peer_node == s->of[f->key.peer])
			source->edges[i].flow = f;
}

static void count_arrived(struct flow *f)
{
	for (uint64_t i = f->slots.first; i < f->done && i < f->slots.first + f->slots.n; i++) {
		struct slot *slot = slots_at(&f->slots, i);

		flow_see_size(f, i, slot->body ? slot->body->bytes : 0, &f->lane->sizes);
		slot->users = flow_users(f, i);
		if (slot->users)
			continue;
		traffic_body_unref(slot->body);
		slot->body = NULL;
	}
	slots_trim(&f->slots);
}

int depends_bind(struct depends *d, struct flow *f, struct err *err)
{
	char name[FLOW_NAME_MAX];
	int r;

	flow_name(&f->key, name);
	r = check_kind(f, name, err);
	if (r == 0)
		r = f->is.algorithm == PLUGIN_RING ? bind_ring(d, f, name, err) : bind_tree(d, f);
	if (r < 0)
		return r;
	f->is_bound = true;
	if (f->key.is_send) {
		count_arrived(f);
		for (struct flow *o = f->lane->receives; o; o = o->next_in_lane) {
			offer(&d->nodes, o->source, f);
			if (o->went_without && o->source->edges[0].flow == f)
				return err_set(
					err, EPROTO,
					"%s: the root's node sends, but message %llu went to "
					"rank %u without it, because nobody had said so when it "
					"was due; make the op take longer, or run another "
					"collective first",
					name, (unsigned long long)o->done - 1, o->key.rank);
		}
		return 0;
	}
	for (struct flow *o = f->lane->sends; o; o = o->next_in_lane)
		if (o->is_bound)
			offer(&d->nodes, f->source, o);
	return 0;
}

void depends_bind_late(struct flow *f)
{
	f->loop = f->is.n_messages;
	f->is_bound = true;
}

bool depends_met(const struct flow *f, struct depends_need *ret)
{
	uint64_t index;

	if (f->conn) {
		const struct flow *send = f->conn->sends;

		*ret = (struct depends_need){.flow = send, .index = send ? send->taken : 0};
		return f->conn->receives == f && send && send->done > send->taken;
	}
	index = flow_depends_on(f, f->done);
	if (index == FLOW_NO_MESSAGE)
		return true;
	for (uint32_t i = 0; i < f->source->n; i++) {
		const struct flow_edge *e = &f->source->edges[i];

		if (e->flow ? e->flow->done > index : f->source->may_lack)
			continue;
		*ret = (struct depends_need){e->node, e->peer_node, e->flow, index};
		return false;
	}
	return true;
}
