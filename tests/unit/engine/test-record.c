/* The record of a run: the reader gets what the writer wrote; ops that cannot be written are
 * counted; a cut file is read up to its last whole write; any other file is refused with a
 * sentence. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>

#include "cmocka-all.h"
#include "engine/record-read.h"
#include "engine/record-write.h"
#include "engine/record.h"

static const struct record_header header = {
	.world_size = 1024,
	.n_nodes = 128,
	.gpus_per_node = 8,
	.n_real = 8,
	.seed = 7,
	.model = "ring:bw=50GB/s",
};

static const uint32_t listed[] = {3, 5, 9};
static const struct record_member real[] = {{0, 3}, {2, 9}};
static const struct record_comm comms[] = {
	{.number = 1, .n_ranks = 1024, .stride = 1, .n_real = 1, .real = real},
	{.number = 4,
	 .parent = 1,
	 .n_ranks = 3,
	 .sure = 2,
	 .axes = 5,
	 .n_members = 3,
	 .n_real = 2,
	 .members = listed,
	 .real = real},
};
static const struct record_dep deps[] = {{7, 1, 0}, {UINT64_MAX, 0, 0}, {9, 0, 0}};
static const struct record_call calls[] = {{1, 1, 4096}, {2, 0, 8}};

static struct record_op op_of(uint64_t i)
{
	return (struct record_op){
		.number = i,
		.seq = i / 2,
		.exposed_ns = 5 * i,
		.shared_ns = 0.5 * (double)i,
		.queued_ns = 0.25 * (double)i,
		.waited_ns = 0.125 * (double)i,
		.waited_for = (uint32_t)i % 5,
		.name = i + 1,
		.comm = i % 2 ? 4 : 1,
		.rank = (uint32_t)i % 3,
		.dtype = 7,
		.bytes = i << 20,
		.due_ns = 1000003 * i + 500,
		.release_ns = 1000003 * i + 510 + i % 7,
		.virtual_arrive_ns = 1000 * i,
		.plain_end_ns = 900 * i,
		.model_ns = 499.5,
		.n_messages = 3 * i,
		.flags = RECORD_NO_EDGES,
		.work_ns = 3 * i,
		.order = 2 * i,
		.done_order = 2 * i + 3,
		.took_algorithm = i % 7,
		.took_protocol = i % 3,
		.took_channels = i % 32,
		.n_deps = i % 4,
		.n_calls = i % 3,
		.deps = i % 4 ? deps : NULL,
		.calls = i % 3 ? calls : NULL,
	};
}

static struct record_point point_of(uint64_t i)
{
	return (struct record_point){
		.name = i,
		.time_ns = 1000003 * i,
		.virtual_ns = 1000 * i,
		.exposed_ns = i % 5,
		.work_ns = 7 * i,
		.order = 2 * i + 1,
		.kind = i % 2,
		.stream = 3,
		.n_deps = i % 3,
		.deps = i % 3 ? deps : NULL,
	};
}

static void assert_op(const struct record *r, const struct record_op *op, uint64_t i)
{
	struct record_op want = op_of(i);

	assert_memory_equal(op, &want, RECORD_OP_BYTES);
	assert_ptr_equal(op->of, record_find_comm(r, want.comm));
	assert_memory_equal(op->deps, deps, want.n_deps * sizeof(*deps));
	assert_memory_equal(op->calls, calls, want.n_calls * sizeof(*calls));
}

static struct record_writer *create(char *path)
{
	struct record_writer *w = NULL;
	struct err err = {""};
	int fd;

	strcpy(path, "/tmp/nbox-test-record-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	if (record_create(path, &header, &w, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < 2; i++)
		record_comm(w, &comms[i]);
	return w;
}

static void write_op(struct record_writer *w, uint64_t i)
{
	struct record_op op = op_of(i);

	record_op(w, &op);
}

static struct record load(const char *path)
{
	struct record r = {0};
	struct err err = {""};

	if (record_load(path, &r, &err) < 0)
		fail_msg("%s", err.text);
	return r;
}

static char *read_all(const char *path, size_t *ret_n)
{
	char *data = malloc(1 << 20);
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	*ret_n = fread(data, 1, 1 << 20, f);
	fclose(f);
	unlink(path);
	return data;
}

static int close_error, write_error;

/* In place of libc's. */
int close(int fd)
{
	int r = (int)syscall(SYS_close, fd);

	errno = close_error ? close_error : errno;
	return close_error ? -1 : r;
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t at)
{
	if (!write_error)
		return syscall(SYS_pwrite64, fd, data, n, at);
	errno = write_error;
	return -1;
}

static void what_was_written_is_read(void **state)
{
	char path[64];
	struct record_writer *w = create(path);
	struct record r = load(path); /* the header is there at once */
	struct record_header h;
	struct err err = {""};
	uint64_t n = 1000;

	(void)state;
	assert_int_equal(r.n_ops, 0);
	assert_false(r.is_truncated);
	record_deinit(&r);
	for (uint64_t i = 0; i < n; i++) {
		struct record_point p = point_of(i);

		write_op(w, i);
		record_point(w, &p);
		if (i == 500) { /* readable while it grows */
			assert_int_equal(record_flush(w), 0);
			r = load(path);
			assert_int_equal(r.n_ops, 501);
			assert_false(r.is_truncated);
			record_deinit(&r);
		}
	}
	close_error = EDQUOT;
	assert_int_equal(record_close(w), -EDQUOT);
	close_error = 0;

	assert_int_equal(record_load_header(path, &h, &err), 0);
	assert_memory_equal(&h, &header, sizeof(h));
	r = load(path);
	assert_memory_equal(&r.header, &header, sizeof(h));
	assert_int_equal(r.n_ops, n);
	assert_int_equal(r.n_points, n);
	assert_int_equal(r.n_comms, 2);
	assert_int_equal(r.comms[1].axes, 5);
	assert_memory_equal(r.comms[1].members, listed, sizeof(listed));
	assert_memory_equal(r.comms[1].real, real, sizeof(real));
	assert_null(record_find_comm(&r, 3));
	for (uint64_t i = 0; i < n; i++) {
		struct record_point want = point_of(i), *got = &r.points[i];

		assert_op(&r, &r.ops[i], i);
		assert_memory_equal(got->deps, deps, want.n_deps * sizeof(*deps));
		assert_memory_equal(got, &want, RECORD_POINT_BYTES);
	}
	record_deinit(&r);
	unlink(path);
}

/* Lists of megabytes: calls to each of 65,536 ranks. */
static void a_row_of_any_size_is_written(void **state)
{
	char path[64];
	struct record_writer *w = create(path);
	struct record_op op = op_of(0);
	struct record_call *many = calloc(131072, sizeof(*many));
	struct record r;

	(void)state;
	for (uint32_t i = 0; i < 131072; i++)
		many[i] = (struct record_call){i / 2, i % 2, 1000 + i};
	write_op(w, 0);
	op.calls = many;
	op.n_calls = 131072;
	for (int i = 0; i < 3; i++)
		record_op(w, &op);
	write_op(w, 1);
	assert_int_equal(record_close(w), 0);
	r = load(path);
	assert_int_equal(r.n_ops, 5);
	for (int i = 1; i < 4; i++)
		assert_memory_equal(r.ops[i].calls, many, 131072 * sizeof(*many));
	assert_op(&r, &r.ops[4], 1);
	record_deinit(&r);
	free(many);
	unlink(path);
}

/* A quota, or a device that fails once: the writer names the error. It writes no further row, even
 * when the disk works again. */
static void a_failing_disk_is_named_and_ends_the_rows(void **state)
{
	static const int errors[] = {EDQUOT, EIO};

	(void)state;
	for (int i = 0; i < 2; i++) {
		char path[64];
		struct record_writer *w = create(path);
		struct record r;

		write_op(w, 0);
		assert_int_equal(record_flush(w), 0);
		write_error = errors[i];
		write_op(w, 1);
		assert_int_equal(record_flush(w), -errors[i]);
		write_error = 0;
		write_op(w, 2);
		assert_int_equal(record_close(w), 0);
		r = load(path);
		assert_true(r.n_ops == 1 && r.end.n_lost == 2 &&
			    r.end.lost_errno == (uint32_t)errors[i]);
		record_deinit(&r);
		unlink(path);
	}
}

/* Wherever the file is cut: what was flushed before is there. */
static void a_cut_file_is_read_up_to_its_last_whole_write(void **state)
{
	char path[64], *data;
	struct record_writer *w = create(path);
	struct err err = {""};
	size_t size, last = 0;
	struct record r;

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		write_op(w, i);
		record_flush(w);
	}
	record_close(w);
	data = read_all(path, &size);
	for (size_t n = 0; n <= size; n++) {
		/* its own allocation, so that reading past it is seen */
		char *cut = malloc(n ? n : 1);

		memcpy(cut, data, n);
		err.text[0] = '\0';
		if (record_parse(cut, n, &r, &err) < 0) {
			assert_string_not_equal(err.text, "");
			assert_int_equal(last, 0); /* the header is not whole */
		} else {
			assert_true(r.n_ops >= last);
			assert_int_equal(r.is_truncated, n < size);
			for (uint64_t i = 0; i < r.n_ops; i++)
				assert_op(&r, &r.ops[i], i);
			last = r.n_ops;
			record_deinit(&r);
		}
		free(cut);
	}
	assert_int_equal(last, 3);
	free(data);
}

/* The disk is full from some byte on: what was written is whole, the other ops are counted, and the
 * error is returned once. */
static void rows_that_a_full_disk_loses_are_counted(void **state)
{
	uint64_t n = 1000;
	struct rlimit old, limit;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	for (limit.rlim_cur = 400; limit.rlim_cur < 6000; limit.rlim_cur += 311) {
		char path[64];
		struct record_writer *w;
		struct record r;
		int told = 0;

		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		w = create(path);
		for (uint64_t i = 0; i < n; i++) {
			int flushed;

			write_op(w, i);
			flushed = i % 10 == 9 ? record_flush(w) : 0;
			assert_true(flushed == 0 || (flushed == -EFBIG && told == 0));
			told += flushed != 0;
		}
		record_lose_note(w, -ENOSPC);
		record_clock_error(w, 70);
		record_clock_error(w, 30);
		record_debt(w, 1000);
		record_debt(w, 500.5);
		assert_int_equal(told, 1);
		assert_int_equal(record_close(w), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

		r = load(path);
		assert_false(r.is_truncated);
		assert_int_equal(r.n_ops % 10, 0); /* a flush as a whole, or not */
		for (uint64_t i = 0; i < r.n_ops; i++)
			assert_op(&r, &r.ops[i], i);
		assert_int_equal(r.end.n_lost, n - r.n_ops);
		assert_int_equal(r.end.lost_errno, EFBIG);
		assert_int_equal(r.end.n_lost_notes, 1);
		assert_int_equal(r.end.clock_error_ns, 70);
		assert_int_equal(r.end.n_debts, 2);
		assert_int_equal(r.end.debt_ns, 1500);
		record_deinit(&r);
		unlink(path);
	}
}

/* A file that cannot take its header is not left behind: it would refuse the next run. */
static void a_record_without_room_for_its_header_is_not_begun(void **state)
{
	char path[64];
	struct record_writer *w = NULL;
	struct rlimit old, limit;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	snprintf(path, sizeof(path), "/tmp/nbox-test-record-%d", getpid());
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	for (limit.rlim_cur = 0; limit.rlim_cur < 100; limit.rlim_cur += 10) {
		struct err err = {""};

		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(record_create(path, &header, &w, &err), -EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_non_null(strstr(err.text, path));
		assert_int_equal(access(path, F_OK), -1);
	}
}

/* A file of one frame with the rows that lie in @at. */
static struct {
	char at[1 << 20];
	size_t n;
} frame;

static void add_row(uint32_t kind, const void *fields, uint32_t n_fields, const void *lists,
		    uint32_t n_list_bytes, uint32_t n_lists)
{
	struct record_row row = {kind, sizeof(row) + n_fields + n_list_bytes, n_fields, n_lists};

	memcpy(frame.at + frame.n, &row, sizeof(row));
	memcpy(frame.at + frame.n + sizeof(row), fields, n_fields);
	if (n_list_bytes)
		memcpy(frame.at + frame.n + sizeof(row) + n_fields, lists, n_list_bytes);
	frame.n += row.bytes;
}

static int parse(struct record *ret, struct err *err)
{
	size_t size = ZSTD_compressBound(frame.n) + RECORD_MAGIC_BYTES, n;
	char *file = malloc(size);
	int r;

	memcpy(file, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	n = ZSTD_compress(file + RECORD_MAGIC_BYTES, size - RECORD_MAGIC_BYTES, frame.at, frame.n,
			  1);
	r = record_parse(file, n + RECORD_MAGIC_BYTES, ret, err);
	free(file);
	return r;
}

static void begin(const struct record_header *h, const struct record_comm *c)
{
	frame.n = 0;
	add_row(RECORD_HEADER, h, sizeof(*h), NULL, 0, 0);
	if (c)
		add_row(RECORD_COMM, c, RECORD_COMM_BYTES, NULL, 0, 0);
}

static void refuse(const char *word)
{
	struct record r;
	struct err err = {""};

	assert_int_equal(parse(&r, &err), -EINVAL);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
}

static void refuse_op(const struct record_op *op, const char *word)
{
	begin(&header, &comms[0]);
	add_row(RECORD_OP, op, RECORD_OP_BYTES, NULL, 0, 0);
	refuse(word);
}

/* Of a newer writer: rows, fields and lists that this reader does not know; of an older one: fields
 * and lists that it lacks. */
static void what_a_reader_does_not_know_is_passed_over(void **state)
{
	struct {
		char op[RECORD_OP_BYTES];
		uint64_t more[3];
	} longer = {.more = {1, 2, 3}};
	struct {
		struct record_list head;
		struct {
			struct record_dep dep;
			uint64_t more;
		} at[2];
		struct record_list calls, other;
		uint64_t rest;
	} lists = {{2, 24}, {{{5, 1, 0}, 77}, {{6, 0, 0}, 78}}, {0, 16}, {1, 8}, 99};
	struct record_op op = op_of(2);
	struct err err = {""};
	struct record r;

	(void)state;
	memcpy(longer.op, &op, sizeof(longer.op));
	begin(&header, &comms[0]);
	add_row(77, "whatever", 8, "no list?", 8, 9);
	add_row(RECORD_OP, &longer, sizeof(longer), &lists, sizeof(lists), 3);
	add_row(RECORD_OP, &op, offsetof(struct record_op, flags), NULL, 0, 0);
	assert_int_equal(parse(&r, &err), 0);
	assert_true(r.is_truncated && r.n_ops == 2);
	assert_int_equal(r.ops[0].n_messages, 6);
	assert_int_equal(r.ops[0].n_deps, 2);
	assert_int_equal(r.ops[0].deps[1].name, 6);
	assert_int_equal(r.ops[0].n_calls, 0);
	assert_int_equal(r.ops[1].bytes, 2 << 20);
	assert_int_equal(r.ops[0].flags, RECORD_NO_EDGES);
	assert_int_equal(r.ops[0].exposed_ns, 10);
	assert_int_equal(r.ops[1].flags, 0);
	assert_int_equal(r.ops[1].exposed_ns, 0);
	record_deinit(&r);
}

static void a_false_row_is_refused(void **state)
{
	const struct record_op good = op_of(2);
	struct record_header h = header;
	struct record_comm c = comms[0];
	struct record_point p = point_of(0);
	struct record_op op;
	const struct record_list too_long = {9, 16}, too_short[] = {{2, 4}, {0, 0}};

	(void)state;
	memset(h.model, 'x', sizeof(h.model)), begin(&h, NULL), refuse("model name");
	h = header, memset(h.layout, 'x', sizeof(h.layout)), begin(&h, NULL), refuse("layout");
	h = header, memset(h.data_for, 'x', sizeof(h.data_for)), begin(&h, NULL);
	refuse("data policies");
	h = header, h.n_real = 1025, begin(&h, NULL), refuse("1025 real");
	begin(&header, NULL), add_row(RECORD_HEADER, &h, sizeof(h), NULL, 0, 0);
	refuse("second header");
	frame.n = 0, add_row(RECORD_COMM, &c, RECORD_COMM_BYTES, NULL, 0, 0);
	refuse("no header");
	begin(&header, &c), add_row(RECORD_COMM, &c, RECORD_COMM_BYTES, NULL, 0, 0);
	refuse("number that was there");
	c.n_ranks = 1025, begin(&header, &c), refuse("cannot be in its world");
	c.n_ranks = 0, begin(&header, &c), refuse("cannot be in its world");
	c = comms[0], c.stride = UINT32_MAX, begin(&header, &c), refuse("cannot be in its world");
	op = good, op.kind = 9, refuse_op(&op, "kind 9");
	op = good, op.algo = 4, refuse_op(&op, "algorithm 4");
	op = good, op.how = 3, refuse_op(&op, "solution 3");
	op = good, op.dtype = 12, refuse_op(&op, "type 12");
	op = good, op.rank = 1024, refuse_op(&op, "rank 1024");
	op = good, op.world_rank = 1024, refuse_op(&op, "world rank 1024");
	op = good, op.comm = 2, refuse_op(&op, "communicator 2, which has 0");
	op = good, op.model_ns = NAN, refuse_op(&op, "no number");
	op = good, op.injected_ns = INFINITY, refuse_op(&op, "no number");
	p.kind = 2, begin(&header, NULL), add_row(RECORD_POINT, &p, RECORD_POINT_BYTES, NULL, 0, 0);
	refuse("is a point");
	begin(&header, &comms[0]);
	add_row(RECORD_OP, &good, RECORD_OP_BYTES, &too_long, sizeof(too_long), 1);
	refuse("ends before its lists");
	begin(&header, &comms[0]);
	add_row(RECORD_OP, &good, RECORD_OP_BYTES, too_short, sizeof(too_short), 1);
	refuse("too short");
	begin(&header, NULL), ((struct record_row *)(void *)frame.at)->bytes++;
	refuse("cannot be");
}

static void refuse_file(const void *data, size_t n, const char *word)
{
	struct record r;
	struct err err = {""};

	assert_int_equal(record_parse(data, n, &r, &err), -EINVAL);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
}

/* Other versions, other files, damage, and frames that unpack to more than any run's. */
static void a_file_that_is_no_record_is_refused(void **state)
{
	char path[64], *data, *bomb = malloc(1 << 20);
	struct record_writer *w = create(path);
	size_t size, n = RECORD_MAGIC_BYTES;

	(void)state;
	record_close(w);
	data = read_all(path, &size);
	refuse_file("nboxrec1, and then rows of fixed size", 37, "version 1");
	refuse_file("PK\3\4 and more than 16 bytes", 26, "not a record");
	data[RECORD_VERSION_AT]++, refuse_file(data, size, "another version");
	data[RECORD_VERSION_AT]--, data[40] ^= 64, refuse_file(data, size, "damaged");
	data[40] ^= 64, data[RECORD_MAGIC_BYTES] ^= 1, refuse_file(data, size, "damaged");
	begin(&header, NULL);
	memcpy(bomb, RECORD_MAGIC, RECORD_MAGIC_BYTES);
	n += ZSTD_compress(bomb + n, (1 << 20) - n, frame.at, frame.n, 1);
	for (frame.n = 0; frame.n < 256 << 10;)
		add_row(77, header.model, 496, NULL, 0, 0);
	for (int i = 0; i < 100; i++)
		n += ZSTD_compress(bomb + n, (1 << 20) - n, frame.at, frame.n, 19);
	refuse_file(bomb, n, "packed so well");
	free(bomb);
	free(data);
}

static void files_that_cannot_be_read_are_named(void **state)
{
	struct record_writer *w = NULL;
	struct record r;
	struct err err = {""};

	(void)state;
	assert_int_equal(record_create("/nonexistent/record", &header, &w, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/record"));
	assert_int_equal(record_load("/nonexistent/record", &r, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/record"));
	assert_int_equal(record_close(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(a_row_of_any_size_is_written),
		cmocka_unit_test(a_cut_file_is_read_up_to_its_last_whole_write),
		cmocka_unit_test(rows_that_a_full_disk_loses_are_counted),
		cmocka_unit_test(a_record_without_room_for_its_header_is_not_begun),
		cmocka_unit_test(a_failing_disk_is_named_and_ends_the_rows),
		cmocka_unit_test(what_a_reader_does_not_know_is_passed_over),
		cmocka_unit_test(a_false_row_is_refused),
		cmocka_unit_test(a_file_that_is_no_record_is_refused),
		cmocka_unit_test(files_that_cannot_be_read_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
