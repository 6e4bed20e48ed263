/* nbox record: a run's record itself, row by row. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/options.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/export/dump.h"
#include "nbox/fit/words.h"
#include "nbox/report/load.h"

static int usage(void)
{
	fputs("usage: nbox record dump [OPTION...] RECORD\n\n"
	      "Prints each row of RECORD, a record.nbox, the results directory that holds one, or its name (nbox list): the header, the\n"
	      "communicators, each op and each point of the real ranks, the end. Rows and fields are those of RECORD.md.\n"
	      "Text leaves out numbers of 64 bits that are zero. nbox report --csv prints ops as a table.\n\n",
	      stdout);
	option_help(COMMAND_RECORD, 14, stdout);
	return 0;
}

struct request {
	const char *verb, *word;
	struct dump what;
};

static int take_option(struct request *q, const struct option_word *w, struct err *err)
{
	uint64_t n;
	int r = 0;

	if (w->id == FLAG_RECORD_JSON)
		q->what.is_json = true;
	else if (w->id == FLAG_RECORD_KIND && !(q->what.kind = dump_kind(w->value)))
		r = words_unknown(w->name, w->value, dump_kinds, 6, err);
	else if (w->id == FLAG_RECORD_RANK && (r = units_count(w->value, &n, err)) < 0)
		err_prefix(err, r, "%s", w->name);
	else if (w->id == FLAG_RECORD_RANK)
		q->what.world_rank = n > UINT32_MAX ? UINT32_MAX : (int64_t)n;
	return r;
}

static int take_word(struct request *q, const char *word, struct err *err)
{
	if (q->word)
		return err_set(err, EINVAL, "one record at a time: '%s' and '%s'", q->word, word);
	if (!q->verb && strcmp(word, "dump") != 0)
		return err_set(err, EINVAL, "'%s'? It is: nbox record dump RECORD", word);
	*(q->verb ? &q->word : &q->verb) = word;
	return 0;
}

int cmd_record(int argc, char **argv)
{
	CLEANUP(loaded_run_deinit) struct loaded_run run = {0};
	struct request q = {.what = {.world_rank = -1}};
	struct option_word w;
	struct err err = {""};
	int r = 0;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_RECORD, argc, argv, &i, &w, &err);
		if (r == 0 && w.id == FLAG_HELP)
			return usage();
		r = r == OPTION_NONE ? take_word(&q, argv[i++], &err)
		    : r == 0         ? take_option(&q, &w, &err)
				     : r;
	}
	if (r == 0 && !q.word)
		r = err_set(&err, EINVAL, "%s",
			    q.verb ? "of which run? nbox list has their names"
				   : "what? nbox record dump RECORD; see --help");
	r = r == 0 ? run_load(q.word, &run, &err) : r;
	if (r < 0) {
		fprintf(stderr, "nbox record: %s\n", err.text[0] ? err.text : strerror(-r));
		return 2;
	}
	if (run.info.is_running)
		fprintf(stderr, "nbox record: " REPORT_UNDER_WAY_TEXT "\n");
	dump_print(&run.rec, &q.what, stdout);
	return 0;
}
