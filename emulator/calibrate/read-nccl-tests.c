/* nccl-tests' text, also several runs in one file, and between whatever else a job prints. A run
 * begins with lines of '#'; "#  Rank 3 Group 0 Pid 7 on HOST device ..." tells ranks and nodes, the
 * program's name (all_reduce_perf) the collective, and the line "# size count type ..." the
 * columns. A row begins with a size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "calibrate/reader.h"

#define HOSTS_MAX 65536

struct run {
	int kind; /* -1 */
	uint32_t n_ranks;
	char **hosts; /* owned, with the words: of the nodes */
	uint32_t n_hosts, room;
	size_t time, wrong; /* columns; time 0: none yet */
	bool has_rows;
};

static void run_deinit(struct run *run)
{
	for (uint32_t i = 0; i < run->n_hosts; i++)
		free(run->hosts[i]);
	free(run->hosts);
	*run = (struct run){.kind = -1};
}

/* "all_reduce_perf" in any place of a line. */
static void look_for_kind(struct run *run, const char *line)
{
	char name[32];

	for (const char *p = line; (p = strstr(p, "_perf")); p++) {
		const char *start = p;
		size_t n;

		while (start > line && (start[-1] == '_' || (start[-1] >= 'a' && start[-1] <= 'z')))
			start--;
		n = (size_t)(p - start);
		if (!n || n >= sizeof(name))
			continue;
		memcpy(name, start, n);
		name[n] = '\0';
		if (coll_kind_parse(name) >= 0)
			run->kind = coll_kind_parse(name);
	}
}

static int add_host(struct run *run, const char *host)
{
	char **more;

	for (uint32_t i = run->n_hosts; i-- > 0;) /* the last one first: ranks stand in order */
		if (strcmp(run->hosts[i], host) == 0)
			return 0;
	if (run->n_hosts == run->room) {
		more = run->room < HOSTS_MAX
			       ? realloc(run->hosts, (2 * (size_t)run->room + 16) * sizeof(*more))
			       : NULL;
		if (!more)
			return -ENOMEM;
		run->hosts = more;
		run->room = 2 * run->room + 16;
	}
	run->hosts[run->n_hosts] = strdup(host);
	return run->hosts[run->n_hosts++] ? 0 : -ENOMEM;
}

/* "# Rank 0 Group 0 Pid 6899 on host device 0 [...]"; older: without the group. Those of other
 * groups are worlds of their own. */
static int take_rank(struct run *run, char **words, size_t n)
{
	for (size_t i = 2; i + 1 < n; i++) {
		if (strcmp(words[i - 1], "Group") == 0 && strcmp(words[i], "0") != 0)
			return 0;
		if (strcmp(words[i], "on") != 0)
			continue;
		run->n_ranks++;
		return add_host(run, words[i + 1]);
	}
	return 0;
}

/* "# size count type redop root time algbw busbw #wrong time ..." */
static int take_columns(struct reader *r, struct run *run, char **words, size_t n)
{
	size_t times = 0;

	run->time = run->wrong = 0;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(words[i], "cputime") == 0)
			return reader_wrong(r, "the times are the CPU's (-C), not the ops'");
		if (strcmp(words[i], "time") == 0 && times++ == (r->hints->in_place ? 1 : 0))
			run->time = i;
		if (run->time && !run->wrong &&
		    (strcmp(words[i], "#wrong") == 0 || strcmp(words[i], "error") == 0))
			run->wrong = i;
	}
	return run->time ? 0
			 : reader_wrong(r, "there is no column 'time'%s",
					r->hints->in_place ? " for in place" : "");
}

static int take_comment(struct reader *r, struct run *run, char *line)
{
	char *words[READ_WORDS_MAX];
	size_t n;

	look_for_kind(run, line);
	n = reader_words(line + 1, words); /* behind the '#' */
	if (n > 2 && strcmp(words[0], "Rank") == 0)
		return take_rank(run, words, n);
	if (n > 2 && strcmp(words[0], "size") == 0)
		return take_columns(r, run, words, n);
	return 0;
}

static int take_row(struct reader *r, struct run *run, char **words, size_t n)
{
	struct sample s = {.n_ranks = run->n_ranks,
			   .n_nodes = run->n_hosts,
			   .proto = CURVE_ANY_PROTO};
	double us;

	run->has_rows = true;
	if (!run->time)
		return reader_wrong(r, "a row, but no line above it names the columns (# size "
				       "count type ...)");
	if (n <= run->time || n <= run->wrong)
		return reader_wrong(r, "the row has %zu columns; its time is the %zuth", n,
				    run->time + 1);
	if (strcmp(words[0], "0") == 0)
		return 0; /* too small for the ranks; nothing was sent */
	if (reader_number(r, "size", words[0], &s.bytes) < 0 ||
	    reader_number(r, "time", words[run->time], &us) < 0)
		return -EINVAL;
	if (run->wrong && strcmp(words[run->wrong], "N/A") != 0 &&
	    strtod(words[run->wrong], NULL) != 0)
		return reader_wrong(r, "%.40s results were wrong: no time to trust",
				    words[run->wrong]);
	s.ns = us * 1e3;
	return reader_add(r, run->kind, s);
}

static int take_line(struct reader *r, struct run *run, char *line)
{
	char *words[READ_WORDS_MAX], *prefix = strstr(line, "<stdout>:"), kept[READ_LINE_MAX];
	size_t n;

	if (prefix) /* mpirun --tag-output */
		line = prefix + strlen("<stdout>:");
	line += strspn(line, " \t");
	if (run->has_rows && (strstr(line, "nThread") || strstr(line, "_perf")) &&
	    !strstr(line, "concluded")) /* the next run's first line */
		run_deinit(run);
	if (line[0] == '#')
		return take_comment(r, run, line);
	strcpy(kept, line);
	n = reader_words(line, words);
	if (n < 5 || words[0][strspn(words[0], "0123456789")]) {
		look_for_kind(run, kept);
		return 0;
	}
	return take_row(r, run, words, n);
}

int read_nccl_tests(struct reader *r)
{
	CLEANUP(run_deinit) struct run run = {.kind = -1};
	char line[READ_LINE_MAX];
	size_t before = r->to->n;
	int n;

	while ((n = reader_line(r, line)) == 1)
		if ((n = take_line(r, &run, line)) < 0)
			break;
	if (n == 0 && !run.has_rows && r->to->n == before)
		return reader_wrong(r, "there is no row of nccl-tests");
	return n;
}
