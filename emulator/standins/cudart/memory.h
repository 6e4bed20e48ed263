/* The interval map of all memory that was allocated or registered here. Thread-safe: every
 * function takes the lock of the map. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

enum memory_origin {
	MEMORY_DEVICE,
	MEMORY_MANAGED,
	MEMORY_HOST,       /* cudaMallocHost, cudaHostAlloc */
	MEMORY_REGISTERED, /* the program's own, cudaHostRegister */
};

struct memory_range {
	uintptr_t start;
	size_t size;
	enum memory_origin origin;
	int device;
	unsigned flags;
	bool is_leaving; /* cudaFreeAsync was called, and has not yet run */
};

/* Adds a range. Return: 0, -ENOMEM, or -EEXIST when it overlaps another one. */
int memory_map_add(const struct memory_range *range);
/* Return: whether @ptr lies in a range, which is then copied to *ret. */
bool memory_map_find(const void *ptr, struct memory_range *ret);
/* Takes out the range that starts at @ptr. Return: whether there was one. */
bool memory_map_remove(const void *ptr, struct memory_range *ret);
/* Marks the range that starts at @ptr as leaving. Return: false when there is none of device
 * memory, or it is leaving already. */
bool memory_map_leave(const void *ptr);

/* May a device read or write @n bytes at @ptr: do they lie within one range? */
bool memory_is_device_usable(const void *ptr, size_t n);
/* May @n bytes at @ptr be the host's side of a copy: are they no device memory, and within their
 * range, if any? */
bool memory_is_host_usable(const void *ptr, size_t n);

/* Allocates for the current device, zeroed. Return: cudaSuccess (with *ret NULL for 0 bytes),
 * cudaErrorInvalidValue without @ret, cudaErrorNoDevice, cudaErrorMemoryAllocation. */
cudaError_t memory_allocate(void **ret, size_t size, enum memory_origin origin, unsigned flags);
/* Ends an allocation of memory_allocate(). */
void memory_release(void *ptr);
