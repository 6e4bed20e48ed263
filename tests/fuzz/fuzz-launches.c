/* The reader of traces on any file. What it takes becomes a table that the parser of tables takes,
 * and an error names the file. */
#include "fuzz.h"

#include "kernels/table.h"
#include "nbox/kernels/launches.h"
#include "nbox/kernels/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *f = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	struct kernel_table *table = NULL;
	struct err err = {""};
	struct launches trace;
	char *text = NULL;
	size_t n;

	if (!f)
		return 0;
	if (launches_read(f, "file", &trace, &err) < 0) {
		REQUIRE(strncmp(err.text, "file:", 5) == 0);
	} else {
		FILE *to = open_memstream(&text, &n);

		REQUIRE(to && kernels_write(&trace, "file", to) == 0 && fclose(to) == 0);
		REQUIRE(kernel_table_parse("table", text, n, &table, &err) == 0);
		launches_deinit(&trace);
	}
	kernel_table_free(table);
	free(text);
	fclose(f);
	return 0;
}
