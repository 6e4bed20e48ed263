/* topology/template.h and membership.h against the rule as a person would write it down. */
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "topology/template.h"

#define N_MAX 24

/* How far the class of @real is from @class; of two as far the lower one is nearer. */
static uint32_t distance(uint32_t real, uint32_t class)
{
	return real <= class ? 2 * (class - real) : 2 * (real - class) + 1;
}

/* The slow obvious model: lists, counted out. */
static uint32_t model(const struct membership *m, uint32_t gpus, const uint32_t *classes,
		      const uint32_t *real, uint32_t k, uint32_t rank)
{
	uint32_t of_class[N_MAX], alike[N_MAX], n_class = 0, n = 0, least = UINT32_MAX;
	uint32_t world = membership_world(m, rank);

	for (uint32_t i = 0; i < k; i++) {
		uint32_t d =
			classes ? distance(classes[membership_world(m, real[i])], classes[world])
				: 0;

		if (real[i] == rank)
			return i;
		n_class = d < least ? 0 : n_class;
		least = d < least ? d : least;
		if (d == least)
			of_class[n_class++] = i;
	}
	for (uint32_t i = 0; i < n_class; i++)
		if (membership_world(m, real[of_class[i]]) % gpus == world % gpus)
			alike[n++] = of_class[i];
	return n ? alike[world / gpus % n] : of_class[rank % n_class];
}

static void compare(const struct membership *m, uint32_t gpus, const uint32_t *classes,
		    uint32_t mask)
{
	uint32_t real[N_MAX] = {0}, k = 0, count[N_MAX] = {0}, want[N_MAX] = {0};
	struct templates t;

	for (uint32_t rank = 0; rank < m->n_ranks; rank++)
		if (mask >> rank & 1)
			real[k++] = rank;
	assert_int_equal(templates_init(&t, m, gpus, classes, real, k), 0);
	for (uint32_t rank = 0; rank < m->n_ranks; rank++) {
		uint32_t template = model(m, gpus, classes, real, k, rank);

		assert_int_equal(template_of(&t, rank), template);
		want[template]++;
	}
	templates_count(&t, count);
	assert_memory_equal(count, want, sizeof(count));
	templates_deinit(&t);
}

static void each_rank_has_the_template_of_the_rule(void **state)
{
	uint32_t table[N_MAX], classes[64];

	(void)state;
	for (uint32_t gpus = 1; gpus <= 5; gpus++)
		for (uint32_t n = 1; n <= 9; n++)
			for (uint32_t mask = 1; mask < 1u << n; mask++)
				for (uint32_t stride = 1; stride <= 3; stride++)
					compare(&(struct membership){n, gpus, stride, NULL}, gpus,
						NULL, mask);
	srand(1);
	for (int i = 0; i < 3000; i++) {
		struct membership m = {.n_ranks = 1 + (uint32_t)rand() % N_MAX, .table = table};

		for (uint32_t r = 0; r < m.n_ranks; r++)
			table[r] = (uint32_t)rand() % 64;
		for (uint32_t r = 0; r < 64; r++)
			classes[r] = (uint32_t)rand() % 6;
		compare(&m, 1 + (uint32_t)rand() % 8, i % 2 ? classes : NULL,
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
	assert_int_equal(templates_init(&t, &world, 4, NULL, real, 2), 0);
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
	assert_int_equal(templates_init(&t, &world, 4, NULL, real, 4), 0);
	assert_int_equal(template_of(&t, 8), 0);
	assert_int_equal(template_of(&t, 9), 1);
	assert_int_equal(template_of(&t, 12), 2);
	assert_int_equal(template_of(&t, 13), 3);
	assert_int_equal(template_of(&t, 14), 14 % 4); /* no real member has local index 2 */
	templates_deinit(&t);
}

/* Four stages of two ranks; of stage 2 nobody is real. */
static void a_virtual_rank_copies_its_own_stage(void **state)
{
	const struct membership world = {8, 0, 1, NULL};
	const uint32_t stages[] = {0, 0, 1, 1, 2, 2, 3, 3};
	const uint32_t real[] = {0, 2, 6}, want[] = {0, 0, 1, 1, 1, 1, 2, 2};
	struct templates t;

	(void)state;
	assert_int_equal(templates_init(&t, &world, 1, stages, real, 3), 0);
	for (uint32_t rank = 0; rank < 8; rank++)
		assert_int_equal(template_of(&t, rank), want[rank]);
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
		cmocka_unit_test(a_virtual_rank_copies_its_own_stage),
		cmocka_unit_test(a_membership_leads_there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
