/* See convert.h. */
#include "config/convert.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "base/units.h"

int value_refuse(const struct config *c, enum option_id id, size_t item, struct err *err,
		 const char *fmt, ...)
{
	char where[VALUE_WHERE_MAX], sentence[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return err_set(err, EINVAL, "%s: %s", config_where(c, id, item, where, sizeof(where)),
		       sentence);
}

const char *value_name(const struct config *c, enum option_id id, char *buf, size_t size)
{
	bool is_file = c->values[id].source == SOURCE_FILE;

	snprintf(buf, size, "%s%s", is_file ? options[id].name : "", is_file ? ": " : "");
	return buf;
}

int value_refuse_text(const struct config *c, enum option_id id, struct err *err)
{
	struct err why = {""};
	char name[64];

	if (err)
		why = *err;
	return value_refuse(c, id, 0, err, "%s%s", value_name(c, id, name, sizeof(name)), why.text);
}

int value_count(const struct config *c, enum option_id id, uint64_t min, uint64_t max,
		uint64_t *ret, struct err *err)
{
	uint64_t n;

	if (!config_text(c, id))
		return 0;
	if (units_count(config_text(c, id), &n, err) < 0)
		return value_refuse_text(c, id, err);
	if (n < min || n > max)
		return value_refuse(c, id, 0, err, "%s must be %llu to %llu, not %s",
				    options[id].name, (unsigned long long)min,
				    (unsigned long long)max, config_text(c, id));
	*ret = n;
	return 0;
}

int value_time(const struct config *c, enum option_id id, double max_ns, double *ret,
	       struct err *err)
{
	double ns;

	if (!config_text(c, id))
		return 0;
	if (units_time(config_text(c, id), &ns, err) < 0)
		return value_refuse_text(c, id, err);
	if (ns > max_ns)
		return value_refuse(c, id, 0, err, "%s may be at most %.0fs, not %s",
				    options[id].name, max_ns / 1e9, config_text(c, id));
	*ret = ns;
	return 0;
}

int value_choice(const struct config *c, enum option_id id, int *ret, struct err *err)
{
	const char *const *choices = options[id].choices, *text = config_text(c, id), *near;
	char list[128] = "";
	size_t n = 0, used = 0;

	for (; choices[n]; n++) {
		/* Log levels are NCCL's, which takes any case. */
		if (id == CONFIG_LOG ? strcasecmp(text, choices[n]) == 0
				     : strcmp(text, choices[n]) == 0) {
			*ret = (int)n;
			return 0;
		}
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", n ? ", " : "",
					 choices[n]);
	}
	near = suggest_long(text, choices, n);
	if (near)
		return value_refuse(c, id, 0, err, "unknown %s '%.64s'; did you mean '%s'?",
				    options[id].name, text, near);
	return value_refuse(c, id, 0, err, "unknown %s '%.64s'; there are: %s", options[id].name,
			    text, list);
}
