/* Numbers with units: the whole string or an error, exact values, suggestions. */
#include "cmocka-all.h"
#include "rng.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"

/* No parser takes these. */
static const char *const bad[] = {
	"",       " ",        ".",       "-",     "+1us", "-1us",   "1",       "us",
	"1 us",   " 1us",     "1us ",    "1us\n", "1.us", "1..5us", "1.5.5us", "1e3us",
	"0x10us", "inf",      "nan",     "infs",  "nans", "1us1",   "1,5us",   "1\xc2\xb5",
	"1\xb5s", "1e3B",     "-5B",     "5b",    "5Kb",  "5MBs",   "5GB/",    "5GB/s/s",
	"5gbps",  "5Gbits/s", "5Gbitps", "-0",    "+5",   "5%%",    "%",       "5 %",
};

static void the_whole_string_must_be_right(void **state)
{
	struct err err;
	double d = -7;
	uint64_t u = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err.text[0] = '\0';
		assert_int_equal(units_time(bad[i], &d, &err), -EINVAL);
		assert_true(err.text[0] != '\0');
		assert_int_equal(units_bytes(bad[i], &u, &err), -EINVAL);
		assert_int_equal(units_bandwidth(bad[i], &d, &err), -EINVAL);
		if (strcmp(bad[i], "1") != 0) {
			assert_int_equal(units_ratio(bad[i], &d, &err), -EINVAL);
			assert_int_equal(units_count(bad[i], &u, &err), -EINVAL);
		}
		assert_int_equal(units_time(bad[i], &d, NULL), -EINVAL);
	}
	assert_true(d == -7 && u == 7); /* untouched */
}

static void assert_time(const char *text, double expect)
{
	double ns;

	assert_int_equal(units_time(text, &ns, NULL), 0);
	assert_true(ns == expect);
}

static void times_are_exact(void **state)
{
	struct err err;
	double ns;

	(void)state;
	assert_time("0ns", 0);
	assert_time("1.5us", 1500);
	assert_time("0.1ms", 100000);
	assert_time(".5s", 5e8);
	assert_time("0.001ns", 0.001);
	assert_time("1.10us", 1100);
	assert_time("5\xc2\xb5s", 5000);
	assert_time("5\xce\xbcs", 5000);
	assert_time("000000000000000000000000001us", 1000);
	assert_time("1.00000000000000000000000000us", 1000);
	assert_time("9007199s", 9007199e9);
	assert_int_equal(units_time("9007200s", &ns, &err), -EINVAL);
	assert_non_null(strstr(err.text, "104 days"));
	assert_int_equal(units_time("5", &ns, &err), -EINVAL);
	assert_string_equal(err.text, "'5' has no unit; units of a time: ns us ms s");
	assert_int_equal(units_time("5US", &ns, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'us'?"));
	assert_int_equal(units_time("-1us", &ns, &err), -EINVAL);
	assert_non_null(strstr(err.text, "negative"));
	assert_int_equal(units_time("99999999999999999999ns", &ns, &err), -EINVAL);
	assert_int_equal(units_time("0.00000000000000000001ns", &ns, &err), -EINVAL);
	assert_non_null(strstr(err.text, "too many digits"));
}

static void assert_bytes(const char *text, uint64_t expect)
{
	uint64_t bytes;

	assert_int_equal(units_bytes(text, &bytes, NULL), 0);
	assert_true(bytes == expect);
}

static void bytes_are_exact(void **state)
{
	struct err err;
	uint64_t bytes;

	(void)state;
	assert_bytes("0B", 0);
	assert_bytes("4M", 4 << 20);
	assert_bytes("1.5K", 1536);
	assert_bytes("1.5KB", 1500);
	assert_bytes("1.5kB", 1500);
	assert_bytes("3TiB", UINT64_C(3) << 40);
	assert_bytes("3TB", UINT64_C(3000000000000));
	assert_bytes("0.0009765625K", 1);
	assert_bytes("18446744073709551615B", UINT64_MAX);
	assert_int_equal(units_bytes("18446744073709551616B", &bytes, &err), -EINVAL);
	assert_int_equal(units_bytes("16777216T", &bytes, &err), -EINVAL);
	assert_non_null(strstr(err.text, "too large"));
	assert_int_equal(units_bytes("1.0005K", &bytes, &err), -EINVAL);
	assert_non_null(strstr(err.text, "whole number of bytes"));
	assert_int_equal(units_bytes("64", &bytes, &err), -EINVAL);
	assert_non_null(strstr(err.text, "KiB MiB GiB TiB KB MB GB TB"));
	assert_int_equal(units_bytes("64mib", &bytes, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'MiB'?"));
}

static void a_nic_has_a_rate_and_perhaps_a_latency(void **state)
{
	double rate, latency = 7;

	(void)state;
	assert_int_equal(units_nic("25Gbps", &rate, &latency, NULL), 0);
	assert_float_equal(rate, 3.125, 1e-12);
	assert_float_equal(latency, 7, 0);
	assert_int_equal(units_nic("10Gbps,5us", &rate, &latency, NULL), 0);
	assert_float_equal(rate, 1.25, 1e-12);
	assert_float_equal(latency, 5000, 1e-9);
	assert_int_equal(units_nic("25", &rate, &latency, NULL), -EINVAL);
	assert_int_equal(units_nic("25Gbps,5", &rate, &latency, NULL), -EINVAL);
	assert_float_equal(latency, 5000, 1e-9);
}

static void assert_bandwidth(const char *text, double expect)
{
	double bw;

	assert_int_equal(units_bandwidth(text, &bw, NULL), 0);
	assert_true(bw == expect);
}

static void bandwidths_are_exact(void **state)
{
	struct err err;
	double bw;

	(void)state;
	assert_bandwidth("400Gbps", 50);
	assert_bandwidth("1Tbps", 125);
	assert_bandwidth("100Mbps", 0.0125);
	assert_bandwidth("8Kbps", 1e-6);
	assert_bandwidth("50GB/s", 50);
	assert_bandwidth("0.9TB/s", 900);
	assert_bandwidth("1GiB/s", 1.073741824);
	assert_bandwidth("1KiB/s", 1.024e-6);
	assert_int_equal(units_bandwidth("0GB/s", &bw, &err), -EINVAL);
	assert_non_null(strstr(err.text, "zero"));
	assert_int_equal(units_bandwidth("400", &bw, &err), -EINVAL);
	assert_non_null(strstr(err.text, "Gbps"));
}

/* A suggestion for bits is in bits, for bytes in bytes; a name that is wrong only in case gets
 * both. */
static void a_bandwidth_suggestion_has_as_many_bits(void **state)
{
	static const struct {
		const char *text, *hint; /* NULL: none */
	} cases[] = {
		{"400gbps", "did you mean 'Gbps' (bits) or 'GBps' (bytes)?"},
		{"400GBPS", "did you mean 'Gbps' (bits) or 'GBps' (bytes)?"},
		{"400gb/s", "did you mean 'Gb/s' (bits) or 'GB/s' (bytes)?"},
		{"400GBIT/S", "did you mean 'Gbit/s'?"},
		{"400Gbits/s", "did you mean 'Gbit/s'?"},
		{"400Gpbs", "did you mean 'Gbps'?"},
		{"400GBs", "did you mean 'GB/s'?"},
		{"400GiBs", "did you mean 'GiB/s'?"},
		{"400G", NULL},
		{"400Gbytes/s", NULL},
	};
	struct err err;
	double bw;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(units_bandwidth(cases[i].text, &bw, &err), -EINVAL);
		if (cases[i].hint)
			assert_non_null(strstr(err.text, cases[i].hint));
		else
			assert_null(strstr(err.text, "did you mean"));
	}
	assert_int_equal(units_bandwidth("400 Gbps", &bw, &err), -EINVAL);
	assert_non_null(strstr(err.text, "write it without, such as 400Gbps"));
	assert_int_equal(units_bandwidth("1,5Gbps", &bw, &err), -EINVAL);
	assert_non_null(strstr(err.text, "write a point, such as 1.5"));
	assert_int_equal(units_time("5m", &bw, &err), -EINVAL);
	assert_null(strstr(err.text, "did you mean"));
}

/* Every prefix with every rate, against bits and bytes counted by hand. */
static void all_bandwidth_units_agree(void **state)
{
	static const struct {
		const char *name;
		double factor;
	} prefixes[] = {{"", 1},        {"k", 1e3},    {"K", 1e3},     {"M", 1e6},
			{"G", 1e9},     {"T", 1e12},   {"Ki", 0x1p10}, {"Mi", 0x1p20},
			{"Gi", 0x1p30}, {"Ti", 0x1p40}};
	static const char *const bits[] = {"bps", "b/s", "bit/s"}, *const bytes[] = {"Bps", "B/s"};
	struct rng rng;
	char text[64];
	double got;

	(void)state;
	rng_seed(&rng, 9, 0);
	for (int i = 0; i < 20000; i++) {
		size_t p = rng_u64(&rng) % ARRAY_SIZE(prefixes), f = rng_u64(&rng) % 5;
		unsigned whole = 1 + (unsigned)(rng_u64(&rng) % 4000),
			 tenth = (unsigned)(rng_u64(&rng) % 10);
		double expect = (whole + tenth / 10.0) * prefixes[p].factor / (f < 3 ? 8 : 1) / 1e9;

		snprintf(text, sizeof(text), "%u.%u%s%s", whole, tenth, prefixes[p].name,
			 f < 3 ? bits[f] : bytes[f - 3]);
		assert_int_equal(units_bandwidth(text, &got, NULL), 0);
		assert_true(fabs(got - expect) <= expect * 1e-15);
	}
}

static void ratios_and_counts_are_strict(void **state)
{
	double ratio;
	uint64_t count;

	(void)state;
	assert_int_equal(units_ratio("1.5", &ratio, NULL), 0);
	assert_true(ratio == 1.5);
	assert_int_equal(units_ratio("150%", &ratio, NULL), 0);
	assert_true(ratio == 1.5);
	assert_int_equal(units_ratio("0", &ratio, NULL), 0);
	assert_true(ratio == 0);
	assert_int_equal(units_ratio("5x", &ratio, NULL), -EINVAL);
	assert_int_equal(units_count("18446744073709551615", &count, NULL), 0);
	assert_true(count == UINT64_MAX);
	assert_int_equal(units_count("18446744073709551616", &count, NULL), -EINVAL);
	assert_int_equal(units_count("1.0", &count, NULL), -EINVAL);
	assert_int_equal(units_count("1K", &count, NULL), -EINVAL);
}

/* Any decimal against strtod(), which rounds correctly. */
static void values_agree_with_strtod(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7, 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t whole = rng_u64(&rng) >> (20 + rng_u64(&rng) % 44);
		uint64_t frac = rng_u64(&rng) % 1000;
		char text[64];
		double got, expect;

		snprintf(text, sizeof(text), "%lu.%03lu%%", (unsigned long)whole,
			 (unsigned long)frac);
		assert_int_equal(units_ratio(text, &got, NULL), 0);
		expect = strtod(text, NULL) / 100;
		assert_true(fabs(got - expect) <= expect * 0x1p-52);
		text[strlen(text) - 1] = '\0';
		assert_int_equal(units_ratio(text, &got, NULL), 0);
		assert_true(got == strtod(text, NULL));
	}
}

/* In a locale with a decimal comma the point is still the point. */
static void the_locale_has_no_say(void **state)
{
	static const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(comma); i++)
		if (setlocale(LC_ALL, comma[i]))
			break;
	assert_time("1.5us", 1500);
	setlocale(LC_ALL, "C");
}

static void lists_of_ranks_agree_with_an_array(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 8, 0);
	for (int round = 0; round < 500; round++) {
		bool want[200] = {0}, is_twice = false;
		char text[1024] = "";
		uint32_t *ranks;
		size_t n, used = 0, k = 0;

		for (uint64_t i = 0, parts = 1 + rng_u64(&rng) % 8; i < parts; i++) {
			unsigned a = (unsigned)(rng_u64(&rng) % 200);
			unsigned b = a + (unsigned)(rng_u64(&rng) % (200 - a));

			if (rng_u64(&rng) % 2)
				b = a;
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 a == b ? "%s%u" : "%s%u-%u", i ? "," : "", a, b);
			for (unsigned r = a; r <= b; r++) {
				is_twice |= want[r];
				want[r] = true;
			}
		}
		if (is_twice) {
			assert_int_equal(units_ranks(text, 200, &ranks, &n, NULL), -EINVAL);
			continue;
		}
		assert_int_equal(units_ranks(text, 200, &ranks, &n, NULL), 0);
		for (uint32_t r = 0; r < 200; r++)
			if (want[r])
				assert_true(k < n && ranks[k++] == r);
		assert_int_equal(k, n);
		free(ranks);
	}
}

static void bad_lists_of_ranks_are_refused(void **state)
{
	static const char *const wrong[] = {"",      ",", "1,", ",1",   "1,,2", "1-", "-1",
					    "1-2-3", "a", "1 ", "1, 2", "3-1",  "+1", "0x1"};
	static const char *const beyond[] = {"8",
					     "0-8",
					     "7,8",
					     "4294967296",
					     "99999999999999999999999999",
					     "0-18446744073709551616"};
	uint32_t *ranks = NULL;
	struct err err;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(units_ranks(wrong[i], 8, &ranks, &n, &err), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(beyond); i++) {
		assert_int_equal(units_ranks(beyond[i], 8, &ranks, &n, &err), -ERANGE);
		assert_non_null(strstr(err.text, "7"));
	}
	assert_int_equal(units_ranks("0", 0, &ranks, &n, &err), -ERANGE);
	assert_null(ranks);
	assert_int_equal(units_ranks("0,3-5,4", 8, &ranks, &n, &err), -EINVAL);
	assert_string_equal(err.text, "'0,3-5,4' names rank 4 twice");
	assert_int_equal(units_ranks("0,0", 8, &ranks, &n, &err), -EINVAL);
	assert_int_equal(units_ranks("0-7", 8, &ranks, &n, &err), 0);
	assert_int_equal(n, 8);
	free(ranks);
	assert_int_equal(units_ranks("5-6+1", 8, &ranks, &n, &err), 0); /* as what-ifs write it */
	assert_true(n == 3 && ranks[0] == 1 && ranks[1] == 5 && ranks[2] == 6);
	free(ranks);
	assert_int_equal(units_numbers("1,1", "node", 8, &ranks, &n, &err), -EINVAL);
	assert_string_equal(err.text, "'1,1' names node 1 twice");
}

static void prints_are_short_and_never_overrun(void **state)
{
	char buf[64];

	(void)state;
	assert_string_equal(units_print_time(0, buf, sizeof(buf)), "0 ns");
	assert_string_equal(units_print_time(1, buf, sizeof(buf)), "1.00 ns");
	assert_string_equal(units_print_time(999.96, buf, sizeof(buf)), "1.00 us");
	assert_string_equal(units_print_time(1.5e6, buf, sizeof(buf)), "1.50 ms");
	assert_string_equal(units_print_time(-1.5e6, buf, sizeof(buf)), "-1.50 ms");
	assert_string_equal(units_print_time(12345e9, buf, sizeof(buf)), "12345 s");
	assert_string_equal(units_print_bytes(0, buf, sizeof(buf)), "0 B");
	assert_string_equal(units_print_bytes(1023, buf, sizeof(buf)), "1023 B");
	assert_string_equal(units_print_bytes(4 << 20, buf, sizeof(buf)), "4 MiB");
	assert_string_equal(units_print_bytes(1536, buf, sizeof(buf)), "1.50 KiB");
	assert_string_equal(units_print_bytes(2560, buf, sizeof(buf)), "2.50 KiB");
	assert_string_equal(units_print_bytes(25000000, buf, sizeof(buf)), "25 MB");
	assert_string_equal(units_print_bytes(1500, buf, sizeof(buf)), "1.5 KB");
	assert_string_equal(units_print_bytes(1234000, buf, sizeof(buf)), "1.18 MiB");
	assert_string_equal(units_print_bytes(UINT64_MAX, buf, sizeof(buf)), "16777216.00 TiB");
	assert_string_equal(units_print_time(1.5e6, buf, 4), "1.5"); /* cut, not overrun */
}

static void the_nearest_name_is_suggested(void **state)
{
	static const char *const names[] = {"all",  "none",     "const", "alphabeta", "ring",
					    "tree", "alltoall", "table", "delay"};
	static const struct {
		const char *word, *expect;
	} cases[] = {
		{"rnig", "ring"},
		{"RING", "ring"},
		{"rings", "ring"},
		{"alpha", "alphabeta"},
		{"all2all", "alltoall"},
		{"tabel", "table"},
		{"dealy", "delay"},
		{"constant", "const"},
		{"alltoal", "alltoall"},
		{"zebra", NULL},
		{"", NULL},
		{"x", NULL},
	};
	char longword[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *got = suggest(cases[i].word, names, ARRAY_SIZE(names));

		if (cases[i].expect)
			assert_string_equal(got, cases[i].expect);
		else
			assert_null(got);
	}
	memset(longword, 'a', sizeof(longword) - 1);
	longword[sizeof(longword) - 1] = '\0';
	assert_null(suggest(longword, names, ARRAY_SIZE(names)));
	assert_null(suggest("ring", NULL, 0));
	static const char *const keys[] = {"alpha", "bw", "intra_bw", "messages"};

	assert_string_equal(suggest_long("alhpa", keys, 4), "alpha");
	assert_string_equal(suggest_long("Bandwith", keys, 4), "bw");
	assert_string_equal(suggest_long("intra_bandwidth", keys, 4), "intra_bw");
	assert_string_equal(suggest_long("msgs", keys, 4), "messages");
	assert_null(suggest_long("m", keys, 4));
	static const char *const both[] = {"--intra-bandwidth", "--inter-bandwidth", "--nodes"};

	assert_null(suggest_long("--bandwidth", both, 3));
	assert_string_equal(suggest_long("--num-nodes", both, 3), "--nodes");
	assert_null(suggest_long("band", keys, 4));
	assert_null(suggest_long("", keys, 4));
	assert_null(suggest_long("gpu", keys, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nic_has_a_rate_and_perhaps_a_latency),
		cmocka_unit_test(the_whole_string_must_be_right),
		cmocka_unit_test(times_are_exact),
		cmocka_unit_test(bytes_are_exact),
		cmocka_unit_test(bandwidths_are_exact),
		cmocka_unit_test(a_bandwidth_suggestion_has_as_many_bits),
		cmocka_unit_test(all_bandwidth_units_agree),
		cmocka_unit_test(ratios_and_counts_are_strict),
		cmocka_unit_test(values_agree_with_strtod),
		cmocka_unit_test(the_locale_has_no_say),
		cmocka_unit_test(lists_of_ranks_agree_with_an_array),
		cmocka_unit_test(bad_lists_of_ranks_are_refused),
		cmocka_unit_test(prints_are_short_and_never_overrun),
		cmocka_unit_test(the_nearest_name_is_suggested),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
