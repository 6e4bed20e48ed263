/* See maker.h. */
#include "nbox/replay/maker.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

int maker_no_memory(const struct maker *m)
{
	return m->err->text[0] ? -ENOMEM
			       : err_set(m->err, ENOMEM, "out of memory: the graph has %u ops",
					 m->to->g ? dfg_ops(m->to->g) : 0);
}

/* --- vertices and devices --------------------------------------------------------------------- */

/* The vertices since the last call are @owner's. */
int maker_own(struct maker *m, uint32_t *n_owned, uint32_t owner)
{
	uint32_t n = dfg_ops(m->to->g);

	if (n > m->to->capacity_owner) {
		uint32_t capacity = n > UINT32_MAX / 2 ? n : 2 * n;
		uint32_t *grown = realloc(m->to->owner, (size_t)capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		m->to->owner = grown;
		m->to->capacity_owner = capacity;
	}
	for (; *n_owned < n; (*n_owned)++)
		m->to->owner[*n_owned] = owner;
	return 0;
}

int maker_add_device(struct maker *m, const struct play_device *d, uint32_t *ret)
{
	struct played *to = m->to;
	int r = dfg_add_device(to->g, ret);

	if (r == 0 && *ret >= to->capacity_devices) {
		uint32_t capacity = to->capacity_devices ? 2 * to->capacity_devices : 64;
		struct play_device *grown = realloc(to->devices, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		to->devices = grown;
		to->capacity_devices = capacity;
	}
	if (r == 0)
		to->devices[*ret] = *d;
	return r;
}

int maker_device(struct maker *m, const struct play_device *d, uint32_t *ret)
{
	uint64_t key = UINT64_C(1) << 63 | (uint64_t)d->kind << 60 |
		       (uint64_t)(d->number & 0xffff) << 44 | (uint64_t)(d->rank & 0x3fffff) << 22 |
		       (d->peer & 0x3fffff);
	uint32_t *known = number_table_at(&m->devices, key), place;
	int r;

	if (!known)
		return -ENOMEM;
	if (*known) {
		*ret = *known - 1;
		return 0;
	}
	r = maker_add_device(m, d, &place);
	if (r == 0)
		*known = *ret = place, *known += 1;
	return r;
}

/* --- what would be otherwise ------------------------------------------------------------------ */

static bool is_named(const struct maker *m, const struct play_change *c, const struct job_row *row)
{
	const char *name = row->name == JOB_NONE ? NULL : m->j->names[row->name];

	return name && fnmatch(c->name, name, 0) == 0;
}

static double change(const struct play_change *c, double ns)
{
	return fmax(0, ns * c->factor + c->add_ns);
}

double maker_computed_ns(const struct maker *m, const struct job_row *row)
{
	double ns = row->ns;

	for (uint32_t i = 0; i < m->p->n_changes; i++) {
		const struct play_change *c = &m->p->changes[i];

		if (c->of == CHANGE_PLAIN && m->j->ranks[row->rank] == c->rank)
			ns = row->plain_ns;
		if ((c->of == CHANGE_COMPUTE && row->stream != JOB_NONE) ||
		    (c->of == CHANGE_RANK && row->stream != JOB_NONE &&
		     m->j->ranks[row->rank] == c->rank) ||
		    (c->of == CHANGE_NAMED && is_named(m, c, row)))
			ns = change(c, ns);
	}
	return ns;
}

/* *ret_factor: of all that the op takes; *ret_add: before that. */
void maker_changed_op(const struct maker *m, const struct job_op *op, double *ret_factor,
		      double *ret_add)
{
	*ret_factor = 1;
	*ret_add = 0;
	for (uint32_t i = 0; i < m->p->n_changes; i++) {
		const struct play_change *c = &m->p->changes[i];
		bool is_of = c->of == CHANGE_COMM ||
			     (c->of == CHANGE_STAGE && job_op_is_of_stage(m->j, op)) ||
			     (c->of == CHANGE_NAMED && coll_kind_parse(c->name) == (int)op->kind);

		if (is_of) {
			*ret_factor *= c->factor;
			*ret_add = *ret_add * c->factor + c->add_ns;
		}
	}
	*ret_add = fmax(0, *ret_add);
}
