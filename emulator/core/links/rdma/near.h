/* Finds the RDMA device (rail) nearest to a GPU: the one whose path in the tree of sysfs has most
 * in common with the GPU's. A device behind the same PCI switch comes before one at the same
 * root, and that before one of another root or socket. Devices that differ only in roots count as
 * equally near: neither distances nor NUMA nodes are looked at. hwloc knows more, but libnbox.so
 * links libc only.
 *
 * address.c asks for links that connect. */
#pragma once

#include <stddef.h>

#define RDMA_PCI_MAX 32

/* The GPU of this process, as CUDA writes it ("0000:3B:00.0"); NULL: none. For links that the
 * process opens from now on; call it before other threads open links. */
void rdma_near(const char *pci);
const char *rdma_near_gpu(void); /* NULL: unknown */

enum { RDMA_NEAR_EQUAL = 1 };

/* *ret: index of the device of @names nearest to the GPU @pci, by the tree @sysfs ("/sys"). A
 * device without a place there is farther than any other. Pure but for reading links; any thread.
 * Return: 0; RDMA_NEAR_EQUAL: several are equally near; -EINVAL: @pci is no PCI id; -ENOENT: the
 * GPU is not in the tree, or no device is. */
int rdma_near_choose(const char *sysfs, const char *pci, const char *const *names, size_t n,
		     size_t *ret);

extern const char *rdma_near_sysfs; /* "/sys"; tests have another */
