/* See device.h. */
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime.h"

#include "base/err.h"
#include "base/units.h"

#define DEFAULT_DEVICES 8
#define DEFAULT_MEMORY_BYTES (UINT64_C(80) << 30) /* of the cards that many clusters have */
#define MAX_MEMORY_BYTES (UINT64_C(1) << 46)      /* half of the addresses that a process has */
/* Programs choose features and kernels by this: one that all releases of PyTorch since 2.4 were
 * built for, and the first with bfloat16. */
#define CAPABILITY_MAJOR 8
#define CAPABILITY_MINOR 0
#define PCI_BUS_BASE 0x10 /* device n is on bus 0x10 + n */

static struct device devices[MAX_DEVICES];
static int n_devices;
static size_t memory_bytes;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local int current;

/* Return: 0 when NBOX_HOST_GPU_MEMORY is no size, which is said. */
static uint64_t memory_read(void)
{
	const char *text = getenv("NBOX_HOST_GPU_MEMORY");
	struct err err = {0};
	uint64_t bytes = 0;

	if (!text || !*text)
		return DEFAULT_MEMORY_BYTES;
	if (units_bytes(text, &bytes, &err) == 0 && bytes && bytes <= MAX_MEMORY_BYTES)
		return bytes;
	fprintf(stderr,
		"host CUDA runtime: NBOX_HOST_GPU_MEMORY=%s is no size from 1B to 64TiB; write for example "
		"80GB. There is no device until then.\n",
		text);
	return 0;
}

/* A value of NBOX_HOST_DEVICES that is no number from 0 to 64 means no devices at all, so that it
 * is noticed; a library has nobody to complain to. */
static void devices_init(void)
{
	const char *text = getenv("NBOX_HOST_DEVICES");
	long n = DEFAULT_DEVICES;
	char *end;

	if (text && *text) {
		errno = 0;
		n = strtol(text, &end, 10);
		if (errno || *end || n < 0 || n > MAX_DEVICES)
			n = 0;
	}
	for (int i = 0; i < n; i++) {
		devices[i].ordinal = i;
		pthread_mutex_init(&devices[i].lock, NULL);
	}
	memory_bytes = memory_read();
	n_devices = memory_bytes ? (int)n : 0;
}

int device_count(void)
{
	pthread_once(&once, devices_init);
	return n_devices;
}

struct device *device_get(int ordinal)
{
	return ordinal >= 0 && ordinal < device_count() ? &devices[ordinal] : NULL;
}

struct device *device_current(void)
{
	return device_get(current);
}

void device_use(struct device *device)
{
	if (!atomic_load_explicit(&device->is_used, memory_order_relaxed))
		atomic_store_explicit(&device->is_used, true, memory_order_relaxed);
}

void device_uuid(int ordinal, cudaUUID_t *ret_uuid)
{
	memset(ret_uuid, 0, sizeof(*ret_uuid));
	snprintf(ret_uuid->bytes, sizeof(ret_uuid->bytes), "nbox host %d", ordinal);
}

size_t device_memory(void)
{
	pthread_once(&once, devices_init);
	return memory_bytes;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	if (!count)
		return runtime_return(cudaErrorInvalidValue);
	*count = device_count();
	return runtime_return(*count ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *device)
{
	if (!device)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_count())
		return runtime_return(cudaErrorNoDevice);
	*device = current;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	if (!device_get(device))
		return runtime_return(device_count() ? cudaErrorInvalidDevice : cudaErrorNoDevice);
	current = device;
	device_use(device_get(device));
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	/* What a program decides by; everything else is 0, "has none of that". The numbers of
	 * threads are those that all GPUs of the last ten years have. */
	static const struct {
		int attr, value;
	} known[] = {
		{cudaDevAttrMaxThreadsPerBlock, 1024},
		{cudaDevAttrMaxBlockDimX, 1024},
		{cudaDevAttrMaxBlockDimY, 1024},
		{cudaDevAttrMaxBlockDimZ, 64},
		{cudaDevAttrMaxGridDimX, 2147483647},
		{cudaDevAttrMaxGridDimY, 65535},
		{cudaDevAttrMaxGridDimZ, 65535},
		{cudaDevAttrMaxSharedMemoryPerBlock, 49152},
		{cudaDevAttrTotalConstantMemory, 65536},
		{cudaDevAttrWarpSize, 32},
		{cudaDevAttrMaxPitch, 2147483647},
		{cudaDevAttrMaxRegistersPerBlock, 65536},
		{cudaDevAttrTextureAlignment, 512},
		{cudaDevAttrGpuOverlap, 1},
		{cudaDevAttrIntegrated, 1},
		{cudaDevAttrCanMapHostMemory, 1},
		{cudaDevAttrComputeMode, cudaComputeModeDefault},
		{cudaDevAttrConcurrentKernels, 1},
		{cudaDevAttrL2CacheSize, 4 << 20},
		{cudaDevAttrMaxThreadsPerMultiProcessor, 1024},
		{cudaDevAttrAsyncEngineCount, 2},
		{cudaDevAttrUnifiedAddressing, 1},
		{cudaDevAttrPciDeviceId, 0},
		{cudaDevAttrPciDomainId, 0},
		{cudaDevAttrComputeCapabilityMajor, CAPABILITY_MAJOR},
		{cudaDevAttrComputeCapabilityMinor, CAPABILITY_MINOR},
		{cudaDevAttrStreamPrioritiesSupported, 1},
		{cudaDevAttrMaxSharedMemoryPerMultiprocessor, 98304},
		{cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
		{cudaDevAttrManagedMemory, 1},
		{cudaDevAttrHostNativeAtomicSupported, 1},
		{cudaDevAttrPageableMemoryAccess, 1},
		{cudaDevAttrConcurrentManagedAccess, 1},
		{cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
		{cudaDevAttrCooperativeLaunch, 1},
		{cudaDevAttrMaxSharedMemoryPerBlockOptin, 98304},
		{cudaDevAttrCanFlushRemoteWrites, 1},
		{cudaDevAttrHostRegisterSupported, 1},
		{cudaDevAttrPageableMemoryAccessUsesHostPageTables, 1},
		{cudaDevAttrDirectManagedMemAccessFromHost, 1},
		{cudaDevAttrMaxBlocksPerMultiprocessor, 16},
		{cudaDevAttrHostRegisterReadOnlySupported, 1},
		{cudaDevAttrMemoryPoolsSupported, 1},
	};

	if (!value || (int)attr <= 0 || attr >= cudaDevAttrMax)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(device))
		return runtime_return(cudaErrorInvalidDevice);
	*value = 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].attr == (int)attr)
			*value = known[i].value;
	if (attr == cudaDevAttrPciBusId)
		*value = PCI_BUS_BASE + device;
	else if (attr == cudaDevAttrMultiProcessorCount)
		*value = (int)sysconf(_SC_NPROCESSORS_ONLN);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	char text[32];

	if (!device_get(device))
		return runtime_return(cudaErrorInvalidDevice);
	snprintf(text, sizeof(text), "0000:%02X:00.0", (unsigned)(PCI_BUS_BASE + device));
	if (!id || len < 1 || (size_t)len <= strlen(text))
		return runtime_return(cudaErrorInvalidValue);
	memcpy(id, text, strlen(text) + 1);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	unsigned domain = 0, bus, slot, function = 0;

	if (!device || !id)
		return runtime_return(cudaErrorInvalidValue);
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
		domain = 0;
		if (sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2)
			return runtime_return(cudaErrorInvalidValue);
	}
	if (domain || slot || function || bus < PCI_BUS_BASE ||
	    !device_get((int)(bus - PCI_BUS_BASE)))
		return runtime_return(cudaErrorInvalidDevice);
	*device = (int)(bus - PCI_BUS_BASE);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	(void)value;
	if ((unsigned)limit > cudaLimitPersistingL2CacheSize)
		return runtime_return(cudaErrorUnsupportedLimit);
	return runtime_return(device_current() ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	if (!can)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(device) || !device_get(peer))
		return runtime_return(cudaErrorInvalidDevice);
	*can = device != peer;
	return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	struct device *device = device_current();
	uint64_t bit;

	if (flags)
		return runtime_return(cudaErrorInvalidValue);
	if (!device || !device_get(peer) || peer == device->ordinal)
		return runtime_return(cudaErrorInvalidDevice);
	bit = UINT64_C(1) << peer;
	return runtime_return(atomic_fetch_or(&device->peers, bit) & bit
				      ? cudaErrorPeerAccessAlreadyEnabled
				      : cudaSuccess);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	struct device *device = device_current();
	uint64_t bit;

	if (!device || !device_get(peer))
		return runtime_return(cudaErrorInvalidDevice);
	bit = UINT64_C(1) << peer;
	return runtime_return(atomic_fetch_and(&device->peers, ~bit) & bit
				      ? cudaSuccess
				      : cudaErrorPeerAccessNotEnabled);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int src_device,
				      int dst_device)
{
	if (!value || (int)attr < cudaDevP2PAttrPerformanceRank ||
	    attr > cudaDevP2PAttrCudaArrayAccessSupported)
		return runtime_return(cudaErrorInvalidValue);
	if (!device_get(src_device) || !device_get(dst_device) || src_device == dst_device)
		return runtime_return(cudaErrorInvalidDevice);
	*value = attr == cudaDevP2PAttrAccessSupported ||
		 attr == cudaDevP2PAttrNativeAtomicSupported;
	return cudaSuccess;
}
