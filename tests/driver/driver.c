/* A libcuda.so.1 for tests of the gate on CUDA without a GPU: the driver functions that
 * libnbox looks up, over the host CUDA runtime, whose streams, events and captures it
 * lends. Preloaded, it also answers for the runtime's cudaGetDriverEntryPointByVersion,
 * as NVIDIA's runtime would with its driver.
 *
 * NBOX_TEST_DRIVER says what is wrong with it: "no-device", "old", "memop=N" (the N-th
 * batch of stream memory operations is refused), "alone" (the runtime does not stand on
 * it), "no-rdma" (no NIC reaches the memory), "no-dmabuf", "no-unified" (addresses), "crash"
 * (cuInit ends the process), "one-thread" (host functions of all streams run one at a time, as
 * NVIDIA's driver may run them). emulated-driver.h has what a test in the same process can ask for.
 */
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

EXPORT _Atomic int as_driver_fail_in = -1;
EXPORT _Atomic unsigned int as_driver_n_calls, as_driver_n_kernels;
EXPORT const char *_Atomic as_driver_kernel;
EXPORT _Atomic int as_driver_selections; /* how often anybody has selected a context */
EXPORT void (*as_driver_around)(CUstream s, void *wait_at, uint32_t value, int is_end);

/* Counts the call. Return: whether it is its turn to fail. */
static int fails(void)
{
	as_driver_n_calls++;
	return as_driver_fail_in >= 0 && as_driver_fail_in-- == 0;
}

/* Around one thing that is enqueued in @s. */
static void begin(CUstream s, void *wait_at, uint32_t value)
{
	if (as_driver_around)
		as_driver_around(s, wait_at, value, 0);
}

static CUresult end(CUstream s, CUresult r)
{
	if (as_driver_around)
		as_driver_around(s, NULL, 0, 1);
	return r;
}

/* A function that is the runtime's @call. */
#define FORWARD(name, params, call)                                     \
	EXPORT CUresult name params                                     \
	{                                                               \
		return fails() ? CUDA_ERROR_UNKNOWN : (CUresult)(call); \
	}
/* The same, for one that enqueues one thing in stream @s. */
#define ENQUEUE(name, params, call) \
	FORWARD(name, params, (begin(s, NULL, 0), end(s, (CUresult)(call))))
/* The runtime's function: not this library's of the same name, and not libnbox.so's. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define PTR(ptr) ((void *)(uintptr_t)(ptr))

static int is_wrong(const char *how)
{
	const char *text = getenv("NBOX_TEST_DRIVER");

	return text && !strcmp(text, how);
}

static CUresult init(unsigned int flags)
{
	if (is_wrong("crash"))
		raise(SIGKILL);
	return NEXT(cuInit)(flags);
}

static CUresult version(int *ret)
{
	*ret = is_wrong("old") ? 11040 : 13000;
	return CUDA_SUCCESS;
}

static CUresult count(int *ret)
{
	*ret = 0;
	return is_wrong("no-device") ? CUDA_SUCCESS : NEXT(cuDeviceGetCount)(ret);
}

static CUresult attribute(int *ret, int what)
{
	*ret = what == 41    ? !is_wrong("no-unified")
	       : what == 116 ? !is_wrong("no-rdma") /* GPUDirect RDMA, dma-buf */
	       : what == 124 ? !is_wrong("no-rdma") && !is_wrong("no-dmabuf")
			     : 0;
	return CUDA_SUCCESS;
}

/* A descriptor that is no dma-buf: registering it is refused, as by an RDMA device that has no
 * dma-bufs. */
static CUresult export_range(int *ret, CUdeviceptr ptr, size_t bytes, int type)
{
	if (!ptr || ptr % 65536 || bytes % 65536 || type != 1)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = open("/dev/null", O_RDWR | O_CLOEXEC);
	return CUDA_SUCCESS;
}

static CUresult set_context(CUcontext context)
{
	as_driver_selections++;
	return NEXT(cuCtxSetCurrent)(context);
}

FORWARD(cuInit, (unsigned int flags), init(flags))
FORWARD(cuDriverGetVersion, (int *ret), version(ret))
FORWARD(cuDeviceGetCount, (int *ret), count(ret))
FORWARD(cuDeviceGet, (CUdevice * ret, int ordinal), NEXT(cuDeviceGet)(ret, ordinal))
FORWARD(cuDeviceGetAttribute, (int *ret, CUdevice_attribute what, CUdevice device),
	device < 0 ? CUDA_ERROR_INVALID_DEVICE : attribute(ret, (int)what))
FORWARD(cuDeviceGetPCIBusId, (char *ret, int size, CUdevice device),
	cudaDeviceGetPCIBusId(ret, size, device))
FORWARD(cuDevicePrimaryCtxRetain, (CUcontext * ret, CUdevice device),
	NEXT(cuDevicePrimaryCtxRetain)(ret, device))
FORWARD(cuCtxGetDevice, (CUdevice * ret), NEXT(cuCtxGetDevice)(ret))
FORWARD(cuCtxSetCurrent, (CUcontext context), set_context(context))
FORWARD(cuMemAlloc_v2, (CUdeviceptr * ret, size_t bytes), cudaMalloc((void **)ret, bytes))
FORWARD(cuMemFree_v2, (CUdeviceptr ptr), cudaFree(PTR(ptr)))
FORWARD(cuMemHostAlloc, (void **ret, size_t bytes, unsigned int flags),
	flags &cudaHostAllocPortable ? cudaHostAlloc(ret, bytes, flags) : cudaErrorInvalidValue)
FORWARD(cuMemHostRegister_v2, (void *ptr, size_t bytes, unsigned int flags),
	flags == (cudaHostRegisterPortable | cudaHostRegisterMapped)
		? cudaHostRegister(ptr, bytes, flags)
		: cudaErrorInvalidValue)
FORWARD(cuMemHostUnregister, (void *ptr), cudaHostUnregister(ptr))
FORWARD(cuMemHostGetDevicePointer_v2, (CUdeviceptr * ret, void *ptr, unsigned int flags),
	cudaHostGetDevicePointer((void **)ret, ptr, flags))
FORWARD(cuMemGetHandleForAddressRange,
	(void *ret, CUdeviceptr ptr, size_t bytes, int type, unsigned long long flags),
	flags ? CUDA_ERROR_INVALID_VALUE : export_range(ret, ptr, bytes, type))
FORWARD(cuStreamSynchronize, (CUstream s), NEXT(cudaStreamSynchronize)(s))
ENQUEUE(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s),
	cudaMemcpyAsync(PTR(dst), PTR(src), bytes, cudaMemcpyDefault, s))
ENQUEUE(cuMemsetD8Async, (CUdeviceptr dst, unsigned char byte, size_t n, CUstream s),
	cudaMemsetAsync(PTR(dst), byte, n, s))
ENQUEUE(cuLaunchHostFunc, (CUstream s, void (*fn)(void *), void *arg),
	cudaLaunchHostFunc(s, fn, arg))
FORWARD(cuStreamWaitEvent, (CUstream s, CUevent event, unsigned int flags),
	NEXT(cudaStreamWaitEvent)(s, event, flags))
FORWARD(cuStreamIsCapturing, (CUstream s, enum cudaStreamCaptureStatus *ret),
	cudaStreamIsCapturing(s, ret))
FORWARD(cuStreamGetCaptureInfo_v3,
	(CUstream s, enum cudaStreamCaptureStatus *status, unsigned long long *id),
	cudaStreamGetCaptureInfo(s, status, id, NULL, NULL, NULL, NULL))

/* Never asked to fail: nobody looks at its result. */
EXPORT CUresult cuThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	return (CUresult)cudaThreadExchangeStreamCaptureMode(mode);
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

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t fn, void *arg)
{
	struct host_call *call;

	if (!is_wrong("one-thread"))
		return NEXT(cudaLaunchHostFunc)(s, fn, arg);
	call = malloc(sizeof(*call));
	if (!call)
		return cudaErrorMemoryAllocation;
	*call = (struct host_call){fn, arg};
	return NEXT(cudaLaunchHostFunc)(s, run_alone, call);
}

/* Events belong to the context that is current when they are made, and are recorded in streams of
 * that one only. */
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	CUevent event;
	int device;
} events[1024]; /* those that are there */
static int n_events;

static CUresult event_new(CUevent *ret, unsigned int flags)
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

static CUresult event_record(CUevent event, CUstream s)
{
	int of_event = device_of(event, 0), of_stream;
	cudaError_t r = cudaStreamGetDevice(s, &of_stream);

	if (r == cudaSuccess && of_event >= 0 && of_event != of_stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return (CUresult)(r == cudaSuccess ? NEXT(cudaEventRecord)(event, s) : r);
}

FORWARD(cuStreamCreate, (CUstream * ret, unsigned int flags), cudaStreamCreateWithFlags(ret, flags))
FORWARD(cuStreamGetDevice, (CUstream s, CUdevice *ret), cudaStreamGetDevice(s, ret))
FORWARD(cuStreamGetFlags, (CUstream s, unsigned int *ret), cudaStreamGetFlags(s, ret))
FORWARD(cuEventCreate, (CUevent * ret, unsigned int flags),
	flags == cudaEventDisableTiming ? event_new(ret, flags) : CUDA_ERROR_INVALID_VALUE)
FORWARD(cuEventDestroy_v2, (CUevent event), (device_of(event, 1), NEXT(cudaEventDestroy)(event)))
FORWARD(cuEventRecord, (CUevent event, CUstream s), event_record(event, s))

static CUresult memop(CUstream s, const struct memop *op)
{
	switch (op->operation) {
	case 1:
		begin(s, PTR(op->address), op->value);
		return end(s, cuStreamWaitValue32_v2(s, op->address, op->value, op->flags));
	case 2:
		begin(s, NULL, 0);
		return end(s, cuStreamWriteValue32_v2(s, op->address, op->value, op->flags));
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

EXPORT CUresult cuStreamBatchMemOp_v2(CUstream s, unsigned int n, const struct memop *ops,
				      unsigned int flags)
{
	static _Atomic unsigned int n_batches;
	const char *text = getenv("NBOX_TEST_DRIVER");
	CUresult r = flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	unsigned int refused;

	if (fails())
		return CUDA_ERROR_UNKNOWN;
	if (text && sscanf(text, "memop=%u", &refused) == 1 && n_batches++ == refused)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned int i = 0; r == CUDA_SUCCESS && i < n; i++)
		r = memop(s, &ops[i]);
	return r;
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

/* A module is its text, in memory of the device; a function is its name there. */
static CUresult load(CUmodule *ret, const char *image)
{
	CUresult r = (CUresult)cudaMalloc((void **)ret, strlen(image) + 1);

	if (r == CUDA_SUCCESS)
		memcpy(*ret, image, strlen(image) + 1);
	return r;
}

static CUresult find_function(CUfunction *ret, CUmodule module, const char *name)
{
	*ret = (CUfunction)(void *)strstr((const char *)module, name);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult run_kernel(CUfunction fn, void **args, CUstream s)
{
	struct hold *h = malloc(sizeof(*h));

	if (!h)
		return CUDA_ERROR_OUT_OF_MEMORY;
	h->word = (_Atomic uint32_t *)(uintptr_t) * (CUdeviceptr *)args[0];
	h->ns = *(uint64_t *)args[2];
	h->next = atomic_load(&holds);
	while (!atomic_compare_exchange_weak(&holds, &h->next, h))
		;
	as_driver_kernel = (const char *)fn;
	as_driver_n_kernels++;
	return (CUresult)NEXT(cudaLaunchHostFunc)(s, run_hold, h);
}

FORWARD(cuModuleLoadData, (CUmodule * ret, const void *image), load(ret, image))
FORWARD(cuModuleGetFunction, (CUfunction * ret, CUmodule module, const char *name),
	find_function(ret, module, name))
ENQUEUE(cuLaunchKernel,
	(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	 unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **args,
	 void **extra),
	gx &&gy == 1 && gz == 1 && bx && by == 1 && bz == 1 && !shared && args && !extra
		? run_kernel(fn, args, s)
		: CUDA_ERROR_INVALID_VALUE)

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
