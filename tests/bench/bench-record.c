/* What a row of the record costs nboxd, and the disk: ops with two deps, each with a point, of two
 * ranks whose times vary as a machine's do, flushed as often as nboxd does in a run of 2,000 ops a
 * second.
 *
 * bench-record [--json FILE] */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/record-write.h"

#define ROWS 400000
#define ROWS_A_FLUSH 200

struct result {
	double ns, bytes; /* a row */
};

/* Of the processor, so that other work on it does not count. */
static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void write_pair(struct record_writer *w, uint64_t i, uint64_t at_ns, uint64_t chance)
{
	struct record_dep deps[] = {{2 * i, 1, 0}, {2 * i - 1, 0, 0}};
	struct record_op op = {
		.number = i / 2,
		.seq = i / 2,
		.name = 2 * i + 1,
		.host = i / 20,
		.bytes = 25 << 20,
		.count = 25 << 18,
		.call_ns = at_ns - chance % 50000,
		.arrive_ns = at_ns,
		.start_ns = at_ns,
		.due_ns = at_ns + 300000,
		.release_ns = at_ns + 300050 + chance % 1000,
		.local_done_ns = at_ns + 100000 + chance % 30000,
		.virtual_arrive_ns = at_ns - i / 8,
		.virtual_end_ns = at_ns - i / 8 + 300000,
		.plain_arrive_ns = at_ns - i / 4,
		.plain_end_ns = at_ns - i / 4 + 300000,
		.model_ns = 300000,
		.comm = 1,
		.rank = i % 2,
		.world_rank = i % 2,
		.stream = 2,
		.dtype = 7,
		.work_ns = at_ns - chance % 70000,
		.order = 2 * i,
		.done_order = 2 * i + 3 + chance % 2,
		.n_deps = 2,
		.deps = deps,
	};
	struct record_point point = {
		.name = 2 * i + 2,
		.host = i / 20,
		.call_ns = op.call_ns + 3000,
		.time_ns = op.release_ns + 40000 + chance % 5000,
		.virtual_ns = op.virtual_end_ns + 40000 + chance % 5000,
		.plain_ns = op.plain_end_ns + 40000 + chance % 5000,
		.exposed_ns = chance % 7 ? 0 : chance % 200000,
		.world_rank = i % 2,
		.stream = 1,
		.work_ns = op.release_ns + chance % 3000,
		.order = 2 * i + 1,
		.n_deps = 2,
		.deps = deps,
	};

	record_op(w, &op);
	record_point(w, &point);
}

/* Return: 0; a negative errno. */
static int measure(struct result *ret)
{
	const struct record_header header = {.world_size = 2, .n_nodes = 2, .gpus_per_node = 1};
	char path[] = "/tmp/nbox-bench-record-XXXXXX/record.nbox";
	char *end = strrchr(path, '/');
	struct record_writer *w = NULL;
	struct err err = {""};
	uint64_t begin, at_ns = UINT64_C(60000000000000);
	struct stat st;
	int r;

	*end = '\0';
	if (!mkdtemp(path))
		return -errno;
	*end = '/';
	r = record_create(path, &header, &w, &err);
	begin = now_ns();
	for (uint64_t i = 0; i < ROWS / 2 && r == 0; i++) {
		uint64_t chance = rng_hash(1, i) >> 20;

		write_pair(w, i + 1, at_ns, chance);
		at_ns += 400000 + chance % 100000;
		if (i % (ROWS_A_FLUSH / 2) == 0)
			r = record_flush(w);
	}
	r = r < 0 ? r : record_close(w);
	ret->ns = (double)(now_ns() - begin) / ROWS;
	if (r == 0 && stat(path, &st) == 0)
		ret->bytes = (double)st.st_size / ROWS;
	unlink(path);
	*end = '\0';
	rmdir(path);
	return r;
}

int main(int argc, char **argv)
{
	struct result best = {.ns = 1e30}, got;
	FILE *f = NULL;

	for (int i = 0; i < 3; i++) {
		int r = measure(&got);

		if (r < 0) {
			fprintf(stderr, "bench-record: %s\n", strerror(-r));
			return 1;
		}
		best = got.ns < best.ns ? got : best;
	}
	printf("record: %.0f ns a row of nboxd's time, %.1f bytes a row (%d ops and points with "
	       "two deps each)\n",
	       best.ns, best.bytes, ROWS);
	if (argc == 3 && strcmp(argv[1], "--json") == 0 && (f = fopen(argv[2], "w"))) {
		fprintf(f,
			"{\"rows\": [{\"what\": \"record\", \"ns_a_row\": %.1f, "
			"\"bytes_a_row\": %.2f}]}\n",
			best.ns, best.bytes);
		fclose(f);
	}
	return 0;
}
