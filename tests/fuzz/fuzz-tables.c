/* Tables of embeddings and look-ups in them: both readers get every text. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "shard/indices.h"
#include "shard/sharder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *text = strndup((const char *)data, n), *again = strdup(text ? text : "");
	struct shard_table *tables;
	struct reuse_of_table *reuse;
	struct err err = {""};
	uint32_t n_tables, n_reuse;

	if (!text || !again)
		abort();
	if (tables_read("t", text, &tables, &n_tables, &err) == 0) {
		uint32_t *gpu_of = malloc(n_tables * sizeof(*gpu_of)), full;

		for (enum sharder s = SHARDER_NAIVE; s < SHARDERS && gpu_of; s++)
			sharder_assign(s, tables, n_tables, 3, 1e9, 1, gpu_of, NULL, &full);
		free(gpu_of);
		free(tables);
	} else if (!err.text[0]) {
		abort();
	}
	err.text[0] = '\0';
	if (indices_read("i", again, &reuse, &n_reuse, &err) == 0)
		free(reuse);
	else if (!err.text[0])
		abort();
	free(text);
	free(again);
	return 0;
}
