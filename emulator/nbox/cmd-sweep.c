/* nbox sweep: a recorded run on many clusters. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/report/expect.h"
#include "nbox/sweep/command.h"
#include "nbox/sweep/draw.h"
#include "nbox/sweep/write.h"

static int usage(FILE *to, int code)
{
	fprintf(to,
		"usage: nbox sweep RUN [--nodes N,...] [--preset P,...] [--what-if W]... [--OPTION VALUES]... [--list FILE] [--out DIR]\n\n"
		"What the run RUN (a results directory, or its name) would have been in many settings, from its record (nbox retime). Options are\n"
		"those of nbox run. All combinations of their values are tried; what is not given is as it was in the run.\n\n"
		"  RUN --nodes 2,8,32                                 a list; a number without a unit has that of the last\n"
		"  RUN --nodes 8..1024:x2                             a range by a factor: 8, 16, ... 1024\n"
		"  RUN --inter-bandwidth 100..400Gbps:+100Gbps        a range by steps\n"
		"  RUN --what-if add:op=allreduce,delay={0..10ms:1ms} in braces where a value may have commas itself\n"
		"  RUN --what-if '{none|slow:rank=3,compute=1.5}'     with a bar, commas belong to the values\n\n"
		"DIR, else RUN-sweep, gets sweep.csv, sweep.json, sweep.html and sweep.svg, and for each point a folder below points/ with\n"
		"summary.json and config.yaml. A point that is complete is not done again. One that fails is marked, the others go on, and the\n"
		"exit code is 1; it is 3 where one is not as --expect says.\n"
		"--beside shows the points of another sweep in the table and the pictures: live runs beside re-timed ones.\n"
		"For other machines DIR lies where all see it; when they are through, the same line without --on shows the sweep.\n\n");
	option_help(COMMAND_SWEEP, 20, to);
	return code;
}

struct args {
	struct sweep_command c;
	const char *beside_dir;
	struct beside beside;
};

/* Return: 0; negative errno with the sentence. */
static int take(void *ctx, const struct option_word *w, struct err *err)
{
	struct args *a = ctx;

	if (w->id == FLAG_SWEEP_BESIDE) {
		a->beside_dir = w->value;
		return 0;
	}
	return sweep_command_take(&a->c, w, err);
}

/* Return: an exit code; negative errno with the sentence. */
static int show(const struct args *a, struct err *err)
{
	const struct sweep_command *c = &a->c;
	struct sweep_results results;
	int r = sweep_results_read(&c->sweep, &results), code;

	if (r < 0)
		return r;
	results.beside = a->beside;
	r = sweep_write(&results, err);
	r = r == 0 ? sweep_draw(&results, err) : r;
	if (r == 0 && (!c->json || strcmp(c->json, "-") != 0))
		sweep_print(&results, stdout);
	if (r == 0 && c->json)
		r = sweep_write_json(&results, c->json, err);
	code = results.n_failed ? 1 : results.n_unmet ? EXPECT_EXIT_CODE_UNMET : 0;
	sweep_results_deinit(&results);
	return r < 0 ? r : code;
}

int cmd_sweep(int argc, char **argv)
{
	struct args a = {.beside_dir = NULL};
	struct err err = {""};
	int r = sweep_command_parse(&a.c, COMMAND_SWEEP, argc, argv, take, &a, &err);
	int exit_code = 2;

	if (r == 0)
		r = sweep_command_check(&a.c, &err);
	if (r == 0)
		r = sweep_command_load(&a.c, &err);
	if (r == 0 && a.beside_dir)
		r = beside_read(a.beside_dir, &a.c.sweep.grid, &a.beside, &err);
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
		fprintf(stderr, "nbox sweep: %s\n", err.text[0] ? err.text : strerror(-r));
	beside_deinit(&a.beside);
	sweep_command_deinit(&a.c);
	return exit_code;
}
