/* Cards whose data sheets we know: peaks, which no kernel reaches. */
#pragma once

enum kernel_type {
	KERNEL_F64,
	KERNEL_F32,
	KERNEL_TF32, /* float in memory */
	KERNEL_F16,
	KERNEL_BF16,
	KERNEL_8BIT,
	KERNEL_TYPES
};

struct card {
	const char *name;
	double flops_per_ns[KERNEL_TYPES]; /* of matrix products, without sparsity */
	double bytes_per_ns;               /* of its memory */
	double bus_bytes_per_ns;           /* to the host, a direction */
	double attention;                  /* what FlashAttention 2 gets of the peak of bf16 */
};

/* Return: NULL when it is not known. */
const struct card *card_find(const char *name);
/* The names, "a100, h100, b200". */
const char *card_names(void);
