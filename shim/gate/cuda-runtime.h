/* Finds the CUDA runtime that this process uses, also one that only some library of it sees. Loads
 * nothing. */
#pragma once

#include <stdbool.h>

/* None is loaded, or it is linked statically into the program. */
#define CUDA_RUNTIME_NONE ((void *)-1)

/* Return: a handle for dlsym(), or CUDA_RUNTIME_NONE. What it finds is the runtime's own: libnbox
 * has some functions of the same names (edges/interpose.c). */
void *cuda_runtime_find(void);
/* Is it nbox's own, on the CPU? Any thread. */
bool cuda_runtime_is_host(void);
