/* See emulated-driver.h. */
#include "tests/unit/shim/emulated-driver.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum item_kind { ITEM_WRITE, ITEM_WAIT, ITEM_COPY, ITEM_FILL, ITEM_CALL, ITEM_KERNEL };

struct item {
	enum item_kind kind;
	uint32_t value;
	void *at, *from;
	size_t bytes;
	void (*fn)(void *);
};

struct list {
	struct item *items;
	size_t n, capacity, done;
};

struct emulated_graph {
	struct list list;
};

static struct {
	struct list streams[EMULATED_STREAMS];
	struct list *capturing[EMULATED_STREAMS];
	int device, fail_in;
	unsigned int n_calls, n_captures;
	CUstreamCaptureMode mode;
} e = {.device = -1, .fail_in = -1};

int emulated_rdma = 1, emulated_dmabuf = 1;
int emulated_version = 13000, emulated_n_devices = EMULATED_DEVICES, emulated_unified = 1;
unsigned int emulated_n_kernels;
char emulated_kernel[64];
CUresult emulated_unsafe;

#define ERROR_INVALID 1
#define ERROR_ASKED 999
/* Counts the call, and fails it when it is its turn. */
#define CALL()                                          \
	do {                                            \
		e.n_calls++;                            \
		if (e.fail_in >= 0 && e.fail_in-- == 0) \
			return ERROR_ASKED;             \
	} while (0)

static void add(struct list *l, const struct item *item)
{
	if (l->n == l->capacity) {
		l->capacity = l->capacity ? 2 * l->capacity : 64;
		l->items = realloc(l->items, l->capacity * sizeof(*l->items));
		if (!l->items)
			abort();
	}
	l->items[l->n++] = *item;
}

static unsigned int index_of(CUstream s)
{
	return (unsigned int)(uintptr_t)s - 1;
}

CUstream emulated_stream(unsigned int i)
{
	return (CUstream)(uintptr_t)(i + 1);
}

static CUresult submit(CUstream s, const struct item *item)
{
	unsigned int i = index_of(s);

	if (i >= EMULATED_STREAMS || e.device < 0)
		return ERROR_INVALID;
	add(e.capturing[i] ? e.capturing[i] : &e.streams[i], item);
	return CUDA_SUCCESS;
}

static bool can_run(const struct item *item)
{
	_Atomic uint32_t *word = item->at;

	return item->kind != ITEM_WAIT ||
	       (int32_t)(atomic_load_explicit(word, memory_order_acquire) - item->value) >= 0;
}

bool emulated_step(unsigned int i)
{
	struct list *l = &e.streams[i];
	const struct item *item;

	if (l->done == l->n || !can_run(&l->items[l->done]))
		return false;
	item = &l->items[l->done];
	switch (item->kind) {
	case ITEM_WRITE:
		atomic_store_explicit((_Atomic uint32_t *)item->at, item->value,
				      memory_order_release);
		break;
	case ITEM_COPY:
		memmove(item->at, item->from, item->bytes);
		break;
	case ITEM_FILL:
		memset(item->at, (int)item->value, item->bytes);
		break;
	case ITEM_CALL:
		item->fn(item->at);
		break;
	case ITEM_KERNEL: /* has seen its time go by */
	case ITEM_WAIT:
		break;
	}
	if (++l->done == l->n)
		l->n = l->done = 0;
	return true;
}

unsigned int emulated_run(void)
{
	unsigned int n = 0, before;

	do {
		before = n;
		for (unsigned int i = 0; i < EMULATED_STREAMS; i++)
			while (emulated_step(i))
				n++;
	} while (n != before);
	return n;
}

bool emulated_is_empty(unsigned int i)
{
	return e.streams[i].n == 0;
}

void emulated_capture(unsigned int i)
{
	e.capturing[i] = calloc(1, sizeof(struct list));
	e.n_captures++;
}

struct emulated_graph *emulated_end_capture(unsigned int i)
{
	struct emulated_graph *graph = (struct emulated_graph *)(void *)e.capturing[i];

	e.capturing[i] = NULL;
	return graph;
}

void emulated_launch(unsigned int i, const struct emulated_graph *graph)
{
	for (size_t k = 0; k < graph->list.n; k++)
		add(&e.streams[i], &graph->list.items[k]);
}

void emulated_graph_free(struct emulated_graph *graph)
{
	free(graph->list.items);
	free(graph);
}

void emulated_no_context(void)
{
	e.device = -1;
}

void emulated_fail(int n)
{
	e.fail_in = n;
}

unsigned int emulated_n_calls(void)
{
	return e.n_calls;
}

void emulated_reset(void)
{
	for (unsigned int i = 0; i < EMULATED_STREAMS; i++) {
		free(e.streams[i].items);
		memset(&e.streams[i], 0, sizeof(e.streams[i]));
	}
	e.fail_in = -1;
	emulated_version = 13000;
	emulated_n_devices = EMULATED_DEVICES;
	emulated_unified = emulated_rdma = emulated_dmabuf = 1;
	emulated_n_kernels = 0;
	emulated_unsafe = 0;
}

/* --- the driver --------------------------------------------------------------------- */

/* Forbidden while a stream is captured, unless the thread is relaxed. */
static void unsafe(void)
{
	for (unsigned int i = 0; i < EMULATED_STREAMS; i++)
		if (e.capturing[i] && e.mode != CU_STREAM_CAPTURE_MODE_RELAXED)
			emulated_unsafe = 900;
}

static CUresult init(unsigned int flags)
{
	CALL();
	return flags ? ERROR_INVALID : CUDA_SUCCESS;
}

static CUresult driver_version(int *ret)
{
	CALL();
	*ret = emulated_version;
	return CUDA_SUCCESS;
}

static CUresult error_name(CUresult error, const char **ret)
{
	*ret = error == ERROR_ASKED ? "CUDA_ERROR_UNKNOWN" : NULL;
	return *ret ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult device_count(int *ret)
{
	CALL();
	*ret = emulated_n_devices;
	return CUDA_SUCCESS;
}

static CUresult device_of(CUdevice *ret, int ordinal)
{
	CALL();
	*ret = ordinal;
	return CUDA_SUCCESS;
}

static CUresult attribute(int *ret, CUdevice_attribute what, CUdevice device)
{
	CALL();
	(void)device;
	*ret = what == CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING          ? emulated_unified
	       : what == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED ? emulated_rdma
	       : what == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED         ? emulated_dmabuf
								       : 0;
	return CUDA_SUCCESS;
}

static CUresult pci_id(char *ret, int size, CUdevice device)
{
	CALL();
	return snprintf(ret, (size_t)size, "0000:%02X:00.0", 0x3b + device) < size ? CUDA_SUCCESS
										   : ERROR_INVALID;
}

static CUresult retain(CUcontext *ret, CUdevice device)
{
	CALL();
	*ret = (CUcontext)(uintptr_t)(device + 1);
	return CUDA_SUCCESS;
}

static CUresult ctx_device(CUdevice *ret)
{
	CALL();
	*ret = e.device;
	return e.device < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUresult ctx_set(CUcontext ctx)
{
	CALL();
	e.device = (int)(uintptr_t)ctx - 1;
	return CUDA_SUCCESS;
}

static CUresult alloc(CUdeviceptr *ret, size_t bytes)
{
	CALL();
	unsafe();
	*ret = (CUdeviceptr)(uintptr_t)malloc(bytes);
	return CUDA_SUCCESS;
}

static CUresult dealloc(CUdeviceptr ptr)
{
	CALL();
	free((void *)(uintptr_t)ptr);
	return CUDA_SUCCESS;
}

static CUresult host_alloc(void **ret, size_t bytes, unsigned int flags)
{
	CALL();
	unsafe();
	*ret = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	return flags & CU_MEMHOSTALLOC_PORTABLE ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult host_register(void *ptr, size_t bytes, unsigned int flags)
{
	CALL();
	unsafe();
	return ptr && bytes && flags == (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)
		       ? CUDA_SUCCESS
		       : ERROR_INVALID;
}

static CUresult host_unregister(void *ptr)
{
	CALL();
	return ptr ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult host_pointer(CUdeviceptr *ret, void *ptr, unsigned int flags)
{
	CALL();
	*ret = (CUdeviceptr)(uintptr_t)ptr;
	return flags ? ERROR_INVALID : CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
	CALL();
	return submit(s, &(struct item){.kind = ITEM_COPY,
					.at = (void *)(uintptr_t)dst,
					.from = (void *)(uintptr_t)src,
					.bytes = bytes});
}

static CUresult fill(CUdeviceptr dst, unsigned char byte, size_t n, CUstream s)
{
	CALL();
	return submit(s, &(struct item){.kind = ITEM_FILL,
					.at = (void *)(uintptr_t)dst,
					.value = byte,
					.bytes = n});
}

/* No dma-buf, but a descriptor. */
static CUresult handle_for_range(void *ret, CUdeviceptr ptr, size_t bytes,
				 CUmemRangeHandleType type, unsigned long long flags)
{
	CALL();
	if (!emulated_dmabuf || !ptr || ptr % 4096 || bytes % 4096 || flags ||
	    type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return ERROR_INVALID;
	*(int *)ret = open("/dev/null", O_RDWR | O_CLOEXEC);
	return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream s)
{
	CALL();
	while (emulated_step(index_of(s)))
		;
	return emulated_is_empty(index_of(s)) ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult host_func(CUstream s, CUhostFn fn, void *arg)
{
	CALL();
	return submit(s, &(struct item){.kind = ITEM_CALL, .fn = fn, .at = arg});
}

static CUresult event_new(CUevent *ret, unsigned int flags)
{
	CALL();
	*ret = (CUevent)(uintptr_t)1;
	return flags == CU_EVENT_DISABLE_TIMING ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult event_free(CUevent event)
{
	CALL();
	return event ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult event_record(CUevent event, CUstream s)
{
	CALL();
	return event && s ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult wait_event(CUstream s, CUevent event, unsigned int flags)
{
	CALL();
	return event && s && !flags ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult is_capturing(CUstream s, CUstreamCaptureStatus *ret)
{
	CALL();
	*ret = e.capturing[index_of(s)] ? CU_STREAM_CAPTURE_STATUS_ACTIVE
					: CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult capture_info(CUstream s, CUstreamCaptureStatus *ret, uint64_t *ret_id, void *graph,
			     void *deps, void *edges, void *n)
{
	(void)graph, (void)deps, (void)edges, (void)n;
	*ret_id = e.n_captures;
	return is_capturing(s, ret);
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = e.mode;

	e.mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

static CUresult batch(CUstream s, unsigned int n, CUstreamBatchMemOpParams *ops, unsigned int flags)
{
	CUresult r = flags ? ERROR_INVALID : CUDA_SUCCESS;

	CALL();
	for (unsigned int i = 0; !r && i < n; i++)
		r = submit(s, &(struct item){.kind = ops[i].writeValue.operation ==
								     CU_STREAM_MEM_OP_WRITE_VALUE_32
							     ? ITEM_WRITE
							     : ITEM_WAIT,
					     .at = (void *)(uintptr_t)ops[i].writeValue.address,
					     .value = ops[i].writeValue.value});
	return r;
}

static CUresult load_module(CUmodule *ret, const void *image)
{
	CALL();
	unsafe();
	*ret = (CUmodule)(uintptr_t)1;
	return image ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult function_of(CUfunction *ret, CUmodule module, const char *name)
{
	static char names[16][64];
	static unsigned int n;

	CALL();
	snprintf(names[n % 16], sizeof(names[0]), "%s", name);
	*ret = (CUfunction)(void *)names[n++ % 16];
	return module ? CUDA_SUCCESS : ERROR_INVALID;
}

static CUresult kernel(CUfunction fn, unsigned int gx, unsigned int gy, unsigned int gz,
		       unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		       CUstream s, void **args, void **extra)
{
	CALL();
	if (!gx || gy != 1 || gz != 1 || !bx || by != 1 || bz != 1 || shared || !args || extra)
		return ERROR_INVALID;
	snprintf(emulated_kernel, sizeof(emulated_kernel), "%s", (const char *)fn);
	emulated_n_kernels++;
	return submit(s, &(struct item){.kind = ITEM_KERNEL});
}

const struct cuda_driver emulated_driver = {
	.Init = init,
	.DriverGetVersion = driver_version,
	.GetErrorName = error_name,
	.DeviceGetCount = device_count,
	.DeviceGet = device_of,
	.DeviceGetAttribute = attribute,
	.DeviceGetPCIBusId = pci_id,
	.DevicePrimaryCtxRetain = retain,
	.CtxGetDevice = ctx_device,
	.CtxSetCurrent = ctx_set,
	.MemAlloc = alloc,
	.MemFree = dealloc,
	.MemHostAlloc = host_alloc,
	.MemHostRegister = host_register,
	.MemHostUnregister = host_unregister,
	.MemHostGetDevicePointer = host_pointer,
	.MemGetHandleForAddressRange = handle_for_range,
	.MemcpyAsync = copy,
	.MemsetD8Async = fill,
	.LaunchHostFunc = host_func,
	.EventCreate = event_new,
	.EventDestroy = event_free,
	.EventRecord = event_record,
	.StreamSynchronize = synchronize,
	.StreamWaitEvent = wait_event,
	.StreamIsCapturing = is_capturing,
	.ThreadExchangeStreamCaptureMode = exchange_mode,
	.StreamBatchMemOp = batch,
	.ModuleLoadData = load_module,
	.ModuleGetFunction = function_of,
	.LaunchKernel = kernel,
	.StreamGetCaptureInfo = capture_info,
};
