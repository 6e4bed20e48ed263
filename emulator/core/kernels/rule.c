/* See rule.h. */
#include "kernels/rule.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define MAX_OPERANDS 32

static const struct {
	const char *name;
	double bytes;
} types[KERNEL_TYPES] = {
	[KERNEL_F64] = {"f64", 8}, [KERNEL_F32] = {"f32", 4},   [KERNEL_TF32] = {"f32", 4},
	[KERNEL_F16] = {"f16", 2}, [KERNEL_BF16] = {"bf16", 2}, [KERNEL_8BIT] = {"8bit", 1},
};

double rule_product_ns(const struct card *card, const struct kernel_product *p)
{
	double m = (double)p->m, n = (double)p->n, k = (double)p->k, batch = (double)p->batch;
	double flops_ns = 2 * m * n * k * batch / card->flops_per_ns[p->type];
	double bytes_ns =
		(m * k + k * n + m * n) * batch * types[p->type].bytes / card->bytes_per_ns;

	return RULE_FLOOR_NS + (flops_ns > bytes_ns ? flops_ns : bytes_ns) / RULE_EFFICIENCY;
}

char *kernel_product_name(const struct kernel_product *p, char *buf, size_t size)
{
	unsigned long long low = p->m < p->n ? p->m : p->n, high = p->m < p->n ? p->n : p->m;
	int n = snprintf(buf, size, "matmul %s %llux%llux%llu", types[p->type].name, low, high,
			 (unsigned long long)p->k);

	if (p->batch > 1 && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, "x%llu", (unsigned long long)p->batch);
	return buf;
}

static const char *const copy_names[] = {
	[COPY_HOST] = "memcpy HtoH",    [COPY_TO_DEVICE] = "memcpy HtoD",
	[COPY_TO_HOST] = "memcpy DtoH", [COPY_DEVICE] = "memcpy DtoD",
	[COPY_FILL] = "memset",
};

const char *kernel_copy_name(enum kernel_copy kind)
{
	return copy_names[kind];
}

double rule_copy_ns(const struct card *card, enum kernel_copy kind, uint64_t bytes)
{
	double per_ns = kind == COPY_DEVICE ? card->bytes_per_ns / 2
			: kind == COPY_FILL ? card->bytes_per_ns
					    : card->bus_bytes_per_ns;

	return RULE_FLOOR_NS + (double)bytes / per_ns / RULE_EFFICIENCY;
}

/* PyTorch's families of kernels (2.11), by a part of their mangled names: elements that a thread
 * moves of an operand, and the word behind which the number of operands stands. */
static const struct {
	const char *name;
	double elements;
	const char *operands;
} families[] = {
	{"vectorized_elementwise_kernel", 8, "rrayIPc"}, /* std::array<char*, N> */
	{"elementwise_kernel", 4, "rrayIPc"},
	/* Adam reads four lists and writes three of them */
	{"FusedOptimizerTensorListMetadata", 65536 / 512.0 * 7 / 4, "ListMetadataI"},
	/* lists of tensors, such as an optimiser's: a block of 512 threads has a chunk of 65536
	 * elements, which is taken to be full */
	{"multi_tensor_apply_kernel", 65536 / 512.0, "ListMetadataI"},
	{"", 8, NULL},
};

static unsigned long operands_of(const char *name, const char *word)
{
	const char *at = word ? strstr(name, word) : NULL;
	unsigned long n;

	if (!at)
		return 2;
	at = strchr(at + strlen(word), 'L'); /* of the template's arguments the first number */
	if (!at)
		return 2;
	n = strtoul(at + strcspn(at, "0123456789"), NULL, 10);
	return n < 1 ? 1 : n > MAX_OPERANDS ? MAX_OPERANDS : n;
}

/* FlashAttention 2's kernels that multiply; of Flash_fwd_kernel_traits<128, 128, 64, ... the number
 * that says how much of the sequence a block has. */
static const struct {
	const char *name;
	double products;
	int block;
} attentions[] = {
	{"flash_fwd_kernelI", 2, 1},
	{"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI", 5, 2},
};

/* Return: false when @name is none of them. */
static bool attention_price(const struct card *card, const char *name, struct kernel_price *ret)
{
	const char *traits = strstr(name, "kernel_traitsI"), *flags = strstr(name, "EELb");
	unsigned int numbers[3];
	double block;
	size_t i = 0;

	while (i < ARRAY_SIZE(attentions) && !strstr(name, attentions[i].name))
		i++;
	if (i == ARRAY_SIZE(attentions) || !traits || !flags ||
	    sscanf(traits, "kernel_traitsILi%uELi%uELi%uE", &numbers[0], &numbers[1],
		   &numbers[2]) != 3)
		return false;
	block = numbers[attentions[i].block];
	*ret = (struct kernel_price){
		.fixed_ns = RULE_FLOOR_NS,
		.square_ns = 2 * attentions[i].products * numbers[0] * block * block /
			     card->flops_per_ns[KERNEL_BF16] / card->attention,
	};
	if (strncmp(flags + strlen("EELb0"), "ELb1", 4) == 0) /* dropout, then causal */
		ret->square_ns /= 2;
	return true;
}

struct kernel_price rule_price(const struct card *card, const char *name)
{
	struct kernel_price attention;
	bool is_half = strstr(name, "BFloat16") || strstr(name, "Half");
	double bytes;
	size_t i = 0;

	if (attention_price(card, name, &attention))
		return attention;
	while (!strstr(name, families[i].name))
		i++;
	bytes = families[i].elements * (double)operands_of(name, families[i].operands) *
		(is_half ? 2 : 4);
	return (struct kernel_price){
		.fixed_ns = RULE_FLOOR_NS,
		.thread_ns = bytes / card->bytes_per_ns / RULE_EFFICIENCY,
	};
}
