/* The readers of measured times on any bytes: an error names the file, and a sample that is taken
 * has ranks, a size and a time. */
#include "fuzz.h"

#include "calibrate/read.h"

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
	samples_sort(&s);
	samples_deinit(&s);
	return 0;
}
