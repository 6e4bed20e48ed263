/* See worlds.h. */
#include "replay/worlds.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Which world a record is of; w->n: a new one. */
static size_t world_of(const struct worlds *w, const struct record *rec)
{
	size_t i = 0;

	while (i < w->n && w->recs[i]->header.n_nodes != rec->header.n_nodes)
		i++;
	return i;
}

/* The records of the world number @world as one. */
static int merge(struct worlds *w, const struct record *const *recs, size_t n, size_t world,
		 struct err *err)
{
	CLEANUP(freep) const struct record **own = calloc(n, sizeof(*own));
	size_t n_own = 0;
	int r;

	if (!own)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		if (world_of(w, recs[i]) == world)
			own[n_own++] = recs[i];
	if (n_own == 1)
		return 0;
	r = merge_records(own, n_own, &w->merged[world], err);
	if (r == 0)
		w->recs[world] = &w->merged[world];
	return r;
}

int worlds_make(const struct record *const *recs, size_t n, struct worlds *ret, struct err *err)
{
	int r = 0;

	*ret = (struct worlds){.n = 0};
	for (size_t i = 0; i < n; i++) {
		if (recs[i]->header.gpus_per_node != recs[0]->header.gpus_per_node)
			return err_set(err, EINVAL,
				       "--with: that run has nodes of %u GPUs, and the first of %u",
				       recs[i]->header.gpus_per_node,
				       recs[0]->header.gpus_per_node);
		if (world_of(ret, recs[i]) < ret->n)
			continue;
		if (ret->n == WORLDS_MAX)
			return err_set(err, E2BIG, "--with: runs of more than %d worlds",
				       WORLDS_MAX);
		ret->recs[ret->n++] = recs[i];
	}
	for (size_t i = 0; i < ret->n && r == 0; i++)
		r = merge(ret, recs, n, i, err);
	return r < 0 ? r : sizes_match(ret->recs[0], ret->recs + 1, ret->n - 1, &ret->sizes, err);
}

void worlds_deinit(struct worlds *w)
{
	sizes_deinit(&w->sizes);
	for (size_t i = 0; i < w->n; i++)
		record_deinit(&w->merged[i]);
}
