/* More of the libcuda.so.1 of tests (driver.c): the driver's forms of what jobs call on streams and
 * events, and those for per-thread default streams, of the driver and of the runtime. Each is the
 * runtime's function, which is called past libnbox.so. Launches of the driver do nothing: what
 * libnbox.so sees of them comes before. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <dlfcn.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FORM(name, params, runtime, args)       \
	EXPORT int name params                  \
	{                                       \
		return (int)NEXT(runtime) args; \
	}
#define OWN (s ? s : cudaStreamPerThread)

#define BOTH_PTSZ(what, params, args)                   \
	FORM(cu##what##_ptsz, params, cuda##what, args) \
	FORM(cuda##what##_ptsz, params, cuda##what, args)
BOTH_PTSZ(EventRecord, (cudaEvent_t ev, cudaStream_t s), (ev, OWN))
BOTH_PTSZ(EventRecordWithFlags, (cudaEvent_t ev, cudaStream_t s, unsigned int flags),
	  (ev, OWN, flags))
BOTH_PTSZ(StreamWaitEvent, (cudaStream_t s, cudaEvent_t ev, unsigned int flags), (OWN, ev, flags))
BOTH_PTSZ(StreamSynchronize, (cudaStream_t s), (OWN))
BOTH_PTSZ(StreamQuery, (cudaStream_t s), (OWN))

/* driver.c has the others: the gate uses them. */
FORM(cuEventRecordWithFlags, (cudaEvent_t ev, cudaStream_t s, unsigned int flags),
     cudaEventRecordWithFlags, (ev, s, flags))
FORM(cuEventSynchronize, (cudaEvent_t ev), cudaEventSynchronize, (ev))
FORM(cuEventQuery, (cudaEvent_t ev), cudaEventQuery, (ev))
FORM(cuStreamQuery, (cudaStream_t s), cudaStreamQuery, (s))
FORM(cuStreamDestroy_v2, (cudaStream_t s), cudaStreamDestroy, (s))

FORM(cudaMemcpy_ptds, (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind),
     cudaMemcpy, (dst, src, bytes, kind))

BOTH_PTSZ(StreamEndCapture, (cudaStream_t s, cudaGraph_t *graph), (OWN, graph))
BOTH_PTSZ(GraphLaunch, (cudaGraphExec_t exec, cudaStream_t s), (exec, OWN))
FORM(cuStreamEndCapture, (cudaStream_t s, cudaGraph_t *graph), cudaStreamEndCapture, (s, graph))
FORM(cuGraphLaunch, (cudaGraphExec_t exec, cudaStream_t s), cudaGraphLaunch, (exec, s))
FORM(cuGraphDestroy, (cudaGraph_t graph), cudaGraphDestroy, (graph))
FORM(cuGraphExecDestroy, (cudaGraphExec_t exec), cudaGraphExecDestroy, (exec))

#define INSTANTIATE(name)                                                             \
	FORM(name, (cudaGraphExec_t * exec, cudaGraph_t graph), cudaGraphInstantiate, \
	     (exec, graph, 0))
INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)
INSTANTIATE(cuGraphInstantiateWithFlags)
INSTANTIATE(cuGraphInstantiateWithParams)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz)
INSTANTIATE(cudaGraphInstantiateWithParams)
INSTANTIATE(cudaGraphInstantiateWithParams_ptsz)

/* The runtime has none: a clone is a handle that only libnbox.so looks at, and an update is none.
 */
#define CLONE(name)                                            \
	EXPORT int name(cudaGraph_t *clone, cudaGraph_t graph) \
	{                                                      \
		*clone = (cudaGraph_t)((uintptr_t)graph ^ 1);  \
		return CUDA_SUCCESS;                           \
	}
CLONE(cudaGraphClone)
CLONE(cuGraphClone)

#define NOTHING(name)                \
	EXPORT int name(void)        \
	{                            \
		return CUDA_SUCCESS; \
	}
#define PTSZ_NOTHING(name) NOTHING(cuda##name##_ptsz)
PTSZ_NOTHING(LaunchKernel)
PTSZ_NOTHING(LaunchKernelExC)
PTSZ_NOTHING(LaunchCooperativeKernel)
PTSZ_NOTHING(LaunchHostFunc)
PTSZ_NOTHING(MemcpyAsync)
PTSZ_NOTHING(Memcpy2DAsync)
PTSZ_NOTHING(MemcpyPeerAsync)
PTSZ_NOTHING(MemsetAsync)
NOTHING(__cudaLaunchKernel_ptsz)
NOTHING(cuLaunchKernel_ptsz)
NOTHING(cuLaunchKernelEx)
NOTHING(cuLaunchKernelEx_ptsz)
NOTHING(cuLaunchCooperativeKernel)
NOTHING(cuLaunchCooperativeKernel_ptsz)
NOTHING(cudaGraphExecUpdate)
NOTHING(cuGraphExecUpdate)
NOTHING(cuGraphExecUpdate_v2)
