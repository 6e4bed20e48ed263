/* See inputs.h. */
#include "nbox/fit/inputs.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "calibrate/read.h"
#include "nbox/fit/read-record.h"

#define BYTES_MAX (256u << 20)

static int read_one(const char *path, const struct read_hints *hints, struct samples *ret,
		    struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	struct stat st;
	size_t len;
	int r;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return read_record(path, hints, ret, err);
	r = file_read(path, BYTES_MAX, &text, &len, err);
	return r < 0 ? r : read_text(path, text, len, hints, ret, err);
}

int inputs_read(const char *const *paths, size_t n, const struct read_hints *hints,
		struct samples *ret, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = read_one(paths[i], hints, ret, err);
	return r;
}
