/* The table: interpolation against a slow one, the rules at the ends, and an error
 * with its place for everything that is not a table. */
#include "delay-test.h"
#include "rng.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/nbox-test-table-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static int open_text(const char *text, size_t len, struct delay_chain **ret, struct err *err)
{
	FILE *f = fopen(path, "wb");
	char spec[128];

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	snprintf(spec, sizeof(spec), "table:file=%s", path);
	return test_open(spec, NULL, 0, ret, err);
}

static struct delay_chain *must_open_text(const char *text)
{
	struct delay_chain *d = NULL;
	struct err err;

	if (open_text(text, strlen(text), &d, &err) < 0)
		fail_msg("%s", err.text);
	return d;
}

static double at(struct delay_chain *d, uint32_t kind, uint32_t n_ranks, uint64_t bytes)
{
	struct nbox_op op = test_op(kind, n_ranks, 1, bytes);

	return test_op_ns(d, &op);
}

/* The warning names the kinds without rows, which would end the job; a table for all kinds has
 * none. */
static void missing_kinds_are_named_before_the_job(void **state)
{
	CHAIN all = must_open_text("bytes,us\n8,1\n");
	CHAIN rest = must_open_text("kind,bytes,us\nallreduce,8,1\nall,8,2\n");
	CHAIN some = must_open_text("kind,bytes,us\nallreduce,8,1\nsend_recv,8,2\n");
	CHAIN whole = must_open_text(
		"kind,bytes,us\nallreduce,8,1\nallgather,8,1\nreducescatter,8,1\nbroadcast,8,1\n"
		"reduce,8,1\nalltoall,8,1\ngather,8,1\nscatter,8,1\nsendrecv,8,1\n");

	(void)state;
	assert_null(delay_warning(all));
	assert_null(delay_warning(rest));
	assert_null(delay_warning(whole));
	assert_non_null(strstr(delay_warning(some), "delay model table: /tmp/nbox-test-table-"));
	assert_non_null(
		strstr(delay_warning(some),
		       " has times of allreduce sendrecv; an op of another kind (allgather "
		       "reducescatter broadcast reduce alltoall gather scatter) ends the job"));
}

/* --- against a slow one ---------------------------------------------------- */

/* All pairs of points; the first that has @bytes between them. */
static double slow_at(const double *x, const double *y, size_t n, double bytes)
{
	if (bytes <= x[0])
		return y[0];
	for (size_t i = 0; i + 1 < n; i++)
		if (bytes >= x[i] && bytes <= x[i + 1])
			return y[i] * (x[i + 1] - bytes) / (x[i + 1] - x[i]) +
			       y[i + 1] * (bytes - x[i]) / (x[i + 1] - x[i]);
	if (n == 1)
		return y[0] * bytes / x[0];
	return y[n - 1] +
	       fmax(0, (y[n - 1] - y[n - 2]) / (x[n - 1] - x[n - 2])) * (bytes - x[n - 1]);
}

static void sizes_between_rows_are_interpolated(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 12, 0);
	for (int round = 0; round < 200; round++) {
		size_t n = 1 + rng_u64(&rng) % 40, used;
		double x[40], y[40];
		char text[4096];
		uint64_t bytes = 0;

		used = (size_t)snprintf(text, sizeof(text), "bytes,ns\n");
		for (size_t i = 0; i < n; i++) {
			uint64_t ns = rng_u64(&rng) % 100000000;

			bytes += 1 + rng_u64(&rng) % 1000000;
			x[i] = (double)bytes;
			y[i] = (double)ns;
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%lu,%lu\n",
						 (unsigned long)bytes, (unsigned long)ns);
		}
		CHAIN d = must_open_text(text);

		for (size_t i = 0; i < n; i++)
			assert_true(at(d, NBOX_ALLREDUCE, 8, (uint64_t)x[i]) == y[i]);
		for (int i = 0; i < 200; i++) {
			uint64_t b = rng_u64(&rng) % (bytes + bytes / 2);

			test_near(at(d, NBOX_ALLREDUCE, 8, b), slow_at(x, y, n, (double)b), 1e-9);
		}
	}
}

/* --- what a table can say -------------------------------------------------- */

static void rows_are_chosen_by_kind_and_ranks(void **state)
{
	CHAIN d = must_open_text("# a comment\n"
				 "\n"
				 "  us , kind, bytes \r\n"
				 "10,allreduce,1K\r\n"
				 "20 , all-reduce , 2KiB \n"
				 "  # another\n"
				 "100,all_gather,8000\n"
				 "7,all,0\n"
				 "17,all,10"); /* no newline at the end */
	struct nbox_op op;

	(void)state;
	assert_true(at(d, NBOX_ALLREDUCE, 8, 1024) == 10000);
	assert_true(at(d, NBOX_ALLREDUCE, 8, 1536) == 15000);
	assert_true(at(d, NBOX_ALLREDUCE, 8, 0) == 10000);
	assert_true(at(d, NBOX_ALLREDUCE, 8, 4096) == 40000);
	/* nccl-tests' size: a rank's part times the ranks */
	assert_true(at(d, NBOX_ALLGATHER, 8, 1000) == 100000);
	assert_true(at(d, NBOX_ALLGATHER, 16, 1000) == 200000);
	/* others */
	assert_true(at(d, NBOX_BROADCAST, 8, 5) == 12000);
	assert_true(at(d, NBOX_ALLTOALL, 5, 1) == 12000);
	op = test_op(NBOX_ALLREDUCE, 8, 1, 1);
	assert_true(delay_has_op(d) && !delay_has_message(d) && delay_is_uniform(d));
	assert_true(test_extra_ns(d, &op, 0) == 0);
}

static void columns_have_units(void **state)
{
	static const struct {
		const char *text;
		double ns;
	} cases[] = {
		{"bytes,ns\n1,1.5\n", 1.5},       {"bytes,us\n1,1.5\n", 1500},
		{"bytes,ms\n1,1.5\n", 1.5e6},     {"bytes,s\n1,1.5\n", 1.5e9},
		{"bytes,time\n1,1.5ms\n", 1.5e6}, {"TIME,Bytes\n0ns,1B\n", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHAIN d = must_open_text(cases[i].text);

		assert_true(at(d, NBOX_REDUCE, 4, 1) == cases[i].ns);
	}
}

static void an_absent_kind_has_no_answer(void **state)
{
	CHAIN d = must_open_text("kind,bytes,us\nallreduce,8,10\n");
	struct nbox_op op = test_op(NBOX_BROADCAST, 8, 1, 8);
	struct err err;
	double ns;

	(void)state;
	assert_int_equal(delay_op(d, &op, &ns, &err), 1);
	op.kind = 77; /* of a later host */
	assert_int_equal(delay_op(d, &op, &ns, &err), 1);
}

static void a_file_may_end_in_any_way(void **state)
{
	CHAIN one = must_open_text("bytes,us\n1000,10\n");
	CHAIN zero = must_open_text("bytes,us\n0,10\n");
	CHAIN falls = must_open_text("bytes,us\n1000,10\n2000,8\n");

	(void)state;
	assert_true(at(one, 0, 2, 10) == 10000 && at(one, 0, 2, 3000) == 30000);
	assert_true(at(zero, 0, 2, 0) == 10000 && at(zero, 0, 2, 3000) == 10000);
	assert_true(at(falls, 0, 2, 1500) == 9000 && at(falls, 0, 2, 1 << 30) == 8000);
}

/* --- what is no table ------------------------------------------------------ */

static void errors_name_their_place(void **state)
{
	static const struct {
		const char *text, *place, *sentence;
	} cases[] = {
		{"", "", "no line with a time"},
		{"# only a comment\n", "", "no line with a time"},
		{"bytes,us\n", "", "no line with a time"},
		{"byte,us\n", ":1:1: ", "did you mean 'bytes'?"},
		{"bytes,\n", ":1:7: ", "is empty"},
		{"\n# x\nbytes,bytes\n", ":3:7: ", "one column too many"},
		{"bytes,us,ms\n1,1,1\n", ":1:10: ", "one column too many"},
		{"bytes,kind\n1,all\n", ":1: ", "the columns must have"},
		{"us\n1\n", ":1: ", "the columns must have"},
		{"bytes,us\n1,1\nx,2\n", ":3:1: ", "no size"},
		{"bytes,us\n1,1\n  2 , x\n", ":3:7: ", "no bare number"},
		{"bytes,us\n1,2us\n", ":2:3: ", "the head of its column is the unit"},
		{"bytes,us\n1,-2\n", ":2:3: ", "no bare number"},
		{"bytes,us\n1,1.2.3\n", ":2:3: ", "no ratio"},
		{"bytes,us\n1,150%\n", ":2:3: ", "no bare number"},
		{"bytes,time\n1,2\n", ":2:3: ", "has no unit"},
		{"bytes,us\n1.5,2\n", ":2:1: ", "no count"},
		{"bytes,us\n1,2,3\n", ":2:3: ", "more cells than columns"},
		{"bytes,us\n1\n", ":2:1: ", "is the last cell"},
		{"bytes,us\n1,\n", ":2:3: ", "is empty"},
		{"bytes,us\n,1\n", ":2:1: ", "is empty"},
		{"bytes,us\n5,1\n5,2\n", ":3: ", "must rise"},
		{"kind,bytes,us\nall,5,1\nreduce,5,1\nall,4,2\n", ":4: ", "must rise"},
		{"kind,bytes,us\nallredcue,5,1\n", ":2:1: ", "did you mean 'allreduce'?"},
		{"bytes,us\n18446744073709551616,1\n", ":2:1: ", "too large"},
	};
	struct delay_chain *d = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(open_text(cases[i].text, strlen(cases[i].text), &d, &err),
				 -EINVAL);
		if (!strstr(err.text, path) || !strstr(err.text, cases[i].place) ||
		    !strstr(err.text, cases[i].sentence))
			fail_msg("case %zu: %s", i, err.text);
		assert_null(d);
	}
}

static void what_is_no_table_is_refused(void **state)
{
	struct delay_chain *d = NULL;
	char longcell[400] = "bytes,us\n";
	struct err err;

	(void)state;
	assert_int_equal(open_text("bytes,us\n1\0,2\n", 14, &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2:1: the cell is no text"));
	memset(longcell + 9, '1', 200);
	strcpy(longcell + 209, ",1\n");
	assert_int_equal(open_text(longcell, strlen(longcell), &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":2:1: the cell is too long"));
	assert_int_equal(test_open("table:file=/nonexistent/file.csv", NULL, 0, &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cannot open /nonexistent/file.csv: No such file"));
	assert_int_equal(test_open("table:file=/", NULL, 0, &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "cannot read /: Is a directory"));
	assert_int_equal(test_open("table", NULL, 0, &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "file=<text> must be given"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_kinds_are_named_before_the_job),
		cmocka_unit_test(sizes_between_rows_are_interpolated),
		cmocka_unit_test(rows_are_chosen_by_kind_and_ranks),
		cmocka_unit_test(columns_have_units),
		cmocka_unit_test(an_absent_kind_has_no_answer),
		cmocka_unit_test(a_file_may_end_in_any_way),
		cmocka_unit_test(errors_name_their_place),
		cmocka_unit_test(what_is_no_table_is_refused),
	};

	return cmocka_run_group_tests_name("table", tests, make_file, remove_file);
}
