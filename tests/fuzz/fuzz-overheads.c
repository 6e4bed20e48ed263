/* The reader of overheads on any bytes: an error names the file, and what is taken is written and
 * read again. */
#include <math.h>

#include "fuzz.h"
#include "predict/overheads.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct overheads o, again;
	struct err err = {""};
	char *text = NULL;
	size_t len;
	FILE *to;

	if (overheads_parse("file", (const char *)data, size, &o, &err) < 0) {
		REQUIRE(strncmp(err.text, "file", 4) == 0);
		return 0;
	}
	to = open_memstream(&text, &len);
	REQUIRE(to && overheads_write(&o, to) == 0 && fclose(to) == 0);
	REQUIRE(overheads_parse("file", text, len, &again, &err) == 0 && again.n == o.n);
	for (int k = 0; k < OVERHEADS; k++)
		REQUIRE(isfinite(o.all[k].mean_ns) && o.all[k].mean_ns >= 0);
	overheads_deinit(&again);
	overheads_deinit(&o);
	free(text);
	return 0;
}
