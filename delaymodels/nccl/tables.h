/* What NCCL's cost model knows by heart: latencies and bandwidths by algorithm, protocol and kind
 * of GPU, as its versions have them. Numbers only. */
#ifndef NCCL_TABLES_H
#define NCCL_TABLES_H

#include <stdint.h>

/* NCCL's order, which decides between equal costs. */
enum algo {
	ALGO_TREE,
	ALGO_RING,
	ALGO_COLLNET_DIRECT,
	ALGO_COLLNET_CHAIN,
	ALGO_NVLS,
	ALGO_NVLS_TREE,
	ALGO_PAT,
	N_ALGOS
};

#define N_PROTOS 3 /* enum nbox_proto */

enum hw { HW_NVLINK, HW_PCI, HW_NET, N_HWS };

/* Rows are Volta, Ampere, Hopper, Blackwell; columns one node, two, more. */
#define N_CARDS 4
#define N_SCALES 3

struct tables {
	uint32_t from; /* 10000 x major + 100 x minor + patch of the oldest NCCL that decides by
			  these; 0: all */
	const char *source;
	double base_us[N_ALGOS][N_PROTOS];       /* once an op */
	double hw_us[N_HWS][N_ALGOS][N_PROTOS];  /* a step */
	double ll_bw[N_CARDS][N_SCALES];         /* of all channels; several nodes: row 1 is AMD */
	double ring_ll128_bw[N_CARDS][N_SCALES]; /* these: of a channel, GB/s */
	double tree_ll128_bw[N_CARDS][N_SCALES];
	double tree_bw[N_CARDS][N_SCALES];
	double nvls_tree_bw[N_CARDS][N_SCALES]; /* not before 2.28 */
	int has_nvls_tree_share; /* on Blackwell NVLSTree loses bandwidth as the tree does;
				    from 2.29.2 */
	int has_old_nvls;        /* NVLS and NVLSTree by the rule before 2.28 */
	int has_old_rings;       /* rings, NVLS and LL128 by the rules before 2.23; no PAT */
};

/* The newest tables that @version, such as "2.26.2", may have ("2.28": those of its last patch);
 * "": tables_default(). NULL: it is no version. */
const struct tables *tables_find(const char *version);
/* NCCL 2.28.9's. By them times are told, too: what a step takes does not change with the version
 * that decides. */
const struct tables *tables_default(void);

/* The row of GPUs of ten times the compute capability @sm, the column of @n_nodes >= 1. */
uint32_t tables_card(uint32_t sm);
uint32_t tables_scale(uint32_t n_nodes);

/* Share of the switch's bandwidth that NVLS gets. */
float tables_nvls_efficiency(uint32_t card);
/* What AllReduce's tree keeps of its bandwidth at @bytes. */
float tables_tree_share(uint32_t proto, uint64_t bytes, uint32_t n_sizes);

#endif
