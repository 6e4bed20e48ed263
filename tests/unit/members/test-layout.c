/* Declared layouts: which texts are read, which are refused and with which sentence; groups. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "members/layout.h"
#include "members/radix.h"

static const struct {
	const char *text;
	uint32_t world;
	const char *says; /* of an error; NULL: fine */
} cases[] = {
	{"tp=8,pp=4,dp=16", 512, NULL},
	{"dp=512", 512, NULL},
	{"tp=1,dp=4", 4, NULL},
	{"dp=16,tp=8,pp=4,order=tp-pp-dp", 512, NULL},
	{"order=tp-dp,tp=2,dp=4", 8, NULL},
	{"tp=8,pp=4,dp=16", 1024, "dp=32 would fit"},
	{"tp=8,dp=3", 16, "dp=2 would fit"},
	{"tp=3,dp=5", 16, "15 ranks, but the world has 16"},
	{"tp=8,dp", 8, "'dp' is no AXIS=SIZE"},
	{"", 8, "no AXIS=SIZE"},
	{"tp=8,tp=1", 8, "twice"},
	{"tp=0,dp=8", 8, "1 to"},
	{"tp=x,dp=8", 8, "x"},
	{"tp=2,dp=4,order=tp-dq", 8, "did you mean 'dp'"},
	{"tp=2,dp=4,order=tp", 8, "lacks axis 'dp'"},
	{"tp=2,dp=4,order=tp-dp-tp", 8, "twice"},
	{"tp=2,dp=4,order=", 8, "empty"},
	{"t-p=2,dp=4", 8, "no name"},
	{"order=dp", 8, "no axis"},
	{"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", 1, "more than"},
	{"a=60000,b=60000", 8, "more than"},
};

static void a_layout_is_read_or_refused_with_the_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct layout l;
		struct err err = {""};
		int r = layout_parse(cases[i].text, cases[i].world, &l, &err);

		if (r != (cases[i].says ? -EINVAL : 0))
			fail_msg("'%s': %d, %s", cases[i].text, r, err.text);
		if (cases[i].says && !strstr(err.text, cases[i].says))
			fail_msg("'%s' says: %s", cases[i].text, err.text);
	}
}

/* @says: the layout, or of an error. */
static void expect_grown(const char *text, uint32_t world, const char *says)
{
	char grown[LAYOUT_TEXT_MAX];
	struct err err = {""};

	if (layout_grow(text, world, grown, &err) == 0)
		assert_string_equal(grown, says);
	else if (!strstr(err.text, says))
		fail_msg("'%s' says: %s", text, err.text);
}

static void a_layout_grows_by_its_data_parallel_axis(void **state)
{
	(void)state;
	expect_grown("tp=8,pp=4,dp=2", 256, "tp=8,pp=4,dp=8");
	expect_grown("tp=8,pp=4,dp=2", 32, "tp=8,pp=4,dp=1");
	expect_grown("dp=2,tp=8,order=tp-dp", 64, "tp=8,dp=8");
	expect_grown("dp_shard=8,dp_replicate=2", 64, "dp_shard=8,dp_replicate=8");
	expect_grown("fsdp=8", 24, "fsdp=24");
	expect_grown("tp=8,pp=4,dp=2", 48, "all axes but dp make 32");
	expect_grown("tp=8,pp=4", 64, "no data-parallel axis (dp) that could grow");
}

static void a_group_holds_the_ranks_along_its_axes(void **state)
{
	struct layout l;
	struct radix r;
	char name[32];

	(void)state;
	assert_int_equal(layout_parse("dp=4,tp=2,pp=3,order=tp-pp-dp", 24, &l, NULL), 0);
	assert_string_equal(l.axis[1].name, "pp");
	layout_group(&l, 4, 9, &r); /* dp: rank 9 is tp 1, pp 1, dp 1 */
	assert_int_equal(r.base, 3);
	assert_int_equal(radix_size(&r), 4);
	assert_int_equal(radix_at(&r, 3), 21);
	assert_int_equal(radix_find(&r, 9), 1);
	assert_int_equal(radix_find(&r, 10), -1);
	layout_group(&l, 5, 9, &r); /* tp and dp: two levels */
	assert_int_equal(r.n_levels, 2);
	assert_int_equal(radix_find(&r, 9), 3);
	assert_string_equal(layout_axes_name(&l, 5, name, sizeof(name)), "tp+dp");
	layout_group(&l, 6, 9, &r); /* pp and dp are neighbours: one */
	assert_int_equal(r.n_levels, 1);
	assert_int_equal(radix_size(&r), 12);
}

/* radix_at() and radix_find() are inverse, members ascend, and each rank is in one group. */
static bool check_family(void *ctx, const struct radix *family)
{
	uint32_t world = *(const uint32_t *)ctx, n = radix_size(family), seen = 0;

	for (uint32_t w = 0; w < world; w++) {
		struct radix r = *family;
		uint32_t rank = radix_move(&r, w);

		assert_int_equal(radix_at(&r, rank), w);
		assert_int_equal(radix_find(&r, w), rank);
		assert_true(radix_at(&r, n - 1) < world);
		if (rank == 0)
			seen++;
		else
			assert_true(radix_at(&r, rank - 1) < w);
	}
	assert_int_equal(seen * n, world);
	return true;
}

static void the_groups_of_a_family_divide_the_world(void **state)
{
	(void)state;
	for (uint32_t world = 1; world <= 48; world++)
		for (uint32_t levels = 1; levels <= 3; levels++)
			radix_each(world, levels, check_family, &world);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layout_is_read_or_refused_with_the_sentence),
		cmocka_unit_test(a_layout_grows_by_its_data_parallel_axis),
		cmocka_unit_test(a_group_holds_the_ranks_along_its_axes),
		cmocka_unit_test(the_groups_of_a_family_divide_the_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
