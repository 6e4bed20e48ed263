/* nbox optimize: which gradients of a run, or of layers, should be reduced together. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "base/units.h"
#include "nbox/ask/configure.h"
#include "nbox/commands.h"
#include "nbox/doctor/paths.h"
#include "nbox/optimize/print.h"
#include "nbox/perf/collective.h"

static int usage(void)
{
	fputs("usage: nbox optimize RUN [OPTION...] [OPTION of nbox retime...]\n"
	      "       nbox optimize --layers FILE [--allreduce TIME,RATE] [OPTION...] [OPTION of a cluster...]\n\n"
	      "Which gradients of a data-parallel backward pass should be reduced together. RUN is a recorded run of PyTorch's\n"
	      "DistributedDataParallel or the stepper's style ddp, best one with small buckets: each all-reduce of a step is a\n"
	      "gradient here, ready when the backward pass came to it. Beside the plan stands what DDP, Horovod and BytePS would\n"
	      "do. What can be is re-timed: the record, played again with those buckets. The plan is the best of that.\n\n",
	      stdout);
	option_help(COMMAND_OPTIMIZE, 23, stdout);
	fputs("  --out FILE              the plan alone, {\"mapping\": [\"0+1+2\", \"3\"]}: gradients by the order in which they are ready\n"
	      "\n  nbox run --name small --nodes 64 ... -- torchrun ... train.py       # with DDP(..., bucket_cap_mb=1e-6)\n"
	      "  nbox optimize small\n",
	      stdout);
	return 0;
}

struct args {
	struct optimize_asked asked;
	struct option_word *options; /* owned list; of the configuration */
	size_t n_options;
	const char *json, *out, *layers_file;
	struct declared_counts declared;
	struct recorded run;
	bool has_run; /* it is loaded */
	struct layers layers;
	struct config *config;
	struct paths paths;
};

static void args_deinit(struct args *a)
{
	free(a->options);
	if (a->has_run)
		recorded_deinit(&a->run);
	layers_deinit(&a->layers);
	config_free(a->config);
}

static int take_passes(const char *text, unsigned *ret, struct err *err)
{
	static const char *const names[] = {"tsfs", "part", "opfs", "mem"};
	CLEANUP(freep) char *copy = strdup(text);
	char *rest = copy, *word;

	*ret = 0;
	while ((word = strsep(&rest, ","))) {
		size_t i = 0;

		while (i < ARRAY_SIZE(names) && strcmp(word, names[i]) != 0)
			i++;
		if (i == ARRAY_SIZE(names))
			return err_set(err, EINVAL,
				       "'%.60s' is no pass: there are tsfs, part, opfs, mem", word);
		if (*ret & 1u << i)
			return err_set(err, EINVAL, "%s is given twice", word);
		*ret |= 1u << i;
	}
	return copy ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int take_opt(const char *text, bool *ret_is_dpro, struct err *err)
{
	if (strcmp(text, "dp") != 0 && strcmp(text, "dpro") != 0)
		return err_set(err, EINVAL, "'%.60s' is none of dp, dpro", text);
	*ret_is_dpro = strcmp(text, "dpro") == 0;
	return 0;
}

/* "200us,5GB/s" */
static int take_allreduce(const char *text, struct optimize_asked *a, struct err *err)
{
	char time[32];
	const char *comma = strchr(text, ',');
	int r;

	snprintf(time, sizeof(time), "%.*s", comma ? (int)(comma - text) : 0, text);
	if (!comma)
		return err_set(err, EINVAL, "'%.60s': a time and a rate, such as 200us,5GB/s",
			       text);
	r = units_time(time, &a->alpha_ns, err);
	return r < 0 ? r : units_bandwidth(comma + 1, &a->bytes_per_ns, err);
}

static int take_option(struct args *a, const struct option_word *w, struct err *err)
{
	uint64_t bytes = 0;
	int r = 0;

	if (w->id == FLAG_OPTIMIZE_PASS)
		r = take_passes(w->value, &a->asked.passes, err);
	else if (w->id == FLAG_OPTIMIZE_OPT)
		r = take_opt(w->value, &a->asked.is_dpro, err);
	else if (w->id == FLAG_OPTIMIZE_ALLREDUCE)
		r = take_allreduce(w->value, &a->asked, err);
	else if (w->id == FLAG_OPTIMIZE_LAYERS)
		a->layers_file = w->value;
	else if (w->id == FLAG_COUNTS)
		r = declared_parse(w->value, &a->declared, err);
	else if (w->id == FLAG_OPTIMIZE_JSON)
		a->json = w->value;
	else if (w->id == CONFIG_OUT)
		a->out = w->value;
	else if (w->id == CONFIG_WITH || w->id == CONFIG_REAL || w->id == CONFIG_AS_NODE)
		return err_set(err, EINVAL, "%s: buckets are planned by the one record", w->name);
	else if (w->id == FLAG_MEM_BUDGET) {
		r = units_bytes(w->value, &bytes, err);
		a->asked.budget = (double)bytes;
	} else
		a->options[a->n_options++] = *w;
	return r < 0 ? err_prefix(err, r, "%s", w->name) : 0;
}

/* Return: 0; 1: help was given; negative errno with the sentence. */
static int take_words(struct args *a, int argc, char **argv, struct err *err)
{
	struct option_word w;
	int r;

	a->options = calloc((size_t)argc + 1, sizeof(*a->options));
	if (!a->options)
		return err_set(err, ENOMEM, "out of memory");
	for (int i = 1; i < argc;) {
		r = option_take(COMMAND_OPTIMIZE, argc, argv, &i, &w, err);
		if (r == OPTION_NONE && a->asked.run)
			return err_set(err, EINVAL, "one run at a time: '%s' and '%s'?",
				       a->asked.run, argv[i]);
		if (r == OPTION_NONE) {
			a->asked.run = argv[i++];
			continue;
		}
		if (r == 0 && w.id == FLAG_HELP) {
			usage();
			return 1;
		}
		r = r < 0 ? r : take_option(a, &w, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What cannot be together. */
static int check(const struct args *a, struct err *err)
{
	const struct optimize_asked *o = &a->asked;

	if (!o->run && !a->layers_file)
		return err_set(err, EINVAL,
			       "of which run? nbox list has their names; or --layers FILE");
	if (!(o->passes & PASS_TENSORS))
		return err_set(err, EINVAL, "--pass: without tsfs there is nothing to plan");
	if (o->passes & PASS_OPS && (!o->is_dpro || !a->layers_file || o->run))
		return err_set(err, EINVAL,
			       "--pass opfs: by Algorithm 1, of layers whose file has fused=TIME: "
			       "--opt dpro --layers FILE, without a run");
	if (!isinf(o->budget) != !!(o->passes & PASS_MEMORY))
		return err_set(err, EINVAL,
			       "--pass mem and --mem SIZE are given together, or neither");
	if (o->passes & PASS_MEMORY && o->run)
		return err_set(err, EINVAL,
			       "--pass mem: the computation of a record is as it was; --layers "
			       "FILE without a run");
	return 0;
}

/* The run with its configuration, or that of the command line. */
static int open(struct args *a, struct err *err)
{
	int r = paths_find(&a->paths, PATHS_MODELS, err);

	a->asked.models = a->paths.models;
	if (r == 0 && a->asked.run) {
		r = recorded_load_all(&a->asked.run, 1, &a->run, err);
		a->has_run = r == 0;
		a->run.declared = a->declared;
		a->asked.recorded = &a->run;
	}
	if (r == 0)
		r = a->asked.run ? recorded_config(&a->run, &a->config, err)
				 : config_new(&a->config);
	for (size_t i = 0; i < a->n_options && r == 0; i++)
		r = config_take(a->config, &a->options[i], err);
	a->asked.config = a->config;
	if (r == 0 && a->asked.run)
		return recorded_finish(&a->run, a->config, err);
	if (r < 0 || a->asked.bytes_per_ns > 0)
		return r;
	r = perf_defaults(a->config);
	return r < 0 ? r : configure(a->config, NULL, err);
}

static int answer(const struct args *a, struct err *err)
{
	CLEANUP(optimized_deinit) struct optimized o = {.n_rows = 0};
	int r = optimize(&a->asked, &o, err);

	if (r == 0 && (!a->json || strcmp(a->json, "-") != 0))
		optimize_print(&a->asked, &o, stdout);
	if (r == 0 && a->json)
		r = optimize_write_json(&a->asked, &o, a->json, err);
	if (r == 0 && a->out)
		r = optimize_write_mapping(&o, a->out, err);
	return r;
}

int cmd_optimize(int argc, char **argv)
{
	CLEANUP(args_deinit)
	struct args a = {.asked = {.passes = PASS_TENSORS, .budget = INFINITY}};
	struct err err = {""};
	int r = take_words(&a, argc, argv, &err), exit_code = 2;

	if (r == 1)
		return 0;
	if (r == 0)
		r = check(&a, &err);
	if (r == 0 && a.layers_file) {
		r = layers_read(a.layers_file, &a.layers, &err);
		a.asked.layers = &a.layers;
	}
	if (r == 0)
		r = open(&a, &err);
	if (r == 0) {
		r = answer(&a, &err);
		exit_code = r == -EINVAL ? 2 : 1;
	}
	if (r < 0)
		fprintf(stderr, "nbox optimize: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : 0;
}
