/* The fit of links, with a predictor that is known: it finds the numbers that made the times. */
#include "cmocka-all.h"
#include "rng.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "calibrate/links.h"

/* A hierarchy: within nodes, then between them. */
struct machine {
	double net_ns, nic, gpu, gpu_ns;
	int n_questions, fails_at;
};

/* Between nodes sizes of 8 KiB to 256 KiB take so much longer as no link explains. */
static double hump;

static double ns_of(const struct machine *m, const double f[LINK_NUMBERS], const struct sample *s)
{
	double on_each = (double)s->n_ranks / s->n_nodes;

	return 4 * log2(s->n_ranks) * m->gpu_ns * f[LINK_GPU_LATENCY] +
	       2 * log2(s->n_nodes) * m->net_ns * f[LINK_NET_LATENCY] +
	       fmax(2 * s->bytes / (m->gpu * f[LINK_GPU_BANDWIDTH]),
		    s->n_nodes > 1 ? 2 * s->bytes / on_each / (m->nic * f[LINK_NIC_BANDWIDTH]) : 0);
}

static double factor_of(const struct residuals *r, const struct sample *s)
{
	double factor = 1;

	for (size_t i = 0; s->n_nodes > 1 && i < r->n; i++)
		if (r->list[i].bytes <= s->bytes)
			factor = r->list[i].factor;
	return factor;
}

static int predict(void *ctx, const double f[LINK_NUMBERS], const struct residuals *residuals,
		   const struct sample *list, size_t n, double *ret_ns, struct err *err)
{
	struct machine *m = ctx;

	if (++m->n_questions == m->fails_at)
		return err_set(err, EINVAL, "no more");
	for (size_t i = 0; i < n; i++)
		ret_ns[i] = ns_of(m, f, &list[i]) * factor_of(residuals, &list[i]);
	return 0;
}

static const double most[LINK_NUMBERS] = {12, 12, 1.2, 1.2, 12};

/* One node of 8, 4 and 16 nodes, with noise and now and then a time that is far too long. */
static struct samples measure(const double truth[LINK_NUMBERS])
{
	struct machine m = {.net_ns = 2000, .nic = 20, .gpu = 300, .gpu_ns = 500};
	struct samples s = {.list = NULL};
	struct rng rng;

	hump = hump > 0 ? hump : 1;
	rng_seed(&rng, 5, 0);
	for (uint32_t nodes = 1; nodes <= 16; nodes *= 4)
		for (double bytes = 64; bytes < 4e9; bytes *= 2) {
			struct sample one = {COLL_ALLREDUCE, 8 * nodes, nodes, 0, bytes, 0};

			one.ns = ns_of(&m, truth, &one) * (.98 + .04 * rng_uniform(&rng));
			one.ns *= hump > 1 || rng_u64(&rng) % 10 ? 1 : 3;
			if (nodes > 1 && bytes >= 8192 && bytes <= 262144)
				one.ns *= hump;
			samples_add(&s, &one);
		}
	samples_merge(&s);
	return s;
}

static void the_links_that_made_the_times_are_found(void **state)
{
	static const double truth[LINK_NUMBERS] = {3.5, 1, .8, .7, 1.6};
	struct samples s = measure(truth);
	struct machine m = {.net_ns = 2000, .nic = 20, .gpu = 300, .gpu_ns = 500};
	struct links_fit fit, again;
	struct err err = {""};

	(void)state;
	if (links_fit(&s, most, predict, &m, &fit, &err) < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < LINK_NUMBERS; i++)
		if (!(fabs(fit.factors[i] / truth[i] - 1) < .06))
			fail_msg("%s: %g, not %g", link_number_names[i], fit.factors[i], truth[i]);
	assert_true(fit.before[LINKS_ALL].median > .2 && fit.after[LINKS_ALL].median < .03);
	assert_true(fit.after[BAND_LARGE].median < .03 && fit.after[BAND_SMALL].median < .05);
	assert_int_equal(fit.after[LINKS_ALL].n, s.n / 2);
	assert_true(m.n_questions < 400);
	assert_int_equal(links_fit(&s, most, predict, &m, &again, &err), 0);
	assert_memory_equal(fit.factors, again.factors, sizeof(fit.factors)); /* no chance in it */
	assert_memory_equal(fit.after, again.after, sizeof(fit.after));
	links_fit_deinit(&fit);
	links_fit_deinit(&again);
	samples_deinit(&s);
}

static void a_number_that_nothing_depends_on_stays(void **state)
{
	static const double truth[LINK_NUMBERS] = {1, 1, 1, 1, 1.5};
	struct samples s = measure(truth);
	struct machine m = {.net_ns = 2000, .nic = 20, .gpu = 300, .gpu_ns = 500};
	struct links_fit fit;
	struct err err = {""};

	(void)state;
	s.n /= 3; /* one node: nothing goes through a NIC */
	assert_int_equal(links_fit(&s, most, predict, &m, &fit, &err), 0);
	assert_int_equal(fit.residuals.n, 0);
	assert_true(fabs(fit.factors[LINK_NIC_BANDWIDTH] - 1) < .05);
	assert_true(fabs(fit.factors[LINK_NET_LATENCY] - 1) < .05);
	assert_true(fit.factors[LINK_HOP_LATENCY] == 1);
	assert_true(fabs(fit.factors[LINK_GPU_LATENCY] - 1.5) < .09);
	samples_deinit(&s);
}

/* The links are those that made the times all the same, and so 1,024 ranks are right, too. */
static void what_differs_by_size_alone_is_no_links(void **state)
{
	static const double truth[LINK_NUMBERS] = {2, 1, .8, 1, 1};
	struct machine m = {.net_ns = 2000, .nic = 20, .gpu = 300, .gpu_ns = 500};
	struct sample large = {COLL_ALLREDUCE, 1024, 128, 0, 32768, 0};
	double ns, expect = ns_of(&m, truth, &large) * 1.8;
	struct links_fit fit;
	struct samples s;
	struct err err;

	(void)state;
	hump = 1.8;
	s = measure(truth);
	hump = 1;
	assert_int_equal(links_fit(&s, most, predict, &m, &fit, &err), 0);
	assert_true(fabs(fit.factors[LINK_NET_LATENCY] / 2 - 1) < .06);
	assert_true(fabs(fit.factors[LINK_NIC_BANDWIDTH] / .8 - 1) < .06);
	for (size_t i = 0; i < fit.residuals.n; i++) {
		const struct residual *r = &fit.residuals.list[i];
		double is = r->bytes >= 8192 && r->bytes <= 262144 ? 1.8 : 1;

		assert_int_equal(r->kind, COLL_ALLREDUCE);
		if (!(fabs(r->factor / is - 1) < .06))
			fail_msg("%g bytes: %g, not %g", r->bytes, r->factor, is);
	}
	assert_int_equal(fit.residuals.n, 21); /* 64 B to 32 MiB, and none above */
	assert_int_equal(predict(&m, fit.factors, &fit.residuals, &large, 1, &ns, &err), 0);
	assert_true(fabs(ns / expect - 1) < .06);
	links_fit_deinit(&fit);
	samples_deinit(&s);
}

static void what_the_predictor_says_is_forwarded(void **state)
{
	static const double truth[LINK_NUMBERS] = {1, 1, 1, 1, 1};
	struct samples s = measure(truth);
	struct machine m = {.net_ns = 2000, .nic = 20, .gpu = 300, .gpu_ns = 500};
	struct links_fit fit;
	struct err err;

	(void)state;
	for (m.fails_at = 1; m.fails_at < 40; m.fails_at += 6, m.n_questions = 0) {
		assert_int_equal(links_fit(&s, most, predict, &m, &fit, &err), -EINVAL);
		assert_string_equal(err.text, "no more");
		assert_int_equal(m.n_questions, m.fails_at);
	}
	s.n = 3;
	assert_int_equal(links_fit(&s, most, predict, &m, &fit, &err), -EINVAL);
	assert_string_equal(err.text, "3 of the 4 times were measured that a fit of links needs");
	samples_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_links_that_made_the_times_are_found),
		cmocka_unit_test(a_number_that_nothing_depends_on_stays),
		cmocka_unit_test(what_differs_by_size_alone_is_no_links),
		cmocka_unit_test(what_the_predictor_says_is_forwarded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
