/* nbox reshard verify: random layouts, meshes, strategies and planners carried out by processes, to
 * the last byte; and that a wrong element is found. */
#include "cmocka-all.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "nbox/reshard/tile.h"
#include "nbox/reshard/verify.h"
#include "rng.h"

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

static void carry_out(struct rng *g, const char *link)
{
	struct mesh_tensor t = {.n_dims = 1 + (uint32_t)below(g, 3),
				.element_bytes = 1 + (uint32_t)below(g, 8)};
	struct mesh_net net = {.nic = 1, .inside = INFINITY, .k = (uint32_t)below(g, 9)};
	const struct turns_effort effort = {.seed = 1, .nodes = 1000};
	enum mesh_strategy strategy = (enum mesh_strategy)below(g, MESH_SIGNAL);
	struct mesh_spec src, dst;
	struct mesh_reshard r;
	struct turns plan;
	struct verify v = {&r, &plan, strategy, &net, link};
	struct verified done;
	struct err err = {""};
	uint64_t needed = 0;

	for (uint32_t i = 0; i < t.n_dims; i++)
		t.dims[i] = 1 + below(g, 23); /* most do not divide */
	make_spec(g, t.n_dims, &src);
	make_spec(g, t.n_dims, &dst);
	assert_int_equal(mesh_reshard_init(&r, &t, &src, &dst, &err), 0);
	assert_int_equal(mesh_plan(&r, strategy, &net, (enum turns_algo)below(g, TURNS_ALGOS),
				   &effort, &plan, &err),
			 0);
	if (verify_run(&v, &done, &err))
		fail_msg("%s", err.text);
	for (uint32_t d = 0; d < dst.hosts * dst.devices; d++) {
		struct mesh_box box;

		mesh_tile_box(&dst, &t, mesh_tile_of(&dst, d), &box);
		needed += mesh_box_elements(&box, t.n_dims);
	}
	assert_int_equal(done.wrong, 0);
	assert_int_equal(done.elements, needed);
	assert_int_equal(done.crossing_bytes, done.expected_bytes);
	/* everything that is needed comes from somewhere, once */
	assert_int_equal(done.crossing_bytes + done.inside_bytes, needed * t.element_bytes);
	turns_deinit(&plan);
	mesh_reshard_deinit(&r);
}

static void test_random_reshardings_move_every_element(void **state)
{
	struct rng g;

	(void)state;
	rng_seed(&g, 21, 0);
	for (int i = 0; i < 24; i++)
		carry_out(&g, i % 4 ? "shm" : "tcp");
}

static void test_a_wrong_element_is_found(void **state)
{
	const struct mesh_tensor t = {.n_dims = 3, .dims = {5, 4, 3}, .element_bytes = 2};
	const struct mesh_box all = {{1, 0, 1}, {4, 4, 3}}, part = {{2, 1, 1}, {3, 3, 2}};
	unsigned char bytes[2 * 2];
	struct tile from, to;
	uint64_t first = 0;

	(void)state;
	assert_int_equal(tile_init(&from, &t, &all), 0);
	assert_int_equal(tile_init(&to, &t, &all), 0);
	tile_fill(&from);
	tile_spoil(&to);
	assert_int_equal(tile_wrong(&from, &first), 0);
	assert_int_equal(tile_wrong(&to, &first), 3 * 4 * 2);
	assert_int_equal(first, (1 * 4 + 0) * 3 + 1);
	tile_take(&from, &part, bytes);
	tile_put(&to, &part, bytes);
	assert_int_equal(tile_wrong(&to, &first), 3 * 4 * 2 - 2);
	from.bytes[(1 * 4 * 2 + 1 * 2 + 1) * 2] ^= 1; /* element (2, 1, 2) */
	assert_int_equal(tile_wrong(&from, &first), 1);
	assert_int_equal(first, (2 * 4 + 1) * 3 + 2);
	tile_deinit(&from);
	tile_deinit(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_reshardings_move_every_element),
		cmocka_unit_test(test_a_wrong_element_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
