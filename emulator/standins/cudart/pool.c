/* Memory pools: each device's default one counts what is allocated. A pool that a program creates
 * is a name for its device, no more: memory is not counted by pools. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "object.h"
#include "runtime.h"

#include "base/cleanup.h"

struct pool {
	struct object object;
	struct device *device; /* borrowed */
};

/* A default pool's handle is its device's number, moved away from NULL and from small mistakes. */
#define POOL_BASE 0x706f6f6c00u

static cudaMemPool_t pool_of(int device)
{
	return (cudaMemPool_t)(uintptr_t)(POOL_BASE + (unsigned)device);
}

static bool is_default(cudaMemPool_t pool)
{
	return (uintptr_t)pool >= POOL_BASE && (uintptr_t)pool < POOL_BASE + MAX_DEVICES;
}

/* Return: NULL: @pool is none. */
static struct device *pool_device(cudaMemPool_t pool)
{
	struct device *device;
	struct pool *made;

	if (is_default(pool))
		return device_get((int)((uintptr_t)pool - POOL_BASE));
	made = object_get(OBJECT_POOL, (uintptr_t)pool);
	if (!made)
		return NULL;
	device = made->device;
	object_unref(&made->object);
	return device;
}

static void pool_free(struct object *object)
{
	free(container_of(object, struct pool, object));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *ret_pool, const struct cudaMemPoolProps *props)
{
	cudaError_t error = runtime_enter();
	struct device *device;
	struct pool *pool;

	if (error != cudaSuccess)
		return runtime_return(error);
	if (!ret_pool || !props)
		return runtime_return(cudaErrorInvalidValue);
	if (props->allocType != cudaMemAllocationTypePinned ||
	    props->handleTypes != cudaMemHandleTypeNone ||
	    props->location.type != cudaMemLocationTypeDevice || props->maxSize)
		return runtime_return(cudaErrorNotSupported);
	device = device_get(props->location.id);
	if (!device)
		return runtime_return(cudaErrorInvalidDevice);
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return runtime_return(cudaErrorMemoryAllocation);
	object_init(&pool->object, OBJECT_POOL, pool_free);
	pool->device = device;
	if (object_publish(&pool->object) == 0)
		*ret_pool = (cudaMemPool_t)pool->object.handle;
	else
		error = cudaErrorMemoryAllocation;
	object_unref(&pool->object);
	return runtime_return(error);
}

/* What is allocated from it stays until it is freed. */
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle)
{
	struct pool *pool = object_retire(OBJECT_POOL, (uintptr_t)handle);

	if (!pool)
		return runtime_return(cudaErrorInvalidValue);
	object_unref(&pool->object);
	return cudaSuccess;
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

	if (!owner || owner->ordinal != device)
		return runtime_return(cudaErrorInvalidValue);
	return runtime_return(is_default(pool) ? cudaSuccess : cudaErrorNotSupported);
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
	if (!is_default(pool))
		return runtime_return(cudaErrorNotSupported);
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
	/* a threshold keeps nothing here, either */
	if (!is_default(pool))
		return runtime_return(attr == cudaMemPoolAttrReleaseThreshold
					      ? cudaSuccess
					      : cudaErrorNotSupported);
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
