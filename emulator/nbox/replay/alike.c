/* See alike.h. Each rank has a label, at first by its template and what it computes. A label is cut
 * where the labels of those that it plays ops with differ from those of its template's, until none
 * is cut any more. */
#include "nbox/replay/alike.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/cleanup.h"
#include "schedule/coll.h"
#include "topology/template.h"

/* --- groups ----------------------------------------------------------------------------------- */

bool alike_group_of(const struct config *c, const struct record_comm *of, uint32_t rank,
		    struct alike_group *ret)
{
	const struct cluster cluster = {.topology = &c->topology,
					.real = c->real,
					.n_real = c->n_real,
					.layouts = c->layouts,
					.n_layouts = c->n_layouts};

	ret->members = (struct membership){of->n_ranks, of->base, of->stride,
					   of->n_members ? of->members : NULL};
	if (membership_rank(&ret->members, rank) >= 0) {
		ret->is_image = false;
		return true;
	}
	ret->is_image = image_of(&cluster, &ret->members, members_axes(&cluster, &ret->members),
				 rank, &ret->image) == 0;
	return ret->is_image;
}

uint32_t alike_group_at(const struct alike_group *g, uint32_t number)
{
	return g->is_image ? radix_at(&g->image, number) : membership_world(&g->members, number);
}

int64_t alike_group_find(const struct alike_group *g, uint32_t rank)
{
	return g->is_image ? radix_find(&g->image, rank) : membership_rank(&g->members, rank);
}

uint32_t alike_peer(const struct alike_group *g, uint32_t caller, uint32_t peer, uint32_t rank)
{
	int64_t own = alike_group_find(g, rank);
	uint32_t n = g->members.n_ranks;

	return own < 0 ? UINT32_MAX
		       : alike_group_at(g, (uint32_t)(((uint64_t)own + peer + n - caller) % n));
}

bool alike_is_alltoall(const struct record_op *op)
{
	return op->kind == COLL_SENDRECV && op->of->n_ranks > 2 &&
	       op->n_calls + 2 >= 2 * op->of->n_ranks;
}

/* --- labels ----------------------------------------------------------------------------------- */

struct finder {
	const struct record *rec;
	const struct config *c;
	struct alike *a;
	uint32_t *label, *next; /* owned; by world rank */
	uint32_t n_labels;
	struct call {
		const struct record_comm *of;
		uint32_t caller, peer, world_rank;
	} * calls; /* owned; those that differ */
	uint32_t n_calls;
};

static void finder_deinit(struct finder *f)
{
	free(f->label);
	free(f->next);
	free(f->calls);
}

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h + 1) * UINT64_C(0x9e3779b97f4a7c15); /* small numbers must not meet in the sum */
	h = ((h ^ h >> 29) + value) * UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ h >> 32;
}

/* Numbers for the pairs of label and @cut; those of no cut stay apart from those of one. */
static int relabel(struct finder *f, const uint64_t *cut)
{
	struct number_table t = {.n = 0};
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->a->world; i++) {
		uint32_t *number = number_table_at(&t, mix(cut[i], f->label[i]) | 1);

		if (!number) {
			number_table_deinit(&t);
			return -ENOMEM;
		}
		if (!*number)
			*number = ++n;
		f->next[i] = *number;
	}
	number_table_deinit(&t);
	memcpy(f->label, f->next, f->a->world * sizeof(*f->label));
	f->n_labels = n;
	return 0;
}

/* Images whose members have other labels than those of the communicator. */
static int cut_images(struct finder *f, const struct record_comm *of, uint64_t *cut)
{
	CLEANUP(bitmap_deinit) struct bitmap met = {0};
	uint32_t world = f->a->world;

	if (bitmap_init(&met, world) < 0)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < world; rank++) {
		struct alike_group g;
		bool is_alike = true, is_played = true; /* by ranks that copy members */
		uint64_t h = mix(of->number, 1);

		if (bitmap_test(&met, rank) || !alike_group_of(f->c, of, rank, &g) || !g.is_image)
			continue;
		for (uint32_t k = 0; k < of->n_ranks; k++) {
			uint32_t member = alike_group_at(&g, k), was = f->a->template[member];

			bitmap_set(&met, member);
			h = mix(h, f->label[member]);
			is_alike &= f->label[member] == f->label[membership_world(&g.members, k)];
			is_played &= was != member && membership_rank(&g.members, was) >= 0;
		}
		is_alike |= !is_played;
		for (uint32_t k = 0; k < of->n_ranks && !is_alike; k++) {
			uint32_t member = alike_group_at(&g, k);

			cut[member] = mix(cut[member], h);
		}
	}
	return 0;
}

/* Ranks whose peers have other labels than those of their templates. */
static void cut_peers(struct finder *f, uint64_t *cut)
{
	for (uint32_t rank = 0; rank < f->a->world; rank++) {
		for (uint32_t i = 0; i < f->n_calls; i++) {
			const struct call *call = &f->calls[i];
			struct alike_group g;
			uint32_t peer, was;

			if (f->a->template[rank] != call->world_rank || call->world_rank == rank ||
			    !alike_group_of(f->c, call->of, rank, &g))
				continue;
			peer = alike_peer(&g, call->caller, call->peer, rank);
			was = membership_world(&g.members, call->peer);
			if (peer != UINT32_MAX && f->label[peer] != f->label[was])
				cut[rank] = mix(mix(cut[rank], i), f->label[peer]);
		}
	}
}

/* The calls of real ranks, each once. */
static int find_calls(struct finder *f)
{
	struct number_table t = {.n = 0};
	uint32_t capacity = 0;
	int r = 0;

	for (uint64_t i = 0; i < f->rec->n_ops && r == 0; i++) {
		const struct record_op *op = &f->rec->ops[i];

		for (uint32_t k = 0; op->kind == COLL_SENDRECV && !alike_is_alltoall(op) &&
				     k < op->n_calls && r == 0;
		     k++) {
			uint32_t peer = op->calls[k].peer;
			uint64_t key = (uint64_t)(op->of - f->rec->comms + 1) << 44 |
				       (uint64_t)op->rank << 22 | peer;
			uint32_t *known = number_table_at(&t, key);

			if (known && *known)
				continue;
			if (known && f->n_calls == capacity) {
				struct call *grown;

				capacity = capacity ? 2 * capacity : 16;
				grown = realloc(f->calls, capacity * sizeof(*grown));
				f->calls = grown ? grown : f->calls;
				known = grown ? known : NULL;
			}
			if (known) {
				*known = 1;
				f->calls[f->n_calls++] =
					(struct call){op->of, op->rank, peer, op->world_rank};
			}
			r = known ? 0 : -ENOMEM;
		}
	}
	number_table_deinit(&t);
	return r;
}

static int find_labels(struct finder *f, const struct computed *computed)
{
	CLEANUP(freep) uint64_t *cut = calloc((size_t)f->a->world + 1, sizeof(*cut));
	uint32_t before;
	int r = cut ? find_calls(f) : -ENOMEM;

	for (uint32_t i = 0; i < f->a->world && r == 0; i++) {
		f->label[i] = f->a->template[i];
		cut[i] = computed->of[i];
	}
	r = r < 0 ? r : relabel(f, cut);
	do {
		before = f->n_labels;
		if (r == 0)
			memset(cut, 0, f->a->world * sizeof(*cut));
		for (uint64_t i = 0; i < f->rec->n_comms && r == 0; i++)
			r = cut_images(f, &f->rec->comms[i], cut);
		if (r == 0)
			cut_peers(f, cut);
		r = r < 0 ? r : relabel(f, cut);
	} while (r == 0 && f->n_labels > before);
	return r;
}

/* --- who stands for whom ---------------------------------------------------------------------- */

static uint32_t distance(const struct alike *a, uint32_t rank)
{
	uint32_t was = a->template[rank];

	return rank > was ? rank - was : was - rank;
}

/* The one that is nearest to its template, such as this itself: of ranks that have ops together all
 * or none are. */
static int stand(struct finder *f)
{
	struct alike *a = f->a;
	CLEANUP(freep) uint32_t *of = malloc(((size_t)f->n_labels + 2) * sizeof(*of));

	a->apart = malloc(((size_t)f->n_labels + 1) * sizeof(*a->apart));
	if (!of || !a->apart)
		return -ENOMEM;
	memset(of, 0xff, ((size_t)f->n_labels + 2) * sizeof(*of));
	for (uint32_t rank = 0; rank < a->world; rank++) {
		uint32_t *best = &of[f->label[rank]];

		if (*best == UINT32_MAX || distance(a, rank) < distance(a, *best))
			*best = rank;
	}
	for (uint32_t rank = 0; rank < a->world; rank++) {
		a->as[rank] = of[f->label[rank]];
		if (a->as[rank] == rank && a->template[rank] != rank)
			a->apart[a->n_apart++] = rank;
	}
	return 0;
}

static int find_templates(const struct config *c, struct alike *a)
{
	const struct membership world = {.n_ranks = c->world, .stride = 1};
	CLEANUP(templates_deinit) struct templates t = {0};
	int r = templates_init(&t, &world, c->topology.gpus_per_node, c->classes.of, c->real,
			       (uint32_t)c->n_real);

	a->template = malloc(((size_t)c->world + 1) * sizeof(*a->template));
	a->as = malloc(((size_t)c->world + 1) * sizeof(*a->as));
	if (r < 0 || !a->template || !a->as)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->world; i++)
		a->as[i] = a->template[i] = c->real[template_of(&t, i)];
	return 0;
}

int alike_find(const struct record *rec, const struct config *c, const struct computed *computed,
	       struct alike *ret)
{
	CLEANUP(alike_deinit) struct alike a = {.world = c->world};
	CLEANUP(finder_deinit) struct finder f = {.rec = rec, .c = c, .a = &a};
	int r = find_templates(c, &a);

	if (r == 0 && computed && computed_differs(computed)) {
		f.label = malloc(((size_t)a.world + 1) * sizeof(*f.label));
		f.next = malloc(((size_t)a.world + 1) * sizeof(*f.next));
		r = f.label && f.next ? find_labels(&f, computed) : -ENOMEM;
		if (r == 0)
			r = stand(&f);
	}
	if (r < 0)
		return r;
	*ret = a;
	a = (struct alike){.world = 0};
	return 0;
}

void alike_deinit(struct alike *a)
{
	free(a->template);
	free(a->as);
	free(a->apart);
	*a = (struct alike){.world = 0};
}
