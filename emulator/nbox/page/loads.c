/* See loads.h. */
#include "nbox/page/loads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "contention/usage.h"
#include "nbox/ask/ask.h"
#include "nbox/doctor/paths.h"

#define KINDS_MAX 64 /* of ops of an iteration that are not alike */

struct alike {
	const struct record_op *op;
	double n;
};

static size_t find_alike(const struct view *v, struct alike ret[KINDS_MAX])
{
	const struct step *s = v->shown ? &v->steps.list[v->shown - 1] : NULL;
	size_t n = 0;

	for (uint64_t i = s ? s->first : 0; i < (s ? s->end : v->n_ops); i++) {
		const struct record_op *op = &v->ops[i];
		size_t k = 0;

		while (k < n && (ret[k].op->comm != op->comm || ret[k].op->kind != op->kind ||
				 ret[k].op->bytes != op->bytes || ret[k].op->root != op->root))
			k++;
		if (k == KINDS_MAX || op->kind == COLL_SENDRECV)
			continue;
		if (k == n)
			ret[n++] = (struct alike){.op = op};
		ret[k].n++;
	}
	return n;
}

static int add(struct loads *l, const struct usage *u, double times)
{
	struct load *grown = reallocarray(l->list, l->n + u->n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	l->list = grown;
	for (uint32_t i = 0; i < u->n; i++)
		l->list[l->n++] = (struct load){u->links[i].link, times * u->links[i].bytes,
						u->links[i].capacity};
	return 0;
}

static int by_link(const void *pa, const void *pb)
{
	const struct load *a = pa, *b = pb;

	return (a->link > b->link) - (a->link < b->link);
}

/* One for each link. */
static void merge(struct loads *l)
{
	size_t kept = 0;

	if (l->n)
		qsort(l->list, l->n, sizeof(*l->list), by_link);
	for (size_t i = 0; i < l->n; i++)
		if (kept && l->list[kept - 1].link == l->list[i].link)
			l->list[kept - 1].bytes += l->list[i].bytes;
		else
			l->list[kept++] = l->list[i];
	l->n = kept;
}

static int add_ops(struct ask *a, const struct view *v, struct loads *l)
{
	struct alike alike[KINDS_MAX];
	size_t n = find_alike(v, alike);
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct record_op *op = alike[i].op;
		const struct record_comm *of = op->of;
		const struct membership m = {of->n_ranks, of->base, of->stride,
					     of->n_members ? of->members : NULL};
		struct usage *u = NULL;

		r = ask_usage(a, &m, (enum coll_kind)op->kind, op->bytes,
			      (uint32_t)coll_dtype_bytes(op->dtype), op->root, &u, NULL);
		if (r == 0)
			r = add(l, u, alike[i].n);
		usage_unref(u);
	}
	return r;
}

/* The folder of a run may be somebody else's, and a model that is a path is a program of theirs. */
static bool is_ours(const struct config *c)
{
	bool is_path = strchr(c->model, '/') || (c->links && strchr(c->links, '/'));

	for (size_t i = 0; i < c->n_what_ifs; i++)
		is_path |= strchr(c->what_ifs[i], '/') != NULL;
	return !is_path;
}

int loads_find(const struct config *c, const struct view *v, struct loads *ret)
{
	CLEANUP(loads_deinit) struct loads l = {0};
	struct ask *a = NULL;
	struct paths paths;
	int r;

	*ret = l;
	if (!c->fabric || !is_ours(c) || paths_find(&paths, PATHS_MODELS, NULL) < 0 ||
	    ask_open(c, paths.models, &a, NULL) < 0)
		return 0;
	r = add_ops(a, v, &l);
	ask_close(a);
	if (r == 0) {
		merge(&l);
		*ret = l;
		l = (struct loads){0};
	}
	return r == -ENOMEM ? r : 0;
}

void loads_deinit(struct loads *l)
{
	free(l->list);
}

const struct load *loads_of_link(const struct loads *l, uint64_t link)
{
	const struct load key = {.link = link};

	return l->n ? bsearch(&key, l->list, l->n, sizeof(key), by_link) : NULL;
}
