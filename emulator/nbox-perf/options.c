/* See options.h. */
#include "nbox-perf/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/units.h"

static int take_size(const char *flag, const char *s, size_t least, size_t *ret, struct err *err)
{
	char *end;
	double v = strtod(s, &end);
	uint64_t exact;
	int shift = !strcasecmp(end, "k")   ? 10
		    : !strcasecmp(end, "m") ? 20
		    : !strcasecmp(end, "g") ? 30
		    : !*end                 ? 0
					    : -1;

	if (shift < 0 && units_bytes(s, &exact, NULL) == 0) { /* no nccl-tests' word: 25MB */
		v = (double)exact;
		shift = 0;
	}
	if (end == s || !(v >= 0 && v < 1e15) || shift < 0)
		return err_set(
			err, EINVAL,
			"%s %.60s is no size: a number of bytes, or with K, M or G, is expected",
			flag, s);
	v *= (double)(UINT64_C(1) << shift);
	if (v < (double)least || v >= 1e15)
		return err_set(err, EINVAL, "%s %.60s is too %s", flag, s,
			       v < 1e15 ? "small" : "large");
	*ret = (size_t)v;
	return 0;
}

static int take_count(const char *flag, const char *s, int least, int *ret, struct err *err)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || *end || v < least || v > 100000000)
		return err_set(err, EINVAL, "%s %.60s is no number from %d to 100000000", flag, s,
			       least);
	*ret = (int)v;
	return 0;
}

static int take_factor(const char *flag, const char *s, double *ret, struct err *err)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v > 1 && v < 1e15))
		return err_set(err, EINVAL,
			       "%s %.60s is no factor: a number larger than 1 is expected", flag,
			       s);
	*ret = v;
	return 0;
}

/* Its place among the choices of the table, or -EINVAL. */
static int take_name(const struct option_word *w, struct err *err)
{
	const char *const *names = options[w->id].choices;
	char all[256] = "";
	size_t n = 0;

	for (int i = 0; names[i]; i++) {
		if (!strcasecmp(w->value, names[i]))
			return i;
		n += (size_t)snprintf(all + n, sizeof(all) - n, " %s", names[i]);
	}
	return err_set(err, EINVAL, "%s: '%.60s' is none of%s", w->name, w->value, all);
}

int perf_options_take(struct perf_options *o, const struct option_word *w, struct err *err)
{
	const char *v = w->value;
	int r = 0;

	switch ((int)w->id) {
	case FLAG_OP:
		if ((r = take_name(w, err)) >= 0)
			o->op = (enum perf_op)r;
		break;
	case FLAG_DTYPE:
		if ((r = take_name(w, err)) >= 0)
			o->dtype = (enum perf_dtype)r;
		break;
	case FLAG_REDOP:
		if ((r = take_name(w, err)) >= 0)
			o->redop = (enum perf_redop)r;
		break;
	case FLAG_MIN:
		return take_size(w->name, v, 0, &o->min_bytes, err);
	case FLAG_MAX:
		o->has_max = true;
		return take_size(w->name, v, 0, &o->max_bytes, err);
	case FLAG_STEP:
		return take_size(w->name, v, 1, &o->step_bytes, err);
	case FLAG_FACTOR:
		return take_factor(w->name, v, &o->factor, err);
	case FLAG_ITERS:
		return take_count(w->name, v, 1, &o->iters, err);
	case FLAG_WARMUP:
		return take_count(w->name, v, 0, &o->warmup, err);
	case FLAG_ROOT:
		return take_count(w->name, v, 0, &o->root, err);
	case FLAG_PRINT_RANK:
		return take_count(w->name, v, 0, &o->printer, err);
	case FLAG_IN_PLACE:
		o->in_place = true;
		break;
	case FLAG_NO_CHECK:
		o->is_unchecked = true;
		break;
	case FLAG_NO_TABLE:
		o->is_silent = true;
		break;
	case FLAG_PERF_JSON:
		o->json = v;
		break;
	case FLAG_ID_FILE:
		o->id_file = v;
		break;
	default:
		return OPTION_NONE;
	}
	return r < 0 ? r : 0;
}

void perf_options_init(struct perf_options *o)
{
	*o = (struct perf_options){.step_bytes = 0};
	for (int id = FLAG_MIN; id <= FLAG_ID_FILE; id++) {
		struct option_word w = {.id = (enum option_id)id,
					.value = options[id].default_text};

		if (w.value)
			perf_options_take(o, &w, NULL);
	}
	o->has_max = false;
}

int perf_options_check(const struct perf_options *o, struct err *err)
{
	if (o->min_bytes > o->max_bytes)
		return err_set(err, EINVAL,
			       "the first size, -b %zu, is larger than the last, -e %zu%s",
			       o->min_bytes, o->max_bytes, o->has_max ? "" : " when not given");
	return 0;
}

size_t perf_options_next(const struct perf_options *o, size_t bytes)
{
	size_t next =
		o->step_bytes ? bytes + o->step_bytes : (size_t)((double)bytes * o->factor + 0.5);

	return next > bytes ? next : bytes + 1;
}
