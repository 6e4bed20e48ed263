/* The reader of records on any bytes: it gives a record or a sentence, and a record that it accepts
 * can be used as reports do. Most mutations of a frame of zstd are refused by its checksum, so a
 * file that begins with other bytes than a record does is taken for rows that lie in one. */
#include "fuzz.h"

#include <zstd.h>

#include "engine/record-read.h"
#include "engine/record.h"
#include "nbox/export/chrome.h"
#include "nbox/export/dump.h"
#include "nbox/export/inspector.h"
#include "nbox/page/run-page.h"
#include "nbox/report/measure.h"
#include "schedule/coll.h"

static uint64_t sum_deps(const struct record_dep *deps, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += deps[i].name + deps[i].is_same_stream;
	return sum;
}

/* In all forms that one file can have. */
static void export(const struct record *r)
{
	static FILE *nowhere;
	const struct dump text = {.world_rank = -1}, json = {.is_json = true, .world_rank = -1};
	struct err err = {""};

	nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
	dump_print(r, &text, nowhere);
	dump_print(r, &json, nowhere);
	if (inspector_print(r, nowhere) < 0 || chrome_write(r, "/dev/null", &err) < 0)
		abort();
}

/* As a page, which has no more than /dev/null to be written to. */
static void draw(const struct record *r)
{
	static struct report rep;
	struct loaded_run run = {.rec = *r, .info = {.exit_code = -1}};
	struct loads loads = {0};
	struct view view;
	const struct page_run p = {&run, &rep, &view, NULL, &loads};
	FILE *nowhere = fopen("/dev/null", "w");
	struct doc d = {.to = nowhere};

	if (report_make(r, &rep) == 0 && view_make(r, rep.rank, &view) == 0) {
		run_page_write(&p, &d);
		view_deinit(&view);
	}
	fclose(nowhere);
}

static volatile uint64_t seen; /* what is read is used */

static void use(const struct record *r)
{
	uint64_t sum = r->comms ? r->comms[0].number : 0;

	if (strlen(r->header.layout) >= sizeof(r->header.layout) ||
	    strlen(r->header.data_for) >= sizeof(r->header.data_for) ||
	    strlen(r->header.model) >= sizeof(r->header.model))
		abort();
	for (uint64_t i = 0; i < r->n_comms; i++) {
		const struct record_comm *c = &r->comms[i];

		for (uint32_t k = 0; k < c->n_members; k++)
			sum += c->members[k];
		for (uint32_t k = 0; k < c->n_real; k++)
			if (c->real[k].rank >= c->n_ranks)
				abort();
	}
	for (uint64_t i = 0; i < r->n_ops; i++) {
		const struct record_op *op = &r->ops[i];

		if (op->kind >= COLL_KINDS || op->rank >= op->of->n_ranks)
			abort();
		for (uint32_t k = 0; k < op->n_calls; k++)
			sum += op->calls[k].bytes;
		sum += sum_deps(op->deps, op->n_deps);
	}
	for (uint64_t i = 0; i < r->n_points; i++)
		sum += sum_deps(r->points[i].deps, r->points[i].n_deps);
	seen = sum;
	export(r);
	draw(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char packed[1 << 17];
	struct record r;
	struct err err = {""};

	if (size < 4 || memcmp(data, RECORD_MAGIC, 4) != 0) {
		size_t n = ZSTD_compress(packed + RECORD_MAGIC_BYTES,
					 sizeof(packed) - RECORD_MAGIC_BYTES, data, size, 1);

		if (ZSTD_isError(n))
			return 0;
		memcpy(packed, RECORD_MAGIC, RECORD_MAGIC_BYTES);
		data = (const uint8_t *)packed;
		size = n + RECORD_MAGIC_BYTES;
	}
	if (record_parse(data, size, &r, &err)) {
		if (!err.text[0])
			abort();
		return 0;
	}
	use(&r);
	record_deinit(&r);
	return 0;
}
