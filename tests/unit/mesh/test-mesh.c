/* Layouts, unit tasks, and how strategies carry them out: against one element at a time. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "mesh/mesh.h"
#include "mesh/route.h"
#include "rng.h"

static void test_words_that_are_no_layout_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"R",
		"@2x4",
		"S0RR",
		"S0RR@",
		"S0RR@2",
		"S0RR@2x",
		"S@2x4",
		"S2R@2x4",
		"S10R@2x4",
		"S0S0@2x4",
		"S01S1@2x4",
		"S0RR@0x4",
		"S0RR@2x4x2",
		"S0R@65x1",
		"S0R@1x65",
		"RRRRRRRRR@1x1",
		"s0r@2x4",
		"S0 R@2x4",
		"S0R@-1x4",
		"S0R@2x4 ",
		"S0R@99999999999999999999x1",
	};
	static const char *const no_dims[] = {"",
					      "x",
					      "4x",
					      "0",
					      "4x0",
					      "4x-1",
					      "4X4",
					      "1.5",
					      "16777216x16777217",
					      "1x1x1x1x1x1x1x1x1"};
	struct mesh_tensor t;
	struct mesh_spec s;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		err.text[0] = '\0';
		assert_int_equal(mesh_spec_parse(wrong[i], &s, &err), -EINVAL);
		assert_true(err.text[0]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no_dims); i++) {
		err.text[0] = '\0';
		assert_int_equal(mesh_dims_parse(no_dims[i], &t, &err), -EINVAL);
		assert_true(err.text[0]);
	}
	assert_int_equal(mesh_spec_parse("RS01R@2x4", &s, &err), 0);
	assert_true(s.hosts == 2 && s.devices == 4 && s.n_dims == 3 && mesh_tiles(&s) == 8);
	assert_true(!s.cut[0] && s.cut[1] == (MESH_BY_HOST | MESH_BY_DEVICE) && !s.cut[2]);
	assert_int_equal(mesh_dims_parse("16777216x16777216", &t, &err), 0);
	assert_int_equal(mesh_dtype_bytes("bf16", &err), 2);
	assert_int_equal(mesh_dtype_bytes("float", &err), -EINVAL);
}

/* 10 over 4 parts: 3, 3, 3, 1; over 6: 2, 2, 2, 2, 2, 0. */
static void test_what_does_not_divide_is_padded_at_its_end(void **state)
{
	const struct mesh_tensor t = {.n_dims = 2, .dims = {10, 3}, .element_bytes = 4};
	struct mesh_spec s;
	struct mesh_box b;
	struct err err;

	(void)state;
	assert_int_equal(mesh_spec_parse("S01R@2x2", &s, &err), 0);
	mesh_tile_box(&s, &t, 3, &b);
	assert_true(b.lo[0] == 9 && b.hi[0] == 10 && b.lo[1] == 0 && b.hi[1] == 3);
	assert_int_equal(mesh_pad_bytes(&s, &t), 2 * 3 * 4);
	assert_int_equal(mesh_spec_parse("S01R@2x3", &s, &err), 0);
	mesh_tile_box(&s, &t, 5, &b);
	assert_int_equal(mesh_box_elements(&b, 2), 0);
}

/* A layout of so many dimensions, on a mesh of up to 3 hosts of 3 devices. */
static void make_spec(struct rng *g, uint32_t n_dims, struct mesh_spec *ret)
{
	*ret = (struct mesh_spec){.n_dims = n_dims,
				  .hosts = 1 + (uint32_t)below(g, 3),
				  .devices = 1 + (uint32_t)below(g, 3)};
	for (uint8_t bit = MESH_BY_HOST; bit <= MESH_BY_DEVICE; bit++) {
		uint64_t dim = below(g, n_dims + 1);

		if (dim < n_dims)
			ret->cut[dim] |= bit;
	}
}

static void make(struct rng *g, struct mesh_reshard *ret)
{
	struct mesh_tensor t = {.n_dims = 1 + (uint32_t)below(g, 3), .element_bytes = 2};
	struct mesh_spec src, dst;
	struct err err;

	for (uint32_t i = 0; i < t.n_dims; i++)
		t.dims[i] = 1 + below(g, 13);
	make_spec(g, t.n_dims, &src);
	make_spec(g, t.n_dims, &dst);
	assert_int_equal(mesh_reshard_init(ret, &t, &src, &dst, &err), 0);
}

static bool is_in(const struct mesh_box *b, uint32_t n_dims, const uint64_t *at)
{
	for (uint32_t i = 0; i < n_dims; i++)
		if (at[i] < b->lo[i] || at[i] >= b->hi[i])
			return false;
	return true;
}

static bool has(const struct mesh_reshard *r, const struct mesh_spec *s, uint32_t device,
		const uint64_t *at)
{
	struct mesh_box b;

	mesh_tile_box(s, &r->tensor, mesh_tile_of(s, device), &b);
	return is_in(&b, r->tensor.n_dims, at);
}

/* Checks that each device that needs the element gets it by one task, from one that has it. */
static void check_element(const struct mesh_reshard *r, const uint64_t *at)
{
	int gets[9] = {0};

	for (uint32_t i = 0; i < r->n; i++) {
		const struct mesh_task *t = &r->tasks[i];
		struct mesh_box b;

		mesh_task_box(r, i, &b);
		assert_int_equal(mesh_box_elements(&b, r->tensor.n_dims) * 2, t->bytes);
		if (!is_in(&b, r->tensor.n_dims, at))
			continue;
		for (uint32_t h = 0; h < r->src.hosts; h++)
			if (t->senders >> h & 1)
				assert_true(has(r, &r->src, mesh_task_sender(r, i, h), at));
		for (uint32_t p = 0; p < t->to.hosts * t->to.devices; p++) {
			uint32_t d = mesh_task_receiver(r, i, p);

			assert_true(t->receivers >> (d / r->dst.devices) & 1);
			gets[d]++;
		}
	}
	for (uint32_t d = 0; d < r->dst.hosts * r->dst.devices; d++)
		assert_int_equal(gets[d], has(r, &r->dst, d, at));
}

static void test_every_element_reaches_each_device_that_needs_it_once(void **state)
{
	struct rng g;

	(void)state;
	rng_seed(&g, 11, 0);
	for (int i = 0; i < 60; i++) {
		struct mesh_reshard r;

		make(&g, &r);
		for (uint64_t e = 0; e < mesh_elements(&r.tensor); e += 1 + below(&g, 7)) {
			uint64_t at[MESH_DIMS], rest = e;

			for (uint32_t d = r.tensor.n_dims; d-- > 0; rest /= r.tensor.dims[d])
				at[d] = rest % r.tensor.dims[d];
			check_element(&r, at);
		}
		mesh_reshard_deinit(&r);
	}
}

/* Follows each part: every receiver gets every byte once; what crosses hosts is counted. */
static void test_parts_reach_all_receivers_and_cross_as_the_closed_form_says(void **state)
{
	static const uint32_t ks[] = {1, 3, 100};
	struct rng g;

	(void)state;
	rng_seed(&g, 12, 0);
	for (int i = 0; i < 300; i++) {
		enum mesh_strategy s = (enum mesh_strategy)below(&g, MESH_SIGNAL);
		struct mesh_group to = {1 + (uint32_t)below(&g, 4), 1 + (uint32_t)below(&g, 4)};
		uint64_t bytes = 1 + below(&g, 200), crossing = 0, got[16] = {0}, sum[16] = {0};
		struct mesh_crossing by_host[4] = {{0, 0}};
		uint32_t k = ks[below(&g, 3)];

		for (uint32_t p = 0; p < mesh_parts(s, to, k); p++) {
			struct mesh_part part;
			uint32_t at;

			mesh_part(s, bytes, to, k, p, &part);
			at = part.first;
			crossing += part.bytes; /* from the sender, another host */
			by_host[at / to.devices].from_sender += part.bytes;
			for (uint32_t hop = 0;; hop++) {
				got[at] += part.bytes;
				sum[at] += part.bytes * (2 * part.from + part.bytes - 1) / 2;
				if (hop == part.forwards)
					break;
				assert_int_not_equal(mesh_next(s, to, at), MESH_NOBODY);
				if (mesh_next(s, to, at) / to.devices != at / to.devices) {
					assert_int_equal(mesh_next(s, to, at) / to.devices,
							 (at / to.devices + 1) % to.hosts);
					by_host[at / to.devices].to_next += part.bytes;
					crossing += part.bytes;
				}
				at = mesh_next(s, to, at);
			}
		}
		for (uint32_t p = 0; p < to.hosts * to.devices; p++) {
			assert_int_equal(got[p], bytes);
			assert_int_equal(sum[p], bytes * (bytes - 1) / 2);
		}
		assert_int_equal(crossing, mesh_crossing_bytes(s, bytes, to));
		for (uint32_t host = 0; host < to.hosts; host++) {
			struct mesh_crossing c = mesh_crossing_at(s, bytes, to, host);

			assert_int_equal(c.from_sender, by_host[host].from_sender);
			assert_int_equal(c.to_next, by_host[host].to_next);
		}
	}
}

/* The best K against all of them, and against the square root. */
static void test_the_best_number_of_pieces_is_found(void **state)
{
	struct mesh_net net = {.nic = 1.25, .alpha_ns = 50, .inside = 10, .inside_alpha_ns = 3};
	struct rng g;

	(void)state;
	rng_seed(&g, 13, 0);
	for (int i = 0; i < 50; i++) {
		struct mesh_group to = {1 + (uint32_t)below(&g, 4), 1 + (uint32_t)below(&g, 4)};
		uint64_t bytes = 1 + below(&g, 100000);
		double found, best = INFINITY;

		net.inside_alpha_ns = (double)below(&g, 100);
		net.inside = 1 + (double)below(&g, 10);
		net.k = MESH_K_BEST;
		found = mesh_strategy_ns(MESH_BROADCAST, bytes, to, &net);
		for (net.k = 1; net.k <= bytes && net.k < 3000; net.k++)
			best = fmin(best, mesh_strategy_ns(MESH_BROADCAST, bytes, to, &net));
		assert_true(found <= best * (1 + 1e-12));
	}
}

static void test_done_times_follow_the_plan(void **state)
{
	const struct mesh_tensor t = {.n_dims = 1, .dims = {800}, .element_bytes = 1};
	const struct mesh_net net = {.nic = 1, .inside = INFINITY, .k = 4};
	const struct turns_effort effort = {.nodes = 1000};
	struct mesh_spec src, dst;
	struct mesh_reshard r;
	struct turns plan;
	double dst_ns[4], src_ns[2];
	struct err err;

	(void)state;
	assert_int_equal(mesh_spec_parse("S0@2x1", &src, &err), 0);
	assert_int_equal(mesh_spec_parse("R@2x2", &dst, &err), 0);
	assert_int_equal(mesh_reshard_init(&r, &t, &src, &dst, &err), 0);
	assert_int_equal(mesh_plan(&r, MESH_BROADCAST, &net, TURNS_NAIVE, &effort, &plan, &err), 0);
	mesh_done(&r, MESH_BROADCAST, &net, &plan, dst_ns, src_ns);
	/* two tasks of 400 ns and a piece's 100 for the second host, one behind the other */
	assert_true(plan.end_ns == 1000 && src_ns[0] == 500 && src_ns[1] == 1000);
	assert_true(dst_ns[0] == 900 && dst_ns[1] == 900 && dst_ns[2] == 1000 && dst_ns[3] == 1000);
	turns_deinit(&plan);
	mesh_reshard_deinit(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_that_are_no_layout_are_refused),
		cmocka_unit_test(test_what_does_not_divide_is_padded_at_its_end),
		cmocka_unit_test(test_every_element_reaches_each_device_that_needs_it_once),
		cmocka_unit_test(test_parts_reach_all_receivers_and_cross_as_the_closed_form_says),
		cmocka_unit_test(test_the_best_number_of_pieces_is_found),
		cmocka_unit_test(test_done_times_follow_the_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
