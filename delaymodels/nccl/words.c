/* See words.h. Entries are separated by ';'. An entry may begin with a kind and ':', but the first
 * may go without, for all kinds; then words, separated by ','. '^' in front allows all but those.
 */
#include "words.h"

#include <string.h>
#include <strings.h>

int words_find(const char *words, const char *p, size_t n)
{
	for (int i = 0;; i++) {
		size_t len = strcspn(words, "|");

		if (len == n && strncasecmp(words, p, n) == 0)
			return i;
		if (!words[len])
			return -1;
		words += len + 1;
	}
}

const char *words_at(const char *words, uint32_t i, int *ret_len)
{
	for (; i; i--)
		words += strcspn(words, "|") + 1;
	*ret_len = (int)strcspn(words, "|");
	return words;
}

struct entry {
	const struct nbox_host *host;
	const char *key, *words;
	size_t n_words;
	uint8_t *allowed;
};

/* The words of one entry, for kind @kind or all (-1). */
static int apply_list(const struct entry *e, int kind, const char *p, size_t n)
{
	int is_not = n > 0 && p[0] == '^';
	const char *end = p + n;
	uint8_t row[N_ALGOS];

	memset(row, is_not ? ALLOWED_YES : ALLOWED_NO, sizeof(row));
	p += is_not;
	while (p <= end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		size_t len = (size_t)((comma ? comma : end) - p);
		int i = words_find(e->words, p, len);

		if (i < 0) {
			e->host->error(e->host, "%s: '%.*s' is none of %s", e->key,
				       (int)(len < 64 ? len : 64), p, e->words);
			return -1;
		}
		row[i] = is_not ? ALLOWED_NO : ALLOWED_YES;
		p += len + 1;
	}
	for (int k = 0; k < N_COSTED; k++)
		if (kind < 0 || k == kind)
			memcpy(e->allowed + (size_t)k * e->n_words, row, e->n_words);
	return 0;
}

int words_apply(const struct nbox_host *host, const char *key, const char *text, const char *words,
		size_t n_words, uint8_t *allowed)
{
	struct entry e = {host, key, words, n_words, allowed};
	const char *p = text;
	int is_first = 1;

	while (*p) {
		size_t n = strcspn(p, ";");
		const char *colon = memchr(p, ':', n);
		int kind = -1, r;

		if (colon) {
			kind = words_find(KIND_WORDS, p, (size_t)(colon - p));
			if (kind < 0) {
				host->error(host, "%s: '%.*s' is none of " KIND_WORDS, key,
					    (int)(colon - p < 64 ? colon - p : 64), p);
				return -1;
			}
		} else if (!is_first) {
			host->error(host,
				    "%s=%.200s: all entries but the first begin with a kind, "
				    "as in ring;allreduce:tree",
				    key, text);
			return -1;
		}
		r = colon ? apply_list(&e, kind, colon + 1, n - (size_t)(colon + 1 - p))
			  : apply_list(&e, kind, p, n);
		if (r < 0)
			return r;
		is_first = 0;
		p += n + (p[n] == ';');
	}
	return 0;
}
