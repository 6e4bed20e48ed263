/* Makes what libnbox does late, to see whether predictions notice. Preloaded beside libnbox.so:
 *
 *   NBOX_TEST_LATE_GATE=NS    each gate opens so much later: it waits when its time comes, and
 *                             stamps when it really opens, as on a machine that is busy
 *   NBOX_TEST_LATE_WAIT=HEX   where in libnbox.so that function is, as nm says
 *   NBOX_TEST_LATE_OP=NS      each op of host NCCL takes so much longer
 *
 * Gates and ops are host functions of the CUDA runtime, which are launched through here. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime_api.h>

#include "shim/gate/device.h"

#define EXPORT __attribute__((visibility("default")))

/* So that the runtime is a library that this one needs: libnbox looks for the rest of it there. */
__attribute__((used)) static __typeof__(&cudaGetDevice) const of_runtime = cudaGetDevice;

struct call {
	cudaHostFn_t fn;
	void *arg;
};

/* What this thread is in: a gate, since when (0: it has not looked at the clock yet). */
static _Thread_local struct gate *in_gate;
static _Thread_local uint64_t began_ns;

static uint64_t number(const char *name, int base)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, base) : 0;
}

static int real_time(clockid_t id, struct timespec *ret)
{
	static int (*_Atomic next)(clockid_t, struct timespec *);

	if (!next)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	return next(id, ret);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	real_time(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		continue;
}

/* The gate looks at the clock when it begins to wait, then until its time has come, then when it
 * opens. From the second look on time stands still for it until it is late enough. */
EXPORT int clock_gettime(clockid_t id, struct timespec *ret)
{
	struct gate *g = in_gate;
	uint64_t due_ns;

	if (g && !began_ns) {
		began_ns = now_ns();
	} else if (g && atomic_load(&g->releases) != g->passed) {
		due_ns = atomic_load(&g->due_ns);
		sleep_until((due_ns > began_ns ? due_ns : began_ns) +
			    number("NBOX_TEST_LATE_GATE", 10));
	}
	return real_time(id, ret);
}

static void open_late(void *arg)
{
	struct call *call = arg;

	began_ns = 0;
	in_gate = call->arg;
	call->fn(call->arg);
	in_gate = NULL;
}

static void end_late(void *arg)
{
	struct call *call = arg;

	call->fn(call->arg);
	sleep_until(now_ns() + number("NBOX_TEST_LATE_OP", 10));
}

/* What to run instead of @fn. */
static cudaHostFn_t late_one(cudaHostFn_t fn)
{
	const char *slash;
	Dl_info of;

	if (!dladdr((void *)fn, &of))
		return NULL;
	slash = strrchr(of.dli_fname, '/');
	slash = slash ? slash + 1 : of.dli_fname;
	if (number("NBOX_TEST_LATE_GATE", 10) && strcmp(slash, "libnbox.so") == 0 &&
	    (uintptr_t)fn - (uintptr_t)of.dli_fbase == number("NBOX_TEST_LATE_WAIT", 16))
		return open_late;
	if (number("NBOX_TEST_LATE_OP", 10) && strncmp(slash, "libnccl.so", 10) == 0)
		return end_late;
	return NULL;
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
	__typeof__(&cudaLaunchHostFunc) next =
		(__typeof__(&cudaLaunchHostFunc))dlsym(RTLD_NEXT, "cudaLaunchHostFunc");
	cudaHostFn_t late = late_one(fn);
	struct call *call;

	if (!late)
		return next(stream, fn, arg);
	call = malloc(sizeof(*call)); /* kept: a graph may run it again */
	if (!call)
		return cudaErrorMemoryAllocation;
	*call = (struct call){fn, arg};
	return next(stream, late, call);
}
