/* The parser of tables of kernels on any file: a table that it takes has an answer for every name,
 * and an error names the file. The input's own text is a name, too: escaped, it fits itself. */
#include "fuzz.h"

#include "kernels/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *pattern = malloc(2 * size + 3);
	struct kernel_table *t = NULL;
	struct err err = {""};

	REQUIRE(text && pattern);
	memcpy(text, data, size);
	text[size] = '\0';
	REQUIRE(kernel_pattern_fits(kernel_pattern_escape(text, pattern), text));
	if (kernel_table_parse("file", text, size, &t, &err) < 0)
		REQUIRE(!t && strncmp(err.text, "file:", 5) == 0);
	for (size_t i = 0; t && i < t->n; i++) {
		const struct kernel_row *row = kernel_table_find(t, t->rows[i].pattern, "second");

		REQUIRE(row < t->rows + t->n && row->ns >= 0 && row->ns < 60e9);
	}
	kernel_table_free(t);
	free(pattern);
	free(text);
	return 0;
}
