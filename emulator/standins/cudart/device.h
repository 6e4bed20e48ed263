/* Devices: NBOX_HOST_DEVICES of them, each with NBOX_HOST_GPU_MEMORY. They differ in number only;
 * all compute on this host. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#define MAX_DEVICES 64
#define DEVICE_NAME "nbox host device (stand-in, no GPU)"

struct stream;

struct device {
	int ordinal;
	pthread_mutex_t
		lock; /* of the list, and of the order between legacy and blocking streams */
	struct stream *streams;                   /* every one that lives; not references */
	struct stream *legacy;                    /* owned; NULL before its first use */
	_Atomic size_t allocated, allocated_high; /* now, and at most so far */
	_Atomic uint64_t release_threshold;       /* of the memory pool; remembered, no more */
	_Atomic uint64_t peers;                   /* bit n: access to device n is enabled */
	atomic_bool is_used;                      /* somebody chose it, or has something on it */
	atomic_int n_capturing; /* blocking streams of it that are being captured */
};

int device_count(void);
/* Return: device @ordinal, or NULL when there is none. */
struct device *device_get(int ordinal);
/* The calling thread's; NULL when there are no devices. */
struct device *device_current(void);
/* Notes that @device is in use. */
void device_use(struct device *device);
/* Device @ordinal's universally unique id: so only within this machine, like the device. */
void device_uuid(int ordinal, cudaUUID_t *ret_uuid);
/* Bytes of memory of one device. They may be more than this machine has: see alloc.c. */
size_t device_memory(void);
