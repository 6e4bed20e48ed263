/* Registration of kernels and variables. A library such as PyTorch registers tens of thousands
 * when it is loaded, and each launch looks one up: hence a hash table of addresses. */
#include "registry.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"
#include "memory.h"

#include <cudart/compiler.h>

struct module {
	void *handle;           /* what the program holds is this field's address */
	struct symbol *symbols; /* owned, by next_in_module */
};

static struct {
	pthread_rwlock_t lock;
	struct symbol **buckets; /* 1 << bits of them */
	unsigned bits;
	size_t n;
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* Fibonacci hashing: the low bits of addresses say little. */
static size_t bucket_of(const void *host, unsigned bits)
{
	return (size_t)((uint64_t)(uintptr_t)host * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

/* The generated code ignores what goes wrong here, and would run on without its kernels. */
static void *need(void *memory)
{
	if (!memory) {
		fputs("host CUDA runtime: no memory to register kernels\n", stderr);
		abort();
	}
	return memory;
}

/* Called with the lock held for writing. */
static void table_grow(void)
{
	unsigned bits = table.bits ? table.bits + 1 : 8;
	struct symbol **buckets, *symbol;
	size_t at;

	if (table.bits && table.n < (size_t)1 << table.bits)
		return;
	buckets = need(calloc((size_t)1 << bits, sizeof(struct symbol *)));
	for (size_t i = 0; table.bits && i < (size_t)1 << table.bits; i++) {
		while ((symbol = table.buckets[i])) {
			table.buckets[i] = symbol->next_in_bucket;
			at = bucket_of(symbol->host, bits);
			symbol->next_in_bucket = buckets[at];
			buckets[at] = symbol;
		}
	}
	free(table.buckets);
	table.buckets = buckets;
	table.bits = bits;
}

static void module_add(void **handle, enum symbol_kind kind, const void *host, const char *name,
		       size_t size, void *managed)
{
	struct module *module = (struct module *)(void *)handle;
	struct symbol *symbol = need(calloc(1, sizeof(*symbol)));
	size_t at;

	symbol->kind = kind;
	symbol->host = host;
	symbol->name = name;
	symbol->size = size;
	symbol->managed = managed;
	pthread_rwlock_wrlock(&table.lock);
	table_grow();
	at = bucket_of(host, table.bits);
	symbol->next_in_bucket = table.buckets[at];
	table.buckets[at] = symbol;
	symbol->next_in_module = module->symbols;
	module->symbols = symbol;
	table.n++;
	pthread_rwlock_unlock(&table.lock);
}

struct symbol *symbol_find(enum symbol_kind kind, const void *host)
{
	struct symbol *symbol = NULL;

	pthread_rwlock_rdlock(&table.lock);
	if (table.bits)
		symbol = table.buckets[bucket_of(host, table.bits)];
	while (symbol && (symbol->host != host || symbol->kind != kind))
		symbol = symbol->next_in_bucket;
	pthread_rwlock_unlock(&table.lock);
	return symbol;
}

static void symbol_free(struct symbol *symbol)
{
	for (int i = 0; symbol->copies && i < device_count(); i++)
		if (symbol->copies[i])
			memory_release(symbol->copies[i]);
	free(symbol->copies);
	free(symbol->managed);
	free(symbol);
}

cudaError_t symbol_copy(struct symbol *variable, void **ret_ptr)
{
	struct device *device = device_current();
	cudaError_t error = cudaSuccess;

	if (!device)
		return cudaErrorNoDevice;
	pthread_rwlock_wrlock(&table.lock);
	if (!variable->copies)
		variable->copies = calloc((size_t)device_count(), sizeof(void *));
	if (!variable->copies)
		error = cudaErrorMemoryAllocation;
	else if (!variable->copies[device->ordinal])
		error = memory_allocate(&variable->copies[device->ordinal], variable->size,
					MEMORY_DEVICE, 0);
	if (error == cudaSuccess)
		*ret_ptr = variable->copies[device->ordinal];
	pthread_rwlock_unlock(&table.lock);
	return error;
}

/* --- what compiled code calls --------------------------------------------------------------------
 */

void **__cudaRegisterFatBinary(void *fat_binary)
{
	struct module *module = need(calloc(1, sizeof(*module)));

	module->handle = fat_binary;
	return &module->handle;
}

void __cudaRegisterFatBinaryEnd(void **module)
{
	(void)module;
}

void __cudaUnregisterFatBinary(void **handle)
{
	struct module *module = (struct module *)(void *)handle;
	struct symbol *symbol, **link;

	if (!module)
		return;
	pthread_rwlock_wrlock(&table.lock);
	while ((symbol = module->symbols)) {
		module->symbols = symbol->next_in_module;
		link = &table.buckets[bucket_of(symbol->host, table.bits)];
		while (*link != symbol)
			link = &(*link)->next_in_bucket;
		*link = symbol->next_in_bucket;
		table.n--;
		symbol_free(symbol);
	}
	pthread_rwlock_unlock(&table.lock);
	free(module);
}

void __cudaRegisterFunction(void **module, const char *host_function, char *device_function,
			    const char *device_name, int thread_limit, uint3 *thread_id,
			    uint3 *block_id, dim3 *block_dim, dim3 *grid_dim, int *warp_size)
{
	(void)device_function;
	(void)thread_limit;
	(void)thread_id;
	(void)block_id;
	(void)block_dim;
	(void)grid_dim;
	(void)warp_size;
	module_add(module, SYMBOL_KERNEL, host_function, device_name, 0, NULL);
}

void __cudaRegisterVar(void **module, char *host_variable, char *device_address,
		       const char *device_name, int external, size_t size, int constant, int global)
{
	(void)device_address;
	(void)external;
	(void)constant;
	(void)global;
	module_add(module, SYMBOL_VARIABLE, host_variable, device_name, size, NULL);
}

void __cudaRegisterManagedVar(void **module, void **host_variable, char *device_address,
			      const char *device_name, int external, size_t size, int constant,
			      int global)
{
	/* The host reads a managed variable through *host_variable, without a call. */
	*host_variable = need(calloc(1, size));
	(void)device_address;
	(void)external;
	(void)constant;
	(void)global;
	module_add(module, SYMBOL_VARIABLE, host_variable, device_name, size, *host_variable);
}

char __cudaInitModule(void **module)
{
	return module != NULL;
}
