/* What a kernel may take on a card: arithmetic alone, by hand. */
#include "cmocka-all.h"

#include <string.h>

#include "kernels/rule.h"

/* flops a ns: 100 of bf16, 10 of f32; 1 byte a ns */
static const struct card card = {
	.name = "toy",
	.flops_per_ns = {[KERNEL_F32] = 10, [KERNEL_TF32] = 50, [KERNEL_BF16] = 100},
	.bytes_per_ns = 1,
	.bus_bytes_per_ns = 0.5,
	.attention = 0.5,
};

static void assert_near(double a, double b)
{
	assert_true(a > b * (1 - 1e-9) && a < b * (1 + 1e-9));
}

static double product_ns(enum kernel_type type, uint64_t m, uint64_t n, uint64_t k, uint64_t batch)
{
	struct kernel_product p = {.type = type, .m = m, .n = n, .k = k, .batch = batch};

	return (rule_product_ns(&card, &p) - RULE_FLOOR_NS) * RULE_EFFICIENCY;
}

static void a_product_takes_its_flops_or_its_bytes(void **state)
{
	(void)state;
	assert_near(product_ns(KERNEL_F32, 1000, 1000, 1000, 1), 2e9 / 10);
	assert_near(product_ns(KERNEL_TF32, 1000, 1000, 1000, 1), 2e9 / 50);
	assert_near(product_ns(KERNEL_F32, 1000, 1000, 1000, 3), 3 * 2e9 / 10);
	/* a vector: 2 x 1e6 flops are fewer than (1000 x 1000 + 1000 + 1000) x 2 bytes */
	assert_near(product_ns(KERNEL_BF16, 1000, 1, 1000, 1), 1002000 * 2);
	assert_near(product_ns(KERNEL_F32, 0, 5, 0, 1) + 1, 1);
}

static double thread_bytes(const char *name)
{
	struct kernel_price price = rule_price(&card, name);

	assert_near(price.fixed_ns, RULE_FLOOR_NS);
	return price.thread_ns * RULE_EFFICIENCY;
}

static void other_kernels_go_by_threads_and_name(void **state)
{
	(void)state;
	/* names as torch 2.11 registers them */
	assert_near(thread_bytes(
			    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
			    "addIfEESt5arrayIPcLm3EEEEviT0_T1_"),
		    8 * 3 * 4);
	assert_near(thread_bytes(
			    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
			    "addIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_"),
		    8 * 3 * 2);
	assert_near(thread_bytes(
			    "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_"
			    "nocastIfEEviT1_"),
		    4 * 2 * 4);
	assert_near(thread_bytes(
			    "25multi_tensor_apply_kernelINS1_28TensorListScalarListMetadataIfLi3EE"
			    "ENS1_28PointwiseOpScalarListFunctorIfLi3ELi3ELi0EEEJEEEvT_T0_DpT1_"),
		    128 * 3 * 4);
	assert_near(thread_bytes(
			    "25multi_tensor_apply_kernelINS1_18TensorListMetadataIN3c108BFloat16E"
			    "Li2EEEvT_"),
		    128 * 2 * 2);
	assert_near(thread_bytes(
			    "25multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetadataILi4"
			    "EENS1_20FusedAdamMathFunctorIfLi4ELNS0_9ADAM_MODEE1ELb0EEEJEEEvT_"),
		    128 * 7 * 4);
	assert_near(thread_bytes("my_kernel"), 8 * 2 * 4);
	assert_near(thread_bytes("elementwise_kernel rrayIPcL"), 4 * 1 * 4);
	assert_near(thread_bytes("elementwise_kernel rrayIPcL99999999999999999999"), 4 * 32 * 4);
}

static double copy_ns(enum kernel_copy kind)
{
	return (rule_copy_ns(&card, kind, 1000) - RULE_FLOOR_NS) * RULE_EFFICIENCY;
}

static void a_copy_goes_by_its_bytes(void **state)
{
	(void)state;
	assert_near(copy_ns(COPY_FILL), 1000);
	assert_near(copy_ns(COPY_DEVICE), 2000); /* read and written */
	assert_near(copy_ns(COPY_TO_DEVICE), 2000);
	assert_near(copy_ns(COPY_TO_HOST), 2000);
}

/* names as torch 2.11 registers them: heads of 128 in blocks of 64 queries and 32 keys */
static void attention_goes_by_blocks_of_its_sequence(void **state)
{
	static const char forward[] =
		"_ZN13pytorch_flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi64ELi32ELi4E"
		"Lb0ELb0EN7cutlass10bfloat16_tE19Flash_kernel_traitsILi128ELi64ELi32ELi4ES3_EELb0E"
		"Lb1ELb0ELb0ELb1ELb1ELb0ELb0EEEvNS_16Flash_fwd_paramsE";
	static const char backward[] =
		"_ZN13pytorch_flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI23Flash_bwd_kernel_"
		"traitsILi128ELi64ELi32ELi8ELi4ELi2ELi2ELb1ELb0EN7cutlass10bfloat16_tE19Flash_"
		"kernel_traitsILi128ELi64ELi32ELi8ES3_EELb0ELb0ELb0ELb0ELb0ELb0ELb0EEEvNS_16Flash_"
		"bwd_paramsE";
	struct kernel_price price = rule_price(&card, forward);

	(void)state;
	assert_near(price.fixed_ns, RULE_FLOOR_NS);
	assert_true(price.thread_ns <= 0);
	assert_near(price.square_ns, 2 * 2 * 128 * 64 * 64 / 2.0 / 100 / 0.5); /* causal */
	price = rule_price(&card, backward);
	assert_near(price.square_ns, 5 * 2 * 128 * 32 * 32 / 100.0 / 0.5);
	assert_near(thread_bytes("flash_fwd_kernelI without numbers EELb0"), 8 * 2 * 4);
}

static void a_product_has_one_name_both_ways_round(void **state)
{
	struct kernel_product a = {KERNEL_BF16, 1536, 128, 384, 1},
			      b = {KERNEL_TF32, 128, 1536, 384, 8};
	char name[64];

	(void)state;
	assert_string_equal(kernel_product_name(&a, name, sizeof(name)),
			    "matmul bf16 128x1536x384");
	assert_string_equal(kernel_product_name(&b, name, sizeof(name)),
			    "matmul f32 128x1536x384x8");
	assert_string_equal(kernel_product_name(&b, name, 8), "matmul ");
}

static void each_card_has_all_its_peaks(void **state)
{
	static const char *const names[] = {"a100", "h100", "b200"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const struct card *c = card_find(names[i]);

		assert_non_null(c);
		assert_non_null(strstr(card_names(), names[i]));
		assert_true(c->bytes_per_ns > 1000);
		assert_true(c->bus_bytes_per_ns > 10);
		assert_true(c->attention > 0 && c->attention < 1);
		for (int t = 1; t < KERNEL_TYPES; t++)
			assert_true(c->flops_per_ns[t] >= c->flops_per_ns[t - 1]);
	}
	assert_null(card_find("H100"));
	assert_null(card_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_product_takes_its_flops_or_its_bytes),
		cmocka_unit_test(other_kernels_go_by_threads_and_name),
		cmocka_unit_test(a_copy_goes_by_its_bytes),
		cmocka_unit_test(attention_goes_by_blocks_of_its_sequence),
		cmocka_unit_test(a_product_has_one_name_both_ways_round),
		cmocka_unit_test(each_card_has_all_its_peaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
