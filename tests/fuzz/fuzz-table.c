/* The parser of the table model on any file, and questions to the table that it accepts. The
 * parser is a static function of a plug-in, so this file includes that one. */
#include "fuzz.h"

#include <stdarg.h>
#include <strings.h>

#include "../../delaymodels/table.c"
#include "base/units.h"

static char sentence[1024];

static void __attribute__((format(printf, 2, 3)))
fake_error(const struct nbox_host *host, const char *fmt, ...)
{
	va_list ap;

	(void)host;
	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
}

static int told(const char *key, int r, const struct err *err)
{
	if (r < 0)
		snprintf(sentence, sizeof(sentence), "%s: %s", key, err->text);
	return r < 0 ? -1 : 0;
}

static int fake_time(const struct nbox_host *h, const char *key, const char *v, double *ret)
{
	struct err err;

	(void)h;
	return told(key, units_time(v, ret, &err), &err);
}

static int fake_ratio(const struct nbox_host *h, const char *key, const char *v, double *ret)
{
	struct err err;

	(void)h;
	return told(key, units_ratio(v, ret, &err), &err);
}

static int fake_bytes(const struct nbox_host *h, const char *key, const char *v, uint64_t *ret)
{
	struct err err;

	(void)h;
	return told(key, units_bytes(v, ret, &err), &err);
}

static int fake_count(const struct nbox_host *h, const char *key, const char *v, uint64_t *ret)
{
	struct err err;

	(void)h;
	return told(key, units_count(v, ret, &err), &err);
}

static int fake_choice(const struct nbox_host *h, const char *key, const char *v,
		       const char *choices, uint32_t *ret)
{
	size_t len = strlen(v), word;
	uint32_t n = 0;

	(void)h;
	for (;; n++, choices += word + 1) {
		word = strcspn(choices, "|");
		if (word == len && strncasecmp(choices, v, len) == 0) {
			*ret = n;
			return 0;
		}
		if (!choices[word])
			break;
	}
	snprintf(sentence, sizeof(sentence), "%s: %s", key, v);
	return -1;
}

static const struct nbox_host host = {
	.struct_size = sizeof(host),
	.error = fake_error,
	.parse_time = fake_time,
	.parse_ratio = fake_ratio,
	.parse_bytes = fake_bytes,
	.parse_count = fake_count,
	.parse_choice = fake_choice,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nbox_op op = {.struct_size = sizeof(op), .n_ranks = 8, .n_nodes = 1};
	struct table *t;

	sentence[0] = '\0';
	t = table_parse(&host, "file.csv", (const char *)data, size);
	REQUIRE(t || strncmp(sentence, "file.csv", 8) == 0);
	for (op.kind = 0; t && op.kind <= N_KINDS; op.kind++) {
		for (int shift = 0; shift < 64; shift += 3) {
			double ns = -1;
			int r;

			op.bytes = (UINT64_C(1) << shift) - 1;
			r = table_op(t, &op, &ns);
			REQUIRE(r == 1 || (r == 0 && ns >= 0));
		}
	}
	table_destroy(t);
	return 0;
}
