/* See beside.h. */
#include "nbox/sweep/beside.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"
#include "nbox/json/json-file.h"
#include "nbox/sweep/curve.h"

static const char *text_of(json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

/* The last part of a path. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return: 0; negative errno with the sentence. */
static int take_point(const char *dir, json_t *o, const char *axis, const char *unit,
		      struct beside_point *ret, struct err *err)
{
	const char *own = "";

	ret->setting = json_object_get(o, "setting");
	if (value_number(text_of(ret->setting, axis), &ret->x, &own) < 0 || strcmp(unit, own) != 0)
		return err_set(err, EINVAL, "--beside %.300s: a point has no '%s' in %s", dir, axis,
			       unit[0] ? unit : "numbers");
	if (asprintf(&ret->dir, "%s/points/%s", dir, last_part(text_of(o, "dir"))) < 0) {
		ret->dir = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	point_read_dir(ret->dir, &ret->result);
	return 0;
}

int beside_read(const char *dir, const struct grid *g, struct beside *ret, struct err *err)
{
	CLEANUP(beside_deinit) struct beside b = {.name = ""};
	char path[PATH_MAX + 32];
	const char *unit = "";
	size_t i, axis = curve_axis(g, &unit);
	json_t *points, *o;
	int r;

	if (axis == CURVE_NO_AXIS)
		return err_set(err, EINVAL,
			       "--beside %.300s: this sweep has no axis of numbers to draw over",
			       dir);
	snprintf(path, sizeof(path), "%.*s/sweep.json", PATH_MAX, dir);
	r = json_file_read(path, &b.all, err);
	if (r < 0)
		return r == -ENOENT
			       ? err_set(err, ENOENT,
					 "--beside %.300s: no nbox sweep has its results there",
					 dir)
			       : r;
	snprintf(b.name, sizeof(b.name), "%.60s",
		 json_is_true(json_object_get(b.all, "live")) ? "live" : last_part(dir));
	plain_text(b.name);
	points = json_object_get(b.all, "points");
	b.list = calloc(json_array_size(points) + 1, sizeof(*b.list));
	if (!b.list)
		return err_set(err, ENOMEM, "out of memory");
	json_array_foreach(points, i, o)
	{
		struct beside_point *to = &b.list[b.n++];

		r = take_point(dir, o, g->axes[axis].name, unit, to, err);
		if (r < 0)
			return r;
		if (to->result.state != POINT_DONE || !to->result.has_steps) {
			free(steal_ptr(to->dir));
			b.n--;
			b.n_without++;
		}
	}
	if (b.n == 0)
		return err_set(
			err, ENODATA,
			"--beside %.300s: of its %zu points none has steps: they failed, or were not played yet; its own command line again plays them",
			dir, b.n_without);
	*ret = b;
	b = (struct beside){.name = ""};
	return 0;
}

void beside_deinit(struct beside *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->list[i].dir);
	free(b->list);
	json_decref(b->all);
}

const char *beside_value(const struct beside_point *b, const char *axis)
{
	return text_of(b->setting, axis);
}

static bool stands_beside(const struct beside_point *b, const struct grid *g, size_t point)
{
	for (size_t i = 0; i < g->n_axes; i++) {
		const char *value = beside_value(b, g->axes[i].name);

		if (value[0] && !values_equal(value, grid_value(g, point, i)))
			return false;
	}
	return true;
}

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

double beside_ms(const struct beside *b, const struct grid *g, size_t point)
{
	CLEANUP(freep) double *ms = calloc(b->n + 1, sizeof(*ms));
	size_t n = 0;

	for (size_t i = 0; ms && i < b->n; i++)
		if (stands_beside(&b->list[i], g, point))
			ms[n++] = b->list[i].result.p50;
	if (n == 0)
		return NAN;
	qsort(ms, n, sizeof(*ms), by_value);
	return (ms[(n - 1) / 2] + ms[n / 2]) / 2;
}
