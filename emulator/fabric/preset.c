/* The presets: nodes that users know by name, and a network that they usually have. Figures are the
 * vendors' data sheets'; what NCCL gets of them is link.c's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "fabric/fabric.h"

#define GBPS (1.0 / 8) /* bytes/ns of 1 Gbit/s */
#define ONE_NIC_A_GPU                  \
	{                              \
		0, 1, 2, 3, 4, 5, 6, 7 \
	}
/* PCIe x16, each way, after its own framing of 128 of 130 bits */
#define PCIE3 15.75
#define PCIE4 31.5
#define PCIE5 63.0
/* Published all-gathers get 12.6 of a NIC's 25 GB/s (dstackai/dstack). */
#define A3_HIGH_PCIE 14.8
/* Published all-reduces get 18 of a NIC's 25 GB/s from 2 to 8 nodes (argonne-lcf/alcf-nccl-tests).
 */
#define POLARIS_PCIE 21.2
/* 191 of 200 GB/s leave a DGX A100 (NVIDIA/deepops). */
#define HDR 0.955
/* From GPU to GPU. NCCL's step times are measured on H100: all-reduces of 8 bytes take as much
 * longer elsewhere (16 ranks: A100 36 us, H100 25, B200 35; GH200 and A100 without a switch as
 * H100). */
#define H100_SWITCH 300
#define A100_SWITCH 600
#define B200_SWITCH 900

/* Host NCCL gets 47.4 MB/s of a lab's cable of 400 Mbit/s. Its latency was measured as 0: what an
 * idle cable passes at once hides it. */
#define LAB_EFFICIENCY 0.948

struct preset {
	struct fabric_class class; /* its name is the preset's */
	struct fabric_network network;
	const char *summary, *source;
};

/* clang-format off */
#define INFINIBAND_RAILS(n) {.kind = FABRIC_RAIL, .latency_ns = 2000, .hop_latency_ns = 300, .nodes_per_leaf = (n), .oversubscription = 1}

static const struct preset presets[] = {
	{{.name = "dgx1-v100", .gpu = "V100", .sm = 70, .n_gpus = 8, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 150, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 4, .nic_gpu = {0, 2, 4, 6}, .distance = FABRIC_PIX, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE3, .nic_bytes_per_ns = 100 * GBPS},
	 INFINIBAND_RAILS(32),
	 "DGX-1: 8 V100, NVLink2 mesh, 4 x 100 Gb/s EDR",
	 "DGX-1 with Tesla V100 System Architecture white paper, NVIDIA WP-08437"},
	{{.name = "dgx-a100", .gpu = "A100", .sm = 80, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 300, .gpu_latency_ns = A100_SWITCH,
	  .cpu = FABRIC_AMD, .nic_efficiency = HDR, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 200 * GBPS},
	 INFINIBAND_RAILS(20),
	 "DGX A100: 8 A100, NVSwitch, 8 x 200 Gb/s HDR",
	 "NVIDIA DGX A100 data sheet: two GPUs and two NICs share a PCIe switch; SuperPOD reference architecture RA-09950: 20 nodes a leaf group"},
	{{.name = "dgx-h100", .gpu = "H100", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS(32),
	 "DGX H100: 8 H100, NVSwitch, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA DGX H100 data sheet; SuperPOD reference architecture RA-11333: 32 nodes a leaf group"},
	{{.name = "dgx-h200", .gpu = "H200", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS(32),
	 "DGX H200: 8 H200, NVSwitch, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA DGX H200 data sheet"},
	{{.name = "dgx-b200", .gpu = "B200", .sm = 100, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 900, .gpu_latency_ns = B200_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS(32),
	 "DGX B200: 8 B200, NVSwitch, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA DGX B200 data sheet"},
	{{.name = "gb200-nvl72", .gpu = "GB200", .sm = 100, .n_gpus = 4, .domain_nodes = 18, .intra = FABRIC_NVSWITCH, .has_nvls = true,
	  .gpu_bytes_per_ns = 900, .gpu_latency_ns = B200_SWITCH, .cpu = FABRIC_ARM, .nic = FABRIC_INFINIBAND, .n_nics = 4, .nic_gpu = {0, 1, 2, 3},
	  .distance = FABRIC_PXB, .has_gdr = true, .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS(18),
	 "GB200 NVL72: 18 nodes of 4 GB200 a rack on one NVSwitch, 4 x 400 Gb/s NDR a node",
	 "NVIDIA GB200 NVL72 data sheet; DGX GB200: four ConnectX-7 a compute tray"},
	{{.name = "p3dn", .gpu = "V100", .sm = 70, .n_gpus = 8, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 150, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic_efficiency = 0.7, .nic = FABRIC_EFA, .n_nics = 1, .nic_gpu = {0}, .distance = FABRIC_PHB,
	  .pcie_bytes_per_ns = PCIE3, .nic_bytes_per_ns = 100 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 36000, .oversubscription = 1},
	 "AWS p3dn.24xlarge: 8 V100, NVLink2 mesh, 100 Gb/s EFA without GPUDirect",
	 "AWS instance specification of p3dn.24xlarge"},
	{{.name = "p4d", .gpu = "A100", .sm = 80, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 300, .gpu_latency_ns = A100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_EFA, .n_nics = 4, .nic_gpu = {0, 2, 4, 6}, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 100 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 36000, .oversubscription = 1},
	 "AWS p4d.24xlarge: 8 A100, NVSwitch, 4 x 100 Gb/s EFA",
	 "AWS instance specification of p4d.24xlarge"},
	{{.name = "p5", .gpu = "H100", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_AMD, .nic = FABRIC_EFA2, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 24000, .oversubscription = 1},
	 "AWS p5.48xlarge: 8 H100, NVSwitch, NVLS, 32 x 100 Gb/s EFA, four a GPU shown as one of 400",
	 "AWS instance specification of p5.48xlarge; aws-ofi-nccl groups the four devices next to a GPU"},
	{{.name = "alps", .gpu = "GH200", .sm = 90, .n_gpus = 4, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_ARM, .nic = FABRIC_SLINGSHOT, .n_nics = 4, .nic_gpu = {0, 1, 2, 3}, .distance = FABRIC_PHB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 200 * GBPS},
	 {.kind = FABRIC_DRAGONFLY, .latency_ns = 2000, .hop_latency_ns = 350, .nodes_per_leaf = 4, .leaves_per_pod = 32,
	  .oversubscription = 2},
	 "Alps: 4 GH200, NVLink4 all to all, 4 x 200 Gb/s Slingshot 11, dragonfly",
	 "CSCS, Alps system description; HPE Slingshot 11: 64 ports a switch"},
	{{.name = "polaris", .gpu = "A100", .sm = 80, .n_gpus = 4, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 300, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_AMD, .nic = FABRIC_SLINGSHOT, .n_nics = 2, .nic_gpu = {0, 2}, .distance = FABRIC_PHB, .has_gdr = true,
	  .pcie_bytes_per_ns = POLARIS_PCIE, .nic_bytes_per_ns = 200 * GBPS},
	 {.kind = FABRIC_DRAGONFLY, .latency_ns = 2000, .hop_latency_ns = 350, .nodes_per_leaf = 8, .leaves_per_pod = 16,
	  .oversubscription = 2},
	 "Polaris: 4 A100, NVLink3 all to all, 2 x 200 Gb/s Slingshot 11, dragonfly",
	 "ALCF, Polaris machine overview"},
	{{.name = "dgx-2h", .gpu = "V100", .sm = 70, .n_gpus = 16, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 150, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = {0, 2, 4, 6, 8, 10, 12, 14}, .distance = FABRIC_PIX,
	  .has_gdr = true, .pcie_bytes_per_ns = PCIE3, .nic_bytes_per_ns = 100 * GBPS},
	 INFINIBAND_RAILS(32),
	 "DGX-2, DGX-2H: 16 V100, NVSwitch, 8 x 100 Gb/s EDR",
	 "NVIDIA DGX-2H data sheet"},
	{{.name = "nd-a100-v4", .gpu = "A100", .sm = 80, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 300, .gpu_latency_ns = A100_SWITCH,
	  .cpu = FABRIC_AMD, .nic_efficiency = HDR, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 200 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 5000, .oversubscription = 1},
	 "Azure ND96amsr_A100_v4: 8 A100, NVSwitch, 8 x 200 Gb/s HDR, in a virtual machine",
	 "Microsoft, ND A100 v4 series"},
	{{.name = "hgx-a800", .gpu = "A800", .sm = 80, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 200, .gpu_latency_ns = A100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic_efficiency = HDR, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 200 * GBPS},
	 INFINIBAND_RAILS(20),
	 "HGX A800: 8 A800, NVSwitch at 400 GB/s, 8 x 200 Gb/s HDR",
	 "NVIDIA A800 data sheet; rails as of a DGX A100"},
	{{.name = "hgx-h800", .gpu = "H800", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 200, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS(32),
	 "HGX H800: 8 H800, NVSwitch at 400 GB/s, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA H800 data sheet"},
	{{.name = "hgx-h20", .gpu = "H20", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS(32),
	 "HGX H20: 8 H20, NVSwitch, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA H20 data sheet"},
	{{.name = "gb300-nvl72", .gpu = "GB300", .sm = 103, .n_gpus = 4, .domain_nodes = 18, .intra = FABRIC_NVSWITCH, .has_nvls = true,
	  .gpu_bytes_per_ns = 900, .gpu_latency_ns = B200_SWITCH, .cpu = FABRIC_ARM, .nic = FABRIC_INFINIBAND, .n_nics = 4,
	  .nic_gpu = {0, 1, 2, 3}, .distance = FABRIC_PXB, .has_gdr = true, .pcie_bytes_per_ns = 126, .nic_bytes_per_ns = 800 * GBPS},
	 INFINIBAND_RAILS(18),
	 "GB300 NVL72: 18 nodes of 4 GB300 a rack on one NVSwitch, 4 x 800 Gb/s a node",
	 "NVIDIA GB300 NVL72 data sheet: a ConnectX-8 a GPU"},
	{{.name = "p4de", .gpu = "A100", .sm = 80, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 300, .gpu_latency_ns = A100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_EFA, .n_nics = 4, .nic_gpu = {0, 2, 4, 6}, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 100 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 36000, .oversubscription = 1},
	 "AWS p4de.24xlarge: 8 A100 of 80 GB, NVSwitch, 4 x 100 Gb/s EFA",
	 "AWS instance specification of p4de.24xlarge"},
	{{.name = "p5en", .gpu = "H200", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_EFA2, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 15000, .oversubscription = 1},
	 "AWS p5en.48xlarge: 8 H200, NVSwitch, NVLS, 16 x 200 Gb/s EFA, two a GPU shown as one of 400",
	 "AWS instance specification of p5en.48xlarge"},
	{{.name = "p6-b200", .gpu = "B200", .sm = 100, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 900, .gpu_latency_ns = B200_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_EFA2, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 13000, .oversubscription = 1},
	 "AWS p6-b200.48xlarge: 8 B200, NVSwitch, NVLS, 8 x 400 Gb/s EFA",
	 "AWS instance specification of p6-b200.48xlarge"},
	{{.name = "a3-high", .gpu = "H100", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_TCPX, .n_nics = 4, .nic_gpu = {0, 2, 4, 6}, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = A3_HIGH_PCIE, .nic_bytes_per_ns = 200 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 75000, .oversubscription = 1},
	 "Google A3 High: 8 H100, NVSwitch, NVLS, 4 x 200 Gb/s, GPUDirect-TCPX",
	 "Google, A3 High machine type"},
	{{.name = "a3-mega", .gpu = "H100", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_TCPX, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 200 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 75000, .oversubscription = 1},
	 "Google A3 Mega: 8 H100, NVSwitch, NVLS, 8 x 200 Gb/s, GPUDirect-TCPXO",
	 "Google, A3 Mega machine type"},
	{{.name = "a3-ultra", .gpu = "H200", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450, .gpu_latency_ns = H100_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_ROCE, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 8000, .oversubscription = 1},
	 "Google A3 Ultra: 8 H200, NVSwitch, NVLS, 8 x 400 Gb/s RoCE",
	 "Google, A3 Ultra machine type"},
	{{.name = "a4", .gpu = "B200", .sm = 100, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 900, .gpu_latency_ns = B200_SWITCH,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_ROCE, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 8000, .oversubscription = 1},
	 "Google A4: 8 B200, NVSwitch, NVLS, 8 x 400 Gb/s RoCE",
	 "Google, A4 machine type"},
	{{.name = "rtx6000d", .gpu = "RTX6000D", .sm = 120, .n_gpus = 8, .intra = FABRIC_PCIE, .gpu_bytes_per_ns = PCIE5,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_ROCE, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 3000, .oversubscription = 1},
	 "8 RTX 6000D on PCIe 5, 8 x 400 Gb/s RoCE (ConnectX-8)",
	 "NVIDIA RTX PRO server with ConnectX-8"},
	{{.name = "100gbe", .gpu = "A100", .sm = 80, .n_gpus = 1, .intra = FABRIC_PCIE, .gpu_bytes_per_ns = PCIE4,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_SOCKET, .n_nics = 1, .nic_gpu = {0}, .distance = FABRIC_PHB,
	  .nic_bytes_per_ns = 100 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 10000, .oversubscription = 1},
	 "one GPU on PCIe and one 100 Gb/s Ethernet NIC a node, TCP",
	 "100GBASE-R; PCIe 4.0 x16"},
	{{.name = "lab", .gpu = "host", .sm = 80, .n_gpus = 1, .intra = FABRIC_PCIE, .gpu_bytes_per_ns = PCIE4,
	  .cpu = FABRIC_OTHER_CPU, .nic = FABRIC_SOCKET, .n_nics = 1, .nic_gpu = {0}, .distance = FABRIC_PHB,
	  .nic_bytes_per_ns = 0.4 * GBPS, .nic_efficiency = LAB_EFFICIENCY},
	 {.kind = FABRIC_SWITCH, .oversubscription = 1},
	 "tests/lab: one rank a host, 400 Mbit/s, TCP",
	 "measured, tests/bench/README.md"},
};
/* clang-format on */

const char *fabric_preset_name(size_t i, const char **ret_summary)
{
	if (i >= ARRAY_SIZE(presets))
		return NULL;
	*ret_summary = presets[i].summary;
	return presets[i].class.name;
}

static int unknown(const char *name, struct err *err)
{
	const char *names[ARRAY_SIZE(presets)], *near;
	char all[ARRAY_SIZE(presets) * (FABRIC_NAME_MAX + 2)] = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(presets); i++) {
		names[i] = presets[i].class.name;
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 names[i]);
	}
	near = suggest_long(name, names, ARRAY_SIZE(presets));
	return near ? err_set(err, ENOENT,
			      "there is no preset '%.64s'; did you mean '%s'? nbox topo --list "
			      "lists them",
			      name, near)
		    : err_set(err, ENOENT, "there is no preset '%.64s'; there are: %s", name, all);
}

int fabric_preset(const char *name, uint32_t n_nodes, uint32_t gpus_per_node, struct fabric **ret,
		  struct err *err)
{
	const struct preset *p = NULL;
	struct fabric_class class;
	struct fabric *f;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(presets); i++)
		if (strcasecmp(presets[i].class.name, name) == 0)
			p = &presets[i];
	if (!p)
		return unknown(name, err);
	class = p->class;
	class.is_preset = true;
	if (!class.domain_nodes)
		class.domain_nodes = 1;
	f = fabric_new(&class, &p->network, n_nodes);
	if (f && asprintf(&f->source, "preset %s (%s)", p->class.name, p->source) < 0)
		f->source = NULL;
	if (!f || !f->source) {
		fabric_free(f);
		return err_set(err, ENOMEM, "out of memory for the fabric");
	}
	if (gpus_per_node)
		f->gpus_per_node = gpus_per_node;
	snprintf(f->name, sizeof(f->name), "%s", p->class.name);
	r = fabric_check(f, err);
	if (r < 0) {
		fabric_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

double fabric_gpu_latency(uint32_t sm, bool has_switch)
{
	if (sm >= 100)
		return B200_SWITCH;
	return sm < 90 && has_switch ? A100_SWITCH : H100_SWITCH;
}
