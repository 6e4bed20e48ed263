/* See failure.h. Here the what-if is read and checked. */
#include "config/failure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "config/did-you-mean.h"
#include "config/spec.h"
#include "schedule/coll.h"
#include "topology/named-ranks.h"

const char failure_help[] =
	"  fail       ranks are gone, or an op fails: their communicators are aborted, or stand still\n"
	"      rank=<ranks>           world rank that is gone, or several: 17, 16-23, 1+5 (default "
	"none: only the op's communicator)\n"
	"      node=<nodes>           all ranks of these nodes instead\n"
	"      from=<time or steps>   when, after the first op of the run, in virtual time; or time=\n"
	"      after=<count>          or: so many ops pass, the next one fails\n"
	"      op=<kind>              which ops count (default all)\n"
	"      how=error|silent       the others are told by ncclCommGetAsyncError; or nobody is, and "
	"ops with the rank never complete (default error)\n";
const char failure_desync_help[] =
	"  desync     ranks are one op off: where its call is unlike the others' it never completes\n"
	"      rank=<ranks>           world rank, or several (it or node must be given)\n"
	"      node=<nodes>           all ranks of these nodes instead\n"
	"      from=<time or steps>   when, after the first op of the run, in virtual time\n"
	"      after=<count>          or: so many ops pass before\n";

bool failure_is_one(const char *text)
{
	return spec_is(text, "fail") || spec_is(text, "desync");
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
	did_you_mean(value, names, COLL_KINDS, near, sizeof(near));
	return err_set(err, EINVAL, "unknown collective '%.64s'%s", value,
		       near[0] ? near : "; there are allreduce, allgather, ...");
}

/* Values that are checked after all keys are read. */
struct given {
	const char *rank, *node;
	bool has_after;
};

static int parse_how(struct failure *f, const char *value, struct err *err)
{
	bool is_silent = !strcmp(value, "silent");

	if (f->how == FAILURE_DESYNC || (!is_silent && strcmp(value, "error") != 0))
		return err_set(err, EINVAL,
			       f->how == FAILURE_DESYNC ? "how=%.64s: of fail alone"
							: "how=%.64s: error or silent",
			       value);
	f->how = is_silent ? FAILURE_SILENT : FAILURE_ERROR;
	return 0;
}

static int parse_key(struct failure *f, const char *key, const char *value, struct given *given,
		     struct err *err)
{
	static const char *const keys[] = {"rank", "node", "time", "from", "after", "op", "how"};

	if (!strcmp(key, "how"))
		return parse_how(f, value, err);
	if (!strcmp(key, "op"))
		return parse_kind(value, &f->kind, err);
	if (!strcmp(key, "after")) {
		given->has_after = true;
		return units_count(value, &f->after, err);
	}
	if (!strcmp(key, "time") || !strcmp(key, "from")) {
		if (f->at.is_given)
			return err_set(err, EINVAL, "time and from are the same: give one");
		return when_span_parse(value, &f->at, err);
	}
	if (!strcmp(key, "rank") || !strcmp(key, "node")) {
		*(key[0] == 'r' ? &given->rank : &given->node) = value;
		return 0;
	}
	return spec_unknown(key, keys, ARRAY_SIZE(keys), err);
}

static int check_when(const struct failure *f, bool has_after, struct err *err)
{
	if (f->at.is_given == has_after)
		return err_set(err, EINVAL,
			       "'%.200s': say when: either time=TIME or after=OPS, such as "
			       "fail:rank=17,time=30s",
			       f->text);
	if (f->n_ranks == 0 && f->how != FAILURE_ERROR)
		return err_set(err, EINVAL, "'%.200s': say who: rank=RANK or node=NODE", f->text);
	if (f->at.is_given && f->n_ranks == 0)
		return err_set(err, EINVAL,
			       "'%.200s': time=TIME needs the rank=RANK or node=NODE that is gone",
			       f->text);
	if (f->at.is_given && f->kind != COLL_KINDS)
		return err_set(err, EINVAL, "'%.200s': op=KIND goes with after=OPS", f->text);
	return 0;
}

int failure_parse(const char *text, const struct topology *world, struct failure *ret,
		  struct err *err)
{
	struct failure f = {.text = text,
			    .kind = COLL_KINDS,
			    .how = spec_is(text, "desync") ? FAILURE_DESYNC : FAILURE_ERROR};
	struct given given = {0};
	struct spec spec;
	int r = spec_split(text, &spec, err);

	if (r)
		return r;
	for (size_t i = 0; i < spec.n && !r; i++)
		r = parse_key(&f, spec.pairs[i].key, spec.pairs[i].value, &given, err);
	r = r ? r : named_ranks(world, given.rank, given.node, &f.ranks, &f.n_ranks, err);
	if (r)
		return err_prefix(err, r, "'%.200s'", text);
	r = check_when(&f, given.has_after, err);
	if (r) {
		free(f.ranks);
		return r;
	}
	*ret = f;
	return 0;
}

void failures_free(struct failure *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].ranks);
	free(list);
}
