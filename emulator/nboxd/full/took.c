/* See took.h. */
#include "nboxd/full/took.h"

#include <stdio.h>
#include <stdlib.h>

#include "nccl-plugin/words.h"
#include "schedule/coll.h"

void took_add(struct took *t, uint32_t kind, uint32_t algorithm, uint32_t protocol,
	      uint32_t n_channels)
{
	struct took_count *c = t->counts;

	while (c < t->counts + t->n && (c->kind != kind || c->algorithm != algorithm ||
					c->protocol != protocol || c->n_channels != n_channels))
		c++;
	if (c == t->counts + TOOK_MAX)
		return;
	if (c == t->counts + t->n) {
		t->n++;
		*c = (struct took_count){kind, algorithm, protocol, n_channels, 0};
	}
	c->n++;
}

static int compare(const void *a, const void *b)
{
	const struct took_count *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

char *took_print(const struct took *t, char *buf, size_t size)
{
	struct took sorted = *t;
	size_t at = 0;

	buf[0] = '\0';
	qsort(sorted.counts, sorted.n, sizeof(sorted.counts[0]), compare);
	for (uint32_t i = 0; i < sorted.n; i++) {
		const struct took_count *c = &sorted.counts[i];
		int n = snprintf(buf + at, size - at, "%s%s %s %s, %u channel%s (%llu op%s)",
				 i ? "; " : "", coll_kind_name(c->kind),
				 plugin_algorithm_name(c->algorithm),
				 plugin_protocol_name(c->protocol), c->n_channels,
				 c->n_channels == 1 ? "" : "s", (unsigned long long)c->n,
				 c->n == 1 ? "" : "s");

		if (n < 0 || (size_t)n >= size - at) { /* whole ones only */
			buf[at] = '\0';
			break;
		}
		at += (size_t)n;
	}
	return buf;
}
