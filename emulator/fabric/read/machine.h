/* A node as its own hardware says it: GPUs and NICs with their places in the PCI tree. From NCCL's
 * topology file (nccl-xml.c) or from /sys (sysfs.c) to a class of the fabric. */
#pragma once

#include "fabric/fabric.h"

#define MACHINE_DEVICES_MAX 128
#define MACHINE_DEPTH_MAX 32
#define MACHINE_LINKS_MAX 18 /* NVLinks of a GPU */

struct machine_place {
	uint32_t path[MACHINE_DEPTH_MAX]; /* numbers of what it hangs under, from the CPU down,
					   * and last its own */
	uint32_t depth;
};

struct machine_gpu {
	struct machine_place place;
	uint32_t number, sm;
	uint32_t bus;                                  /* as machine_bus() has it */
	uint32_t far_ends[MACHINE_LINKS_MAX];          /* the same of what its NVLinks go to */
	uint32_t n_far_ends;                           /* 0: not known */
	const char *name;                              /* static; NULL: by its sm */
	double nvlink_bytes_per_ns, pcie_bytes_per_ns; /* each way, raw; 0: none, not known */
	bool has_switch, has_gdr;
};

struct machine_nic {
	struct machine_place place;
	enum fabric_nic kind;
	double bytes_per_ns;
	bool has_gdr;
};

struct machine {
	enum fabric_cpu cpu;
	uint32_t bridges_of_a_switch; /* in a path: 1, or 2 where both its ports are named */
	uint32_t n_hosts;             /* whose GPUs one NVSwitch joins, if more than 1; the devices
				       * are of one of them */
	struct machine_gpu gpus[MACHINE_DEVICES_MAX];
	uint32_t n_gpus;
	struct machine_nic nics[MACHINE_DEVICES_MAX];
	uint32_t n_nics;
};

/* Of the NICs those that some GPU prefers, as NCCL does: the fastest, and of these the nearest to
 * it. Return: 0; -ENODEV with the sentence: no GPU; -EINVAL. */
int machine_class(const struct machine *m, const char *name, struct fabric_class *ret,
		  struct err *err);
const char *machine_gpu_name(uint32_t sm);                      /* "H100"; "GPU" */
double machine_nvlink_rate(uint32_t sm);                        /* of one link, raw, each way */
double machine_pcie_rate(double gigatransfers, uint32_t lanes); /* raw, each way; 0: not known */
uint32_t machine_bus(const char *text); /* "0000:18:00.0" as a number; 0: it is none */
/* Is a PCI device an EFA? *ret_kind is set only then. */
bool machine_is_efa(unsigned long vendor, unsigned long device, enum fabric_nic *ret_kind);
