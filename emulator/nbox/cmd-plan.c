/* nbox plan: which cluster for a recorded run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/page/page.h"
#include "nbox/plan/print.h"
#include "nbox/plan/write.h"
#include "nbox/report/expect.h"
#include "nbox/sweep/command.h"
#include "nbox/sweep/draw.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox plan RUN [--nodes N,...] [--preset P,...] [--inter '{NICS,...}'] [--OPTION VALUES]... [--list FILE] [--out DIR]\n"
		"                 --samples-per-step N | --tokens-per-step N [--prices FILE] [--goal GOAL] [--on WHERE]\n\n"
		"Which cluster for the job of RUN: the points of nbox sweep, with what each means. A rank has as many samples a step in other\n"
		"worlds as in RUN, so that the batch grows with the cluster.\n\n"
		"  nbox plan gpt --nodes 2,8,32,128 --inter '{8x400Gbps,8x200Gbps}' --tokens-per-step 256K --prices prices.yaml --goal 'tokens/s >= 2M'\n\n"
		"Shown are the mean step, the rate, and from where to where it may be: the point is re-timed with all times of the network's model as far\n"
		"off as that may be, and with --gpu-error also computation; the efficiency, a rank's rate in percent of that in the smallest world with the same other settings; how much of a step\n"
		"computation waits; what bounds it: that without which a step is shortest, re-timed, and how much shorter. Letters behind a point\n"
		"say what was assumed, and where it is extrapolated. A layout follows the nodes: its data-parallel axis grows.\n"
		"A goal is of tokens/s or samples/s, mean_ms (of a step), efficiency (0.95 or 95%%), price/hour, or price/M (of a million samples). Of the\n"
		"points that meet it the cheapest is marked, without prices that of the fewest nodes; the exit code is 3 where none does.\n"
		"Prices: currency: USD, node_hour: {8x400Gbps: 98.3, default: 80}: by the node's preset, fabric's file or NICs, or by option and\n"
		"value (inter-bandwidth=50GB/s); the first that fits. DIR, else RUN-sweep, gets plan.html, plan.csv and plan.json, and the sweep's\n"
		"files.\n\n");
	option_help(COMMAND_PLAN, 22, to);
	return code;
}

struct args {
	struct sweep_command c;
	struct plan_ask ask;
	struct sweep_extra look;
	struct gpu_error gpu;
	const char *goal;
};

static int take_rate(struct args *a, const struct option_word *w, const char *unit, struct err *err)
{
	if (a->ask.unit)
		return err_set(err, EINVAL, "%s: either samples or tokens, once", w->name);
	if (plan_number(w->value, &a->ask.per_step) < 0 || a->ask.per_step == 0)
		return err_set(err, EINVAL, "%s: '%s' is no number such as 512, 256K or 4M",
			       w->name, w->value);
	a->ask.unit = unit;
	return 0;
}

/* A point that was played with another one is played again. */
static int take_gpu_error(struct args *a, const struct option_word *w, struct err *err)
{
	CLEANUP(freep) char *word = NULL;
	int r = gpu_error_parse(w->value, &a->gpu, err);

	if (r < 0)
		return err_prefix(err, r, "%s", w->name);
	a->look.ctx = &a->gpu;
	if (asprintf(&word, "%s=%s", w->name, w->value) < 0)
		return -ENOMEM;
	r = values_add(&a->c.sweep.beyond, word);
	return r == 0 ? values_add(&a->c.words, word) : r;
}

/* Return: 0; negative errno with the sentence. */
static int take(void *ctx, const struct option_word *w, struct err *err)
{
	struct args *a = ctx;

	switch ((int)w->id) {
	case FLAG_PLAN_SAMPLES:
		return take_rate(a, w, "samples", err);
	case FLAG_PLAN_TOKENS:
		return take_rate(a, w, "tokens", err);
	case FLAG_PLAN_PRICES:
		prices_deinit(&a->ask.prices);
		return prices_read(w->value, &a->ask.prices, err);
	case FLAG_PLAN_GPU_ERROR:
		return take_gpu_error(a, w, err);
	case FLAG_PLAN_GOAL:
		a->goal = w->value;
		return 0;
	default:
		return sweep_command_take(&a->c, w, err);
	}
}

static int check(struct args *a, struct err *err)
{
	int r = sweep_command_check(&a->c, err);

	a->c.sweep.extra = &a->look;
	if (r == 0 && !a->c.has_point && !a->ask.unit)
		return err_set(
			err, EINVAL,
			"how much does a step do? --samples-per-step N or --tokens-per-step N, of all ranks of the run together");
	if (r == 0 && a->goal)
		r = plan_goal_parse(a->goal, a->ask.unit, &a->ask.goal, err);
	if (r == 0 && !a->ask.prices.n &&
	    (a->ask.goal.metric == PLAN_HOUR || a->ask.goal.metric == PLAN_MILLION))
		return err_set(err, EINVAL, "--goal '%s': of which prices? --prices FILE", a->goal);
	return r;
}

static int write_files(const struct plan *plan, const struct args *a, struct err *err)
{
	const char *dir = a->c.dir;
	char path[PATH_MAX];
	int r = sweep_write(plan->results, err);

	r = r == 0 ? sweep_draw(plan->results, err) : r;

	snprintf(path, sizeof(path), "%.*s/plan.json", PATH_MAX - 32, a->c.dir);
	r = r == 0 ? plan_write_json(plan, path, err) : r;
	snprintf(path, sizeof(path), "%.*s/plan.csv", PATH_MAX - 32, a->c.dir);
	r = r == 0 ? plan_write_csv(plan, path, err) : r;
	snprintf(path, sizeof(path), "%.*s/plan.html", PATH_MAX - 32, a->c.dir);
	r = r == 0 ? page_write(&dir, 1, PAGE_HTML, path, err) : r;
	if (r == 0 && (!a->c.json || strcmp(a->c.json, "-") != 0))
		plan_print_table(plan, stdout);
	return r == 0 && a->c.json ? plan_write_json(plan, a->c.json, err) : r;
}

/* Return: an exit code; negative errno with the sentence. */
static int show(const struct args *a, struct err *err)
{
	struct sweep_results results;
	struct plan plan;
	int r = sweep_results_read(&a->c.sweep, &results), code = 1;

	if (r < 0)
		return r;
	r = plan_make(&a->ask, &results, &plan, err);
	if (r == 0) {
		r = write_files(&plan, a, err);
		code = results.n_failed                                  ? 1
		       : results.n_unmet || (a->goal && plan.n_met == 0) ? EXPECT_EXIT_CODE_UNMET
									 : 0;
		plan_deinit(&plan);
	}
	sweep_results_deinit(&results);
	return r < 0 ? r : code;
}

int cmd_plan(int argc, char **argv)
{
	struct args a = {.look = look_extra};
	struct err err = {""};
	int r = sweep_command_parse(&a.c, COMMAND_PLAN, argc, argv, take, &a, &err);
	int exit_code = 2;

	if (r == 0)
		r = check(&a, &err);
	if (r == 0)
		r = sweep_command_load(&a.c, &err);
	if (r == 0)
		r = plan_check_prices(&a.ask.prices, &a.c.sweep, &err);
	if (r == 0) {
		exit_code = 1;
		r = sweep_command_prepare(&a.c, argc, argv, &err);
		r = r == 0 ? sweep_command_play(&a.c, &err) : r;
		r = r == 1 ? 0 : r == 0 ? show(&a, &err) : r;
		exit_code = r < 0 ? exit_code : r;
	} else if (r == 1) {
		exit_code = usage(stdout, 0);
	}
	if (r < 0)
		fprintf(stderr, "nbox plan: %s\n", err.text[0] ? err.text : strerror(-r));
	prices_deinit(&a.ask.prices);
	sweep_command_deinit(&a.c);
	return exit_code;
}
