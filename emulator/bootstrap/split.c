/* See split.h. Members of a child are those of a color, ordered by key and then by rank in the
 * parent, as NCCL does it. A child without a real member is not made, and neither is one of a
 * single rank: that one is its own neighbour, and says nothing to anybody. */
#include "bootstrap/split.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NO_COLOR (-1) /* NCCL's: a rank that goes into no child */

struct voter {
	int32_t color, key;
	uint32_t rank;
};

static int by_color(const void *a, const void *b)
{
	const struct voter *x = a, *y = b;

	if (x->color != y->color)
		return x->color < y->color ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void freep_u32(uint32_t **p)
{
	free(*p);
}

/* node[] and template[] of the child of @v[0..n). Return: 0; -errno with the sentence. */
static int child_places(const struct bootstrap_comm *comm, const struct voter *v, uint32_t n,
			uint32_t *node, uint32_t *template, struct err *err)
{
	uint32_t *in_child CLEANUP(freep_u32) = malloc(comm_ranks(comm) * sizeof(*in_child));
	uint32_t of;

	if (!in_child)
		return err_set(err, ENOMEM, "no memory for a split of %u ranks", n);
	memset(in_child, 0xff, comm_ranks(comm) * sizeof(*in_child));
	for (uint32_t i = 0; i < n; i++)
		in_child[v[i].rank] = i;
	for (uint32_t i = 0; i < n; i++) {
		of = comm->template[v[i].rank];
		node[i] = comm->node[v[i].rank];
		template[i] = in_child[of];
		if (template[i] != UINT32_MAX)
			continue;
		return err_set(
			err, EINVAL,
			"rank %u goes into a split (color %d) without real rank %u, its template: NCCL needs the records "
			"of a real rank for each rank of a communicator. Choose a template of the same color",
			v[i].rank, v[i].color, of);
	}
	return 0;
}

static int child_make(struct bootstrap_comm *comm, const struct voter *v, uint32_t n,
		      struct err *err)
{
	uint32_t *node CLEANUP(freep_u32) = malloc(n * sizeof(*node));
	uint32_t *template CLEANUP(freep_u32) = malloc(n * sizeof(*template));
	uint64_t *magics CLEANUP(freep) = calloc(1, sizeof(*magics));
	struct bootstrap_comm *child;
	int r;

	if (!node || !template || !magics)
		return err_set(err, ENOMEM, "no memory for a split of %u ranks", n);
	r = child_places(comm, v, n, node, template, err);
	if (r < 0)
		return r;
	r = comm_make(comm->all, comm->records, n, node, template, &child, err);
	if (r < 0)
		return err_prefix(err, r, "a split (color %d) makes no communicator", v->color);
	node = template = NULL;
	child->magics = steal_ptr(magics);
	child->parent = comm;
	for (uint32_t k = 0; k < child->n_real; k++) {
		struct member *m = comm_real_member(comm, v[child->members[k].rank].rank);

		m->child = child;
		m->child_member = k;
		m->child_next = v[(child->members[k].rank + 1) % n].rank;
	}
	if (comm->all->sink->child)
		comm->all->sink->child(comm->all->ctx, comm, child);
	return 0;
}

/* @v: sorted by color. Return: 0; -errno with the sentence. */
static int children_make(struct bootstrap_comm *comm, const struct voter *v, uint32_t n,
			 struct err *err)
{
	bool is_real;
	int r = 0;

	for (uint32_t at = 0, end; at < n && r == 0; at = end) {
		is_real = false;
		for (end = at; end < n && v[end].color == v[at].color; end++)
			is_real |= comm_real_member(comm, v[end].rank) != NULL;
		if (is_real && v[at].color != NO_COLOR && end - at > 1)
			r = child_make(comm, v + at, end - at, err);
	}
	return r;
}

/* Have all real ranks come out of the split before? */
static bool split_is_free(struct bootstrap_comm *comm, struct err *err)
{
	for (uint32_t k = 0; k < comm->n_real; k++) {
		if (comm->members[k].child) {
			err_set(err, EBUSY,
				"rank %u has not yet begun in its part of the split before: splits come one after the other",
				comm->members[k].rank);
			return false;
		}
	}
	return true;
}

static void split_make(struct bootstrap_comm *comm, const int32_t *color, const int32_t *key)
{
	uint32_t n = comm_ranks(comm);
	struct voter *v CLEANUP(freep) = malloc(n * sizeof(*v));
	struct err err = {""};

	if (!v) {
		comm_no_memory(comm);
		return;
	}
	for (uint32_t r = 0; r < n; r++)
		v[r] = (struct voter){color[r], key[r], r};
	qsort(v, n, sizeof(*v), by_color);
	if (children_make(comm, v, n, &err) < 0)
		comm_fail(comm, "%s", err.text);
}

/* Asks for the votes of virtual ranks. Return: 0; -1: @comm has failed. */
static int ask_votes(struct bootstrap_comm *comm, int32_t *color, int32_t *key)
{
	struct err err = {""};

	if (!comm->all->sink->votes) {
		comm_fail(comm, "ncclCommSplit: nobody says how virtual ranks vote");
		return -1;
	}
	if (comm->all->sink->votes(comm->all->ctx, comm, color, key, &err) < 0) {
		comm_fail(comm, "%s", err.text);
		return -1;
	}
	return 0;
}

void split_votes(struct bootstrap_comm *comm, struct gather *g)
{
	const struct record_split *s = &comm->records->split;
	bool has_colors = s->n_gathers == 1 || g->contact == 0;
	bool has_keys = s->n_gathers == 1 || g->contact == 1;
	struct err err = {""};

	if (!split_is_free(comm, &err)) {
		comm_fail(comm, "%s", err.text);
		return;
	}
	g->color = calloc(comm_ranks(comm), sizeof(*g->color));
	g->key = calloc(comm_ranks(comm), sizeof(*g->key));
	if (!g->color || !g->key) {
		comm_no_memory(comm);
		return;
	}
	if (comm->color)
		memcpy(g->color, comm->color, comm_ranks(comm) * sizeof(*g->color));
	for (uint32_t k = 0; k < comm->n_real; k++) {
		const uint8_t *record = g->records + (size_t)k * g->bytes;
		uint32_t rank = comm->members[k].rank;

		if (has_colors)
			g->color[rank] = record_int(record, s->color);
		if (has_keys)
			g->key[rank] = record_int(record, s->key);
	}
	if (ask_votes(comm, g->color, g->key) < 0)
		return;
	if (comm->color)
		memcpy(g->color, comm->color, comm_ranks(comm) * sizeof(*g->color));
	free(steal_ptr(comm->color));
	if (has_keys) {
		split_make(comm, g->color, g->key);
		return;
	}
	comm->color = malloc(comm_ranks(comm) * sizeof(*comm->color));
	if (!comm->color)
		comm_no_memory(comm);
	else
		memcpy(comm->color, g->color, comm_ranks(comm) * sizeof(*comm->color));
}

int bootstrap_comm_shrink(struct bootstrap_comm *parent, const uint32_t *excluded, size_t n,
			  struct err *err)
{
	struct voter *v CLEANUP(freep) = malloc(comm_ranks(parent) * sizeof(*v));
	uint32_t left = 0;
	size_t i = 0;

	if (!v)
		return err_set(err, ENOMEM, "no memory for a communicator");
	if (parent->is_over)
		return err_set(err, EPIPE, "the communicator to shrink has ended");
	if (!comm_is_made(parent))
		return err_set(err, EBUSY, "the communicator to shrink is not made yet");
	if (!split_is_free(parent, err))
		return -EBUSY;
	for (uint32_t r = 0; r < comm_ranks(parent); r++) {
		if (i < n && excluded[i] == r)
			i++;
		else
			v[left++] = (struct voter){0, 0, r};
	}
	if (i < n || n == 0 || left == 0)
		return err_set(
			err, EINVAL,
			"the ranks to leave out of a communicator of %u: ascending, at least one, not all",
			comm_ranks(parent));
	return children_make(parent, v, left, err);
}
