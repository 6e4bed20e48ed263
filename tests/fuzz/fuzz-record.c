/* The reader of records on any bytes: it gives a record or a sentence, and a record that it
 * accepts can be used as reports do. */
#include "fuzz.h"

#include "engine/record.h"
#include "schedule/coll.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record r;
	struct err err = {""};
	uint64_t i, by_kind[COLL_KINDS] = {0};

	if (record_parse(data, size, &r, &err)) {
		if (!err.text[0])
			abort();
		return 0;
	}
	if (strlen(r.header.layout) >= sizeof(r.header.layout) ||
	    strlen(r.header.data_for) >= sizeof(r.header.data_for) ||
	    strlen(r.header.model) >= sizeof(r.header.model))
		abort();
	for (i = 0; i < r.n_rows; i++)
		by_kind[r.rows[i].kind] += r.rows[i].rank < r.rows[i].n_ranks;
	for (i = 0; i < COLL_KINDS; i++)
		r.n_rows -= by_kind[i];
	if (r.n_rows)
		abort();
	record_deinit(&r);
	return 0;
}
