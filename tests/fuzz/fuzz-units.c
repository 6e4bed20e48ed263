/* All number parsers on any text: what they accept must be in range. */
#include "fuzz.h"

#include "base/suggest.h"
#include "base/units.h"

#define WORLD 4096

static void check_ranks(const char *text)
{
	uint32_t *ranks = NULL;
	struct err err = {""};
	size_t n = 0;

	if (units_ranks(text, WORLD, &ranks, &n, &err) < 0) {
		REQUIRE(err.text[0]);
		return;
	}
	REQUIRE(n > 0 && ranks[n - 1] < WORLD);
	for (size_t i = 1; i < n; i++)
		REQUIRE(ranks[i - 1] < ranks[i]);
	free(ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"none", "const", "alphabeta", "ring", "tree"};
	char *text = malloc(size + 1), buf[32];
	struct err err = {""};
	uint64_t u;
	double d;

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (units_time(text, &d, &err) == 0)
		REQUIRE(d >= 0 && d <= 0x1p53 && units_print_time(d, buf, sizeof(buf)) == buf);
	else
		REQUIRE(err.text[0]);
	if (units_bandwidth(text, &d, &err) == 0)
		REQUIRE(d > 0 && d < 1e30);
	if (units_ratio(text, &d, &err) == 0)
		REQUIRE(d >= 0 && d < 1e30);
	if (units_bytes(text, &u, &err) == 0)
		units_print_bytes(u, buf, sizeof(buf));
	units_count(text, &u, &err);
	check_ranks(text);
	suggest(text, names, sizeof(names) / sizeof(names[0]));
	free(text);
	return 0;
}
