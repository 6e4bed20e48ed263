/* See decisions-reading.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "decisions-reading.h"

int reading_wrong(struct reading *r, const char *fmt, ...)
{
	char what[DECISIONS_SENTENCE - 140];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(r->sentence, DECISIONS_SENTENCE, "%.100s:%lu: %s", r->file, r->line, what);
	return -1;
}

int reading_grow(struct reading *r, void **items, size_t n, size_t size)
{
	void *more;

	if ((n & (n - 1)) != 0) /* it is full at 0, 1, 2, 4, ... */
		return 0;
	more = realloc(*items, (n ? 2 * n : 1) * size);
	if (!more)
		return reading_wrong(r, "out of memory");
	*items = more;
	return 0;
}

char *reading_word(char **text)
{
	char *word = *text + strspn(*text, " ");

	*text = word + strcspn(word, " ");
	if (**text)
		*(*text)++ = '\0';
	return word;
}

int reading_choice(struct reading *r, const char *key, const char *word, const char *words,
		   uint32_t *ret)
{
	int i = words_find(words, word, strlen(word));

	if (i < 0)
		return reading_wrong(r, "%s: '%.60s' is none of %s", key, word, words);
	*ret = (uint32_t)i;
	return 0;
}

int reading_count(struct reading *r, const char *key, const char *word, uint64_t least,
		  uint64_t most, uint64_t *ret)
{
	size_t n = strlen(word);
	uint64_t v;

	errno = 0;
	v = n && strspn(word, "0123456789") == n ? strtoull(word, NULL, 10) : 0;
	if (!n || strspn(word, "0123456789") != n || errno || v < least || v > most)
		return reading_wrong(r, "%s: '%.60s' is no whole number from %llu to %llu", key,
				     word, (unsigned long long)least, (unsigned long long)most);
	*ret = v;
	return 0;
}

int reading_channels(struct reading *r, const char *key, const char *word, uint64_t least,
		     int32_t *ret)
{
	uint64_t v = 0;

	if (strcmp(word, "-") == 0) {
		*ret = DECISIONS_NOT_KNOWN;
		return 0;
	}
	if (reading_count(r, key, word, least, CHANNELS_MAX, &v) < 0)
		return -1;
	*ret = (int32_t)v;
	return 0;
}

int reading_float(struct reading *r, const char *key, const char *word, double most, float *ret)
{
	size_t n = strlen(word);
	char *end;
	double v = strtod(word, &end);

	if (!n || *end || strspn(word, "0123456789.e+-") != n || !(v >= 0 && v <= most))
		return reading_wrong(r, "%s: '%.60s' is no number from 0 to %g", key, word, most);
	*ret = (float)v;
	return 0;
}
