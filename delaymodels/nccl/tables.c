/* See tables.h. Read in NCCL's sources of the versions named (its cost model, src/graph/tuning.cc);
 * numbers are facts, microseconds and GB/s. */
#include "tables.h"

#include <stdio.h>

#define BASE_US(tree)                                                            \
	{                                                                        \
		[ALGO_TREE] = {6.8, 14.0, tree}, [ALGO_RING] = {6.6, 14.0, 8.4}, \
		[ALGO_PAT] = {8.0, 8.0, 8.0},                                    \
	}

#define HW_NVLINK_US(tree)                                                                         \
	{                                                                                          \
		[ALGO_TREE] = {0.6, 1.25, tree}, [ALGO_RING] = {0.6, 1.9, 3.4},                    \
		[ALGO_NVLS] = {0, 0, 25}, [ALGO_NVLS_TREE] = {0, 0, 25}, [ALGO_PAT] = {0, 0, 4.0}, \
	}

#define HW_PCI_US(tree)                                                        \
	{                                                                      \
		[ALGO_TREE] = {1.0, 1.9, tree}, [ALGO_RING] = {1.0, 2.5, 5.7}, \
		[ALGO_PAT] = {0, 0, 4.0},                                      \
	}

#define HW_NET_US(tree, nvls_tree)                                              \
	{                                                                       \
		[ALGO_TREE] = {5.0, 8.5, tree}, [ALGO_RING] = {2.7, 4.0, 14.0}, \
		[ALGO_NVLS] = {0, 0, 18}, [ALGO_NVLS_TREE] = {0, 0, nvls_tree}, \
		[ALGO_PAT] = {0, 0, 14},                                        \
	}

#define LL_BW                                                                \
	{                                                                    \
		{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, \
		{                                                            \
			282.0, 90.0, 70.0                                    \
		}                                                            \
	}

/* Since 2.28 only these changed: the latency of NVLSTree's step over the network, Blackwell's ring
 * LL128 (one node, two, more) and NVLSTree on many nodes, and whether Blackwell's NVLSTree loses as
 * the tree does. */
#define FROM_228(first, name, nvls_tree_us, ring1, ring2, ring3, nvls_tree3, has_share)    \
	{                                                                                  \
		.from = first, .source = name, .base_us = BASE_US(8.4),                    \
		.hw_us = {HW_NVLINK_US(4.0), HW_PCI_US(4.0), HW_NET_US(14, nvls_tree_us)}, \
		.ll_bw = LL_BW,                                                            \
		.ring_ll128_bw = {{20.0, 20.0, 20.0},                                      \
				  {20.0, 20.0, 20.0},                                      \
				  {36.7, 36.7, 36.7},                                      \
				  {ring1, ring2, ring3}},                                  \
		.tree_ll128_bw = {{20.0, 20.0, 20.0},                                      \
				  {20.0, 20.0, 20.0},                                      \
				  {36.7, 36.7, 29.0},                                      \
				  {55.6, 31.67, 20.0}},                                    \
		.tree_bw = {{26.5, 18.5, 10.0},                                            \
			    {24.0, 23.6, 17.8},                                            \
			    {38.7, 41.4, 36.0},                                            \
			    {70.0, 42.8, 24.0}},                                           \
		.nvls_tree_bw = {{26.5, 18.5, 10.0},                                       \
				 {24.0, 23.6, 17.8},                                       \
				 {0.0, 57.7, 45.5},                                        \
				 {0.0, 96.0, nvls_tree3}},                                 \
		.has_nvls_tree_share = has_share,                                          \
	}

#define DEFAULT 3 /* NCCL 2.28.9 */

static const struct tables all[] = {
	FROM_228(23003, "NCCL 2.30.7", 20.9, 40.0, 40.0, 40.0, 80.0, 1),
	FROM_228(22907, "NCCL 2.29.7", 20.9, 40.0, 40.0, 40.0, 43.8, 1),
	FROM_228(22902, "NCCL 2.29.3", 20.9, 34.5, 34.6, 34.5, 43.8, 1),
	FROM_228(22809, "NCCL 2.28.9", 20.9, 73.4, 34.6, 73.4, 43.8, 0),
	FROM_228(22807, "NCCL 2.28.7", 14, 73.4, 34.6, 73.4, 43.1, 0),
	FROM_228(22803, "NCCL 2.28.3", 14, 73.4, 73.4, 73.4, 43.1, 0),
	{
		.from = 22300,
		.source = "NCCL 2.27.7",
		.base_us = BASE_US(8.4),
		.hw_us = {HW_NVLINK_US(4.0), HW_PCI_US(4.0), HW_NET_US(14, 14)},
		.ll_bw = LL_BW,
		.ring_ll128_bw = {{20.0, 20.0, 20.0},
				  {20.0, 20.0, 20.0},
				  {36.7, 36.7, 36.7},
				  {73.4, 73.4, 73.4}},
		.tree_ll128_bw = {{20.0, 20.0, 20.0},
				  {20.0, 20.0, 20.0},
				  {36.7, 36.7, 29.0},
				  {73.4, 73.4, 58.0}},
		.tree_bw = {{26.5, 18.5, 10.0},
			    {24.0, 23.6, 17.8},
			    {38.7, 41.4, 36.0},
			    {77.4, 82.8, 72.0}},
		.has_old_nvls = 1,
	},
	{
		.source = "NCCL 2.21.5",
		.base_us = BASE_US(0),
		.hw_us = {HW_NVLINK_US(28), HW_PCI_US(28), HW_NET_US(28, 14)},
		.ll_bw = {{39.0, 39.0, 20.4},
			  {87.7, 22.5, 19.0},
			  {141.0, 45.0, 35.0},
			  {141.0, 45.0, 35.0}},
		.ring_ll128_bw = {{20.0, 20.0, 20.0},
				  {20.0, 20.0, 20.0},
				  {36.7, 36.7, 36.7},
				  {36.7, 36.7, 36.7}},
		.tree_ll128_bw = {{20.0, 20.0, 20.0},
				  {20.0, 20.0, 20.0},
				  {36.7, 36.7, 29.0},
				  {36.7, 36.7, 29.0}},
		.tree_bw = {{26.5, 18.5, 10.0},
			    {24.0, 23.6, 17.8},
			    {38.7, 41.4, 36.0},
			    {38.7, 41.4, 36.0}},
		.has_old_nvls = 1,
		.has_old_rings = 1,
	},
};

const struct tables *tables_default(void)
{
	return &all[DEFAULT];
}

const struct tables *tables_find(const char *version)
{
	unsigned int major, minor, patch = 99;
	size_t i = 0;
	int end = 0;

	if (!version[0])
		return tables_default();
	if (sscanf(version, "%3u.%3u%n.%3u%n", &major, &minor, &end, &patch, &end) < 2 ||
	    version[end] || minor > 99 || patch > 99)
		return NULL;
	while (10000 * major + 100 * minor + patch < all[i].from)
		i++;
	return &all[i];
}

uint32_t tables_card(uint32_t sm)
{
	return sm >= 100 ? 3 : sm >= 90 ? 2 : sm >= 80 ? 1 : 0;
}

uint32_t tables_scale(uint32_t n_nodes)
{
	return n_nodes <= 2 ? n_nodes - 1 : 2;
}

float tables_nvls_efficiency(uint32_t card)
{
	static const float shares[N_CARDS] = {0, 0, 0.85f, 0.74f};

	return shares[card];
}

float tables_tree_share(uint32_t proto, uint64_t bytes, uint32_t n_sizes)
{
	/* 64 B, 128 B, ... 512 MiB */
	static const float shares[N_PROTOS][24] = {
		{1.0f, 1.0f, 1.0f, 1.0f, 0.9f, 0.8f, 0.7f, 0.7f, 0.7f, 0.7f, 0.6f, 0.5f,
		 0.4f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f},
		{1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 0.9f, 0.8f, 0.8f, 0.8f, 0.7f, 0.6f, 0.6f,
		 0.6f, 0.6f, 0.6f, 0.6f, 0.8f, 0.9f, 0.9f, 0.9f, 0.9f, 1.0f, 1.0f, 1.0f},
		{0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.9f, 0.8f, 0.7f, 0.6f, 0.6f, 0.5f,
		 0.5f, 0.5f, 0.5f, 0.6f, 0.7f, 0.8f, 0.7f, 0.7f, 0.8f, 0.9f, 0.9f, 0.9f},
	};
	uint64_t units = bytes >> 6;
	uint32_t log = units ? 63 - (uint32_t)__builtin_clzll(units) : n_sizes;

	return log < n_sizes ? shares[proto][log] : 1;
}
