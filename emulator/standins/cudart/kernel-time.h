/* How long kernels take: NBOX_HOST_KERNEL_TIME (kernels/table.h), 0 without it.
 * NBOX_HOST_KERNEL_LOG=1 prints at the end of the process what was launched. Thread-safe. */
#pragma once

#include "registry.h"

#include "kernels/rule.h"

/* Return: false when the variable is wrong, which was said on stderr once: no kernel runs. */
bool kernel_time_of(struct symbol *kernel, dim3 grid, dim3 block, uint64_t *ret_ns);
bool kernel_time_of_product(const struct kernel_product *product, uint64_t *ret_ns);
bool kernel_time_of_copy(enum kernel_copy kind, uint64_t bytes, uint64_t *ret_ns);

/* For the stubs of cuBLAS, which find it by its name: a kernel that multiplies matrices. */
NBOX_CUDART_API cudaError_t __cudaNboxProduct(cudaStream_t stream,
					      const struct kernel_product *product);
