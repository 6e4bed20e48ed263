/* The record of a run: the reader gets what the writer wrote; rows that cannot be written are
 * counted; a cut file is read up to its last whole row; any other file is refused with a sentence.
 */
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

#include "cmocka-all.h"
#include "engine/record.h"

static const struct record_header header = {
	.world_size = 1024,
	.n_nodes = 128,
	.gpus_per_node = 8,
	.n_real = 8,
	.seed = 7,
	.model = "ring:bw=50GB/s",
};

static struct record_row row_of(uint64_t i)
{
	return (struct record_row){
		.number = i,
		.seq = i / 2,
		.rank = (uint32_t)i % 8,
		.n_ranks = 1024,
		.n_real_ranks = 8,
		.kind = 0,
		.dtype = 7,
		.bytes = i << 20,
		.start_ns = 1000 * i,
		.due_ns = 1000 * i + 500,
		.release_ns = 1000 * i + 510,
		.model_ns = 499.5,
		.n_messages = 3 * i,
	};
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

static int temporary(char *path)
{
	int fd;

	strcpy(path, "/tmp/nbox-test-record-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static void what_was_written_is_read(void **state)
{
	char path[64];
	struct record_writer *w;
	struct record r;
	struct err err = {""};
	uint64_t i, n = 1000;

	(void)state;
	temporary(path);
	unlink(path);
	assert_int_equal(record_create(path, &header, &w, &err), 0);
	assert_int_equal(record_load(path, &r, &err), 0); /* the header is there at once */
	assert_int_equal(r.n_rows, 0);
	record_deinit(&r);
	for (i = 0; i < n; i++) {
		struct record_row row = row_of(i);

		record_write(w, &row);
		if (i == 500) { /* readable while it grows */
			assert_int_equal(record_flush(w), 0);
			assert_int_equal(record_load(path, &r, &err), 0);
			assert_int_equal(r.n_rows, 501);
			assert_false(r.is_truncated);
			record_deinit(&r);
		}
	}
	close_error = EDQUOT;
	assert_int_equal(record_close(w), -EDQUOT);
	close_error = 0;

	assert_int_equal(record_load(path, &r, &err), 0);
	assert_int_equal(r.n_rows, n);
	assert_int_equal(r.header.world_size, 1024);
	assert_string_equal(r.header.model, header.model);
	for (i = 0; i < n; i++) {
		struct record_row row = row_of(i);

		assert_memory_equal(&r.rows[i], &row, sizeof(row));
	}
	record_deinit(&r);
	unlink(path);
}

/* A quota, or a device that fails once: the writer names the error. It writes no further row, even
 * when the disk works again. */
static void a_failing_disk_is_named_and_ends_the_rows(void **state)
{
	static const int errors[] = {EDQUOT, EIO};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct record_row row = row_of(0);
		struct record_writer *w;
		struct err err = {""};
		struct record r;
		char path[64];

		temporary(path);
		unlink(path);
		assert_int_equal(record_create(path, &header, &w, &err), 0);
		record_write(w, &row);
		assert_int_equal(record_flush(w), 0);
		write_error = errors[i];
		record_write(w, &row);
		assert_int_equal(record_flush(w), -errors[i]);
		write_error = 0;
		record_write(w, &row);
		assert_int_equal(record_close(w), 0);
		assert_int_equal(record_load(path, &r, &err), 0);
		assert_true(r.n_rows == 1 && r.header.n_lost == 2 &&
			    r.header.lost_errno == (uint32_t)errors[i]);
		record_deinit(&r);
		unlink(path);
	}
}

static void a_cut_file_is_read_up_to_its_last_whole_row(void **state)
{
	char path[64], *data;
	struct record_writer *w;
	struct record r;
	struct err err = {""};
	size_t n, size;
	FILE *f;

	(void)state;
	temporary(path);
	unlink(path);
	assert_int_equal(record_create(path, &header, &w, &err), 0);
	for (uint64_t i = 0; i < 3; i++) {
		struct record_row row = row_of(i);

		record_write(w, &row);
	}
	record_close(w);
	size = sizeof(struct record_header) + 3 * sizeof(struct record_row);
	data = malloc(size + 1);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(data, 1, size + 1, f), size);
	fclose(f);
	unlink(path);

	for (n = 0; n <= size; n++) {
		/* its own allocation, so that reading past it is seen */
		char *cut = malloc(n ? n : 1);

		memcpy(cut, data, n);
		err.text[0] = '\0';
		if (n < sizeof(struct record_header)) {
			assert_int_equal(record_parse(cut, n, &r, &err), -EINVAL);
			assert_string_not_equal(err.text, "");
		} else {
			size_t rows = n - sizeof(struct record_header);

			assert_int_equal(record_parse(cut, n, &r, &err), 0);
			assert_int_equal(r.n_rows, rows / sizeof(struct record_row));
			assert_int_equal(r.is_truncated, rows % sizeof(struct record_row) != 0);
			record_deinit(&r);
		}
		free(cut);
	}
	free(data);
}

/* The disk is full from some byte on: the written rows are whole, the others are counted, and the
 * error is returned once. */
static void rows_that_a_full_disk_loses_are_counted(void **state)
{
	uint64_t n = 1000, fits = 10;
	struct rlimit old, limit;
	char path[64];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	for (size_t odd = 0; odd < sizeof(struct record_row);
	     odd += 41) { /* full at a row's end, and within one */
		struct record_writer *w;
		struct record r;
		struct err err = {""};
		int told = 0;

		temporary(path);
		unlink(path);
		limit.rlim_cur =
			sizeof(struct record_header) + fits * sizeof(struct record_row) + odd;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(record_create(path, &header, &w, &err), 0);
		for (uint64_t i = 0; i < n; i++) {
			struct record_row row = row_of(i);
			int flushed;

			record_write(w, &row);
			flushed = i % 100 == 99 ? record_flush(w) : 0;
			assert_true(flushed == 0 || (flushed == -EFBIG && told == 0));
			told += flushed != 0;
		}
		record_lose_note(w, -ENOSPC);
		record_clock_error(w, 70);
		record_clock_error(w, 30);
		assert_int_equal(told, 1);
		assert_int_equal(record_close(w), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

		assert_int_equal(record_load(path, &r, &err), 0);
		assert_int_equal(r.n_rows, fits);
		assert_false(r.is_truncated);
		assert_int_equal(r.rows[fits - 1].number, fits - 1);
		assert_int_equal(r.header.n_lost, n - fits);
		assert_int_equal(r.header.lost_errno, EFBIG);
		assert_int_equal(r.header.n_lost_notes, 1);
		assert_int_equal(r.header.clock_error_ns, 70);
		record_deinit(&r);
		unlink(path);
	}
}

struct file {
	struct record_header h;
	struct record_row row;
};

static void refuse(const struct file *f, const char *word)
{
	struct record r;
	struct err err = {""};

	assert_int_equal(record_parse(f, sizeof(*f), &r, &err), -EINVAL);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
}

static void a_false_header_or_row_is_refused(void **state)
{
	struct file good = {.h = header, .row = row_of(1)}, f;
	struct record r;
	struct err err = {""};

	(void)state;
	good.h.magic = RECORD_MAGIC;
	good.h.header_bytes = sizeof(good.h);
	good.h.row_bytes = sizeof(good.row);
	assert_int_equal(record_parse(&good, sizeof(good), &r, &err), 0);
	record_deinit(&r);

	f = good, f.h.magic++, refuse(&f, "not a record");
	f = good, f.h.magic = __builtin_bswap64(RECORD_MAGIC), refuse(&f, "byte order");
	f = good, f.h.row_bytes += 8, refuse(&f, "version");
	f = good, f.h.header_bytes = 0, refuse(&f, "version");
	f = good, memset(f.h.model, 'x', sizeof(f.h.model)), refuse(&f, "model name");
	f = good, memset(f.h.layout, 'x', sizeof(f.h.layout)), refuse(&f, "layout");
	f = good, memset(f.h.data_for, 'x', sizeof(f.h.data_for)), refuse(&f, "data policies");
	f = good, f.h.n_real = 1025, refuse(&f, "1025 real");
	f = good, f.row.kind = 9, refuse(&f, "kind 9");
	f = good, f.row.algo = 4, refuse(&f, "algorithm 4");
	f = good, f.row.how = 3, refuse(&f, "solution 3");
	f = good, f.row.dtype = 12, refuse(&f, "type 12");
	f = good, f.row.rank = 1024, refuse(&f, "rank 1024");
	f = good, f.row.model_ns = NAN, refuse(&f, "no number");
	f = good, f.row.injected_ns = INFINITY, refuse(&f, "no number");
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
		cmocka_unit_test(a_cut_file_is_read_up_to_its_last_whole_row),
		cmocka_unit_test(rows_that_a_full_disk_loses_are_counted),
		cmocka_unit_test(a_failing_disk_is_named_and_ends_the_rows),
		cmocka_unit_test(a_false_header_or_row_is_refused),
		cmocka_unit_test(files_that_cannot_be_read_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
