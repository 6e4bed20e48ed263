/* The model `fitted` and its file: what is written is what answers, which curve answers, what lies
 * outside the measurements, and a sentence with its place for everything else. */
#include "delay-test.h"

#include <stdlib.h>
#include <unistd.h>

#include "calibrate/fit.h"
#include "calibrate/sample.h"
#include "calibrate/write.h"

static char path[] = "/tmp/nbox-test-fitted-XXXXXX";

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

/* --- files ------------------------------------------------------------------- */

/* nccl-tests' time of a made-up machine. */
static double ns_of(uint32_t kind, uint32_t n_ranks, double size)
{
	double wire = size * curve_wire_factor(kind, n_ranks);

	return 1e3 * (5 + 5 * log2(n_ranks)) + wire / 30 + sqrt(wire) * 10;
}

static struct fitted fit_all(void)
{
	struct fitted f = {.source = "made up", .date = "2026-11-23"};
	struct samples s = {.list = NULL};
	struct fit_scores scores;
	struct err err;
	size_t from = 0;

	for (uint32_t kind = 0; kind <= NBOX_ALLTOALL; kind++)
		for (uint32_t n = 8; n <= 128; n *= 4)
			for (double size = 1024; size < 2e9; size *= 2)
				samples_add(&s, &(struct sample){kind, n, n / 8, CURVE_ANY_PROTO,
								 size, ns_of(kind, n, size)});
	samples_merge(&s);
	f.curves = calloc(64, sizeof(*f.curves));
	assert_non_null(f.curves);
	while (samples_next(&s, &from, &f.curves[f.n]) == 1) {
		if (fit_curve(&f.curves[f.n], (enum curve_form)(f.n % CURVE_FORMS), &scores, &err))
			fail_msg("%s", err.text);
		f.n++;
	}
	samples_deinit(&s);
	return f;
}

static char *text_of(const struct fitted *f)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	assert_non_null(to);
	fitted_write(f, to);
	fclose(to);
	return text;
}

static void save(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void what_is_written_is_read_again(void **state)
{
	struct fitted f = fit_all(), again;
	CLEANUP(freep) char *text = text_of(&f), *twice = NULL;
	char sentence[FITTED_SENTENCE];

	(void)state;
	if (fitted_parse("f", text, strlen(text), &again, sentence) < 0)
		fail_msg("%s", sentence);
	twice = text_of(&again);
	assert_string_equal(text, twice);
	assert_int_equal(again.n, 18);
	for (size_t i = 0; i < again.n; i++)
		for (double bytes = 3; bytes < 1e12; bytes *= 1.7)
			test_near(curve_ns(&again.curves[i], bytes), curve_ns(&f.curves[i], bytes),
				  1e-8);
	fitted_deinit(&again);
	fitted_deinit(&f);
}

/* --- answers ------------------------------------------------------------------ */

static void an_op_takes_what_its_curve_says(void **state)
{
	struct fitted f = fit_all();
	CLEANUP(freep) char *text = text_of(&f);
	char spec[128];

	(void)state;
	save(text);
	snprintf(spec, sizeof(spec), "fitted:file=%s", path);
	CHAIN d = test_must_open(spec, NULL, 1);
	for (size_t i = 0; i < f.n; i++) {
		const struct curve *c = &f.curves[i];
		int is_part = c->kind == NBOX_ALLGATHER || c->kind == NBOX_REDUCESCATTER ||
			      c->kind == NBOX_ALLTOALL;
		struct nbox_op op = test_op(c->kind, c->n_ranks, c->n_nodes, 4 << 20);
		double size = (4 << 20) * (is_part ? c->n_ranks : 1.);

		test_near(test_op_ns(d, &op),
			  curve_ns(c, size * curve_wire_factor(c->kind, c->n_ranks)), 1e-8);
	}
	assert_non_null(strstr(delay_warning(d), "allreduce (8 to 128 ranks), "));
	assert_non_null(strstr(delay_warning(d), "alltoall (8 to 128 ranks); beyond those ranks"));
	fitted_deinit(&f);
}

static double ask(const struct fitted *f, uint32_t kind, uint32_t n_ranks, uint32_t n_nodes,
		  double size, struct fitted_beyond *ret)
{
	double ns = -1;

	assert_int_equal(fitted_ns(f, kind, n_ranks, n_nodes, size, &ns, ret), 0);
	return ns;
}

/* Outside its ranks a curve's bytes are rescaled, and nothing else; how far outside is said. */
static void what_was_not_measured_is_counted(void **state)
{
	struct fitted f = fit_all();
	struct fitted_beyond b;
	double low, high, ns;

	(void)state;
	low = ask(&f, NBOX_ALLREDUCE, 32, 4, 1 << 20, &b);
	assert_true(b.ranks == 1 && b.bytes == 1);
	high = ask(&f, NBOX_ALLREDUCE, 128, 16, 1 << 20, &b);
	ns = ask(&f, NBOX_ALLREDUCE, 64, 8, 1 << 20, &b);
	assert_true(b.ranks == 1 && b.bytes == 1 && ns > low && ns < high);
	ns = ask(&f, NBOX_ALLREDUCE, 1024, 128, (1 << 20) * (127. / 128) / (1023. / 1024), &b);
	test_near(ns, high, 1e-9);
	test_near(b.ranks, 8, 1e-12);
	ask(&f, NBOX_BROADCAST, 32, 4, pow(2, 33), &b);
	test_near(b.bytes, 8, 1e-12);
	ask(&f, NBOX_BROADCAST, 32, 4, 64, &b);
	test_near(b.bytes, 16, 1e-12);
	/* 8 ranks were measured on one node only, and one node with 8 ranks only */
	ask(&f, NBOX_REDUCE, 8, 2, 1 << 20, &b);
	test_near(b.ranks, 4, 1e-12);
	ask(&f, NBOX_REDUCE, 16, 1, 1 << 20, &b);
	test_near(b.ranks, 2, 1e-12);
	assert_int_equal(fitted_ns(&f, NBOX_SENDRECV, 2, 1, 8, &ns, &b), 1);
	fitted_deinit(&f);
}

/* Calls to several peers take what an all-to-all of the busiest rank's wire bytes takes. */
static void a_group_of_calls_is_an_alltoall(void **state)
{
	struct fitted f = fit_all();
	CLEANUP(freep) char *text = text_of(&f);
	struct nbox_op op = test_op(NBOX_SENDRECV, 32, 4, 1 << 20);
	struct fitted_beyond b;
	struct err err;
	char spec[128];
	double ns;

	(void)state;
	save(text);
	snprintf(spec, sizeof(spec), "fitted:file=%s", path);
	CHAIN d = test_must_open(spec, NULL, 1);
	op.n_peers = 2;
	test_near(test_op_ns(d, &op), ask(&f, NBOX_ALLTOALL, 32, 4, (1 << 20) * 32. / 31, &b),
		  1e-8);
	op.n_peers = 1; /* send and receive were not measured */
	assert_int_equal(delay_op(d, &op, &ns, &err), 1);
	op.n_peers = 31; /* an older host does not know them */
	op.struct_size = offsetof(struct nbox_op, n_peers);
	assert_int_equal(delay_op(d, &op, &ns, &err), 1);
	fitted_deinit(&f);
}

#define HEAD "version = 1\nunit = wire bytes\nsource = a.txt\ndate = 2026-11-23\n\n"
#define LINE \
	"[alltoall]\nranks = 8\nnodes = 1\nform = alphabeta\nlatency_us = 5\nbandwidth_gbs = 20\n"

/* Of two protocols at one size the faster one's; beyond one's sizes the other one's. */
static void protocols_share_the_sizes(void **state)
{
	static const char text[] =
		HEAD LINE "proto = ll\npoint = 64 5\npoint = 4096 6\n" LINE "latency_us = 8\n";
	static const char two[] = HEAD LINE
		"proto = ll\npoint = 64 5\npoint = 4096 6\n"
		"[alltoall]\nranks = 8\nnodes = 1\nform = alphabeta\nlatency_us = 8\n"
		"bandwidth_gbs = 200\nproto = simple\npoint = 1024 8\npoint = 1048576 9\n";
	char sentence[FITTED_SENTENCE];
	struct fitted_beyond b;
	struct fitted f;

	(void)state;
	assert_int_equal(fitted_parse("f", text, strlen(text), &f, sentence), -1);
	assert_non_null(strstr(sentence, "f:21: latency_us stands there twice"));
	assert_int_equal(fitted_parse("f", two, strlen(two), &f, sentence), 0);
	test_near(ask(&f, NBOX_ALLTOALL, 8, 1, 2048, &b), 5e3 + 2048 * .875 / 20, 1e-12);
	test_near(ask(&f, NBOX_ALLTOALL, 8, 1, 8e5, &b), 8e3 + 8e5 * .875 / 200, 1e-12);
	assert_true(b.bytes == 1);
	fitted_deinit(&f);
}

/* --- what is no such file ------------------------------------------------------- */

static void an_error_names_its_line(void **state)
{
	static const struct {
		const char *text, *sentence;
	} rows[] = {
		{"", "f:0: what stands above has no version"},
		{"[allreduce]\n", "f:1: what stands above has no version"},
		{"version = 2\n", "f:1: version 2; this nbox reads 1: fit again"},
		{"version = 1\nunit = bytes\n", "f:2: unit 'bytes'; there is only 'wire bytes'"},
		{HEAD, "f:5: there is no curve"},
		{HEAD "[alreduce]\n", "f:6: there is no kind 'alreduce'; kinds: allreduce|"},
		{HEAD "[alltoall\n", "f:6: '[alltoall' has no ']'"},
		{HEAD LINE, "f:11: what stands above has no point"},
		{HEAD LINE "point = 8 1\nm1 = 5\nbandwith_gbs = 4\n",
		 "f:14: unknown key 'bandwith_gbs'; keys: ranks|"},
		{HEAD LINE "point = 8\n", "f:12: point: '' is no number"},
		{HEAD LINE "point = 8 1 1\n", "f:12: point: '1' is more than a number"},
		{HEAD LINE "point = 8 1\npoint = 8 2\n", "f:13: point: 8 bytes after 8"},
		{HEAD LINE "point = 8 nan\n", "f:12: point: 'nan' is no number"},
		{HEAD LINE "point = 8 -1\n", "f:12: point: '-1' is no number"},
		{HEAD "[alltoall]\nranks = 0\n", "f:7: ranks: '0' is no number from 1"},
		{HEAD "[alltoall]\nranks = 2.5\n", "f:7: ranks: 2.5 is no whole number"},
		{HEAD "[alltoall]\nranks = 1\nnodes = 1\nform = alphabeta\nlatency_us = 1\n"
		      "bandwidth_gbs = 1\npoint = 8 1\n",
		 "f:12: 1 ranks on 1 nodes"},
		{HEAD LINE "point = 8 1\n"
			   "[alltoall]\nranks = 8\nnodes = 9\nform = alphabeta\n"
			   "latency_us = 1\nbandwidth_gbs = 1\npoint = 8 1\n",
		 "f:19: 8 ranks on 9 nodes"},
		{HEAD "[alltoall]\nranks\n", "f:7: 'ranks' is neither 'key = value' nor '[kind]'"},
		{HEAD "[alltoall]\nform = cubic\n", "f:7: 'cubic'; one of alphabeta|sigmoid|table"},
		{HEAD "[alltoall]\nranks = 8\nnodes = 1\nform = table\npoint = 8 1\n",
		 "f:10: what stands above has no knot"},
		{HEAD
		 "[alltoall]\nranks = 8\nnodes = 1\nform = sigmoid\npoint = 8 1\nlatency_us = 1\n"
		 "bandwidth_gbs = 1\nm1 = 9\nm2 = 9\nL = 1\nx0 = 1\nk = 1\nb = 1\n",
		 "f:18: m1 (9) must be below m2 (9)"},
		{HEAD
		 "[alltoall]\nranks = 8\nnodes = 1\nform = sigmoid\npoint = 8 1\nlatency_us = 1\n"
		 "bandwidth_gbs = 1\nm1 = 8\nm2 = 9\nL = 2\nx0 = 1\nk = 1\nb = 1\n",
		 "f:18: L x k is 2: above 1.2041 more bytes would take less time"},
	};
	char sentence[FITTED_SENTENCE];
	struct fitted f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(fitted_parse("f", rows[i].text, strlen(rows[i].text), &f,
					      sentence),
				 -1);
		if (strncmp(sentence, rows[i].sentence, strlen(rows[i].sentence)) != 0)
			fail_msg("%s\nis not\n%s", sentence, rows[i].sentence);
	}
}

static void a_run_with_a_bad_file_does_not_start(void **state)
{
	struct delay_chain *d = NULL;
	struct err err;
	char spec[128];

	(void)state;
	save("nonsense\n");
	snprintf(spec, sizeof(spec), "fitted:file=%s", path);
	assert_true(test_open(spec, NULL, 1, &d, &err) < 0);
	assert_non_null(strstr(err.text, ":1: 'nonsense' is neither"));
	assert_true(test_open("fitted:file=/nowhere/at/all", NULL, 1, &d, &err) < 0);
	assert_non_null(strstr(err.text, "cannot read /nowhere/at/all: No such file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(an_op_takes_what_its_curve_says),
		cmocka_unit_test(what_was_not_measured_is_counted),
		cmocka_unit_test(a_group_of_calls_is_an_alltoall),
		cmocka_unit_test(protocols_share_the_sizes),
		cmocka_unit_test(an_error_names_its_line),
		cmocka_unit_test(a_run_with_a_bad_file_does_not_start),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
