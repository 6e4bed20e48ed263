/* The readers of measured times on any bytes: an error names the file, and a sample that is taken
 * has ranks, a size and a time. The reader of an all-to-all's matrix on the same. */
#include "fuzz.h"

#include "calibrate/read.h"
#include "calibrate/skew.h"

static void read_matrix(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t *bytes = NULL;
	struct err err = {""};
	uint32_t n;

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (skew_read("file", text, &bytes, &n, &err) < 0) {
		REQUIRE(strncmp(err.text, "file:", 5) == 0);
	} else {
		struct skew s = skew_of(bytes, n);

		REQUIRE(n >= 2 && s.rank < n && (double)s.bytes >= s.even);
	}
	free(bytes);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct read_hints hints = {.kind = -1, .n_ranks = 0, .n_nodes = 0};
	struct samples s = {.list = NULL};
	struct err err = {""};

	if (size && data[size - 1] & 1) /* what the text does not say */
		hints = (struct read_hints){COLL_ALLREDUCE, 8, 2, data[size - 1] & 2};
	if (read_text("file", (const char *)data, size, &hints, &s, &err) < 0)
		REQUIRE(strncmp(err.text, "file", 4) == 0);
	for (size_t i = 0; i < s.n; i++) {
		const struct sample *one = &s.list[i];

		REQUIRE(one->kind < COLL_KINDS && one->n_ranks >= 2 && one->n_nodes >= 1);
		REQUIRE(one->n_nodes <= one->n_ranks && one->bytes > 0 && one->ns > 0);
	}
	samples_merge(&s);
	samples_deinit(&s);
	read_matrix(data, size);
	return 0;
}
