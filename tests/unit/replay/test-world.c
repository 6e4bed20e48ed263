/* Communicators and ranks in a world of another size. */
#include <errno.h>
#include <string.h>

#include "cmocka-all.h"

#include <stdio.h>

#include "replay/world.h"

static const struct record_header from = {.world_size = 16, .n_nodes = 4, .gpus_per_node = 4};
static const struct record_member rank_0 = {0, 0};

static struct config *to(const char *nodes, const char *layout)
{
	struct err err = {""};
	struct config *c;

	assert_int_equal(config_new(&c), 0);
	assert_int_equal(config_set(c, CONFIG_NODES, SOURCE_FLAG, nodes), 0);
	assert_int_equal(config_set(c, CONFIG_GPUS_PER_NODE, SOURCE_FLAG, "4"), 0);
	assert_int_equal(config_set(c, CONFIG_MODEL, SOURCE_FLAG, "ring"), 0);
	if (layout)
		assert_int_equal(config_set(c, CONFIG_LAYOUT, SOURCE_FLAG, layout), 0);
	assert_int_equal(config_finish(c, &err), 0);
	return c;
}

static struct record_comm comm(uint32_t n_ranks, uint32_t base, uint32_t stride, uint32_t axes)
{
	return (struct record_comm){.n_ranks = n_ranks,
				    .base = base,
				    .stride = stride,
				    .axes = axes,
				    .n_real = 1,
				    .real = &rank_0};
}

/* Of 4 nodes of 4 GPUs on @nodes: @n_ranks, 0: refused. */
static void expect_on(const char *nodes, const struct record_header *from,
		      const struct record_comm *c, const char *layout, uint32_t n_ranks,
		      uint32_t stride)
{
	struct config *config = to(nodes, layout);
	struct members m = {.source = MEMBERS_WORLD};
	struct err err = {""};
	struct world was, is;
	int r;

	assert_int_equal(world_of_record(from, &was, &err), 0);
	world_of_config(config, &is);
	r = world_members(c, &was, &is, &m, &err);

	assert_int_equal(r, n_ranks ? 0 : -EINVAL);
	if (n_ranks) {
		assert_int_equal(m.map.n_ranks, n_ranks);
		assert_int_equal(membership_world(&m.map, 1) - membership_world(&m.map, 0), stride);
		members_deinit(&m);
	} else {
		assert_non_null(strstr(err.text, "--layout"));
	}
	config_free(config);
}

static void expect(const struct record_comm *c, const char *layout, uint32_t n_ranks,
		   uint32_t stride)
{
	expect_on("8", &from, c, layout, n_ranks, stride);
}

/* As many ranks, in other groups. */
static void test_other_layout(void **state)
{
	const struct record_header was = {.world_size = 16,
					  .n_nodes = 4,
					  .gpus_per_node = 4,
					  .layout = "fsdp=2,dp=8"};
	struct record_comm fsdp = comm(2, 0, 1, 1), dp = comm(8, 0, 2, 2);

	(void)state;
	expect_on("4", &was, &fsdp, "fsdp=2,dp=8", 2, 1);
	expect_on("4", &was, &fsdp, "fsdp=4,dp=4", 4, 1);
	expect_on("4", &was, &dp, "fsdp=4,dp=4", 4, 4);
}

static void test_members(void **state)
{
	const uint32_t list[] = {0, 3, 4, 9};
	struct record_comm all = comm(16, 0, 1, 0), node = comm(4, 0, 1, 0),
			   rail = comm(4, 0, 4, 0), pair = comm(2, 0, 8, 0), odd = comm(4, 0, 0, 0),
			   dp = comm(8, 0, 2, 2), tp = comm(2, 0, 1, 1), some = comm(2, 0, 4, 0);

	(void)state;
	expect(&all, NULL, 32, 1);
	expect(&node, NULL, 4, 1);
	expect(&rail, NULL, 8, 4);
	expect(&pair, NULL, 4, 8);
	odd.n_members = 4;
	odd.members = list;
	expect(&odd, NULL, 0, 0);
	expect(&some, NULL, 0, 0);
	/* axes as declared: tp=2,dp=8 became tp=2,dp=16 */
	expect(&tp, "tp=2,dp=16", 2, 1);
	expect(&dp, "tp=2,dp=16", 16, 2);
}

/* Data-parallel axes may grow; others would change what a rank computes. */
static void expect_layout(const char *was, const char *is, const char *why)
{
	struct record_header h = from;
	struct config *config = to("8", is);
	struct world from_world, to_world;
	struct err err = {""};

	snprintf(h.layout, sizeof(h.layout), "%s", was);
	assert_int_equal(world_of_record(&h, &from_world, &err), 0);
	world_of_config(config, &to_world);
	assert_int_equal(world_check(&from_world, &to_world, &err), why ? -EINVAL : 0);
	if (why)
		assert_non_null(strstr(err.text, why));
	config_free(config);
}

static void test_layouts(void **state)
{
	(void)state;
	expect_layout("", NULL, NULL);
	expect_layout("tp=2,dp=8", "tp=2,dp=16", NULL);
	expect_layout("tp=2,dp=8", "tp=4,dp=8", "tp=4 instead of 2");
	expect_layout("tp=2,dp=8", "pp=2,dp=16", "was tp, not pp");
	expect_layout("tp=2,dp=8", "tp=2,pp=2,dp=8", "2 axes, not 3");
	expect_layout("tp=2,dp=8", NULL, "with 1 --layout, not 0");
	expect_layout("", "tp=2,dp=16", "with 0 --layout, not 1");
}

static struct world laid_out(uint32_t size, const char *layout)
{
	struct world w = {.size = size, .n_nodes = size};
	struct err err = {""};

	if (layout) {
		assert_int_equal(layout_parse(layout, size, &w.layouts[0], &err), 0);
		w.n_layouts = 1;
	}
	return w;
}

/* A rank stays what it is by its coordinates; without a layout, by its number. */
static void test_ranks(void **state)
{
	struct world few = laid_out(4, "dp=2,pp=2"), many = laid_out(8, "dp=4,pp=2"),
		     sharded = laid_out(8, "fsdp=2,dp=4"), wider = laid_out(8, "fsdp=4,dp=2"),
		     bare = laid_out(4, NULL), wide = laid_out(8, NULL);

	(void)state;
	assert_int_equal(world_rank(&few, &many, 1), 1);
	assert_int_equal(world_rank(&few, &many, 2), 4);
	assert_int_equal(world_rank(&many, &few, 4), 2);
	assert_int_equal(world_rank(&many, &few, 7), -1);
	assert_int_equal(world_rank(&sharded, &wider, 3), 5);
	assert_int_equal(world_rank(&bare, &wide, 3), 3);
	assert_int_equal(world_rank(&wide, &bare, 5), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members),
		cmocka_unit_test(test_other_layout),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
