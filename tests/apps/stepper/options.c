/* See options.h. */
#include "stepper/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"

#define MAX_ITERATIONS 1000000

const char options_usage[] =
	"usage: stepper JOBFILE [options]    (RANK, WORLD_SIZE, LOCAL_RANK say who this process is)\n"
	"  --iterations N       timed iterations (default 20)\n"
	"  --warmup N           iterations before them (default 3)\n"
	"  --slow RANKS=FACTOR  these ranks take so many times as long to compute: 3=1.5, 0-3,5=2;\n"
	"                       3=1.5@0: in layer 0 alone; may be repeated\n"
	"  --jitter PERCENT     standard deviation of the time between two edges: 10%\n"
	"  --seed N             of the jitter (default 1)\n"
	"  --graph              an iteration is captured once, and replayed as a CUDA graph\n"
	"  --json FILE          the result, from rank 0\n"
	"  --id-file PATH       where rank 0 leaves the ncclUniqueId (default: in TMPDIR, by\n"
	"                       MASTER_PORT; not used when NCCL_COMM_ID is set)\n"
	"  --help\n";

enum flag { ITERATIONS, WARMUP, SLOW, JITTER, SEED, JSON, ID_FILE, GRAPH, HELP, FLAGS };
static const char *const names[FLAGS] = {
	"--iterations", "--warmup",  "--slow",  "--jitter", "--seed",
	"--json",       "--id-file", "--graph", "--help",
};

static int take_number(const char *text, uint64_t least, uint32_t *ret, struct err *err)
{
	uint64_t n;

	if (units_count(text, &n, err) < 0)
		return -EINVAL;
	if (n < least || n > MAX_ITERATIONS)
		return err_set(err, EINVAL, "'%.60s' is no number from %llu to %d", text,
			       (unsigned long long)least, MAX_ITERATIONS);
	*ret = (uint32_t)n;
	return 0;
}

static int take_value(enum flag flag, const char *value, struct options *o, struct err *err)
{
	switch ((int)flag) {
	case ITERATIONS:
		return take_number(value, 1, &o->iterations, err);
	case WARMUP:
		return take_number(value, 0, &o->warmup, err);
	case SLOW:
		if (o->n_slow == OPTIONS_MAX_SLOW)
			return err_set(err, EINVAL, "it is given more than %d times",
				       OPTIONS_MAX_SLOW);
		o->slow[o->n_slow++] = value;
		break;
	case JITTER:
		o->jitter = value;
		break;
	case SEED:
		return units_count(value, &o->seed, err);
	case JSON:
		o->json = value;
		break;
	case ID_FILE:
		o->id_file = value;
		break;
	default:
		return err_set(err, EINVAL, "it takes no value");
	}
	return 0;
}

/* Takes argv[*i] and its value. Return: 0; OPTIONS_HELP; -EINVAL with the sentence. */
static int take_flag(int argc, char *const argv[], int *i, struct options *o, struct err *err)
{
	const char *word = argv[*i], *equals = strchr(word, '='),
		   *value = equals ? equals + 1 : NULL;
	size_t n = equals ? (size_t)(equals - word) : strlen(word);
	char name[32];
	const char *near;
	int r;

	for (int f = 0; f < FLAGS; f++) {
		if (strlen(names[f]) != n || strncmp(word, names[f], n) != 0)
			continue;
		if (f == HELP && !value)
			return OPTIONS_HELP;
		if (f == GRAPH && !value) {
			o->is_graph = true;
			return 0;
		}
		if (!value && *i + 1 == argc)
			return err_set(err, EINVAL, "%s needs a value", names[f]);
		r = take_value((enum flag)f, value ? value : argv[++*i], o, err);
		return r < 0 ? err_prefix(err, r, "%s", names[f]) : 0;
	}
	snprintf(name, sizeof(name), "%.*s", (int)n, word);
	near = suggest_long(name, names, FLAGS);
	return err_set(err, EINVAL, "unknown option '%s'%s%s%s", name,
		       near ? "; did you mean '" : "; see --help", near ? near : "",
		       near ? "'?" : "");
}

int options_take(int argc, char *const argv[], struct options *ret, struct err *err)
{
	struct options o = {.iterations = 20, .warmup = 3, .seed = 1};
	int r;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-') {
			r = take_flag(argc, argv, &i, &o, err);
			if (r != 0)
				return r;
		} else if (o.job) {
			return err_set(err, EINVAL, "'%.60s' is one word too many: the job is %s",
				       argv[i], o.job);
		} else {
			o.job = argv[i];
		}
	}
	if (!o.job)
		return err_set(err, EINVAL, "which job? stepper JOBFILE; see --help");
	*ret = o;
	return 0;
}
