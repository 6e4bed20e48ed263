/* Who sets a missing key, in worlds with the first, the last and some nodes real. */
#include <string.h>

#include "cmocka-all.h"
#include "nboxd/store/policy.h"
#include "talk.h"

static const uint32_t first[] = {0, 1}, last[] = {6, 7}, some[] = {0, 1, 6, 7};
static const struct policy_world node_0 = {8, first, 2}, node_3 = {8, last, 2},
				 two_nodes = {8, some, 4}, all_real = {2, first, 2};

/* Group "7" is known: every second rank. */
static int64_t lookup(void *ctx, const struct torch_key *k, uint32_t group_rank)
{
	assert_string_equal(ctx, "ctx");
	return k->group.n == 1 && k->group.p[0] == '7' ? 2 * (int64_t)group_rank : -1;
}

static const struct {
	const struct policy_world *w;
	const char *key;
	enum policy_answer answer;
	int64_t rank;
} cases[] = {
	{&node_0, "/default_pg/0//cuda//0", POLICY_WAIT, 0},
	{&node_0, "/default_pg/0//5//cuda//0", POLICY_WAIT, -1}, /* its lowest must be real */
	{&node_0, "/default_pg/0//5//cuda//0:1", POLICY_WAIT, -1},
	{&node_0, "/default_pg/0//cuda//1:5", POLICY_WAIT, 1},
	{&node_0, "/default_pg/0//cuda//2:5", POLICY_INVENT, 2},
	{&node_0, "/default_pg/0//cuda//UniqueNCCLID:0", POLICY_WAIT, 0},
	{&node_0, "/default_pg/0//cuda//UniqueNCCLID:1", POLICY_SETTLE, -1},
	{&node_0, "/default_pg/0//cpu//0/1", POLICY_WAIT, 1},
	{&node_0, "/default_pg/0//cpu//0/2", POLICY_INVENT, 2},
	{&node_0, "/default_pg/0//cpu//0/99", POLICY_INVENT, -1},
	{&node_0, "/default_pg/0//7//cpu//0/2", POLICY_INVENT, 4},
	{&node_0, "/default_pg/0//5//cpu//0/2", POLICY_INVENT,
	 -1}, /* ranks 0 and 1 stand in front */
	{&node_0, "/default_pg/0//5//cpu//0/1", POLICY_SETTLE, -1},
	{&node_3, "/default_pg/0//5//cpu//0/1", POLICY_SETTLE, -1},
	{&node_0, "/some/key", POLICY_WAIT, -1},
	{&node_0, "/default_pg/0//store_based_barrier_key:7:last_worker", POLICY_WAIT, -1},
	{&node_0, "/default_pg/0//ab//store_based_barrier_key:ab:last_worker", POLICY_SETTLE, -1},
	{&node_3, "/default_pg/0//cuda//0", POLICY_INVENT, 0},
	{&node_3, "/default_pg/0//7//cuda//0", POLICY_INVENT, 0},
	{&node_3, "/default_pg/0//7//cuda//3:4", POLICY_WAIT, 6},
	{&node_3, "/default_pg/0//5//cuda//0", POLICY_SETTLE, -1},
	{&node_3, "/default_pg/0//5//0", POLICY_SETTLE, -1},
	{&node_3, "/default_pg/0//cpu//0/7", POLICY_WAIT, 7},
	{&two_nodes, "/default_pg/0//cuda//0", POLICY_WAIT, 0},
	{&two_nodes, "/default_pg/0//5//cuda//0", POLICY_SETTLE, -1},
	{&two_nodes, "/default_pg/0//cuda//6:7", POLICY_WAIT, 6},
	{&all_real, "/default_pg/0//cuda//0", POLICY_WAIT, -1},
	{&all_real, "/default_pg/0//5//cuda//0:1", POLICY_WAIT, -1},
};

static void a_missing_key_is_judged_by_its_maker(void **state)
{
	char text[800];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct torch_key k = torch_key_parse(TEXT(cases[i].key));
		struct policy_verdict v = policy_on_missing(cases[i].w, &k, lookup, (void *)"ctx");

		if (v.answer != cases[i].answer || v.rank != cases[i].rank)
			fail_msg("%zu '%s': answer %d, rank %lld", i, cases[i].key, v.answer,
				 (long long)v.rank);
		/* each wait can be explained */
		assert_true(strlen(policy_advice(cases[i].w, &k, &v, text, sizeof(text))) > 40);
	}
}

static void advice_says_what_to_do(void **state)
{
	struct torch_key k = torch_key_parse(TEXT("/default_pg/0//cpu//0/5"));
	struct policy_verdict v = policy_on_missing(&node_0, &k, NULL, NULL);
	char text[800];

	(void)state;
	policy_advice(&node_0, &k, &v, text, sizeof(text));
	assert_non_null(strstr(text, "gloo address of virtual rank 5"));
	assert_non_null(strstr(text, "backend \"nccl\""));
	k = torch_key_parse(TEXT("/my/key"));
	v = policy_on_missing(&node_3, &k, NULL, NULL);
	policy_advice(&node_3, &k, &v, text, sizeof(text));
	assert_non_null(strstr(text, "2 of 8 ranks, the first is 6"));
	assert_int_equal(strncmp(text, "no real rank has set it yet", 20), 0);
	k = torch_key_parse(TEXT("/default_pg/0//7//cuda//done"));
	v = policy_on_missing(&node_3, &k, NULL, NULL);
	policy_advice(&node_3, &k, &v, text, sizeof(text));
	assert_int_equal(strncmp(text, "it is a key of group \"7\", no real rank has set it yet",
				 40),
			 0);
	/* it goes into the log: one line, whatever a client calls its groups */
	k = torch_key_parse(TEXT("/default_pg/0//a\nb\x1b\x80//cuda//0"));
	v = policy_on_missing(&node_3, &k, NULL, NULL);
	policy_advice(&node_3, &k, &v, text, sizeof(text));
	assert_non_null(strstr(text, "group \"a?b??\""));
}

static void virtual_ranks_have_checked_in_from_the_start(void **state)
{
	static const struct {
		const struct policy_world *w;
		const char *key;
		int64_t world, n;
	} counts[] = {
		{&node_0, "init/", 0, 6},
		{&node_0, "/default_pg/store_based_barrier_key:0", 0, 6},
		{&node_0, "/default_pg/0//store_based_barrier_key:7", 0, 6},
		{&node_0, "/default_pg/0//ab//store_based_barrier_key:ab", 0, 0},
		{&node_0, "/anything", 0, 0},
		{&node_0, "/anything", 8, 6}, /* BARRIER of the world */
		{&node_0, "/anything", 2, 0},
		{&two_nodes, "init/", 0, 4},
		{&all_real, "init/", 0, 0},
		{&all_real, "/anything", 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		struct torch_key k = torch_key_parse(TEXT(counts[i].key));

		if (policy_initial_count(counts[i].w, &k, counts[i].world) != counts[i].n)
			fail_msg("%zu '%s'", i, counts[i].key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_key_is_judged_by_its_maker),
		cmocka_unit_test(advice_says_what_to_do),
		cmocka_unit_test(virtual_ranks_have_checked_in_from_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
