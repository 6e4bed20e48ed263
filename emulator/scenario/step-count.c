/* See step-count.h. */
#include "scenario/step-count.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/units.h"

#define STEP_KEYS 5

struct step_count {
	struct step_rule rule;
	double *began; /* owned; by step */
	uint64_t n_began, n_room;
	uint32_t n_real;
	uint64_t n_ops[]; /* by real rank: that count */
};

static int take_key(struct step_rule *rule, const char *key, const char *value, struct err *err)
{
	static const char *const keys[STEP_KEYS] = {"ops", "op", "bytes", "communicator", "skip"};
	uint64_t *count = !strcmp(key, "ops")    ? &rule->n_ops
			  : !strcmp(key, "skip") ? &rule->skip
						 : NULL;
	const char *near;
	int r = count ? units_count(value, count, err)
		      : target_take(&rule->target, key, value, err);

	if (r < 0)
		return count ? err_prefix(err, r, "%s", key) : r;
	if (r == 0)
		return 0;
	near = suggest(key, keys, STEP_KEYS);
	return err_set(err, EINVAL, "unknown key '%.64s'%s%s%s", key,
		       near ? "; did you mean '" : "; there are ops, op, bytes, communicator, skip",
		       near ? near : "", near ? "'?" : "");
}

int step_rule_parse(const char *text, struct step_rule *ret, struct err *err)
{
	struct step_rule rule = {.n_ops = 0};
	char copy[256], *rest = copy, *pair;
	const char *seen[STEP_KEYS + 1];
	size_t n = 0;
	int r = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return err_set(err, EINVAL, "'%.64s...' is too long", text);
	while (r == 0 && (pair = strsep(&rest, ","))) {
		char *value = strchr(pair, '=');

		if (!value || value == pair || !value[1])
			return err_set(err, EINVAL, "'%.64s' is no key=value, such as ops=5", pair);
		*value++ = '\0';
		for (size_t i = 0; i < n; i++)
			if (strcmp(seen[i], pair) == 0)
				return err_set(err, EINVAL, "'%.64s' is given twice", pair);
		seen[n++] = pair; /* one of the keys, else it is the last */
		r = take_key(&rule, pair, value, err);
	}
	if (r == 0 && !rule.n_ops)
		return err_set(err, EINVAL,
			       "say how many ops are a step: ops=N; nbox report says what a "
			       "former run's were");
	if (r == 0)
		*ret = rule;
	return r;
}

int step_count_new(const struct step_rule *rule, uint32_t n_real, struct step_count **ret)
{
	struct step_count *s = calloc(1, sizeof(*s) + n_real * sizeof(s->n_ops[0]));

	if (!s)
		return -ENOMEM;
	s->rule = *rule;
	s->n_real = n_real;
	*ret = s;
	return 0;
}

struct step_count *step_count_free(struct step_count *s)
{
	if (s)
		free(s->began);
	free(s);
	return NULL;
}

static int begin(struct step_count *s, double time_ns)
{
	uint64_t room = s->n_room ? 2 * s->n_room : 64;
	double *more;

	if (s->n_began == s->n_room) {
		more = realloc(s->began, room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->began = more;
		s->n_room = room;
	}
	s->began[s->n_began++] = time_ns;
	return 1;
}

int step_count_arrive(struct step_count *s, uint32_t i, uint32_t kind, uint64_t bytes,
		      const struct target_comm *c, double time_ns)
{
	if (!s || !s->rule.n_ops || !target_has_op(&s->rule.target, kind, bytes) ||
	    !target_has_comm(&s->rule.target, c))
		return 0;
	s->n_ops[i]++;
	return step_count_of(s, i) > (int64_t)s->n_began ? begin(s, time_ns) : 0;
}

int64_t step_count_of(const struct step_count *s, uint32_t i)
{
	return s && s->n_ops[i] > s->rule.skip
		       ? (int64_t)((s->n_ops[i] - s->rule.skip - 1) / s->rule.n_ops) + 1
		       : 0;
}

int64_t step_count_last(const struct step_count *s)
{
	return s ? (int64_t)s->n_began : 0;
}

double step_count_began(const struct step_count *s, int64_t step)
{
	return s && step > 0 && step <= (int64_t)s->n_began ? s->began[step - 1] : INFINITY;
}
