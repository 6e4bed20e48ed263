/* See spec.h. */
#include "config/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "config/did-you-mean.h"

bool spec_is(const char *text, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(text, name, n) && (!text[n] || text[n] == ':');
}

static int add(struct spec *s, const char *text, char *pair, struct err *err)
{
	char *equals = strchr(pair, '=');

	if (!equals || equals == pair || !equals[1])
		return err_set(err, EINVAL, "'%.200s': '%.64s' is no key=value%s", text, pair,
			       isdigit((unsigned char)pair[0])
				       ? "; several ranks are written with +, such as rank=1+5"
				       : "");
	*equals = '\0';
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->pairs[i].key, pair))
			return err_set(err, EINVAL, "'%.200s': '%s' is given twice", text, pair);
	if (s->n == ARRAY_SIZE(s->pairs))
		return err_set(err, EINVAL, "'%.200s' has too many keys", text);
	s->pairs[s->n++] = (struct spec_pair){pair, equals + 1};
	return 0;
}

int spec_split(const char *text, struct spec *ret, struct err *err)
{
	char *pair, *next;
	int r = 0;

	ret->n = 0;
	if (strlen(text) >= sizeof(ret->copy))
		return err_set(err, EINVAL, "'%.64s...' is too long", text);
	snprintf(ret->copy, sizeof(ret->copy), "%s", text);
	pair = strchr(ret->copy, ':');
	for (pair = pair && pair[1] ? pair + 1 : NULL; !r && pair; pair = next) {
		next = strchr(pair, ',');
		if (next)
			*next++ = '\0';
		r = add(ret, text, pair, err);
	}
	return r;
}

int spec_unknown(const char *key, const char *const *keys, size_t n, struct err *err)
{
	char near[96], list[160];
	size_t used = 0;

	did_you_mean(key, keys, n, near, sizeof(near));
	list[0] = '\0';
	for (size_t i = 0; i < n && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s %s", i ? "," : "",
					 keys[i]);
	return err_set(err, EINVAL, "unknown key '%.64s'%s%s", key, near[0] ? near : "; there are",
		       near[0] ? "" : list);
}
