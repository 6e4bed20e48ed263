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

struct preset {
	struct fabric_class class; /* its name is the preset's */
	struct fabric_network network;
	const char *summary, *source;
};

/* clang-format off */
#define INFINIBAND_RAILS {.kind = FABRIC_RAIL, .latency_ns = 2000, .hop_latency_ns = 300, .nodes_per_leaf = 32, .oversubscription = 1}

static const struct preset presets[] = {
	{{.name = "dgx1-v100", .gpu = "V100", .sm = 70, .n_gpus = 8, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 150,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 4, .nic_gpu = {0, 2, 4, 6}, .distance = FABRIC_PIX, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE3, .nic_bytes_per_ns = 100 * GBPS},
	 INFINIBAND_RAILS,
	 "DGX-1: 8 V100, NVLink2 mesh, 4 x 100 Gb/s EDR",
	 "DGX-1 with Tesla V100 System Architecture white paper, NVIDIA WP-08437"},
	{{.name = "dgx-a100", .gpu = "A100", .sm = 80, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 300,
	  .cpu = FABRIC_AMD, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 200 * GBPS},
	 INFINIBAND_RAILS,
	 "DGX A100: 8 A100, NVSwitch, 8 x 200 Gb/s HDR",
	 "NVIDIA DGX A100 data sheet; two GPUs and two NICs share a PCIe switch"},
	{{.name = "dgx-h100", .gpu = "H100", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS,
	 "DGX H100: 8 H100, NVSwitch, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA DGX H100 data sheet; SuperPOD reference architecture RA-11333: 32 nodes a leaf group"},
	{{.name = "dgx-h200", .gpu = "H200", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS,
	 "DGX H200: 8 H200, NVSwitch, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA DGX H200 data sheet"},
	{{.name = "dgx-b200", .gpu = "B200", .sm = 100, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 900,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_INFINIBAND, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 INFINIBAND_RAILS,
	 "DGX B200: 8 B200, NVSwitch, NVLS, 8 x 400 Gb/s NDR",
	 "NVIDIA DGX B200 data sheet"},
	{{.name = "gb200-nvl72", .gpu = "GB200", .sm = 100, .n_gpus = 4, .domain_nodes = 18, .intra = FABRIC_NVSWITCH, .has_nvls = true,
	  .gpu_bytes_per_ns = 900, .cpu = FABRIC_ARM, .nic = FABRIC_INFINIBAND, .n_nics = 4, .nic_gpu = {0, 1, 2, 3},
	  .distance = FABRIC_PXB, .has_gdr = true, .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_RAIL, .latency_ns = 2000, .hop_latency_ns = 300, .nodes_per_leaf = 18, .oversubscription = 1},
	 "GB200 NVL72: 18 nodes of 4 GB200 a rack on one NVSwitch, 4 x 400 Gb/s NDR a node",
	 "NVIDIA GB200 NVL72 data sheet; DGX GB200: four ConnectX-7 a compute tray"},
	{{.name = "p3dn", .gpu = "V100", .sm = 70, .n_gpus = 8, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 150,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_EFA, .n_nics = 1, .nic_gpu = {0}, .distance = FABRIC_PHB,
	  .pcie_bytes_per_ns = PCIE3, .nic_bytes_per_ns = 100 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 25000, .oversubscription = 1},
	 "AWS p3dn.24xlarge: 8 V100, NVLink2 mesh, 100 Gb/s EFA without GPUDirect",
	 "AWS instance specification of p3dn.24xlarge"},
	{{.name = "p4d", .gpu = "A100", .sm = 80, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .gpu_bytes_per_ns = 300,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_EFA, .n_nics = 4, .nic_gpu = {0, 2, 4, 6}, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 100 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 25000, .oversubscription = 1},
	 "AWS p4d.24xlarge, p4de: 8 A100, NVSwitch, 4 x 100 Gb/s EFA",
	 "AWS instance specification of p4d.24xlarge"},
	{{.name = "p5", .gpu = "H100", .sm = 90, .n_gpus = 8, .intra = FABRIC_NVSWITCH, .has_nvls = true, .gpu_bytes_per_ns = 450,
	  .cpu = FABRIC_AMD, .nic = FABRIC_EFA, .n_nics = 8, .nic_gpu = ONE_NIC_A_GPU, .distance = FABRIC_PXB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 400 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 15000, .oversubscription = 1},
	 "AWS p5.48xlarge: 8 H100, NVSwitch, NVLS, 32 x 100 Gb/s EFA, four a GPU shown as one of 400",
	 "AWS instance specification of p5.48xlarge; aws-ofi-nccl groups the four devices next to a GPU"},
	{{.name = "alps", .gpu = "GH200", .sm = 90, .n_gpus = 4, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 450,
	  .cpu = FABRIC_ARM, .nic = FABRIC_SLINGSHOT, .n_nics = 4, .nic_gpu = {0, 1, 2, 3}, .distance = FABRIC_PHB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE5, .nic_bytes_per_ns = 200 * GBPS},
	 {.kind = FABRIC_DRAGONFLY, .latency_ns = 4000, .hop_latency_ns = 350, .nodes_per_leaf = 4, .leaves_per_pod = 32,
	  .oversubscription = 2},
	 "Alps: 4 GH200, NVLink4 all to all, 4 x 200 Gb/s Slingshot 11, dragonfly",
	 "CSCS, Alps system description; HPE Slingshot 11: 64 ports a switch"},
	{{.name = "polaris", .gpu = "A100", .sm = 80, .n_gpus = 4, .intra = FABRIC_NVLINK, .gpu_bytes_per_ns = 300,
	  .cpu = FABRIC_AMD, .nic = FABRIC_SLINGSHOT, .n_nics = 2, .nic_gpu = {0, 2}, .distance = FABRIC_PHB, .has_gdr = true,
	  .pcie_bytes_per_ns = PCIE4, .nic_bytes_per_ns = 200 * GBPS},
	 {.kind = FABRIC_DRAGONFLY, .latency_ns = 4000, .hop_latency_ns = 350, .nodes_per_leaf = 8, .leaves_per_pod = 16,
	  .oversubscription = 2},
	 "Polaris: 4 A100, NVLink3 all to all, 2 x 200 Gb/s Slingshot 11, dragonfly",
	 "ALCF, Polaris machine overview"},
	{{.name = "100gbe", .gpu = "A100", .sm = 80, .n_gpus = 1, .intra = FABRIC_PCIE, .gpu_bytes_per_ns = PCIE4,
	  .cpu = FABRIC_INTEL, .nic = FABRIC_SOCKET, .n_nics = 1, .nic_gpu = {0}, .distance = FABRIC_PHB,
	  .nic_bytes_per_ns = 100 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 10000, .oversubscription = 1},
	 "one GPU on PCIe and one 100 Gb/s Ethernet NIC a node, TCP",
	 "100GBASE-R; PCIe 4.0 x16"},
	{{.name = "lab", .gpu = "host", .sm = 80, .n_gpus = 1, .intra = FABRIC_PCIE, .gpu_bytes_per_ns = PCIE4,
	  .cpu = FABRIC_OTHER_CPU, .nic = FABRIC_SOCKET, .n_nics = 1, .nic_gpu = {0}, .distance = FABRIC_PHB,
	  .nic_bytes_per_ns = 0.4 * GBPS},
	 {.kind = FABRIC_SWITCH, .latency_ns = 50000, .oversubscription = 1},
	 "tests/lab: one rank a host, 400 Mbit/s, TCP",
	 "tests/lab/README.md"},
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
	char all[256] = "";
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
