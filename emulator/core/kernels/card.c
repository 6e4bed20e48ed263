/* See card.h. */
#include "kernels/card.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* NVIDIA's data sheets: "A100 Tensor Core GPU" (80GB SXM), "H100 Tensor Core GPU" (SXM), "HGX"
 * (B200, one GPU of it). Where a sheet says "with sparsity", half of it stands here. f64 is the
 * tensor cores', and the bus has half of what both directions have together. */
static const struct card cards[] = {
	{
		.name = "a100",
		.flops_per_ns = {19500, 19500, 156000, 312000, 312000, 624000},
		.bytes_per_ns = 2039,
		.bus_bytes_per_ns = 32,
	},
	{
		.name = "h100",
		.flops_per_ns = {67000, 67000, 494500, 989500, 989500, 1979000},
		.bytes_per_ns = 3350,
		.bus_bytes_per_ns = 64,
	},
	{
		.name = "b200",
		.flops_per_ns = {37000, 75000, 1100000, 2250000, 2250000, 4500000},
		.bytes_per_ns = 7700,
		.bus_bytes_per_ns = 64,
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
