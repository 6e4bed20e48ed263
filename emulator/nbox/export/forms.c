/* See forms.h. */
#include "nbox/export/forms.h"

#include <string.h>

#include "base/file.h"
#include "nbox/export/chakra.h"
#include "nbox/export/chrome.h"
#include "nbox/export/inspector.h"
#include "nbox/export/metrics.h"
#include "nbox/export/out.h"

static int write_trace(const struct loaded_run *run, const char *path, struct err *err)
{
	return chrome_write(&run->rec, path, err);
}

static int write_metrics(const struct loaded_run *run, const char *path, struct err *err)
{
	struct report rep;
	FILE *to;
	int r = run_report(run, &rep);

	if (r < 0 || (r = out_create(path, &to, err)) < 0)
		return r;
	metrics_print(&run->rec, &rep, to);
	return file_finish(to, path, err);
}

static int write_inspector(const struct loaded_run *run, const char *path, struct err *err)
{
	FILE *to;
	int r = out_create(path, &to, err), finished;

	if (r < 0)
		return r;
	r = inspector_print(&run->rec, to);
	finished = file_finish(to, path, err);
	return r < 0 ? r : finished;
}

static int write_chakra(const struct loaded_run *run, const char *prefix, struct err *err)
{
	return chakra_write(&run->rec, prefix, err);
}

static const struct {
	enum option_id flag;
	int (*write)(const struct loaded_run *run, const char *path, struct err *err);
	const char *help;
} table[FORMS] = {
	{FLAG_TRACE, write_trace,
	 "timelines of the real ranks, in virtual time, for ui.perfetto.dev, chrome://tracing and\n"
	 "                    tools of PyTorch's profiler: FILE.json with all ranks, or FOLDER/ with a\n"
	 "                    file for each"},
	{FLAG_METRICS, write_metrics,
	 "the figures as Prometheus reads them; nboxd serves those of a run that is under way"},
	{FLAG_INSPECTOR, write_inspector, "ops as NCCL Inspector logs them, a JSON object a line"},
	{FLAG_CHAKRA, write_chakra, "Chakra execution traces, PREFIX.N.et for each real rank N"},
};

bool forms_take(struct forms *f, const struct option_word *w)
{
	for (int i = 0; i < FORMS; i++)
		if (table[i].flag == w->id) {
			f->files[i] = w->value;
			return true;
		}
	return false;
}

bool forms_any(const struct forms *f)
{
	for (int i = 0; i < FORMS; i++)
		if (f->files[i])
			return true;
	return false;
}

int forms_write(const struct forms *f, const struct loaded_run *run, struct err *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < FORMS; i++)
		r = f->files[i] ? table[i].write(run, f->files[i], err) : 0;
	return r;
}

static void option_line(const struct option *o, const char *help, FILE *to)
{
	char words[32];

	snprintf(words, sizeof(words), "--%s %s", o->name, o->arg);
	fprintf(to, "  %-17s %s\n", words, help);
}

void forms_help(FILE *to)
{
	fputs("Forms of others, each to a file instead of the summary; FILE '-' is the standard output, FILE.gz is packed:\n\n",
	      to);
	for (int i = 0; i < FORMS; i++)
		option_line(&options[table[i].flag], table[i].help, to);
	putc('\n', to);
}
