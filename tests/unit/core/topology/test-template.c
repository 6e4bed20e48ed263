/* topology/template.h and membership.h against the rule as a person would write it down. */
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "topology/template.h"

#define N_MAX 24

/* The slow obvious model: lists, counted out. */
static uint32_t model(const struct membership *m, uint32_t gpus, const uint32_t *real, uint32_t k,
		      uint32_t rank)
{
	uint32_t alike[N_MAX], n = 0, world = membership_world(m, rank);

	for (uint32_t i = 0; i < k; i++) {
		if (real[i] == rank)
			return i;
		if (membership_world(m, real[i]) % gpus == world % gpus)
			alike[n++] = i;
	}
	return n ? alike[world / gpus % n] : rank % k;
}

static void compare(const struct membership *m, uint32_t gpus, uint32_t mask)
{
	uint32_t real[N_MAX], k = 0, count[N_MAX] = {0}, want[N_MAX] = {0};
	struct templates t;

	for (uint32_t rank = 0; rank < m->n_ranks; rank++)
		if (mask >> rank & 1)
			real[k++] = rank;
	assert_int_equal(templates_init(&t, m, gpus, real, k), 0);
	for (uint32_t rank = 0; rank < m->n_ranks; rank++) {
		uint32_t template = model(m, gpus, real, k, rank);

		assert_int_equal(template_of(&t, rank), template);
		want[template]++;
	}
	templates_count(&t, count);
	assert_memory_equal(count, want, sizeof(count));
	templates_deinit(&t);
}

static void each_rank_has_the_template_of_the_rule(void **state)
{
	uint32_t table[N_MAX];

	(void)state;
	for (uint32_t gpus = 1; gpus <= 5; gpus++)
		for (uint32_t n = 1; n <= 9; n++)
			for (uint32_t mask = 1; mask < 1u << n; mask++)
				for (uint32_t stride = 1; stride <= 3; stride++)
					compare(&(struct membership){n, gpus, stride, NULL}, gpus,
						mask);
	srand(1);
	for (int i = 0; i < 3000; i++) {
		struct membership m = {.n_ranks = 1 + (uint32_t)rand() % N_MAX, .table = table};

		for (uint32_t r = 0; r < m.n_ranks; r++)
			table[r] = (uint32_t)rand() % 64;
		compare(&m, 1 + (uint32_t)rand() % 8,
			1 + (uint32_t)rand() % ((1u << m.n_ranks) - 1));
	}
}

/* World 8, 4 GPUs a node, real ranks 1 and 6. */
static void a_virtual_rank_copies_the_real_one_with_its_local_index(void **state)
{
	const struct membership world = {8, 0, 1, NULL};
	const uint32_t real[] = {1, 6}, want[] = {0, 0, 1, 1, 0, 0, 1, 1};
	struct templates t;

	(void)state;
	assert_int_equal(templates_init(&t, &world, 4, real, 2), 0);
	for (uint32_t rank = 0; rank < 8; rank++)
		assert_int_equal(template_of(&t, rank), want[rank]);
	templates_deinit(&t);
}

static void nodes_take_their_real_members_in_turn(void **state)
{
	const struct membership world = {16, 0, 1, NULL};
	const uint32_t real[] = {0, 1, 4, 5}; /* local indexes 0 and 1 of nodes 0 and 1 */
	struct templates t;

	(void)state;
	assert_int_equal(templates_init(&t, &world, 4, real, 4), 0);
	assert_int_equal(template_of(&t, 8), 0);
	assert_int_equal(template_of(&t, 9), 1);
	assert_int_equal(template_of(&t, 12), 2);
	assert_int_equal(template_of(&t, 13), 3);
	assert_int_equal(template_of(&t, 14), 14 % 4); /* no real member has local index 2 */
	templates_deinit(&t);
}

static void a_membership_leads_there_and_back(void **state)
{
	const uint32_t table[] = {7, 3, 11};
	const struct membership row = {5, 4, 3, NULL}, list = {3, 0, 0, table},
				one = {1, 9, 0, NULL};

	(void)state;
	for (uint32_t rank = 0; rank < 5; rank++)
		assert_int_equal(membership_rank(&row, membership_world(&row, rank)), rank);
	for (uint32_t rank = 0; rank < 3; rank++)
		assert_int_equal(membership_rank(&list, membership_world(&list, rank)), rank);
	assert_int_equal(membership_rank(&row, 3), -1);
	assert_int_equal(membership_rank(&row, 5), -1);
	assert_int_equal(membership_rank(&row, 19), -1);
	assert_int_equal(membership_rank(&list, 4), -1);
	assert_int_equal(membership_rank(&one, 9), 0);
	assert_int_equal(membership_rank(&one, 10), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rank_has_the_template_of_the_rule),
		cmocka_unit_test(a_virtual_rank_copies_the_real_one_with_its_local_index),
		cmocka_unit_test(nodes_take_their_real_members_in_turn),
		cmocka_unit_test(a_membership_leads_there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
