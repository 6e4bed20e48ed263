/* See outcome.h. */
#include "nbox/run/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "engine/record.h"
#include "nbox/report/measure.h"
#include "nbox/report/outcome.h"
#include "nbox/report/summary.h"

/* Makes the report of @rec and adds what only this run knows. */
static int make(const struct run *r, const struct results *res, const struct record *rec,
		int exit_code, struct report *ret)
{
	int code = report_make(rec, ret);

	if (code < 0)
		return code;
	snprintf(ret->network, sizeof(ret->network), "%s", r->network);
	report_outcome(ret, exit_code, res->dir);
	if (r->device == RUN_DEVICE_HOST)
		snprintf(ret->device, sizeof(ret->device),
			 WIRE_NOTE_NO_GPU
			 "the job ran on the CPU through the host CUDA runtime and "
			 "host NCCL; its compute times are this CPU's");
	return 0;
}

static int print(const struct run *r, const struct results *res, const struct record *rec,
		 const struct report *rep, int exit_code, struct err *err)
{
	int code = 0;

	if (r->printer)
		code = r->printer->print(r->printer->ctx, rec, rep, res->dir, exit_code, err);
	if (code == 0 && r->is_quiet && rep->lost[0])
		fprintf(stderr, "nbox %s: NOT WHOLE: %s\n", run_command(r), rep->lost);
	if (code == 0 && !r->is_quiet && !r->printer) {
		fflush(stdout);
		report_print(rep, stdout);
		if (!rep->is_empty)
			printf("   results        %s\n", res->dir);
	}
	return code;
}

int run_outcome(const struct run *r, const struct results *res, int exit_code, struct err *err)
{
	CLEANUP(record_deinit) struct record rec = {0};
	CLEANUP(freep) struct report *rep = malloc(sizeof(*rep));
	struct err why = {""};
	char path[PATH_MAX];
	int code = record_load(results_path(res, "record.nbox", path), &rec, err);

	if (code < 0 && !r->json && !r->printer) {
		/* nothing that was asked for is missing: as with a full disk */
		fprintf(stderr, "nbox run: there is no summary: %s\n", err->text);
		return 0;
	}
	if (code == 0)
		code = rep ? make(r, res, &rec, exit_code, rep) : -ENOMEM;
	if (code < 0)
		return code;
	if (report_write_json(rep, exit_code, results_path(res, "summary.json", path), &why) < 0)
		report_lose(rep, "%s", why.text);
	code = print(r, res, &rec, rep, exit_code, err);
	if (code == 0 && r->json) /* asked for, so that a run without it has failed */
		code = report_write_json(rep, exit_code, r->json, err);
	return code;
}
