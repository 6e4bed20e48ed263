/* Finds the files that may be the real libnccl.so.2. libnbox itself answers to that name (its
 * SONAME), so the dynamic linker cannot be asked. Instead the places where it would have looked are
 * tried by their paths. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* @try is called with one existing file after another, best first, until it returns true:
 *
 *   a library of that name which is loaded already;
 *   where a loaded library that needs libnccl.so.2 would have found it (its RPATH, RUNPATH,
 *   LD_LIBRARY_PATH, the default folders): libtorch_cuda.so of PyTorch's wheels, a linked program;
 *   nvidia/nccl/lib of a site-packages from which something is loaded: JAX, vLLM;
 *   the same for the program itself; the cache of ldconfig; CUDA's usual folders.
 *
 * Return: false when none was taken. Allocates; not for signal handlers. */
bool real_find(bool (*try)(void *ctx, const char *path), void *ctx);

/* Libraries named libnccl.so... that are mapped, without libnbox. @buf: their paths, with ", "
 * between them, as many as fit. Return: their number. */
unsigned int real_mapped(char *buf, size_t size);
