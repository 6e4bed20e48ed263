/* See device-host.h. Arrive is a host function that stamps the time and tells the progress thread.
 * Wait is a host function that sleeps on a futex until the gate is released, and then until the due
 * time, the last part of it spinning. All functions are documented ones of the CUDA runtime, looked
 * up in the process. */
#include "shim/gate/device-host.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/spin.h"
#include "shim/gate/cuda-runtime.h"

/* cudaError_t is an int-sized enum, 0 is success. */
#define HOST_FUNCTIONS(X)                                                      \
	X(cudaGetDevice, (int *))                                              \
	X(cudaSetDevice, (int))                                                \
	X(cudaLaunchHostFunc, (device_stream, void (*)(void *), void *))       \
	X(cudaMemcpyAsync, (void *, const void *, size_t, int, device_stream)) \
	X(cudaMemsetAsync, (void *, int, size_t, device_stream))               \
	X(cudaMalloc, (void **, size_t))                                       \
	X(cudaHostAlloc, (void **, size_t, unsigned int))                      \
	X(cudaEventCreateWithFlags, (device_event *, unsigned int))            \
	X(cudaEventDestroy, (device_event))                                    \
	X(cudaEventRecord, (device_event, device_stream))                      \
	X(cudaGetLastError, (void))                                            \
	X(cudaStreamWaitEvent, (device_stream, device_event, unsigned int))    \
	X(cudaStreamIsCapturing, (device_stream, int *))                       \
	X(cudaStreamCreateWithFlags, (device_stream *, unsigned int))          \
	X(cudaStreamGetFlags, (device_stream, unsigned int *))

#define OPTIONAL_FUNCTIONS(X)                                                           \
	/* 3 arguments up to CUDA 12, 7 since 13; the first three are the same */       \
	X(cudaStreamGetCaptureInfo,                                                     \
	  (device_stream, int *, unsigned long long *, void *, void *, void *, void *)) \
	X(cudaStreamGetDevice, (device_stream, int *))                                  \
	X(cudaThreadExchangeStreamCaptureMode, (int *))                                 \
	X(cudaDeviceGetPCIBusId, (char *, int, int))

static struct {
#define POINTER(name, params) int(*name) params;
	HOST_FUNCTIONS(POINTER)
	OPTIONAL_FUNCTIONS(POINTER)
#undef POINTER
} rt;

enum { MEMCPY_DEFAULT = 4, EVENT_DISABLE_TIMING = 2, CAPTURE_ACTIVE = 1, STREAM_NON_BLOCKING = 1 };

static int host_open(struct err *err)
{
	void *handle = cuda_runtime_find();

	if (handle == CUDA_RUNTIME_NONE)
		return err_set(err, ENOENT,
			       "no CUDA runtime (libcudart) is loaded in this process; programs "
			       "that link it statically cannot be served");
#define LOOK_UP(name, params)                          \
	rt.name = (int(*) params)dlsym(handle, #name); \
	if (!rt.name)                                  \
		return err_set(err, ENOENT, "the CUDA runtime lacks " #name);
	HOST_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
#define LOOK_UP(name, params) rt.name = (int(*) params)dlsym(handle, #name);
	OPTIONAL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	return 0;
}

static int host_get(int *ret)
{
	return rt.cudaGetDevice(ret) ? -EIO : 0;
}

static int host_set(int device)
{
	return rt.cudaSetDevice(device) ? -EIO : 0;
}

static int host_pci_id(int device, char *ret, size_t size)
{
	if (!rt.cudaDeviceGetPCIBusId)
		return -ENOTSUP;
	return rt.cudaDeviceGetPCIBusId(ret, (int)size, device) ? -EIO : 0;
}

static void on_arrive(void *arg)
{
	struct gate *g = arg;

	g->times[g->passed & 1].arrive_ns = clock_now_ns();
	g->on_arrive(g);
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *until)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, until, NULL,
		       FUTEX_BITSET_MATCH_ANY);
}

/* Until @due_ns, or hurry. */
static void wait_for_due(struct gate *g, uint64_t due_ns)
{
	uint64_t early = due_ns - clock_slack_ns();
	struct timespec until = {.tv_sec = (time_t)(early / NS_PER_S),
				 .tv_nsec = (long)(early % NS_PER_S)};

	while (clock_now_ns() < early) {
		if (atomic_load_explicit(&g->hurry, memory_order_acquire))
			return;
		/* absolute, CLOCK_MONOTONIC */
		if (futex(&g->hurry, FUTEX_WAIT_BITSET, 0, &until) < 0 && errno == ETIMEDOUT)
			clock_learn_wake(early);
	}
	if (!atomic_load_explicit(&g->hurry, memory_order_acquire))
		clock_sleep_until_ns(due_ns);
}

/* Until the progress thread says when the op ends. That comes at once where only two frames cross
 * the link, so a short wait is spun. */
static void await_release(struct gate *g, uint32_t passed, uint64_t since_ns)
{
	static _Thread_local struct spin spin; /* of this stream */
	uint64_t spin_until = since_ns + spin_budget_ns(&spin);

	/* acquire: pairs with host_release(), makes due_ns visible */
	while (atomic_load_explicit(&g->releases, memory_order_acquire) == passed) {
		if (clock_now_ns() < spin_until)
			sched_yield();
		else
			futex(&g->releases, FUTEX_WAIT_BITSET, passed, NULL);
	}
	spin_learn(&spin, clock_now_ns() - since_ns);
}

static void on_wait(void *arg)
{
	struct gate *g = arg;
	uint32_t passed = g->passed;
	struct gate_times *times = &g->times[passed & 1];
	uint64_t due;

	times->local_done_ns = clock_now_ns();
	await_release(g, passed, times->local_done_ns);
	do {
		due = atomic_load_explicit(&g->due_ns, memory_order_relaxed);
		if (due > times->local_done_ns)
			wait_for_due(g, due);
	} while (atomic_load_explicit(&g->due_ns, memory_order_relaxed) > due);
	times->opened_ns = clock_now_ns();
	g->passed = passed + 1;
	g->on_passed(g);
}

static int host_arrive(device_stream s, struct gate *g)
{
	return rt.cudaLaunchHostFunc(s, on_arrive, g) ? -EIO : 0;
}

static int host_wait(device_stream s, struct gate *g)
{
	return rt.cudaLaunchHostFunc(s, on_wait, g) ? -EIO : 0;
}

static void on_stamp(void *arg)
{
	struct stamp *st = arg;

	atomic_store_explicit(&st->time_ns, clock_now_ns(), memory_order_relaxed);
	st->on_stamped(st);
}

static int host_stamp(device_stream s, struct stamp *st, bool is_captured)
{
	(void)is_captured;
	return rt.cudaLaunchHostFunc(s, on_stamp, st) ? -EIO : 0;
}

static void host_stamp_deinit(struct stamp *st)
{
	(void)st;
}

static void host_release(struct gate *g, uint64_t due_ns)
{
	atomic_store_explicit(&g->due_ns, due_ns, memory_order_relaxed);
	/* release: pairs with on_wait(); from here on the gate may pass and its
	 * owner reuse it */
	atomic_fetch_add_explicit(&g->releases, 1, memory_order_release);
	futex(&g->releases, FUTEX_WAKE, INT_MAX, NULL);
}

static void host_postpone(struct gate *g, uint64_t due_ns)
{
	atomic_store_explicit(&g->due_ns, due_ns, memory_order_relaxed);
}

static void host_hurry(struct gate *g)
{
	/* release: pairs with wait_for_due() */
	atomic_store_explicit(&g->hurry, 1, memory_order_release);
	futex(&g->hurry, FUTEX_WAKE, INT_MAX, NULL);
}

static const char *host_why(void)
{
	return "";
}

static void host_gate_deinit(struct gate *g)
{
	(void)g;
}

static int host_copy(device_stream s, void *dst, const void *src, size_t bytes)
{
	return rt.cudaMemcpyAsync(dst, src, bytes, MEMCPY_DEFAULT, s) ? -EIO : 0;
}

static int host_fill(device_stream s, void *dst, int byte, size_t bytes)
{
	return rt.cudaMemsetAsync(dst, byte, bytes, s) ? -EIO : 0;
}

static int host_call(device_stream s, void (*fn)(void *), void *arg)
{
	return rt.cudaLaunchHostFunc(s, fn, arg) ? -EIO : 0;
}

/* In a relaxed mode, so that allocating does not become part of a capture. */
static void exchange_mode(int *mode)
{
	if (rt.cudaThreadExchangeStreamCaptureMode)
		rt.cudaThreadExchangeStreamCaptureMode(mode);
}

static int host_alloc(void **ret, size_t bytes)
{
	int mode = DEVICE_CAPTURE_RELAXED, r;

	exchange_mode(&mode);
	r = rt.cudaMalloc(ret, bytes);
	exchange_mode(&mode);
	return r ? -ENOMEM : 0;
}

static int host_alloc_host(void **ret, size_t bytes)
{
	int mode = DEVICE_CAPTURE_RELAXED, r;

	exchange_mode(&mode);
	r = rt.cudaHostAlloc(ret, bytes, 0);
	exchange_mode(&mode);
	return r ? -ENOMEM : 0;
}

static int host_stream_new(device_stream *ret)
{
	int mode = DEVICE_CAPTURE_RELAXED, r;

	exchange_mode(&mode);
	r = rt.cudaStreamCreateWithFlags(ret, STREAM_NON_BLOCKING);
	exchange_mode(&mode);
	return r ? -EIO : 0;
}

static int host_stream_device(device_stream s, int *ret)
{
	return !rt.cudaStreamGetDevice || rt.cudaStreamGetDevice(s, ret) ? -EIO : 0;
}

static bool host_is_blocking(device_stream s)
{
	unsigned int flags = 0;

	return rt.cudaStreamGetFlags(s, &flags) == 0 && !(flags & STREAM_NON_BLOCKING);
}

static int host_event_new(device_event *ret)
{
	return rt.cudaEventCreateWithFlags(ret, EVENT_DISABLE_TIMING) ? -EIO : 0;
}

static void host_event_free(device_event ev)
{
	if (ev)
		rt.cudaEventDestroy(ev);
}

static int host_event_record(device_event ev, device_stream s)
{
	return rt.cudaEventRecord(ev, s) ? -EIO : 0;
}

/* An event of the job's may have ended (edges.c): no error of ours stays for the thread to find. */
static int host_stream_wait(device_stream s, device_event ev)
{
	if (!rt.cudaStreamWaitEvent(s, ev, 0))
		return 0;
	rt.cudaGetLastError();
	return -EIO;
}

static uint64_t host_capture_id(device_stream s)
{
	unsigned long long id = 0;
	int status = 0;

	if (rt.cudaStreamIsCapturing(s, &status) || status != CAPTURE_ACTIVE)
		return 0;
	if (rt.cudaStreamGetCaptureInfo &&
	    !rt.cudaStreamGetCaptureInfo(s, &status, &id, NULL, NULL, NULL, NULL) && id)
		return id;
	return UINT64_MAX;
}

const struct device device_host = {
	.name = "host",
	.waits_for_due = true,
	.postpone = host_postpone,
	.open = host_open,
	.get = host_get,
	.set = host_set,
	.pci_id = host_pci_id,
	.why = host_why,
	.arrive = host_arrive,
	.wait = host_wait,
	.release = host_release,
	.hurry = host_hurry,
	.gate_deinit = host_gate_deinit,
	.stamp = host_stamp,
	.stamp_deinit = host_stamp_deinit,
	.copy = host_copy,
	.fill = host_fill,
	.call = host_call,
	.alloc = host_alloc,
	.alloc_host = host_alloc_host,
	.stream_new = host_stream_new,
	.stream_device = host_stream_device,
	.is_blocking = host_is_blocking,
	.event_new = host_event_new,
	.event_free = host_event_free,
	.event_record = host_event_record,
	.stream_wait = host_stream_wait,
	.exchange_mode = exchange_mode,
	.capture_id = host_capture_id,
};
