/* The functions of the CUDA runtime and driver that libnbox.so has as well, so that it sees what
 * the job's streams wait for. Each calls the real one, and returns what that returned; where no
 * virtual communicator exists it does no more than that. A program that links the runtime
 * statically never gets here. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/edges/edges.h"
#include "shim/gate/cuda-runtime.h"

#define EXPORT __attribute__((visibility("default")))
#define UNKNOWN 999 /* cudaErrorUnknown, CUDA_ERROR_UNKNOWN */
#define PER_THREAD ((device_stream)2)
#define RECORD_EXTERNAL 1 /* a node of a graph: not this stream's */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* The function that the job would have called, were it not for libnbox.so. */
static void *find(_Atomic(void *) *known, const char *name)
{
	void *fn = atomic_load_explicit(known, memory_order_relaxed), *handle;
	int saved = errno;

	if (fn)
		return fn;
	fn = dlsym(RTLD_NEXT, name);
	if (!fn) { /* only some library sees it */
		handle = strstr(name, "cuda")
				 ? cuda_runtime_find()
				 : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
		if (handle && handle != CUDA_RUNTIME_NONE)
			fn = dlsym(handle, name);
	}
	atomic_store_explicit(known, fn, memory_order_relaxed);
	errno = saved;
	return fn;
}

/* @before, @after: what is learned from the call; @after from one that succeeded. */
#define INTERPOSE(name, params, args, before, after)                              \
	EXPORT int name params                                                    \
	{                                                                         \
		static _Atomic(void *) known;                                     \
		int(*real) params = (int(*) params)find(&known, #name), r, saved; \
		uint64_t call_ns;                                                 \
                                                                                  \
		if (!real)                                                        \
			return UNKNOWN;                                           \
		if (!edges_begin(&call_ns))                                       \
			return real args;                                         \
		saved = errno;                                                    \
		before;                                                           \
		errno = saved;                                                    \
		r = real args;                                                    \
		saved = errno;                                                    \
		if (r == 0) {                                                     \
			after;                                                    \
		}                                                                 \
		edges_end();                                                      \
		errno = saved;                                                    \
		return r;                                                         \
	}

/* The forms for per-thread default streams, in which stream 0 is such a one. */
static device_stream own(device_stream s)
{
	return s ? s : PER_THREAD;
}

#define NOTHING ((void)0)
#define ON_STREAM(name, suffix, stream)                                                            \
	INTERPOSE(name##EventRecord##suffix, (device_event ev, device_stream s), (ev, s), NOTHING, \
		  edges_recorded(ev, stream, call_ns))                                             \
	INTERPOSE(name##EventRecordWithFlags##suffix,                                              \
		  (device_event ev, device_stream s, unsigned int flags), (ev, s, flags), NOTHING, \
		  if (flags != RECORD_EXTERNAL) edges_recorded(ev, stream, call_ns))               \
	INTERPOSE(name##StreamWaitEvent##suffix,                                                   \
		  (device_stream s, device_event ev, unsigned int flags), (s, ev, flags),          \
		  if (flags != RECORD_EXTERNAL) edges_waits(stream, ev, call_ns),                  \
		  if (flags != RECORD_EXTERNAL) edges_waited(stream, ev))                          \
	INTERPOSE(name##StreamSynchronize##suffix, (device_stream s), (s), NOTHING,                \
		  edges_stream_synced(stream, call_ns))                                            \
	INTERPOSE(name##StreamQuery##suffix, (device_stream s), (s), NOTHING,                      \
		  edges_stream_synced(stream, call_ns))

#define ON_EVENT(name)                                                      \
	INTERPOSE(name##EventSynchronize, (device_event ev), (ev), NOTHING, \
		  edges_event_synced(ev, call_ns))                          \
	INTERPOSE(name##EventQuery, (device_event ev), (ev), NOTHING,       \
		  edges_event_synced(ev, call_ns))

#define ENDS(event, stream)                                                              \
	INTERPOSE(event, (device_event ev), (ev), edges_forget_event(ev), (void)call_ns) \
	INTERPOSE(stream, (device_stream s), (s), edges_forget_stream(s), (void)call_ns)

ON_STREAM(cuda, , s)
ON_STREAM(cuda, _ptsz, own(s))
ON_EVENT(cuda)
ENDS(cudaEventDestroy, cudaStreamDestroy)
INTERPOSE(cudaDeviceSynchronize, (void), (), NOTHING, edges_device_synced(call_ns))
INTERPOSE(cudaMemcpy, (void *dst, const void *src, size_t bytes, int kind), (dst, src, bytes, kind),
	  NOTHING, edges_stream_synced(NULL, call_ns))
INTERPOSE(cudaMemcpy_ptds, (void *dst, const void *src, size_t bytes, int kind),
	  (dst, src, bytes, kind), NOTHING, edges_stream_synced(PER_THREAD, call_ns))

ON_STREAM(cu, , s)
ON_STREAM(cu, _ptsz, own(s))
ON_EVENT(cu)
ENDS(cuEventDestroy_v2, cuStreamDestroy_v2)
INTERPOSE(cuCtxSynchronize, (void), (), NOTHING, edges_device_synced(call_ns))

/* Work of the job's tells a stream that computes from one of nothing but ops. The struct is CUDA's
 * dim3; a kernel's configuration has its stream behind two of them and a size, the driver's also:
 * its size is followed by a gap. */
struct dim3 {
	unsigned int x, y, z;
};

static device_stream stream_of(const void *config)
{
	device_stream s;

	memcpy(&s, (const char *)config + 2 * sizeof(struct dim3) + sizeof(size_t), sizeof(s));
	return s;
}

#define WORK(name, stream, params, args)                                       \
	EXPORT int name params                                                 \
	{                                                                      \
		static _Atomic(void *) known;                                  \
		int(*real) params = (int(*) params)find(&known, #name), saved; \
                                                                               \
		if (!real)                                                     \
			return UNKNOWN;                                        \
		saved = errno;                                                 \
		edges_worked(stream);                                          \
		errno = saved;                                                 \
		return real args;                                              \
	}
#define WORK_ON_STREAM(suffix, stream)                                                             \
	WORK(cudaLaunchKernel##suffix, stream,                                                     \
	     (const void *fn, struct dim3 grid, struct dim3 block, void **args, size_t bytes,      \
	      device_stream s),                                                                    \
	     (fn, grid, block, args, bytes, s))                                                    \
	WORK(__cudaLaunchKernel##suffix, stream,                                                   \
	     (void *fn, struct dim3 grid, struct dim3 block, void **args, size_t bytes,            \
	      device_stream s),                                                                    \
	     (fn, grid, block, args, bytes, s))                                                    \
	WORK(cudaLaunchHostFunc##suffix, stream, (device_stream s, void (*fn)(void *), void *arg), \
	     (s, fn, arg))                                                                         \
	WORK(cudaLaunchCooperativeKernel##suffix, stream,                                          \
	     (const void *fn, struct dim3 grid, struct dim3 block, void **args, size_t bytes,      \
	      device_stream s),                                                                    \
	     (fn, grid, block, args, bytes, s))                                                    \
	WORK(cudaMemcpyAsync##suffix, stream,                                                      \
	     (void *dst, const void *src, size_t bytes, int kind, device_stream s),                \
	     (dst, src, bytes, kind, s))                                                           \
	WORK(cudaMemcpy2DAsync##suffix, stream,                                                    \
	     (void *dst, size_t to, const void *src, size_t from, size_t width, size_t height,     \
	      int kind, device_stream s),                                                          \
	     (dst, to, src, from, width, height, kind, s))                                         \
	WORK(cudaMemcpyPeerAsync##suffix, stream,                                                  \
	     (void *dst, int to, const void *src, int from, size_t bytes, device_stream s),        \
	     (dst, to, src, from, bytes, s))                                                       \
	WORK(cudaMemsetAsync##suffix, stream,                                                      \
	     (void *ptr, int byte, size_t bytes, device_stream s), (ptr, byte, bytes, s))          \
	WORK(cuLaunchKernel##suffix, stream,                                                       \
	     (void *fn, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,        \
	      unsigned int by, unsigned int bz, unsigned int bytes, device_stream s, void **args,  \
	      void **extra),                                                                       \
	     (fn, gx, gy, gz, bx, by, bz, bytes, s, args, extra))                                  \
	WORK(cuLaunchCooperativeKernel##suffix, stream,                                            \
	     (void *fn, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,        \
	      unsigned int by, unsigned int bz, unsigned int bytes, device_stream s, void **args), \
	     (fn, gx, gy, gz, bx, by, bz, bytes, s, args))
#define WORK_OF_CONFIG(suffix, stream)                                              \
	WORK(cudaLaunchKernelExC##suffix, stream,                                   \
	     (const void *config, const void *fn, void **args), (config, fn, args)) \
	WORK(cuLaunchKernelEx##suffix, stream,                                      \
	     (const void *config, void *fn, void **args, void **extra), (config, fn, args, extra))

WORK_ON_STREAM(, s)
WORK_ON_STREAM(_ptsz, own(s))
WORK_OF_CONFIG(, stream_of(config))
WORK_OF_CONFIG(_ptsz, own(stream_of(config)))

/* Graphs. The older forms of instantiating and updating have more parameters. They are passed on:
 * of a newer form that is what the registers hold, and the real function does not look. */
#define GRAPH_ON_STREAM(name, suffix, stream)                                                     \
	INTERPOSE(name##StreamEndCapture##suffix, (device_stream s, void **graph), (s, graph),    \
		  uint64_t capture = edges_capture(stream);                                       \
		  (void)call_ns, edges_captured(stream, capture, *graph))                         \
	INTERPOSE(name##GraphLaunch##suffix, (void *exec, device_stream s), (exec, s),            \
		  edges_launches(exec, stream, call_ns), NOTHING)                                 \
	INTERPOSE(name##GraphInstantiateWithParams##suffix,                                       \
		  (void **exec, void *graph, void *params), (exec, graph, params), (void)call_ns, \
		  edges_graph_copied(*exec, graph))
#define INSTANTIATE(name)                                                           \
	INTERPOSE(name, (void **exec, void *graph, void *a, void *b, size_t bytes), \
		  (exec, graph, a, b, bytes), (void)call_ns, edges_graph_copied(*exec, graph))
#define UPDATE(name)                                                                      \
	INTERPOSE(name, (void *exec, void *graph, void *a, void *b), (exec, graph, a, b), \
		  (void)call_ns, edges_graph_copied(exec, graph))
#define GRAPH(name)                                                                             \
	INSTANTIATE(name##GraphInstantiate)                                                     \
	INSTANTIATE(name##GraphInstantiateWithFlags)                                            \
	UPDATE(name##GraphExecUpdate)                                                           \
	INTERPOSE(name##GraphClone, (void **clone, void *graph), (clone, graph), (void)call_ns, \
		  edges_graph_copied(*clone, graph))                                            \
	INTERPOSE(name##GraphDestroy, (void *graph), (graph), edges_forget_graph(graph),        \
		  (void)call_ns)                                                                \
	INTERPOSE(name##GraphExecDestroy, (void *exec), (exec), edges_forget_graph(exec),       \
		  (void)call_ns)

GRAPH_ON_STREAM(cuda, , s)
GRAPH_ON_STREAM(cuda, _ptsz, own(s))
GRAPH_ON_STREAM(cu, , s)
GRAPH_ON_STREAM(cu, _ptsz, own(s))
GRAPH(cuda)
GRAPH(cu)
INSTANTIATE(cuGraphInstantiate_v2)
UPDATE(cuGraphExecUpdate_v2)
