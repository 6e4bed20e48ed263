/* See words.h. */
#include "nbox/replay/words.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "schedule/schedule.h"

/* "0.5" or "+1ms" */
static int take_amount(const char *text, struct play_change *c, struct err *err)
{
	int r;

	c->factor = 1;
	if (text[0] != '+' && text[0] != '-')
		return units_ratio(text, &c->factor, err);
	r = units_time(text + 1, &c->add_ns, err);
	if (text[0] == '-')
		c->add_ns = -c->add_ns;
	return r;
}

static int take_change(char *item, struct play_change *c, struct err *err)
{
	char *amount = strrchr(item, '=');
	uint64_t rank;
	int r;

	if (!amount)
		return err_set(err, EINVAL,
			       "'%s' has no '=': comm=0.5, compute=2, op:NAME=+1ms or rank:3=1.5",
			       item);
	*amount++ = '\0';
	*c = (struct play_change){.of = CHANGE_COMM};
	if (strcmp(item, "compute") == 0) {
		c->of = CHANGE_COMPUTE;
	} else if (strncmp(item, "op:", 3) == 0 && item[3]) {
		c->of = CHANGE_NAMED;
		c->name = item + 3;
	} else if (strncmp(item, "rank:", 5) == 0) {
		c->of = CHANGE_RANK;
		r = units_count(item + 5, &rank, err);
		if (r < 0)
			return r;
		c->rank = (uint32_t)rank;
	} else if (strcmp(item, "comm") != 0) {
		return err_set(err, EINVAL, "'%s' is none of comm, compute, op:NAME and rank:N",
			       item);
	}
	return take_amount(amount, c, err);
}

static bool is_same(const struct play_change *a, const struct play_change *b)
{
	return a->of == b->of && a->rank == b->rank &&
	       (a->of != CHANGE_NAMED || strcmp(a->name, b->name) == 0);
}

int words_scale(char *text, struct play_change **ret, uint32_t *n, struct err *err)
{
	char *rest = text, *item;
	int r = 0;

	while (r == 0 && (item = strsep(&rest, ","))) {
		struct play_change *grown = realloc(*ret, (*n + 1) * sizeof(*grown));

		if (!grown)
			return err_set(err, ENOMEM, "out of memory");
		*ret = grown;
		r = take_change(item, &grown[*n], err); /* cuts @item behind its name */
		for (uint32_t i = 0; i < *n && r == 0; i++)
			if (is_same(&grown[i], &grown[*n]))
				r = err_set(err, EINVAL, "%s is given twice: which one counts?",
					    item);
		*n += r == 0;
	}
	return r;
}

/* A kernel, or a kind of op. */
static bool has_named(const struct job *j, const char *name)
{
	int kind = coll_kind_parse(name);

	for (uint32_t i = 0; i < j->n_names; i++)
		if (fnmatch(name, j->names[i], 0) == 0)
			return true;
	for (uint32_t i = 0; kind >= 0 && i < j->n_ops; i++)
		if (j->ops[i].kind == (uint32_t)kind)
			return true;
	return false;
}

int words_check(const struct play_change *list, uint32_t n, const struct job *j, struct err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		if (list[i].of == CHANGE_RANK && job_rank(j, list[i].rank) == JOB_NONE)
			return err_set(err, EINVAL,
				       "rank:%u: that rank was not recorded; %u were, from %u on; "
				       "--what-if slow:rank=%u,compute=... is for any rank",
				       list[i].rank, j->n_recorded, j->n_ranks ? j->ranks[0] : 0,
				       list[i].rank);
		if (list[i].of == CHANGE_NAMED && !has_named(j, list[i].name))
			return err_set(
				err, EINVAL, "op:%s: no kernel and no kind of op is called so; %s",
				list[i].name,
				j->n_names
					? "nbox trace stat lists the names"
					: "this record has no names of kernels: scale compute, or replay traces");
	}
	return 0;
}

int words_algo(const char *text, int *ret_algo, uint32_t *ret_servers, struct err *err)
{
	static const char ps[] = "ps:servers=";
	uint64_t n = 1;
	int algo, r;

	*ret_servers = 0;
	if (strncmp(text, "ps", 2) == 0 && (!text[2] || strncmp(text, ps, sizeof(ps) - 1) == 0)) {
		r = text[2] ? units_count(text + sizeof(ps) - 1, &n, err) : 0;
		if (r == 0 && (n < 1 || n > 4096))
			r = err_set(err, EINVAL, "servers: 1 to 4096");
		*ret_servers = (uint32_t)n;
		return r;
	}
	algo = sched_algo_parse(text);
	if (algo != SCHED_RING && algo != SCHED_TREE)
		return err_set(err, EINVAL, "'%s' is none of ring, tree and ps:servers=N", text);
	*ret_algo = algo;
	return 0;
}
