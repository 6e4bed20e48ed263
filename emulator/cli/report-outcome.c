/* How the job ended, and why there may be nothing to report: see report.h. */
#include "cli/report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/record.h"

/* The first line of aborts.txt, which nboxd writes when a communicator is aborted. Return: @buf; "" without one. */
static const char *first_abort(const char *dir, char *buf, size_t size)
{
	char path[PATH_MAX];
	FILE *f;

	buf[0] = 0;
	if (!dir || snprintf(path, sizeof(path), "%s/" RECORD_ABORTS, dir) >= (int)sizeof(path))
		return buf;
	f = fopen(path, "re");
	if (f && !fgets(buf, (int)size, f))
		buf[0] = 0;
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = 0;
	return buf;
}

void report_outcome(struct report *r, int exit_code, const char *dir)
{
	char abort[400], code[64] = "";

	first_abort(dir, abort, sizeof(abort));
	if (exit_code > 0)
		snprintf(code, sizeof(code), "the job ended with exit code %d", exit_code);
	if (r->n_ops && exit_code > 0)
		report_warn(r, "%s: these figures are of what came before%s%s", code, abort[0] ? "; " : "", abort);
	else if (!r->n_ops && (exit_code > 0 || abort[0]))
		report_warn(r, "no op was recorded: %s%s%s%s", code, code[0] ? " before its first op was over" : "",
			    code[0] && abort[0] ? "; " : "", abort);
	else if (!r->n_ops)
		report_warn(r, "no op was recorded: the job ended before its first op was over, called NCCL not at all, or not "
			       "through libnbox.so (one that is linked statically or opened by its path cannot be reached: "
			       "see `readelf -d` of what calls it)");
}
