/* See whole-file.h. */
#include "nbox/fit/whole-file.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/file.h"

#define BYTES_MAX (4u << 20)

int fitted_load(const char *path, struct fitted *ret, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	char sentence[FITTED_SENTENCE];
	size_t len;
	int r = file_read(path, BYTES_MAX, &text, &len, err);

	if (r < 0)
		return r;
	if (fitted_parse(path, text, len, ret, sentence) < 0)
		return err_set(err, EINVAL, "%s", sentence);
	return 0;
}
