/* See fold.h. */
#include "nbox/topo/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"

#define UNITS_ALL 4    /* so few are drawn each */
#define UNITS_SHOWN 12 /* more would be too small */

static uint32_t row_of(const struct fabric *f, uint32_t node)
{
	if (f->network.kind == FABRIC_CABLES)
		return f->node_switch[node];
	return leaf_count(f) ? node / f->network.nodes_per_leaf : 0;
}

/* The first change from @link on. */
static size_t find_change(const struct fabric *f, uint64_t link)
{
	size_t low = 0, high = f->n_changes;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (f->changes[mid].link < link)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* A number that two units share whose links were changed in the same way (FNV-1a). */
static uint64_t changes_of(const struct fabric *f, uint32_t first, uint32_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	bool has_any = false;

	for (enum link_kind kind = LINK_GPU; kind <= LINK_NIC; kind++) {
		uint64_t begin = link_number(kind, first, 0, 0);
		uint64_t end = link_number(kind, first + n, 0, 0);

		for (size_t i = find_change(f, begin); i < f->n_changes && f->changes[i].link < end;
		     i++) {
			const struct fabric_change *c = &f->changes[i];
			const double values[2] = {c->latency_ns, c->bytes_per_ns};
			uint64_t words[3] = {c->link - link_number(0, first, 0, 0)};

			memcpy(words + 1, values, sizeof(values));
			for (size_t k = 0; k < 3; k++)
				hash = (hash ^ words[k]) * UINT64_C(0x100000001b3);
			has_any = true;
		}
	}
	return has_any ? hash | 1 : 0;
}

static bool is_row_changed(const struct fabric *f, uint32_t row)
{
	for (size_t i = 0; i < f->n_changes; i++)
		if (link_kind(f->changes[i].link) == LINK_LEAF &&
		    link_a(f->changes[i].link) / leaf_rails(f) == row)
			return true;
	return false;
}

/* Are domains drawn as one? Only in rows of their own. */
static bool is_equal(const struct topo_unit *a, const struct topo_unit *b)
{
	return a->class == b->class && a->row == b->row && a->n_nodes == b->n_nodes &&
	       a->changes == b->changes;
}

/* All domains, equal ones that follow each other as one. */
static int fold_units(const struct fabric *f, struct topo_fold *fold)
{
	uint32_t n_domains = 0, at;

	for (at = 0; at < f->n_nodes; at += fabric_domain_nodes(f, at))
		n_domains++;
	fold->units = calloc(n_domains, sizeof(*fold->units));
	if (!fold->units)
		return -ENOMEM;
	for (at = 0; at < f->n_nodes; at += fabric_domain_nodes(f, at)) {
		struct topo_unit *last = fold->n_units ? &fold->units[fold->n_units - 1] : NULL;
		struct topo_unit u = {.first = at,
				      .n_nodes = fabric_domain_nodes(f, at),
				      .n_equal = 1,
				      .class = (uint32_t)(fabric_class_of(f, at) - f->classes),
				      .row = row_of(f, at)};

		u.changes = changes_of(f, at, u.n_nodes);
		if (last && n_domains > UNITS_ALL && is_equal(last, &u))
			last->n_equal++;
		else
			fold->units[fold->n_units++] = u;
	}
	return 0;
}

static bool are_rows_equal(const struct fabric *f, const struct topo_fold *fold,
			   const struct topo_row *a, const struct topo_row *b)
{
	if (a->n_units != b->n_units || is_row_changed(f, a->row) || is_row_changed(f, b->row))
		return false;
	for (size_t i = 0; i < a->n_units; i++) {
		struct topo_unit x = fold->units[a->first_unit + i];
		const struct topo_unit *y = &fold->units[b->first_unit + i];

		x.row = y->row;
		if (!is_equal(&x, y) || x.n_equal != y->n_equal)
			return false;
	}
	return true;
}

static int fold_rows(const struct fabric *f, struct topo_fold *fold)
{
	bool is_cabled = f->network.kind == FABRIC_CABLES;

	fold->rows = calloc(fold->n_units, sizeof(*fold->rows));
	if (!fold->rows)
		return -ENOMEM;
	for (size_t i = 0; i < fold->n_units;) {
		struct topo_row *last = fold->n_rows ? &fold->rows[fold->n_rows - 1] : NULL;
		struct topo_row row = {.row = fold->units[i].row, .n_equal = 1, .first_unit = i};

		for (; i < fold->n_units && fold->units[i].row == row.row; i++)
			row.n_units++;
		if (last && !is_cabled && fold->n_units > UNITS_ALL &&
		    are_rows_equal(f, fold, last, &row))
			last->n_equal++;
		else
			fold->rows[fold->n_rows++] = row;
	}
	return 0;
}

/* Keeps the first rows, as many as can be seen. */
static void cut(struct topo_fold *fold)
{
	size_t n = 0, i;

	for (i = 0; i < fold->n_rows; i++) {
		struct topo_row *row = &fold->rows[i];
		size_t room = UNITS_SHOWN - n, shown = row->n_units < room ? row->n_units : room;

		if (!shown)
			break;
		for (size_t k = shown; k < row->n_units; k++) {
			struct topo_unit *u = &fold->units[row->first_unit + k];

			fold->n_left_out += u->n_nodes * u->n_equal * row->n_equal;
		}
		row->n_units = shown;
		n += shown;
	}
	for (size_t k = i; k < fold->n_rows; k++)
		for (size_t j = 0; j < fold->rows[k].n_units; j++) {
			struct topo_unit *u = &fold->units[fold->rows[k].first_unit + j];

			fold->n_left_out += u->n_nodes * u->n_equal * fold->rows[k].n_equal;
		}
	fold->n_rows = i;
}

int topo_fold(const struct fabric *f, struct topo_fold *ret)
{
	int r;

	memset(ret, 0, sizeof(*ret));
	r = fold_units(f, ret);
	if (r == 0)
		r = fold_rows(f, ret);
	if (r < 0)
		topo_fold_deinit(ret);
	else
		cut(ret);
	return r;
}

void topo_fold_deinit(struct topo_fold *fold)
{
	free(fold->units);
	free(fold->rows);
	memset(fold, 0, sizeof(*fold));
}
