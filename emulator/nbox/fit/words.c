/* See words.h. */
#include "nbox/fit/words.h"

#include <errno.h>

#include "base/units.h"

int words_count(const char *name, const char *value, uint32_t *ret, struct err *err)
{
	uint64_t n;
	int r = units_count(value, &n, err);

	if (r < 0)
		return err_prefix(err, r, "%s", name);
	if (!n || n > 1000000000)
		return err_set(err, EINVAL, "%s %s: from 1 to 1000000000", name, value);
	*ret = (uint32_t)n;
	return 0;
}
