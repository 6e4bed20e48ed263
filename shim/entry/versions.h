/* What the job runs on, for versions.txt of the run: NCCL, the CUDA runtime, the GPU, PyTorch. Only
 * looks at what is loaded in the process; runs no Python. */
#pragma once

#include <stddef.h>

/* "2.28.9"; "" where it is not known. Return: @buf. */
char *versions_nccl(char *buf, size_t size);

/**
 * versions_tell - calls @tell with one line after another, such as "nccl 2.28.9"; what is not known
 * is left out
 * @device: the GPU's number; DEVICE_NONE: not known
 *
 * Any thread, once the process has its CUDA runtime and NCCL.
 */
void versions_tell(int device, void (*tell)(const char *line));
