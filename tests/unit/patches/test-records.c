/* The tables of NCCL's records and their finder. That the tables are NCCL's is not tested here: it
 * takes NCCL's headers (patches/README.md). */
#include "cmocka-all.h"

#include <stdio.h>
#include <string.h>

#include "patches/records.h"
#include "patches/tables.h"

static void test_every_table_is_consistent(void **state)
{
	char sentence[256] = "";
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		if (nccl_records_check(all[i], sentence, sizeof(sentence)))
			fail_msg("%s: %s", all[i]->name, sentence);
		for (size_t c = 0; c < all[i]->n_contacts; c++)
			assert_int_equal(all[i]->contacts[c].peer_address.bytes,
					 c ? 0 : NCCL_ADDRESS_BYTES);
	}
}

static void test_a_field_that_is_out_of_place_is_told(void **state)
{
	static const char *const told[] = {
		"peer: version (4 bytes at 117) ends behind the record",
		"peer: comm (8 bytes at 20) lies over host_hash",
		"graph: arrays (2048 bytes at 223) lies over graphs",
		"check_in: ring_address (28 bytes at 43) lies over root_address",
		"contact: peer_address (28 bytes at 93) ends behind the record",
		"split: key (4 bytes at 5) ends behind the record",
		"one graph: cross_nic (4 bytes at 29) ends behind the record",
		"peer: rank (0 bytes at 0) is of another size in all other tables",
		"peer: host_hash (4 bytes at 16) is of another size in all other tables",
	};
	char sentence[256];

	(void)state;
	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
		struct nccl_records r =
			*nccl_records_find(NCCL_CODE(2, 28, 9), true, sentence, sizeof(sentence));

		switch (i) {
		case 0:
			r.peer.version.at = 117;
			break;
		case 1:
			r.peer.comm.at = 20;
			break;
		case 2:
			r.graph.arrays_at = 223;
			break;
		case 3:
			r.check_in.ring_address.at = 43;
			break;
		case 4:
			r.contacts[0].peer_address.at = 93;
			break;
		case 5:
			r.split.key.at = 5;
			break;
		case 6:
			r.graph.cross_nic.at = 29;
			break;
		case 7:
			r.peer.rank.bytes = 0;
			break;
		default:
			r.peer.host_hash.bytes = 4;
		}
		assert_int_equal(nccl_records_check(&r, sentence, sizeof(sentence)), -1);
		assert_string_equal(sentence, told[i]);
	}
}

static void test_no_two_tables_have_a_version_in_common(void **state)
{
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	(void)state;
	assert_true(n >= 13);
	for (size_t i = 0; i < n; i++) {
		char name[24];

		snprintf(name, sizeof(name), "%d.%d.%d", all[i]->first / 10000,
			 all[i]->first / 100 % 100, all[i]->first % 100);
		assert_string_equal(all[i]->name, name);
		assert_true(all[i]->first <= all[i]->last);
		assert_true(!i || all[i - 1]->last < all[i]->first);
	}
}

static const char *found(int version)
{
	char sentence[1024];
	const struct nccl_records *r = nccl_records_find(version, true, sentence, sizeof(sentence));

	return r ? r->name : NULL;
}

static void test_versions_at_the_edges_are_found(void **state)
{
	static const int unknown[] = {0,
				      -1,
				      NCCL_CODE(2, 20, 5),
				      NCCL_CODE(2, 21, 4),
				      NCCL_CODE(2, 21, 6),
				      NCCL_CODE(2, 26, 1),
				      NCCL_CODE(2, 26, 7),
				      NCCL_CODE(2, 28, 4),
				      NCCL_CODE(2, 30, 8),
				      NCCL_CODE(2, 31, 0),
				      2147483647};
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(found(all[i]->first), all[i]->name);
		assert_string_equal(found(all[i]->last), all[i]->name);
	}
	assert_string_equal(found(NCCL_CODE(2, 26, 4)), "2.26.2"); /* between two, and like both */
	assert_string_equal(found(22809), "2.28.7");
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		assert_null(found(unknown[i]));
}

static void test_an_untried_version_is_refused_unless_forced(void **state)
{
	const struct nccl_records untried = {.first = 23100, .last = 23102};
	char sentence[1024];

	(void)state;
	assert_false(records_are_allowed(&untried, 23101, false, sentence, sizeof(sentence)));
	assert_non_null(strstr(sentence, "NCCL 2.31.1: its records are known from its headers"));
	assert_non_null(strstr(sentence, "--untried"));
	assert_true(records_are_allowed(&untried, 23101, true, sentence, sizeof(sentence)));
	assert_null(nccl_records_find(NCCL_CODE(2, 31, 1), true, sentence, sizeof(sentence)));
	assert_non_null(strstr(sentence, "NCCL 2.31.1: its records are not known"));
	assert_non_null(strstr(sentence, "2.26.2 to 2.26.6"));
}

static void test_what_is_known_is_said_in_any_room(void **state)
{
	char known[512], less[512];
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	(void)state;
	nccl_records_known(known, sizeof(known));
	assert_true(strlen(known) <
		    400); /* find() has 512 for it, and a program its sentence around that */
	for (size_t i = 0; i < n; i++)
		assert_non_null(strstr(known, all[i]->name));
	for (size_t size = 1; size < sizeof(less); size++) {
		memset(less, 'x', sizeof(less));
		nccl_records_known(less, size);
		assert_true(strlen(less) < size);
		assert_memory_equal(less, known, strlen(less));
	}
}

static void test_later_gathers_are_told_by_their_size(void **state)
{
	char sentence[1024];
	const struct nccl_records *old =
		nccl_records_find(NCCL_CODE(2, 21, 5), true, sentence, sizeof(sentence));
	const struct nccl_records *new =
		nccl_records_find(NCCL_CODE(2, 28, 9), true, sentence, sizeof(sentence));

	(void)state;
	assert_null(nccl_records_later(old, 2));
	assert_null(nccl_records_later(new, 2)->refused);
	assert_non_null(strstr(nccl_records_later(new, 128)->refused, "NCCL_GIN_ENABLE=0"));
	assert_null(nccl_records_later(new, 0));
	assert_null(nccl_records_later(new, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_table_is_consistent),
		cmocka_unit_test(test_a_field_that_is_out_of_place_is_told),
		cmocka_unit_test(test_no_two_tables_have_a_version_in_common),
		cmocka_unit_test(test_versions_at_the_edges_are_found),
		cmocka_unit_test(test_an_untried_version_is_refused_unless_forced),
		cmocka_unit_test(test_what_is_known_is_said_in_any_room),
		cmocka_unit_test(test_later_gathers_are_told_by_their_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
