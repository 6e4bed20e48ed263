/* See device-cuda.h. Gates are cuda-gate.c's; all else is the driver's function of that name. Only
 * the driver is needed, so that programs that link the CUDA runtime statically are served too.
 * Streams, events and contexts of the runtime and of the driver are the same things. Each device is
 * used through its primary context, as the runtime does. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/gate/cuda-footprint.h"
#include "shim/gate/cuda-gate.h"
#include "shim/gate/device-cuda.h"

#define MAX_DEVICES 64

static struct cuda_driver cu;
static struct {
	pthread_mutex_t lock;
	CUcontext contexts[MAX_DEVICES]; /* retained for good, like the runtime's */
	int n_devices;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local char why[160];

/* Return: 0, or -EIO with the sentence in @why. */
static int check(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return 0;
	snprintf(why, sizeof(why), "%s says %s", what, cuda_driver_error(&cu, r));
	return -EIO;
}
#define CU(fn, args) check(cu.fn args, "cu" #fn)

static const char *cuda_why(void)
{
	return why;
}

int device_cuda_use(const struct cuda_driver *d, struct err *err)
{
	int n = 0, version = 0, unified = 0, r;
	CUdevice first;

	cu = *d;
	r = CU(Init, (0));
	if (!r)
		r = CU(DriverGetVersion, (&version));
	if (!r)
		r = CU(DeviceGetCount, (&n));
	if (!r && n < 1)
		return err_set(err, ENODEV, "the NVIDIA driver sees no device");
	if (!r)
		r = CU(DeviceGet, (&first, 0));
	if (!r)
		r = CU(DeviceGetAttribute,
		       (&unified, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, first));
	if (r)
		return err_set(err, ENODEV, "the NVIDIA driver cannot be used: %s", why);
	if (version < 12000)
		return err_set(
			err, ENOTSUP,
			"the NVIDIA driver is of CUDA %d.%d; stream memory operations as the "
			"gate needs them came with 12.0",
			version / 1000, version % 1000 / 10);
	if (!unified)
		return err_set(err, ENOTSUP, "device 0 has no unified addressing");
	g.n_devices = n < MAX_DEVICES ? n : MAX_DEVICES;
	return cuda_footprint_read(err);
}

static int cuda_open(struct err *err)
{
	struct cuda_driver d;
	int r = cuda_driver_find(&d, err);

	return r ? r : device_cuda_use(&d, err);
}

static int cuda_get(int *ret)
{
	CUdevice device;
	CUresult r = cu.CtxGetDevice(&device);

	/* This thread has not used the runtime yet. Selecting device 0 for it would make a context
	 * there, in each process of a node. */
	if (r == CUDA_ERROR_INVALID_CONTEXT) {
		*ret = DEVICE_NONE;
		return 0;
	}
	if (r != CUDA_SUCCESS)
		return check(r, "cuCtxGetDevice");
	*ret = (int)device; /* the driver's devices are their ordinals */
	return 0;
}

static int cuda_set(int ordinal)
{
	CUdevice device;
	int r = 0;

	if (ordinal < 0 || ordinal >= g.n_devices) {
		snprintf(why, sizeof(why), "there is no device %d", ordinal);
		return -EIO;
	}
	pthread_mutex_lock(&g.lock);
	if (!g.contexts[ordinal]) {
		r = CU(DeviceGet, (&device, ordinal));
		if (!r)
			r = CU(DevicePrimaryCtxRetain, (&g.contexts[ordinal], device));
	}
	pthread_mutex_unlock(&g.lock);
	return r ? r : CU(CtxSetCurrent, (g.contexts[ordinal]));
}

static int cuda_pci_id(int ordinal, char *ret, size_t size)
{
	CUdevice device;
	int r = CU(DeviceGet, (&device, ordinal));

	return r ? r : CU(DeviceGetPCIBusId, (ret, (int)size, device));
}

/* --- the gate ---------------------------------------------------------------------- */

static int cuda_arrive(device_stream s, struct gate *gate)
{
	return check(cuda_gate_arrive(&cu, s, gate), "cuStreamBatchMemOp (or cuMemHostRegister)");
}

static CUresult hold(void *ctx, CUstream s, CUdeviceptr release)
{
	const struct gate *gate = ctx;

	return cuda_footprint_launch(&cu, s, gate->kind, release);
}

static int cuda_wait(device_stream s, struct gate *gate)
{
	return check(cuda_gate_wait(&cu, s, gate, cuda_footprint_ctas() ? hold : NULL, gate),
		     "cuStreamBatchMemOp");
}

static void cuda_release(struct gate *gate, uint64_t due_ns)
{
	(void)due_ns; /* the progress thread has waited for it */
	cuda_gate_release(gate);
}

static void cuda_hurry(struct gate *gate)
{
	(void)gate; /* a released gate does not wait for a time */
}

static int cuda_stamp(device_stream s, struct stamp *st, bool is_captured)
{
	return check(cuda_gate_stamp(&cu, s, st, is_captured),
		     "cuStreamBatchMemOp (or cuMemHostRegister)");
}

/* --- the rest ----------------------------------------------------------------------- */

static CUdeviceptr address(const void *ptr)
{
	return (CUdeviceptr)(uintptr_t)ptr; /* unified: the driver knows whose it is */
}

static int cuda_copy(device_stream s, void *dst, const void *src, size_t bytes)
{
	return CU(MemcpyAsync, (address(dst), address(src), bytes, s));
}

static int cuda_fill(device_stream s, void *dst, int byte, size_t bytes)
{
	return CU(MemsetD8Async, (address(dst), (unsigned char)byte, bytes, s));
}

static int cuda_call(device_stream s, void (*fn)(void *), void *arg)
{
	return CU(LaunchHostFunc, (s, fn, arg));
}

static int cuda_alloc(void **ret, size_t bytes)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* not captured */
	CUdeviceptr ptr = 0;
	int r;

	cu.ThreadExchangeStreamCaptureMode(&mode);
	r = CU(MemAlloc, (&ptr, bytes));
	cu.ThreadExchangeStreamCaptureMode(&mode);
	if (r)
		return -ENOMEM;
	*ret = (void *)(uintptr_t)ptr;
	return 0;
}

static void cuda_free(void *ptr)
{
	if (ptr)
		cu.MemFree(address(ptr));
}

static int cuda_alloc_host(void **ret, size_t bytes)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	int r;

	cu.ThreadExchangeStreamCaptureMode(&mode);
	r = CU(MemHostAlloc, (ret, bytes, CU_MEMHOSTALLOC_PORTABLE));
	cu.ThreadExchangeStreamCaptureMode(&mode);
	return r ? -ENOMEM : 0;
}

/* --- memory for NICs --------------------------------------------------------------- */

/* A dma-buf of the memory; -1: this driver or device has none. That is no error: there is another
 * way. */
static int export(CUdeviceptr ptr, size_t bytes)
{
	int fd = -1;

	if (cu.MemGetHandleForAddressRange(&fd, ptr, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
					   0) != CUDA_SUCCESS)
		return -1;
	return fd;
}

static int fill_with_zeros(CUdeviceptr ptr, size_t bytes)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	int r;

	cu.ThreadExchangeStreamCaptureMode(&mode);
	r = CU(MemsetD8Async, (ptr, 0, bytes, CU_STREAM_PER_THREAD));
	if (!r)
		r = CU(StreamSynchronize, (CU_STREAM_PER_THREAD));
	cu.ThreadExchangeStreamCaptureMode(&mode);
	return r;
}

static int cuda_alloc_shared(int ordinal, size_t bytes, size_t align, struct device_shared *ret)
{
	struct device_shared m = {.dmabuf_fd = -1};
	int by_address = 0, by_dmabuf = 0, r;
	CUdevice device;
	uintptr_t base;

	r = cuda_set(ordinal);
	if (!r)
		r = CU(DeviceGet, (&device, ordinal));
	if (!r)
		r = CU(DeviceGetAttribute,
		       (&by_address, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, device));
	if (!r)
		r = CU(DeviceGetAttribute,
		       (&by_dmabuf, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device));
	if (r)
		return r;
	if (!by_address && !by_dmabuf) {
		snprintf(why, sizeof(why),
			 "device %d lets no NIC into its memory (no GPUDirect RDMA)", ordinal);
		return -ENOTSUP;
	}
	r = cuda_alloc(&m.memory, bytes + align);
	if (r)
		return r;
	base = ((uintptr_t)m.memory + align - 1) & ~(uintptr_t)(align - 1);
	m.base = (void *)base;
	r = fill_with_zeros(base, bytes);
	if (r) {
		cuda_free(m.memory);
		return r;
	}
	if (by_dmabuf)
		m.dmabuf_fd = export(base, bytes);
	*ret = m;
	return 0;
}

static void cuda_free_shared(const struct device_shared *m)
{
	cuda_free(m->memory);
}

/* --- capturing ------------------------------------------------------------------------ */

static void cuda_exchange_mode(int *mode)
{
	CUstreamCaptureMode now = (CUstreamCaptureMode)*mode;

	cu.ThreadExchangeStreamCaptureMode(&now);
	*mode = (int)now;
}

static int cuda_stream_new(device_stream *ret)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED, r;

	cuda_exchange_mode(&mode);
	r = CU(StreamCreate, (ret, CU_STREAM_NON_BLOCKING));
	cuda_exchange_mode(&mode);
	return r;
}

static int cuda_stream_device(device_stream s, int *ret)
{
	CUdevice device;

	if (!cu.StreamGetDevice || cu.StreamGetDevice(s, &device) != CUDA_SUCCESS)
		return -EIO;
	*ret = (int)device;
	return 0;
}

static bool cuda_is_blocking(device_stream s)
{
	unsigned int flags = 0;

	return cu.StreamGetFlags(s, &flags) == CUDA_SUCCESS && !(flags & CU_STREAM_NON_BLOCKING);
}

static int cuda_event_new(device_event *ret)
{
	return CU(EventCreate, (ret, CU_EVENT_DISABLE_TIMING));
}

static void cuda_event_free(device_event ev)
{
	if (ev)
		cu.EventDestroy(ev);
}

static int cuda_event_record(device_event ev, device_stream s)
{
	return CU(EventRecord, (ev, s));
}

static int cuda_stream_wait(device_stream s, device_event ev)
{
	return CU(StreamWaitEvent, (s, ev, 0));
}

static uint64_t cuda_capture_id(device_stream s)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	uint64_t id = 0;

	if (cu.StreamIsCapturing(s, &status) != CUDA_SUCCESS ||
	    status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return 0;
	if (cu.StreamGetCaptureInfo &&
	    cu.StreamGetCaptureInfo(s, &status, &id, NULL, NULL, NULL, NULL) == CUDA_SUCCESS && id)
		return id;
	return UINT64_MAX;
}

const struct device device_cuda = {
	.name = "cuda",
	.waits_for_due = false,
	.open = cuda_open,
	.get = cuda_get,
	.set = cuda_set,
	.pci_id = cuda_pci_id,
	.why = cuda_why,
	.arrive = cuda_arrive,
	.wait = cuda_wait,
	.release = cuda_release,
	.hurry = cuda_hurry,
	.gate_deinit = cuda_gate_deinit,
	.stamp = cuda_stamp,
	.stamp_deinit = cuda_stamp_deinit,
	.poll = cuda_gate_poll,
	.nap_ns = cuda_gate_nap_ns,
	.stop = cuda_gate_open_all,
	.copy = cuda_copy,
	.fill = cuda_fill,
	.call = cuda_call,
	.alloc = cuda_alloc,
	.alloc_host = cuda_alloc_host,
	.alloc_shared = cuda_alloc_shared,
	.free_shared = cuda_free_shared,
	.stream_new = cuda_stream_new,
	.stream_device = cuda_stream_device,
	.is_blocking = cuda_is_blocking,
	.event_new = cuda_event_new,
	.event_free = cuda_event_free,
	.event_record = cuda_event_record,
	.stream_wait = cuda_stream_wait,
	.exchange_mode = cuda_exchange_mode,
	.capture_id = cuda_capture_id,
};
