/* The readers of traces (PyTorch's, dPRO's) on any file: what they take is in order, can be
 * aligned, or is told why not; an error names the file. */
#include "fuzz.h"

#include "trace/align.h"
#include "trace/finish.h"
#include "trace/read.h"

static void check(const struct trace *t)
{
	for (uint32_t i = 0; i < t->n_ops; i++) {
		const struct trace_op *op = &t->ops[i];

		REQUIRE(op->end_ns >= op->start_ns && op->rank < t->n_ranks);
		REQUIRE(op->launched_by == TRACE_NONE || op->launched_by < t->n_ops);
		REQUIRE(op->parent == TRACE_NONE || op->parent < i);
		REQUIRE(op->first_wait + op->n_waits <= t->n_waits);
		REQUIRE(op->comm == TRACE_NONE || op->comm < t->n_comms);
		REQUIRE(op->join == TRACE_NONE || op->join < t->n_joins);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *f = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	struct clocks clocks;
	struct err err = {""};
	struct trace t = {0};

	if (!f)
		return 0;
	if (trace_read(f, "file", NULL, &t, &err) < 0) {
		REQUIRE(strncmp(err.text, "file:", 5) == 0);
	} else {
		REQUIRE(trace_finish(&t) == 0);
		check(&t);
		if (align_find(&t, size % 2, &clocks, &err) == 0) {
			REQUIRE(align_apply(&t, &clocks) == 0);
			check(&t);
			clocks_deinit(&clocks);
		}
	}
	trace_deinit(&t);
	fclose(f);
	return 0;
}
