/* See words.h. */
#include "nbox/fit/words.h"

#include <errno.h>
#include <stdio.h>

#include "base/suggest.h"
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

int words_unknown(const char *name, const char *value, const char *const *known, size_t n,
		  struct err *err)
{
	const char *near = suggest_long(value, known, n);
	char all[256] = "";
	size_t used = 0;

	if (near)
		return err_set(err, EINVAL, "%s '%s': unknown; did you mean '%s'?", name, value,
			       near);
	for (size_t i = 0; i < n && used < sizeof(all); i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 known[i]);
	return err_set(err, EINVAL, "%s '%s': unknown; one of %s", name, value, all);
}
