/* See perf-options.h. */
#include "nbox-perf/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

const char *const perf_op_names[PERF_OPS] = {"allreduce", "allgather", "reducescatter", "broadcast",
					     "reduce",    "alltoall",  "sendrecv"};
const char *const perf_redop_names[PERF_REDOPS] = {"sum", "prod", "max", "min", "avg"};
const char *const perf_dtype_names[PERF_DTYPES] = {"int8",   "uint8",    "int32",  "uint32",
						   "int64",  "uint64",   "half",   "float",
						   "double", "bfloat16", "f8e4m3", "f8e5m2"};

enum id {
	OPT_OP,
	OPT_MIN,
	OPT_MAX,
	OPT_FACTOR,
	OPT_STEP,
	OPT_ITERS,
	OPT_WARMUP,
	OPT_DTYPE,
	OPT_REDOP,
	OPT_ROOT,
	OPT_PRINT_RANK,
	OPT_IN_PLACE,
	OPT_NO_CHECK,
	OPT_NO_TABLE,
	OPT_JSON,
	OPT_ID_FILE,
	OPT_HELP
};

static const struct option {
	const char *name;
	const char *letter; /* behind -; NULL: none */
	const char *arg;    /* NULL: takes none */
	bool is_user;       /* nbox perf has it, too */
	const char *help;
} options[] = {
	[OPT_OP] =
		{"--op", NULL, "NAME", false,
		 "allreduce allgather reducescatter broadcast reduce alltoall sendrecv [allreduce]"},
	[OPT_MIN] = {"--min", "b", "SIZE", true, "first size [8]"},
	[OPT_MAX] = {"--max", "e", "SIZE", true, "last size [32M]"},
	[OPT_FACTOR] = {"--factor", "f", "FACTOR", true, "from one size to the next [2]"},
	[OPT_STEP] = {"--step", "i", "SIZE", true,
		      "added from one size to the next, instead of -f"},
	[OPT_ITERS] = {"--iters", "n", "N", true,
		       "timed ops of each size, once one by one and once all together [20]"},
	[OPT_WARMUP] = {"--warmup", "w", "N", true, "ops before them, untimed [5]"},
	[OPT_DTYPE] =
		{"--dtype", NULL, "TYPE", true,
		 "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2 [float]"},
	[OPT_REDOP] = {"--redop", NULL, "OP", false, "sum prod max min avg [sum]"},
	[OPT_ROOT] = {"--root", NULL, "RANK", false, "of broadcast and reduce [0]"},
	[OPT_PRINT_RANK] = {"--print-rank", NULL, "RANK", false, "whose times are printed [0]"},
	[OPT_IN_PLACE] = {"--in-place", NULL, NULL, true, "run in place, too"},
	[OPT_NO_CHECK] = {"--no-check", NULL, NULL, false, "do not compare results"},
	[OPT_NO_TABLE] = {"--no-table", NULL, NULL, false,
			  "print nothing: nbox perf prints the table"},
	[OPT_JSON] = {"--json", NULL, "FILE", false,
		      "median, mean, p99 of each size in us; '-': standard output"},
	[OPT_ID_FILE] = {"--id-file", NULL, "FILE", false,
			 "where the ranks meet without NCCL_COMM_ID [named after MASTER_PORT]"},
	[OPT_HELP] = {"--help", "h", NULL, false, "this text"},
};

static int refuse(char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int refuse(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, PERF_WHY_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void perf_options_init(struct perf_options *o)
{
	*o = (struct perf_options){.dtype = PERF_FLOAT,
				   .min_bytes = 8,
				   .max_bytes = 32 << 20,
				   .factor = 2,
				   .iters = 20,
				   .warmup = 5};
}

static int take_size(const char *flag, const char *s, size_t least, size_t *ret, char *why)
{
	char *end;
	double v = strtod(s, &end);
	int shift = !strcasecmp(end, "k")   ? 10
		    : !strcasecmp(end, "m") ? 20
		    : !strcasecmp(end, "g") ? 30
		    : !*end                 ? 0
					    : -1;

	if (end == s || !(v >= 0 && v < 1e15) || shift < 0)
		return refuse(
			why,
			"%s %.60s is no size: a number of bytes, or with K, M or G, is expected",
			flag, s);
	v *= (double)(UINT64_C(1) << shift);
	if (v < (double)least || v >= 1e15)
		return refuse(why, "%s %.60s is too %s", flag, s, v < 1e15 ? "small" : "large");
	*ret = (size_t)v;
	return 0;
}

static int take_count(const char *flag, const char *s, int least, int *ret, char *why)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || *end || v < least || v > 100000000)
		return refuse(why, "%s %.60s is no number from %d to 100000000", flag, s, least);
	*ret = (int)v;
	return 0;
}

static int take_factor(const char *flag, const char *s, double *ret, char *why)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v > 1 && v < 1e15))
		return refuse(why, "%s %.60s is no factor: a number larger than 1 is expected",
			      flag, s);
	*ret = v;
	return 0;
}

/* @all: the help's list of them, up to " [". Return: its place in @names, or -EINVAL. */
static int take_name(const char *flag, const char *s, const char *const *names, size_t n,
		     const char *all, char *why)
{
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(s, names[i]))
			return (int)i;
	return refuse(why, "%s: '%.60s' is none of %.*s", flag, s, (int)strcspn(all, "[") - 1, all);
}

static int set(struct perf_options *o, enum id id, const char *flag, const char *v, char *why)
{
	const char *all = options[id].help;
	int r = 0;

	switch (id) {
	case OPT_OP:
		if ((r = take_name(flag, v, perf_op_names, PERF_OPS, all, why)) >= 0)
			o->op = (enum perf_op)r;
		break;
	case OPT_DTYPE:
		if ((r = take_name(flag, v, perf_dtype_names, PERF_DTYPES, all, why)) >= 0)
			o->dtype = (enum perf_dtype)r;
		break;
	case OPT_REDOP:
		if ((r = take_name(flag, v, perf_redop_names, PERF_REDOPS, all, why)) >= 0)
			o->redop = (enum perf_redop)r;
		break;
	case OPT_MIN:
		return take_size(flag, v, 0, &o->min_bytes, why);
	case OPT_MAX:
		o->has_max = true;
		return take_size(flag, v, 0, &o->max_bytes, why);
	case OPT_STEP:
		return take_size(flag, v, 1, &o->step_bytes, why);
	case OPT_FACTOR:
		return take_factor(flag, v, &o->factor, why);
	case OPT_ITERS:
		return take_count(flag, v, 1, &o->iters, why);
	case OPT_WARMUP:
		return take_count(flag, v, 0, &o->warmup, why);
	case OPT_ROOT:
		return take_count(flag, v, 0, &o->root, why);
	case OPT_PRINT_RANK:
		return take_count(flag, v, 0, &o->printer, why);
	case OPT_IN_PLACE:
		o->in_place = true;
		break;
	case OPT_NO_CHECK:
		o->is_unchecked = true;
		break;
	case OPT_NO_TABLE:
		o->is_silent = true;
		break;
	case OPT_JSON:
		o->json = v;
		break;
	case OPT_ID_FILE:
		o->id_file = v;
		break;
	case OPT_HELP:
		o->wants_help = true;
		break;
	}
	return r < 0 ? r : 0;
}

/* @ret_value: what is in the same word; NULL: nothing. Return: the option; ARRAY_SIZE(options):
 * none. */
static size_t find(const char *word, const char **ret_value)
{
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].letter && word[0] == '-' && word[1] == options[i].letter[0]) {
			*ret_value = word[2] ? word + 2 : NULL;
			break;
		}
		len = strlen(options[i].name);
		if (!strncmp(word, options[i].name, len) && strchr("=", word[len])) {
			*ret_value = word[len] ? word + len + 1 : NULL;
			break;
		}
	}
	return i;
}

int perf_options_take(struct perf_options *o, bool is_user, int argc, char *const argv[],
		      int *index, char *ret_why)
{
	const char *value = NULL, *word = argv[*index];
	size_t i = find(word, &value);
	char flag[32];
	int r;

	if (i == ARRAY_SIZE(options) || (is_user && !options[i].is_user))
		return PERF_NOT_MINE;
	if (word[1] == '-')
		snprintf(flag, sizeof(flag), "%s", options[i].name);
	else
		snprintf(flag, sizeof(flag), "-%s", options[i].letter);
	if (!options[i].arg && value)
		return refuse(ret_why, "%s takes no value", flag);
	if (options[i].arg && !value && *index + 1 < argc &&
	    strncmp(argv[*index + 1], "--", 2) != 0)
		value = argv[++*index];
	if (options[i].arg && (!value || !value[0]))
		return refuse(ret_why, "%s needs a value: %s %s", flag, flag, options[i].arg);
	r = set(o, (enum id)i, flag, value, ret_why);
	++*index;
	return r;
}

int perf_options_check(const struct perf_options *o, char *ret_why)
{
	if (o->min_bytes > o->max_bytes)
		return refuse(ret_why, "the first size, -b %zu, is larger than the last, -e %zu%s",
			      o->min_bytes, o->max_bytes, o->has_max ? "" : " when not given");
	return 0;
}

void perf_options_help(bool is_user, FILE *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		char names[64];

		if (is_user && !options[i].is_user)
			continue;
		snprintf(names, sizeof(names), "%s%s%s%s%s%s", options[i].letter ? "-" : "",
			 options[i].letter ? options[i].letter : "", options[i].letter ? ", " : "",
			 options[i].name, options[i].arg ? " " : "",
			 options[i].arg ? options[i].arg : "");
		fprintf(to, "  %-20s %s\n", names, options[i].help);
	}
}

size_t perf_options_names(const char **ret_names, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(options) && n < max; i++)
		if (options[i].is_user)
			ret_names[n++] = options[i].name;
	return n;
}
