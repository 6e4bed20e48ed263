/* See failure.h. */
#include "config/failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "config/value.h"
#include "schedule/coll.h"

const char failure_help[] =
	"  fail       a rank is gone, or an op fails: its communicators are aborted\n"
	"      rank=<rank>            world rank that is gone (default none: only the op's communicator)\n"
	"      time=<time>            when, after the first op of the run\n"
	"      after=<count>          or: at the op after so many\n"
	"      op=<kind>              which ops count (default all)\n";

bool failure_is_one(const char *text)
{
	return !strncmp(text, "fail", 4) && (!text[4] || text[4] == ':');
}

static int parse_kind(const char *value, uint32_t *ret, struct err *err)
{
	const char *names[COLL_KINDS];
	char near[96];
	int kind = coll_kind_parse(value);

	if (kind >= 0) {
		*ret = (uint32_t)kind;
		return 0;
	}
	for (uint32_t i = 0; i < COLL_KINDS; i++)
		names[i] = coll_kind_name(i);
	value_suggestion(value, names, COLL_KINDS, near, sizeof(near));
	return err_set(err, EINVAL, "unknown collective '%.64s'%s", value,
		       near[0] ? near : "; there are allreduce, allgather, ...");
}

static int parse_key(struct failure *f, uint32_t world, const char *key, const char *value,
		     bool *has_after, struct err *err)
{
	static const char *const keys[] = {"rank", "time", "after", "op"};
	char near[96];
	uint64_t rank;
	double ns;
	int rc;

	if (!strcmp(key, "op"))
		return parse_kind(value, &f->kind, err);
	if (!strcmp(key, "after")) {
		*has_after = true;
		return units_count(value, &f->after, err);
	}
	if (!strcmp(key, "time")) {
		rc = units_time(value, &ns, err);
		if (rc)
			return rc;
		if (!(ns >= 0 && ns < 1e18))
			return err_set(err, EINVAL, "time=%.64s is out of range", value);
		f->time_ns = (uint64_t)ns;
		f->is_timed = true;
		return 0;
	}
	if (!strcmp(key, "rank")) {
		rc = units_count(value, &rank, err);
		if (!rc && rank >= world)
			rc = err_set(err, EINVAL, "rank=%.64s: the world has %u ranks", value,
				     world);
		if (!rc)
			f->rank = (uint32_t)rank;
		return rc;
	}
	value_suggestion(key, keys, ARRAY_SIZE(keys), near, sizeof(near));
	return err_set(err, EINVAL, "unknown key '%.64s'%s", key,
		       near[0] ? near : "; there are rank, time, after, op");
}

int failure_parse(const char *text, uint32_t world, struct failure *ret, struct err *err)
{
	struct failure f = {.text = text, .kind = COLL_KINDS, .rank = FAILURE_NO_RANK};
	char copy[256], *pair, *next, *equals;
	bool has_after = false;
	int rc = 0;

	if (strlen(text) >= sizeof(copy))
		return err_set(err, EINVAL, "'%.64s...' is too long", text);
	snprintf(copy, sizeof(copy), "%s", text);
	for (pair = copy[4] && copy[5] ? copy + 5 : NULL; !rc && pair; pair = next) {
		next = strchr(pair, ',');
		if (next)
			*next++ = '\0';
		equals = strchr(pair, '=');
		if (!equals || equals == pair || !equals[1])
			return err_set(err, EINVAL, "'%.200s': '%.64s' is no key=value", text, pair);
		*equals = '\0';
		rc = parse_key(&f, world, pair, equals + 1, &has_after, err);
	}
	if (rc)
		return err_prefix(err, rc, "what-if '%.200s'", text);
	if (f.is_timed == has_after)
		return err_set(err, EINVAL,
			       "'%.200s': say when: either time=TIME or after=OPS, such as "
			       "fail:rank=17,time=30s",
			       text);
	if (f.is_timed && f.rank == FAILURE_NO_RANK)
		return err_set(err, EINVAL, "'%.200s': time=TIME needs the rank=RANK that is gone",
			       text);
	if (f.is_timed && f.kind != COLL_KINDS)
		return err_set(err, EINVAL, "'%.200s': op=KIND goes with after=OPS", text);
	*ret = f;
	return 0;
}
