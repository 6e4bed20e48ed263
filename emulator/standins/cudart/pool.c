/* Memory pools: each device has its default one only, which counts what is allocated. */
#include <string.h>

#include "device.h"
#include "runtime.h"

/* A pool's handle is its device's number, moved away from NULL and from small mistakes. */
#define POOL_BASE 0x706f6f6c00u

static cudaMemPool_t pool_of(int device)
{
	return (cudaMemPool_t)(uintptr_t)(POOL_BASE + (unsigned)device);
}

static struct device *pool_device(cudaMemPool_t pool)
{
	uintptr_t handle = (uintptr_t)pool;

	return handle >= POOL_BASE && handle < POOL_BASE + MAX_DEVICES
		       ? device_get((int)(handle - POOL_BASE))
		       : NULL;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	if (!pool)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(device))
		return runtime_return(cudaErrorInvalidDevice);
	*pool = pool_of(device);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	struct device *owner = pool_device(pool);

	return runtime_return(owner && owner->ordinal == device ? cudaSuccess
								: cudaErrorInvalidValue);
}

static bool is_flag(enum cudaMemPoolAttr attr)
{
	return attr == cudaMemPoolReuseFollowEventDependencies ||
	       attr == cudaMemPoolReuseAllowOpportunistic ||
	       attr == cudaMemPoolReuseAllowInternalDependencies;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	struct device *device = pool_device(pool);
	uint64_t number;
	int flag = 1;

	if (!device || !value)
		return runtime_return(cudaErrorInvalidValue);
	if (is_flag(attr)) {
		memcpy(value, &flag, sizeof(flag));
		return cudaSuccess;
	}
	switch ((int)attr) {
	case cudaMemPoolAttrReleaseThreshold:
		number = atomic_load(&device->release_threshold);
		break;
	case cudaMemPoolAttrReservedMemCurrent:
	case cudaMemPoolAttrUsedMemCurrent:
		number = atomic_load(&device->allocated);
		break;
	case cudaMemPoolAttrReservedMemHigh:
	case cudaMemPoolAttrUsedMemHigh:
		number = atomic_load(&device->allocated_high);
		break;
	default:
		return runtime_return(cudaErrorInvalidValue);
	}
	memcpy(value, &number, sizeof(number));
	return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	struct device *device = pool_device(pool);
	uint64_t number;

	if (!device || !value)
		return runtime_return(cudaErrorInvalidValue);
	if (is_flag(attr))
		return cudaSuccess; /* how freed memory is used again: there is none */
	memcpy(&number, value, sizeof(number));
	switch ((int)attr) {
	case cudaMemPoolAttrReleaseThreshold:
		atomic_store(&device->release_threshold, number);
		return cudaSuccess;
	case cudaMemPoolAttrReservedMemHigh:
	case cudaMemPoolAttrUsedMemHigh:
		if (number)
			break;
		atomic_store(&device->allocated_high, atomic_load(&device->allocated));
		return cudaSuccess;
	default:
		break;
	}
	return runtime_return(cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t min_bytes)
{
	(void)min_bytes;
	return runtime_return(pool_device(pool) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *descs,
				 size_t n)
{
	if (!pool_device(pool) || (n && !descs))
		return runtime_return(cudaErrorInvalidValue);
	for (size_t i = 0; i < n; i++)
		if (descs[i].location.type == cudaMemLocationTypeDevice &&
		    !device_get(descs[i].location.id))
			return runtime_return(cudaErrorInvalidDevice);
	return cudaSuccess;
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
				 struct cudaMemLocation *location)
{
	if (!flags || !location || !pool_device(pool))
		return runtime_return(cudaErrorInvalidValue);
	*flags = cudaMemAccessFlagsProtReadWrite;
	return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool,
				    cudaStream_t stream)
{
	struct device *device = pool_device(pool);
	cudaError_t error;
	int current;

	if (!device)
		return runtime_return(cudaErrorInvalidValue);
	error = cudaGetDevice(&current);
	if (error == cudaSuccess)
		error = cudaSetDevice(device->ordinal);
	if (error != cudaSuccess)
		return error;
	error = cudaMallocAsync(ptr, size, stream);
	cudaSetDevice(current);
	return runtime_return(error);
}

/* --- memory of graphs
 * ----------------------------------------------------------------------------- */

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
					   void *value)
{
	uint64_t none = 0;

	if (!value || (unsigned)attr > cudaGraphMemAttrReservedMemHigh)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(device))
		return runtime_return(cudaErrorInvalidDevice);
	memcpy(value, &none, sizeof(none));
	return cudaSuccess;
}

/* Only the highest values can be set, and only to 0, which they are. */
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
					   void *value)
{
	uint64_t number;

	if (!value ||
	    (attr != cudaGraphMemAttrUsedMemHigh && attr != cudaGraphMemAttrReservedMemHigh))
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(device))
		return runtime_return(cudaErrorInvalidDevice);
	memcpy(&number, value, sizeof(number));
	return runtime_return(number ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	return runtime_return(device_get(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
