/* The heap against a sorted array. */
#include "cmocka-all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"

#define MAX_ITEMS 600

static int compare(const void *a, const void *b)
{
	const struct heap_item *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void pop_and_compare(struct heap *h, struct heap_item *model, size_t *n)
{
	struct heap_item peeked, popped;

	qsort(model, *n, sizeof(*model), compare);
	assert_int_equal(heap_peek(h, &peeked), *n > 0);
	assert_int_equal(heap_pop(h, &popped), *n > 0);
	if (*n == 0)
		return;
	assert_int_equal(compare(&peeked, &popped), 0);
	assert_int_equal(compare(&model[0], &popped), 0);
	memmove(model, model + 1, --*n * sizeof(*model));
}

/* Few distinct keys, so that ties are common; the order of equal keys is by id. */
static void test_random_ops(void **state)
{
	static const unsigned push_weight[] = {50, 70, 95};

	(void)state;
	for (size_t w = 0; w < 3; w++) {
		struct heap_item model[MAX_ITEMS];
		struct heap h;
		struct rng rng;
		size_t n = 0;

		rng_seed(&rng, 2, w);
		assert_int_equal(heap_init(&h, w), 0); /* from empty: grows */
		for (int i = 0; i < 2000; i++) {
			if (rng_u64(&rng) % 100 < push_weight[w] && n < MAX_ITEMS) {
				double key = (double)(rng_u64(&rng) % 16) - 4;
				uint64_t id = rng_u64(&rng) % 1000;

				assert_int_equal(heap_push(&h, key, id), 0);
				model[n++] = (struct heap_item){key, id};
			} else {
				pop_and_compare(&h, model, &n);
			}
			assert_int_equal(h.n, n);
		}
		while (n)
			pop_and_compare(&h, model, &n);
		pop_and_compare(&h, model, &n);
		heap_deinit(&h);
	}
}

/* The same items in any order of insertion come out in one order. */
static void test_order_of_insertion(void **state)
{
	struct heap_item first[64], item;
	struct heap h;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3, 0);
	assert_int_equal(heap_init(&h, 64), 0);
	for (int round = 0; round < 50; round++) {
		uint64_t ids[64];

		for (uint64_t i = 0; i < 64; i++)
			ids[i] = i;
		for (size_t i = 63; i > 0; i--) {
			size_t j = rng_u64(&rng) % (i + 1);
			uint64_t t = ids[i];

			ids[i] = ids[j];
			ids[j] = t;
		}
		for (size_t i = 0; i < 64; i++)
			assert_int_equal(heap_push(&h, (double)(ids[i] / 8), ids[i]), 0);
		for (size_t i = 0; i < 64; i++) {
			assert_true(heap_pop(&h, &item));
			if (round == 0)
				first[i] = item;
			assert_int_equal(compare(&item, &first[i]), 0);
		}
	}
	heap_deinit(&h);
}

static void test_edges(void **state)
{
	struct heap h = {0};
	struct heap_item item;

	(void)state;
	heap_deinit(&h);
	assert_false(heap_pop(&h, &item));
	assert_int_equal(heap_init(&h, SIZE_MAX / 2), -ENOMEM);
	heap_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_ops),
		cmocka_unit_test(test_order_of_insertion),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
