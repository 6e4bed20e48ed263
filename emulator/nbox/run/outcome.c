/* See outcome.h. */
#include "nbox/run/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/open-model.h"
#include "engine/record-read.h"
#include "nbox/report/classes.h"
#include "nbox/report/expect.h"
#include "nbox/report/measure.h"
#include "nbox/report/outcome.h"
#include "nbox/report/steps-told.h"
#include "nbox/report/summary.h"

/* The network, and how far the ops of @rec lie outside what was measured; where that cannot be
 * said, what was said before the run. */
static void describe_network(const struct run *run, const struct record *rec, char *buf,
			     size_t size)
{
	const char *dirs[] = {run->paths.models, NULL};
	struct asked asked = {.kind = -1};
	struct delay_chain *chain = NULL;
	struct err err;

	snprintf(buf, size, "%s", run->network);
	for (uint64_t i = 0; i < rec->n_ops; i++)
		if (rec->ops[i].of && rec->ops[i].kind < COLL_SENDRECV)
			asked_add(&asked, (enum coll_kind)rec->ops[i].kind, rec->ops[i].bytes,
				  rec->ops[i].of->n_ranks);
	if (open_model(run->config, dirs, &chain, &err) == 0)
		open_model_network(run->config, chain, &asked, buf, size);
	delay_free(chain);
}

/* Whoever expects an exit code takes it for no failure. */
static int judge(const struct config *c, bool is_met, int exit_code)
{
	bool is_expected = false;

	for (size_t i = 0; i < c->n_expects; i++)
		is_expected |= c->expects[i].metric == EXPECT_EXIT_CODE;
	if (!is_met && (exit_code == 0 || is_expected))
		return EXPECT_EXIT_CODE_UNMET;
	return is_expected ? 0 : exit_code;
}

/* What was said before the run belongs to its figures; nboxd may have said it, too. */
static void add_warning(const struct run *run, struct report *rep)
{
	for (uint32_t i = 0; i < rep->n_warnings; i++)
		if (strstr(rep->warnings[i], run->warning))
			return;
	report_warn(rep, "%s", run->warning);
}

/* Makes the report of @rec and adds what only this run knows. */
static int make(const struct run *run, const struct results *res, const struct record *rec,
		int exit_code, struct report *ret)
{
	int r = report_make(rec, ret);

	if (r < 0)
		return r;
	describe_network(run, rec, ret->network, sizeof(ret->network));
	report_outcome(ret, exit_code, res->dir);
	if (run->warning[0])
		add_warning(run, ret);
	if (!ret->is_empty)
		report_classes_of_run(ret, run->config, rec);
	r = report_steps_told(ret, rec, run->config);
	report_expect_of(ret, run->config, exit_code);
	if (run->device == RUN_DEVICE_HOST)
		snprintf(ret->device, sizeof(ret->device),
			 WIRE_NOTE_NO_GPU
			 "the job ran on the CPU through the host CUDA runtime and %s; %s%s",
			 run->config->nccl == NCCL_FULL ? "the NCCL of NBOX_NCCL" : "host NCCL",
			 run->compute[0] ? "compute is modelled: "
					 : "its compute times are this CPU's",
			 run->compute);
	return r;
}

static int print(const struct run *run, const struct results *res, const struct record *rec,
		 const struct report *rep, int exit_code, struct err *err)
{
	int r = 0;

	if (run->printer)
		r = run->printer->print(run->printer->ctx, rec, rep, res->dir, exit_code, err);
	if (r == 0 && run->is_quiet && rep->lost[0])
		fprintf(stderr, "nbox %s: NOT WHOLE: %s\n", run_command(run), rep->lost);
	if (r == 0 && !run->is_quiet && !run->printer) {
		fflush(stdout);
		report_print(rep, stdout);
		if (!rep->is_empty)
			printf("   results        %s\n", res->dir);
	}
	return r;
}

int run_outcome(const struct run *run, const struct results *res, int *ret_code, struct err *err)
{
	int exit_code = *ret_code;
	CLEANUP(record_deinit) struct record rec = {0};
	CLEANUP(freep) struct report *rep = malloc(sizeof(*rep));
	struct err why = {""};
	char path[PATH_MAX];
	int r = record_load(results_path(res, "record.nbox", path), &rec, err);

	if (r < 0 && !run->json && !run->printer) {
		/* nothing that was asked for is missing: as with a full disk */
		fprintf(stderr, "nbox run: there is no summary: %s\n", err->text);
		*ret_code = judge(run->config, !run->config->n_expects, exit_code);
		return 0;
	}
	if (r == 0)
		r = rep ? make(run, res, &rec, exit_code, rep) : -ENOMEM;
	if (r < 0)
		return r;
	*ret_code = judge(run->config, report_is_met(rep), exit_code);
	if (report_write_json(rep, exit_code, results_path(res, "summary.json", path), &why) < 0)
		report_lose(rep, "%s", why.text);
	r = print(run, res, &rec, rep, exit_code, err);
	if (r == 0 && run->json) /* asked for, so that a run without it has failed */
		r = report_write_json(rep, exit_code, run->json, err);
	return r;
}
