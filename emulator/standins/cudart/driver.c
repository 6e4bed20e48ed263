/* The part of the driver API that programs of the runtime API use beside it: devices, contexts,
 * pointers.
 *
 * A context's handle stands for a device's number. Modules, their functions and virtual memory
 * are refused: device code cannot run here, and memory is the host's. The functions lie in this
 * library; ../driver makes the libcuda.so.1 that leads to them, for test environments only. */
#include <cuda.h>
#include <stdbool.h>
#include <string.h>

#include "device.h"
#include "memory.h"
#include "runtime.h"

#include "base/cleanup.h"

#define CONTEXT_BASE 0x63747800u /* away from NULL and from small mistakes */

static CUcontext context_of(int device)
{
	return (CUcontext)(uintptr_t)(CONTEXT_BASE + (unsigned)device);
}

static struct device *context_device(CUcontext context)
{
	uintptr_t handle = (uintptr_t)context;

	return handle >= CONTEXT_BASE && handle < CONTEXT_BASE + MAX_DEVICES
		       ? device_get((int)(handle - CONTEXT_BASE))
		       : NULL;
}

/* The numbers of both APIs' errors are the same where both have one. */
static CUresult result_of(cudaError_t error)
{
	return (CUresult)error;
}

/* --- the library ---------------------------------------------------------------------------------
 */

CUresult cuInit(unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	return result_of(cudaDriverGetVersion(version));
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = cudaGetErrorString((cudaError_t)error);
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = cudaGetErrorName((cudaError_t)error);
	return CUDA_SUCCESS;
}

/* --- devices -------------------------------------------------------------------------------------
 */

CUresult cuDeviceGetCount(int *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = device_count();
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	if (!name || len < 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	strncpy(name, DEVICE_NAME, (size_t)len - 1);
	name[len - 1] = '\0';
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	device_uuid(device, uuid);
	return CUDA_SUCCESS;
}

/* The attributes have the runtime's numbers. */
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	return result_of(cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device));
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = device_memory();
	return CUDA_SUCCESS;
}

/* --- contexts ------------------------------------------------------------------------------------
 */

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	struct device *known = device_get(device);

	if (!known)
		return CUDA_ERROR_INVALID_DEVICE;
	if (flags)
		*flags = 0;
	if (active)
		*active = atomic_load_explicit(&known->is_used, memory_order_relaxed);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	device_use(device_get(device));
	*context = context_of(device);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return device_get(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* NULL until the thread's device has been used. */
CUresult cuCtxGetCurrent(CUcontext *context)
{
	struct device *device = device_current();

	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = device && atomic_load_explicit(&device->is_used, memory_order_relaxed)
			   ? context_of(device->ordinal)
			   : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	struct device *device = context_device(context);

	if (!context)
		return CUDA_SUCCESS; /* a thread without a context: its next call has one again */
	return device ? result_of(cudaSetDevice(device->ordinal)) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	CUcontext context;
	CUresult result = cuCtxGetCurrent(&context);

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && !context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return result_of(cudaGetDevice(device));
}

CUresult cuCtxSynchronize(void)
{
	return result_of(cudaDeviceSynchronize());
}

/* --- pointers ------------------------------------------------------------------------------------
 */

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr)
{
	struct memory_range range;

	if (!memory_map_find((void *)(uintptr_t)ptr, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = range.start;
	if (size)
		*size = range.size;
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct memory_range range;
	bool is_host;

	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!memory_map_find((void *)(uintptr_t)ptr, &range))
		return CUDA_ERROR_INVALID_VALUE;
	is_host = range.origin == MEMORY_HOST || range.origin == MEMORY_REGISTERED;
	switch ((int)attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = context_of(range.device);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (range.origin == MEMORY_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)data = range.start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = range.origin == MEMORY_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = range.device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)data = range.start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = range.size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned *)data = 1;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* --- what is refused
 * ------------------------------------------------------------------------------ */

/* Their arguments are not looked at. */
/* clang-format off */
#define REFUSED(X) \
	X(cuModuleLoad) X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleUnload) \
	X(cuModuleGetFunction) X(cuModuleGetGlobal_v2) X(cuLinkCreate_v2) \
	X(cuLinkAddData_v2) X(cuLinkComplete) X(cuLinkDestroy) X(cuLaunchKernel) \
	X(cuLaunchKernelEx) X(cuLaunchCooperativeKernel) X(cuFuncGetAttribute) \
	X(cuFuncSetAttribute) X(cuFuncSetCacheConfig) X(cuFuncGetModule) \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuTensorMapEncodeTiled) \
	X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) \
	X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuMemGetAllocationGranularity) \
	X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle) \
	X(cuMemRetainAllocationHandle) X(cuMemGetAllocationPropertiesFromHandle) \
	X(cuMulticastCreate) X(cuMulticastAddDevice) X(cuMulticastBindMem) \
	X(cuMulticastUnbind) X(cuGreenCtxCreate) X(cuGreenCtxDestroy) \
	X(cuGreenCtxStreamCreate) X(cuCtxFromGreenCtx) X(cuDeviceGetDevResource) \
	X(cuDevSmResourceSplitByCount) X(cuDevResourceGenerateDesc) X(cuCtxPushCurrent_v2) \
	X(cuCtxPopCurrent_v2) X(cuCtxCreate_v2) X(cuMemsetD32Async) X(cuLibraryLoadData) \
	X(cuLibraryGetKernel) X(cuLibraryUnload) X(cuKernelGetFunction)
/* clang-format on */

#define DEFINE_REFUSED(name)                     \
	NBOX_CUDART_API CUresult name(void);     \
	CUresult name(void)                      \
	{                                        \
		return CUDA_ERROR_NOT_SUPPORTED; \
	}

REFUSED(DEFINE_REFUSED)

/* --- by name -------------------------------------------------------------------------------------
 */

/* @since: the CUDA version of the oldest function of that name, from NVIDIA's cudaTypedefs.h. */
#define OFFERED(X)                                                         \
	X("cuInit", cuInit, 2000)                                          \
	X("cuDriverGetVersion", cuDriverGetVersion, 2020)                  \
	X("cuGetErrorString", cuGetErrorString, 6000)                      \
	X("cuGetErrorName", cuGetErrorName, 6000)                          \
	X("cuDeviceGetCount", cuDeviceGetCount, 2000)                      \
	X("cuDeviceGet", cuDeviceGet, 2000)                                \
	X("cuDeviceGetName", cuDeviceGetName, 2000)                        \
	X("cuDeviceGetUuid", cuDeviceGetUuid_v2, 9020)                     \
	X("cuDeviceGetAttribute", cuDeviceGetAttribute, 2000)              \
	X("cuDeviceTotalMem", cuDeviceTotalMem_v2, 2000)                   \
	X("cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState, 7000)  \
	X("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain, 7000)      \
	X("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2, 7000) \
	X("cuCtxGetCurrent", cuCtxGetCurrent, 4000)                        \
	X("cuCtxSetCurrent", cuCtxSetCurrent, 4000)                        \
	X("cuCtxGetDevice", cuCtxGetDevice, 2000)                          \
	X("cuCtxSynchronize", cuCtxSynchronize, 2000)                      \
	X("cuPointerGetAttribute", cuPointerGetAttribute, 4000)            \
	X("cuMemGetAddressRange", cuMemGetAddressRange_v2, 2000)           \
	X("cuStreamWriteValue32", cuStreamWriteValue32_v2, 8000)           \
	X("cuStreamWriteValue64", cuStreamWriteValue64_v2, 9000)           \
	X("cuStreamWaitValue32", cuStreamWaitValue32_v2, 8000)             \
	X("cuStreamWaitValue64", cuStreamWaitValue64_v2, 9000)

#define ENTRY(name, symbol, since) {name, (void (*)(void))symbol, since},
#define REFUSED_ENTRY(symbol) {#symbol, (void (*)(void))symbol, 0},

/* Does @name say @known, or @known without the suffix of its second version? */
static bool is_named(const char *known, const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, known, length) == 0 &&
	       (!known[length] || strcmp(known + length, "_v2") == 0);
}

/* Return: the function that @name, which may leave out a version suffix, stands for; NULL when
 * there is none. *ret_since: the CUDA version that brought its name; 0 of those that only refuse.
 */
static void (*driver_find(const char *name, unsigned int *ret_since))(void)
{
	static const struct {
		const char *name;
		void (*fn)(void);
		unsigned int since;
	} known[] = {OFFERED(ENTRY) REFUSED(REFUSED_ENTRY)};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (is_named(known[i].name, name)) {
			*ret_since = known[i].since;
			return known[i].fn;
		}
	}
	return NULL;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
					     unsigned int version, unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *status)
{
	unsigned int since = 0;

	(void)flags;
	if (!symbol || !function)
		return runtime_return(cudaErrorInvalidValue);
	/* Object pointers hold functions, as dlsym() has it. */
	*function = (void *)driver_find(symbol, &since);
	if (*function && version < since) {
		*function = NULL;
		if (status)
			*status = cudaDriverEntryPointVersionNotSufficent;
		return cudaSuccess;
	}
	if (*function) {
		if (status)
			*status = cudaDriverEntryPointSuccess;
		return cudaSuccess;
	}
	if (status)
		*status = cudaDriverEntryPointSymbolNotFound;
	return status ? cudaSuccess : runtime_return(cudaErrorSymbolNotFound);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
