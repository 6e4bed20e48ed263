/* PARAM's comms benchmark: lines "COMMS-RES-all_reduce-float32 SIZE ELEMENTS P50 P75 P95 MIN MAX
 * ALGBW BUSBW", us; the rest of its output is passed over. The time is the median. SIZE is
 * nccl-tests' size: PARAM takes its bus bandwidth from it by the same factors. */
#include <errno.h>
#include <string.h>

#include "calibrate/reader.h"

#define MARK "COMMS-RES-"

/* "all_to_all_single" is an all-to-all, "all_gather_base" an all-gather. */
static int kind_of(char *name)
{
	static const char *const endings[] = {"_single", "_base", "v"};
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t len = strlen(endings[i]);

		if (n > len && strcmp(name + n - len, endings[i]) == 0) {
			name[n - len] = '\0';
			break;
		}
	}
	return coll_kind_parse(name);
}

static int take_line(struct reader *r, char *line)
{
	struct sample s = {.proto = CURVE_ANY_PROTO};
	char *words[READ_WORDS_MAX], *name = strstr(line, MARK), *dash;
	size_t n = name ? reader_words(name, words) : 0;
	double us;
	int kind;

	if (!n)
		return 0;
	name = words[0] + strlen(MARK);
	dash = strchr(name, '-');
	if (strncmp(name, "QUANT-", 6) == 0 || !dash)
		return reader_wrong(r, "'%.60s' is no time of a plain collective", words[0]);
	*dash = '\0';
	kind = kind_of(name);
	if (kind < 0)
		return reader_wrong(r, "nbox knows no collective '%.40s'", name);
	if (n < 9)
		return reader_wrong(r,
				    "%zu columns behind %s...; a row has size, elements, p50, "
				    "p75, p95, min, max and two bandwidths",
				    n - 1, MARK);
	if (reader_number(r, "size", words[1], &s.bytes) < 0 ||
	    reader_number(r, "p50", words[3], &us) < 0)
		return -EINVAL;
	s.ns = us * 1e3;
	return reader_add(r, kind, s);
}

int read_param(struct reader *r)
{
	char line[READ_LINE_MAX];
	int n;

	while ((n = reader_line(r, line)) == 1)
		if ((n = take_line(r, line)) < 0)
			break;
	return n;
}
