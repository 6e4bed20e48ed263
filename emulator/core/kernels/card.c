/* See card.h. */
#include "kernels/card.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* NVIDIA's data sheets: "A100 Tensor Core GPU" (80GB SXM), "H100 Tensor Core GPU" (SXM), "HGX"
 * (B200, one GPU of it). Where a sheet says "with sparsity", half of it stands here. f64 is the
 * tensor cores', and the bus has half of what both directions have together. FlashAttention 2: 50
 * to 73 % on an A100 (arXiv 2307.08691), 35 % on an H100 (arXiv 2407.08608); of a B200 no figure is
 * known, it has the H100's. */
static const struct card cards[] = {
	{
		.name = "a100",
		.flops_per_ns = {19500, 19500, 156000, 312000, 312000, 624000},
		.bytes_per_ns = 2039,
		.bus_bytes_per_ns = 32,
		.attention = 0.6,
	},
	{
		.name = "h100",
		.flops_per_ns = {67000, 67000, 494500, 989500, 989500, 1979000},
		.bytes_per_ns = 3350,
		.bus_bytes_per_ns = 64,
		.attention = 0.35,
	},
	{
		.name = "b200",
		.flops_per_ns = {37000, 75000, 1100000, 2250000, 2250000, 4500000},
		.bytes_per_ns = 7700,
		.bus_bytes_per_ns = 64,
		.attention = 0.35,
	},
};

const struct card *card_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(cards); i++)
		if (strcmp(cards[i].name, name) == 0)
			return &cards[i];
	return NULL;
}

const char *card_names(void)
{
	return "a100, h100, b200";
}
