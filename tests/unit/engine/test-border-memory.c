/* Every allocation of a border fails once: -ENOMEM with a sentence, nothing leaks
 * (the sanitizers look), and the border is not touched. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-all.h"
#include "engine/border-collective.h"
#include "engine/border-p2p.h"

static int left = -1; /* allocations until one fails; -1: none does */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);

static int fails(void)
{
	return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

static void starve(const struct sched *s, const struct bitmap *real)
{
	static const struct sched_p2p calls[] = {{.peer = 1, .is_send = true, .bytes = 5},
						 {.peer = 2, .bytes = 6}};
	const struct sched_p2p *list = calls;
	uint32_t rank = 0, n = 2;
	int r = -ENOMEM, i;

	for (i = 0; r == -ENOMEM; i++) {
		struct border b, before;
		struct err err = {""};

		memset(&b, 0x5a, sizeof(b));
		before = b;
		left = i;
		r = s ? border_make(s, real, &b, &err)
		      : border_make_p2p(&rank, 1, &list, &n, 0, real, &b, &err);
		left = -1;
		if (r == 0) {
			border_deinit(&b);
			break;
		}
		assert_int_equal(r, -ENOMEM);
		assert_non_null(strstr(err.text, "memory"));
		assert_memory_equal(&b, &before, sizeof(b));
	}
	assert_int_equal(r, 0);
	assert_true(i > 3);
}

static void every_allocation_fails_once(void **state)
{
	static const struct {
		enum coll_kind kind;
		enum sched_algo algo;
	} forms[] = {{COLL_ALLREDUCE, SCHED_RING},
		     {COLL_ALLREDUCE, SCHED_TREE},
		     {COLL_BROADCAST, SCHED_CHAIN},
		     {COLL_ALLTOALL, SCHED_DIRECT}};
	struct bitmap real;

	(void)state;
	assert_int_equal(bitmap_init(&real, 160), 0);
	bitmap_set_range(&real, 0, 8);
	bitmap_set_range(&real, 96, 8);
	for (int f = 0; f < 4; f++) {
		struct sched s = {.kind = forms[f].kind,
				  .algo = forms[f].algo,
				  .n_ranks = 160,
				  .ranks_per_node = 8,
				  .n_channels = 6,
				  .elem_bytes = 4,
				  .bytes = 1 << 20};

		assert_int_equal(sched_init(&s, NULL), 0);
		starve(&s, &real);
	}
	bitmap_deinit(&real);
	assert_int_equal(bitmap_init(&real, 160), 0);
	bitmap_set(&real, 0);
	starve(NULL, &real);
	bitmap_deinit(&real);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
