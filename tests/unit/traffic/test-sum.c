/* Sums in NCCL's layouts: LL's lines are data, flag, data, flag of 4 bytes; of 128 bytes of LL128
 * the last 8 are no data. */
#include "cmocka-all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../rng.h"
#include "nccl-plugin/plugin.h"
#include "reduce/reduce.h"
#include "traffic/sum.h"

#define BYTES 7680 /* 64 lines of LL128 */
#define N_MAX 4

static uint64_t place(uint32_t protocol, uint64_t i)
{
	return protocol == PLUGIN_LL      ? i / 8 * 16 + i % 8 / 4 * 8 + i % 4
	       : protocol == PLUGIN_LL128 ? i / 120 * 128 + i % 120
					  : i;
}

static uint64_t wire_bytes(uint32_t protocol, uint64_t bytes)
{
	return protocol == PLUGIN_LL      ? bytes * 2
	       : protocol == PLUGIN_LL128 ? bytes / 120 * 128
					  : bytes;
}

static void try(struct rng *rng, struct traffic_bodies *all, uint32_t protocol, uint32_t dtype,
		uint32_t redop)
{
	static _Alignas(64) unsigned char want[BYTES], data[BYTES];
	uint64_t bytes = 120 * (1 + rng_u64(rng) % (BYTES / 120));
	uint32_t n = 1 + (uint32_t)(rng_u64(rng) % N_MAX);
	struct traffic_body *bodies[N_MAX], *kept = NULL, *sum = NULL;
	unsigned char before[2 * BYTES];
	struct err err = {""};

	for (uint32_t k = 0; k < n; k++) {
		bodies[k] = traffic_body_new(all, wire_bytes(protocol, bytes));
		assert_non_null(bodies[k]);
		for (uint64_t i = 0; i < bodies[k]->bytes; i++)
			bodies[k]->at[i] = (unsigned char)rng_u64(rng);
		for (uint64_t i = 0; i < bytes; i++)
			data[i] = bodies[k]->at[place(protocol, i)];
		if (k == 0)
			memcpy(want, data, bytes);
		else
			reduce_apply(dtype, redop == COLL_AVG ? COLL_SUM : redop, want, want, data,
				     bytes / coll_dtype_bytes(dtype));
	}
	if (rng_u64(rng) % 2) { /* somebody else still needs the first */
		kept = traffic_body_ref(bodies[0]);
		memcpy(before, kept->at, kept->bytes);
	}
	assert_int_equal(sum_bodies(all, protocol, dtype, redop, bodies, n, &sum, &err), 0);
	assert_int_equal(sum->bytes, wire_bytes(protocol, bytes));
	for (uint64_t i = 0; i < bytes; i++)
		assert_int_equal(sum->at[place(protocol, i)], want[i]);
	if (redop == COLL_AVG) {
		assert_int_equal(sum_divide(all, protocol, dtype, 3, &sum, &err), 0);
		reduce_average(dtype, want, want, 3, bytes / coll_dtype_bytes(dtype));
		for (uint64_t i = 0; i < bytes; i++)
			assert_int_equal(sum->at[place(protocol, i)], want[i]);
	}
	if (kept)
		assert_memory_equal(kept->at, before, kept->bytes);
	traffic_body_unref(kept);
	traffic_body_unref(sum);
}

static void every_type_is_summed_in_every_layout(void **state)
{
	struct traffic_bodies *all = traffic_bodies_new(UINT64_C(1) << 30);
	uint64_t mapped = 0;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5, 0);
	for (int round = 0; round < 6; round++) {
		for (uint32_t protocol = 0; protocol < PLUGIN_N_PROTOCOLS; protocol++)
			for (uint32_t dtype = 0; dtype < COLL_DTYPES; dtype++)
				for (uint32_t redop = 0; redop < COLL_REDOPS; redop++)
					try(&rng, all, protocol, dtype, redop);
		if (round == 3)
			mapped = traffic_bodies_mapped(all);
	}
	assert_int_equal(traffic_bodies_mapped(all), mapped); /* all references came back */
	traffic_bodies_free(all);
}

static void what_cannot_be_summed_is_refused(void **state)
{
	struct traffic_bodies *all = traffic_bodies_new(UINT64_C(1) << 30);
	struct traffic_body *bodies[2] = {NULL, NULL}, *sum = (void *)1;
	struct err err = {""};

	(void)state;
	assert_int_equal(sum_bodies(all, PLUGIN_LL, COLL_INT8, COLL_SUM, bodies, 2, &sum, &err), 0);
	assert_null(sum); /* empty ones */
	bodies[0] = traffic_body_new(all, 64);
	assert_int_equal(sum_bodies(all, PLUGIN_LL, COLL_INT8, COLL_SUM, bodies, 2, &sum, &err),
			 -EPROTO);
	assert_non_null(strstr(err.text, "different amounts"));
	bodies[0] = traffic_body_new(all, 63);
	bodies[1] = traffic_body_new(all, 63);
	assert_int_equal(sum_bodies(all, PLUGIN_SIMPLE, COLL_INT32, COLL_SUM, bodies, 2, &sum,
				    &err),
			 -EPROTO);
	assert_non_null(strstr(err.text, "4 bytes each"));
	traffic_bodies_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_summed_in_every_layout),
		cmocka_unit_test(what_cannot_be_summed_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
