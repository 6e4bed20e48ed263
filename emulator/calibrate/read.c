/* See read.h. */
#include "calibrate/read.h"

#include <errno.h>
#include <string.h>

#include "calibrate/reader.h"

/* Whether the first line that is neither empty nor a comment names columns. */
static bool is_csv(const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		char head[READ_LINE_MAX];
		const char *line = text;
		size_t n;

		text = memchr(line, '\n', (size_t)(end - line));
		text = text ? text + 1 : end;
		if (*line == '#' || *line == '\n' || *line == '\r')
			continue;
		n = (size_t)(text - line);
		n = n < sizeof(head) ? n : sizeof(head) - 1;
		memcpy(head, line, n);
		head[n] = '\0';
		return strchr(head, ',') && strcasestr(head, "bytes");
	}
	return false;
}

int read_text(const char *file, const char *text, size_t len, const struct read_hints *hints,
	      struct samples *ret, struct err *err)
{
	struct reader r = {
		.file = file, .p = text, .end = text + len, .hints = hints, .to = ret, .err = err};
	size_t blank = 0, before = ret->n;
	int bad;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a spreadsheet's UTF-8 */
		r.p = text += 3;
		len -= 3;
	}
	while (blank < len && strchr(" \t\r\n", text[blank]) && text[blank])
		blank++;
	if (blank < len && text[blank] == '{')
		bad = read_json(&r);
	else if (memmem(text, len, "COMMS-RES-", 10))
		bad = read_param(&r);
	else if (is_csv(text, len))
		bad = read_csv(&r);
	else
		bad = read_nccl_tests(&r);
	if (bad == -ENOMEM)
		return err_set(err, ENOMEM, "%s: out of memory", file);
	if (bad == 0 && ret->n == before && hints->kind >= 0)
		return err_set(err, EINVAL, "%s has no time of %s", file,
			       coll_kind_name((uint32_t)hints->kind));
	if (bad == 0 && ret->n == before)
		return err_set(err, EINVAL, "%s has no time of a collective", file);
	return bad;
}
