/* What compiled code registers: modules with kernels and variables, which are found by the
 * addresses that stand for them in host code. The device code itself is ignored. Thread-safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "kernels/rule.h"

enum symbol_kind {
	SYMBOL_KERNEL,
	SYMBOL_VARIABLE,
};

struct symbol {
	struct symbol *next_in_bucket, *next_in_module;
	enum symbol_kind kind;
	const void *host; /* the key: the address in host code */
	const char *name; /* the compiled code's own, lives as long as it */
	size_t size;      /* of a variable */
	void **copies;    /* of a variable: one a device, NULL before its first use; owned */
	bool is_priced;   /* of a kernel: @price is set; both are kernel-time.c's */
	struct kernel_price price;
	void *managed; /* of a managed variable: what host code reads; owned */
};

/* Return: the kernel or variable that @host stands for, or NULL. It lives until its module is
 * unregistered, which programs do when they end or unload the code that would ask. */
struct symbol *symbol_find(enum symbol_kind kind, const void *host);

/* Calls cudaMalloc's ways for the current device's copy of @variable. Return: cudaSuccess,
 * cudaErrorNoDevice or cudaErrorMemoryAllocation. */
cudaError_t symbol_copy(struct symbol *variable, void **ret_ptr);
