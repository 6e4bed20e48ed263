/* See request.h. */
#include "nbox/oracle/request.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"

#define RANKS_MAX (1u << 20)

/* A word of a list that commas separate; *list is behind it. Return: its length. */
static size_t next_word(const char **list, char *buf, size_t size)
{
	size_t n = strcspn(*list, ","), kept = n < size - 1 ? n : size - 1;

	memcpy(buf, *list, kept);
	buf[kept] = 0;
	*list += n + ((*list)[n] == ',');
	return n;
}

int oracle_shapes_parse(const char *text, struct oracle_shape *ret, size_t *ret_n, struct err *err)
{
	const char *rest = text;
	char word[32];
	size_t n = 0;

	do {
		struct oracle_shape s = {.gpus_per_node = 0};
		uint64_t nodes, gpus = 0;
		char *x;

		next_word(&rest, word, sizeof(word));
		x = strchr(word, 'x');
		if (x)
			*x = 0;
		if (units_count(word, &nodes, NULL) < 0 || nodes < 1 || nodes > RANKS_MAX ||
		    (x && (units_count(x + 1, &gpus, NULL) < 0 || gpus < 1 || gpus > 64)))
			return err_set(
				err, EINVAL,
				"'%.60s': a number of nodes is expected, such as 64, or with the ranks "
				"on each, such as 16x4, and commas between several",
				text);
		if (n == ORACLE_WORLDS_MAX)
			return err_set(err, EINVAL, "more than %d worlds", ORACLE_WORLDS_MAX);
		s.n_nodes = (uint32_t)nodes;
		s.gpus_per_node = (uint32_t)gpus;
		ret[n++] = s;
	} while (*rest);
	*ret_n = n;
	return 0;
}

static int take_ops(const char *text, bool *ret, struct err *err)
{
	const char *rest = text;
	char word[32];

	if (strcmp(text, "all") == 0) {
		memset(ret, true, ORACLE_OPS);
		return 0;
	}
	do {
		const char *near;
		size_t i = 0;

		next_word(&rest, word, sizeof(word));
		while (i < ORACLE_OPS && strcmp(word, oracle_op_names[i]) != 0)
			i++;
		if (i == ORACLE_OPS) {
			near = suggest(word, oracle_op_names, ORACLE_OPS);
			return err_set(
				err, EINVAL,
				"NCCL has no cost of '%s'%s%s%s; it has of allreduce, allgather, "
				"reducescatter, broadcast, reduce",
				word, near ? "; did you mean '" : "", near ? near : "",
				near ? "'?" : "");
		}
		ret[i] = true;
	} while (*rest);
	return 0;
}

/* As nccl-tests, K, M and G are binary. */
static int take_size(const char *text, uint64_t *ret, struct err *err)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	static const char letters[] = "kmg";
	const char *letter = *end ? strchr(letters, tolower((unsigned char)*end)) : NULL;

	if (isdigit((unsigned char)text[0]) && (!*end || (letter && !end[1]))) {
		unsigned int shift = letter ? 10 * (unsigned int)(letter - letters + 1) : 0;

		if (v < 1 || v > (UINT64_C(1) << 50 >> shift))
			return err_set(err, EINVAL, "'%.40s' is too %s", text,
				       v < 1 ? "small" : "large");
		*ret = v << shift;
		return 0;
	}
	return units_bytes(text, ret, err);
}

static int take(struct oracle_request *q, const struct option_word *w, uint32_t *gpus,
		struct err *err)
{
	const char *v = w->value;
	double number;
	uint64_t count;
	int r = 0;

	switch ((int)w->id) {
	case FLAG_ORACLE_NODES:
		return oracle_shapes_parse(v, q->shapes, &q->n_shapes, err);
	case FLAG_ORACLE_GPUS:
		r = units_count(v, &count, err);
		if (r == 0 && (count < 1 || count > 64))
			r = err_set(err, EINVAL, "%s is no number from 1 to 64", v);
		if (r == 0)
			*gpus = (uint32_t)count;
		return r;
	case FLAG_ORACLE_COLLECTIVES:
		return take_ops(v, q->ops, err);
	case FLAG_ORACLE_MIN:
		return take_size(v, &q->min_bytes, err);
	case FLAG_ORACLE_MAX:
		return take_size(v, &q->max_bytes, err);
	case FLAG_ORACLE_FACTOR:
		r = units_ratio(v, &number, err);
		if (r == 0 && number < 1.01)
			r = err_set(err, EINVAL, "%s is no factor: a number from 1.01 is expected",
				    v);
		if (r == 0)
			q->factor = number;
		return r;
	case FLAG_ORACLE_TIMEOUT:
		r = units_time(v, &number, err);
		if (r == 0 && !(number >= 1e6 && number < 1e15))
			r = err_set(err, EINVAL, "%s is no time from 1ms", v);
		if (r == 0)
			q->timeout_ns = (uint64_t)number;
		return r;
	case FLAG_ORACLE_NET:
		q->has_net = true;
		q->has_own_net = strcmp(v, "own") == 0;
		if (!q->has_own_net && strcmp(v, "null") != 0)
			r = err_set(err, EINVAL, "'%.40s' is neither null nor own", v);
		return r;
	case FLAG_ORACLE_NCCL:
		q->nccl = v;
		return 0;
	case FLAG_ORACLE_CUDART:
		q->cudart = v;
		return 0;
	case FLAG_ORACLE_TOPO:
		q->topo = v;
		return 0;
	case FLAG_ORACLE_OUT:
		q->out = v;
		return 0;
	case FLAG_ORACLE_LOG:
		q->nccl_log = v;
		return 0;
	default:
		q->is_untried_allowed = true;
		return 0;
	}
}

static int make_sizes(struct oracle_request *q, struct err *err)
{
	double bytes = (double)q->min_bytes;

	if (q->max_bytes < q->min_bytes)
		return err_set(err, EINVAL, "-e is less than -b");
	for (; bytes <= (double)q->max_bytes * (1 + 1e-12); bytes *= q->factor) {
		uint64_t size = (uint64_t)(bytes + 0.5);

		if (q->n_sizes && size == q->sizes[q->n_sizes - 1])
			continue;
		if (q->n_sizes == ORACLE_SIZES_MAX)
			return err_set(err, EINVAL,
				       "more than %d sizes: take a larger -f, or a smaller -e",
				       ORACLE_SIZES_MAX);
		q->sizes[q->n_sizes++] = size;
	}
	if (q->n_sizes < 2)
		return err_set(
			err, EINVAL,
			"-b and -e leave one size, and nothing can be said between sizes then: "
			"take two or more");
	return 0;
}

static int check_files(const struct oracle_request *q, struct err *err)
{
	const char *others[] = {q->nccl_log, q->topo};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i] && strcmp(others[i], q->out) == 0)
			return err_set(err, EINVAL, "-o %s is %s, too: it would be overwritten",
				       q->out, i ? "--topo" : "--nccl-log");
	return 0;
}

int oracle_request_take(int argc, char **argv, struct oracle_request *ret, struct err *err)
{
	struct oracle_request q = {.min_bytes = 8,
				   .max_bytes = UINT64_C(8) << 30,
				   .factor = 2,
				   .out = "decisions.txt",
				   .timeout_ns = UINT64_C(300000000000)};
	struct option_word w;
	uint32_t gpus = 0;
	bool has_ops = false;
	int r = 0;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_ORACLE, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			r = err_set(err, EINVAL, "'%.60s' is one word too many", argv[i]);
		else if (r == 0) {
			r = take(&q, &w, &gpus, err);
			r = r < 0 ? err_prefix(err, r, "%s", w.name) : 0;
		}
	}
	if (r < 0)
		return r;
	if (!q.n_shapes)
		return err_set(err, EINVAL, "how many nodes? --nodes 64, or --nodes 2,16,64");
	for (size_t i = 0; i < q.n_shapes; i++)
		if (!q.shapes[i].gpus_per_node)
			q.shapes[i].gpus_per_node = gpus;
	for (size_t i = 0; i < ORACLE_OPS; i++)
		has_ops |= q.ops[i];
	if (!has_ops)
		memset(q.ops, true, sizeof(q.ops));
	if (!q.has_net) /* the NICs of another machine's topology are not here */
		q.has_own_net = !q.topo;
	if (!q.nccl && getenv("NBOX_NCCL") && getenv("NBOX_NCCL")[0])
		q.nccl = getenv("NBOX_NCCL");
	r = make_sizes(&q, err);
	if (r == 0)
		r = check_files(&q, err);
	if (r == 0)
		*ret = q;
	return r;
}
