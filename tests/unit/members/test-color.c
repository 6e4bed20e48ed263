/* PyTorch's colors: Python's own hash of a tuple, and a collision of the other hash that
 * its users reported. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmocka-all.h"
#include "members/color.h"
#include "rng.h"

#define N_LISTS 200
#define LONGEST 64

static const char script[] = "import sys\n"
			     "for line in sys.stdin:\n"
			     "  print(abs(hash(tuple(map(int, line.split())))) % 2**31)\n";

static void new_groups_color_is_the_hash_of_the_tuple(void **state)
{
	static int32_t want[N_LISTS];
	char path[] = "/tmp/nbox-color-XXXXXX", command[512];
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct rng rng;

	(void)state;
	assert_non_null(f);
	rng_seed(&rng, 3, 0);
	for (int i = 0; i < N_LISTS; i++) {
		struct color_hash h = COLOR_HASH_INIT;

		for (uint64_t n = rng_u64(&rng) % LONGEST; n > 0; n--) {
			uint32_t rank = (uint32_t)(rng_u64(&rng) % 65536);

			color_hash_add(&h, rank);
			fprintf(f, "%u ", rank);
		}
		fputc('\n', f);
		want[i] = color_of_tuple(&h);
	}
	assert_int_equal(fclose(f), 0);
	snprintf(command, sizeof(command), "timeout 60 python3 -c '%s' < %s", script, path);
	f = popen(command, "r");
	assert_non_null(f);
	for (int i = 0; i < N_LISTS; i++) {
		int color;

		if (fscanf(f, "%d", &color) != 1) {
			pclose(f);
			unlink(path);
			assert_int_equal(i, 0);
			return; /* no python3 here; not skip(): see test-symbols.c */
		}
		assert_int_equal(color, want[i]);
	}
	pclose(f);
	unlink(path);
}

static int32_t fold_of(const uint32_t *ranks, size_t n)
{
	struct color_hash h = COLOR_HASH_INIT;

	for (size_t i = 0; i < n; i++)
		color_hash_add(&h, ranks[i]);
	return color_of_fold(&h);
}

/* github.com/pytorch/pytorch/pull/173687: these two groups got one color. */
static void split_groups_color_is_the_folded_hash(void **state)
{
	static const uint32_t a[] = {1474, 1475}, b[] = {1984, 1985}, c[] = {1474, 1476};

	(void)state;
	assert_int_equal(fold_of(a, 2), fold_of(b, 2));
	assert_int_not_equal(fold_of(a, 2), fold_of(c, 2));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_groups_color_is_the_hash_of_the_tuple),
		cmocka_unit_test(split_groups_color_is_the_folded_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
