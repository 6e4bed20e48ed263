/* The file of a fitted model on any bytes: an error names the file, and a model that is accepted
 * gives times; written and read again it is the same. */
#include "fuzz.h"

#include <math.h>

#include "calibrate/write.h"

static char *write_out(const struct fitted *f)
{
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	REQUIRE(to);
	fitted_write(f, to);
	fclose(to);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char sentence[FITTED_SENTENCE], *text, *twice;
	struct fitted f, again;

	if (fitted_parse("file", (const char *)data, size, &f, sentence) < 0) {
		REQUIRE(strncmp(sentence, "file:", 5) == 0);
		return 0;
	}
	for (uint32_t kind = 0; kind < 10; kind++) {
		struct fitted_beyond beyond;
		double ns = 0;

		for (double bytes = 1; bytes < 1e15; bytes *= 5) {
			if (fitted_ns(&f, kind, 8, 1, bytes, &ns, &beyond) == 1)
				break;
			REQUIRE(ns >= 0 && isfinite(ns));
			REQUIRE(beyond.ranks >= 1 && beyond.bytes >= 1);
		}
	}
	text = write_out(&f);
	if (fitted_parse("again", text, strlen(text), &again, sentence) == 0) {
		twice = write_out(&again);
		REQUIRE(strcmp(text, twice) == 0);
		free(twice);
		fitted_deinit(&again);
	}
	free(text);
	fitted_deinit(&f);
	return 0;
}
