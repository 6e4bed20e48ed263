/* The parser of layers on any text: what it takes has memory and times that are numbers, and an
 * error names the file. */
#include "fuzz.h"

#include <math.h>

#include "buckets/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_asked asked = {.batch = 1, .state = MEMORY_STATE, .budget = INFINITY};
	char *text = malloc(size + 1);
	struct layers l = {.n = 0};
	struct memory_way w;
	struct err err = {""};

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	if (layers_parse("file", text, &l, &err) < 0) {
		REQUIRE(!l.list && strncmp(err.text, "file:", 5) == 0);
	} else {
		REQUIRE(l.n > 0 && l.n <= LAYERS_MAX);
		for (int recomputes = 0; recomputes <= 1; recomputes++) {
			REQUIRE(memory_way(&l, &asked, 2, recomputes, &w) == 0);
			REQUIRE(w.bytes >= 0 && w.ns >= 0);
		}
	}
	layers_deinit(&l);
	free(text);
	return 0;
}
