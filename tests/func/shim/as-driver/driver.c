/* A libcuda.so.1 for tests of the gate on CUDA without a GPU: the driver functions that
 * libnbox looks up, over the host CUDA runtime, whose streams, events and captures it
 * lends. Preloaded, it also answers for the runtime's cudaGetDriverEntryPointByVersion,
 * as NVIDIA's runtime would with its driver.
 *
 * NBOX_TEST_DRIVER says what is wrong with it: "no-device", "old", "memop=N" (the N-th
 * batch of stream memory operations is refused), "alone" (the runtime does not stand on
 * it), "no-rdma" (no NIC reaches the memory), "crash" (cuInit ends the process), "one-thread" (host
 * functions of all streams run one at a time, as NVIDIA's driver may run them). */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;

struct memop {
	uint32_t operation, pad0;
	uint64_t address;
	uint32_t value, pad1;
	uint32_t flags, pad2;
	uint64_t pad3[2];
};
_Static_assert(sizeof(struct memop) == 48, "6 words of 64 bits");

static int is_wrong(const char *how)
{
	const char *text = getenv("NBOX_TEST_DRIVER");

	return text && !strcmp(text, how);
}

EXPORT CUresult cuInit(unsigned int flags)
{
	if (is_wrong("crash"))
		raise(SIGKILL);
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *ret)
{
	*ret = is_wrong("old") ? 11040 : 13000;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **ret)
{
	*ret = cudaGetErrorName((cudaError_t)error);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *ret)
{
	if (is_wrong("no-device")) {
		*ret = 0;
		return CUDA_SUCCESS;
	}
	return (CUresult)cudaGetDeviceCount(ret);
}

EXPORT CUresult cuDeviceGet(CUdevice *ret, int ordinal)
{
	*ret = ordinal;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *ret, CUdevice_attribute what, CUdevice device)
{
	(void)device;
	switch ((int)what) {
	case 41: /* unified addressing */
		*ret = 1;
		break;
	case 116: /* GPUDirect RDMA, dma-buf */
	case 124:
		*ret = !is_wrong("no-rdma");
		break;
	default:
		*ret = 0;
	}
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *ret, int size, CUdevice device)
{
	return (CUresult)cudaDeviceGetPCIBusId(ret, size, device);
}

/* A context is the number of its device, plus 1. */
EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device)
{
	*ret = (CUcontext)(intptr_t)(device + 1);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *ret)
{
	return (CUresult)cudaGetDevice(ret);
}

/* How often anybody has selected a context. */
EXPORT _Atomic int as_driver_selections;

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
	as_driver_selections++;
	return (CUresult)cudaSetDevice((int)(intptr_t)context - 1);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
	void *ptr = NULL;
	cudaError_t r = cudaMalloc(&ptr, bytes);

	*ret = (CUdeviceptr)(uintptr_t)ptr;
	return (CUresult)r;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	return (CUresult)cudaFree((void *)(uintptr_t)ptr);
}

EXPORT CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned int flags)
{
	return (CUresult)cudaHostAlloc(ret, bytes, flags);
}

EXPORT CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned int flags)
{
	return (CUresult)cudaHostRegister(ptr, bytes, flags);
}

EXPORT CUresult cuMemHostUnregister(void *ptr)
{
	return (CUresult)cudaHostUnregister(ptr);
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *ptr, unsigned int flags)
{
	void *at = NULL;
	cudaError_t r = cudaHostGetDevicePointer(&at, ptr, flags);

	*ret = (CUdeviceptr)(uintptr_t)at;
	return (CUresult)r;
}

/* A descriptor that is no dma-buf: registering it is refused, as by an RDMA device that has no
 * dma-bufs. */
EXPORT CUresult cuMemGetHandleForAddressRange(void *ret, CUdeviceptr ptr, size_t bytes, int type,
					      unsigned long long flags)
{
	if (!ptr || ptr % 65536 || bytes % 65536 || type != 1 || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)ret = open("/dev/null", O_RDWR | O_CLOEXEC);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream s)
{
	return (CUresult)cudaStreamSynchronize(s);
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	return (CUresult)cudaMemcpyAsync((void *)(uintptr_t)dst, (void *)(uintptr_t)src, bytes,
					 cudaMemcpyDefault, s);
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char byte, size_t n, CUstream s)
{
	return (CUresult)cudaMemsetAsync((void *)(uintptr_t)dst, byte, n, s);
}

struct host_call {
	void (*fn)(void *);
	void *arg;
};

/* Kept: a graph may run it again. */
static void run_alone(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct host_call *call = arg;

	pthread_mutex_lock(&lock);
	call->fn(call->arg);
	pthread_mutex_unlock(&lock);
}

static cudaError_t launch(cudaStream_t s, void (*fn)(void *), void *arg)
{
	cudaError_t (*next)(cudaStream_t, void (*)(void *), void *);

	*(void **)&next = dlsym(RTLD_NEXT, "cudaLaunchHostFunc");
	return next(s, fn, arg);
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
	struct host_call *call;

	if (!is_wrong("one-thread"))
		return launch(s, fn, arg);
	call = malloc(sizeof(*call));
	if (!call)
		return cudaErrorMemoryAllocation;
	*call = (struct host_call){fn, arg};
	return launch(s, run_alone, call);
}

EXPORT CUresult cuLaunchHostFunc(CUstream s, void (*fn)(void *), void *arg)
{
	return (CUresult)cudaLaunchHostFunc(s, fn, arg);
}

/* Events belong to the context that is current when they are made, and are recorded in streams of
 * that one only. */
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	CUevent event;
	int device;
} events[1024]; /* those that are there */
static int n_events;

EXPORT CUresult cuEventCreate(CUevent *ret, unsigned int flags)
{
	CUresult r = (CUresult)cudaEventCreateWithFlags(ret, flags);
	int device = -1;

	if (r == CUDA_SUCCESS)
		r = (CUresult)cudaGetDevice(&device);
	pthread_mutex_lock(&events_lock);
	if (r == CUDA_SUCCESS && n_events < 1024) {
		events[n_events].event = *ret;
		events[n_events++].device = device;
	}
	pthread_mutex_unlock(&events_lock);
	return r;
}

/* Return: the device, -1: of none of ours; forgets it where @is_end. */
static int device_of(CUevent event, int is_end)
{
	int device = -1;

	pthread_mutex_lock(&events_lock);
	for (int i = 0; i < n_events && device < 0; i++) {
		if (events[i].event != event)
			continue;
		device = events[i].device;
		if (is_end)
			events[i] = events[--n_events];
	}
	pthread_mutex_unlock(&events_lock);
	return device;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
	device_of(event, 1);
	return (CUresult)cudaEventDestroy(event);
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream s)
{
	int of_event = device_of(event, 0), of_stream;
	cudaError_t r = cudaStreamGetDevice(s, &of_stream);

	if (r == cudaSuccess && of_event >= 0 && of_event != of_stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return r == cudaSuccess ? (CUresult)cudaEventRecord(event, s) : (CUresult)r;
}

EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent event, unsigned int flags)
{
	return (CUresult)cudaStreamWaitEvent(s, event, flags);
}

EXPORT CUresult cuStreamIsCapturing(CUstream s, int *ret)
{
	return (CUresult)cudaStreamIsCapturing(s, (enum cudaStreamCaptureStatus *)ret);
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	return (CUresult)cudaThreadExchangeStreamCaptureMode((enum cudaStreamCaptureMode *)mode);
}

EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream s, int *status, unsigned long long *id,
					  void *graph, void *deps, void *edges, void *n)
{
	(void)graph, (void)deps, (void)edges, (void)n;
	return (CUresult)cudaStreamGetCaptureInfo(s, (enum cudaStreamCaptureStatus *)status, id,
						  NULL, NULL, NULL, NULL);
}

EXPORT CUresult cuStreamBatchMemOp_v2(CUstream s, unsigned int n, const struct memop *ops,
				      unsigned int flags)
{
	static _Atomic unsigned int count;
	const char *text = getenv("NBOX_TEST_DRIVER");
	unsigned int refused, i;

	if (text && sscanf(text, "memop=%u", &refused) == 1 &&
	    atomic_fetch_add(&count, 1) == refused)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (i = 0; i < n; i++) {
		CUresult r =
			ops[i].operation == 2   ? cuStreamWriteValue32_v2(s, ops[i].address,
									  ops[i].value, ops[i].flags)
			: ops[i].operation == 1 ? cuStreamWaitValue32_v2(s, ops[i].address,
									 ops[i].value, ops[i].flags)
						: CUDA_ERROR_INVALID_VALUE;

		if (r != CUDA_SUCCESS)
			return r;
	}
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The footprint kernel does as its text says: it runs until the word is 1, or for so long. */
struct hold {
	struct hold *next;
	_Atomic uint32_t *word;
	uint64_t ns;
};
static _Atomic(struct hold *) holds; /* all: a graph may replay each */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void run_hold(void *arg)
{
	const struct hold *h = arg;
	uint64_t until = now_ns() + h->ns;

	while ((int32_t)atomic_load(h->word) < 1 && now_ns() < until)
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

EXPORT CUresult cuModuleLoadData(CUmodule *ret, const void *image)
{
	*ret = (CUmodule)(uintptr_t)image;
	return strstr(image, "ncclDevKernel_SendRecv_nbox") ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name)
{
	*ret = (CUfunction)(uintptr_t)name;
	return strstr((const char *)module, name) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuLaunchKernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
			       unsigned int bx, unsigned int by, unsigned int bz,
			       unsigned int shared, CUstream s, void **args, void **extra)
{
	struct hold *h = malloc(sizeof(*h));

	(void)fn, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
	if (!h || extra)
		return CUDA_ERROR_INVALID_VALUE;
	h->word = (_Atomic uint32_t *)(uintptr_t) * (CUdeviceptr *)args[0];
	h->ns = *(uint64_t *)args[2];
	h->next = atomic_load(&holds);
	while (!atomic_compare_exchange_weak(&holds, &h->next, h))
		;
	return (CUresult)launch(s, run_hold, h);
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
						    unsigned int version, unsigned long long flags,
						    enum cudaDriverEntryPointQueryResult *status)
{
	(void)version, (void)flags;
	*function = !strcmp(symbol, "cuStreamBatchMemOp") && !is_wrong("alone")
			    ? (void *)cuStreamBatchMemOp_v2
			    : NULL;
	if (status)
		*status = *function ? cudaDriverEntryPointSuccess
				    : cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}
