/* CUDA functions that the host CUDA runtime does not have: libraries of device code, conditional
 * graph nodes, captures into an existing graph, batches of copies (NCCL's between symmetric
 * windows, which need virtual memory). Programs such as PyTorch ask the dynamic linker for them
 * before they use any. A call of one returns cudaErrorNotSupported.
 *
 * They are declared here and in no header, so that programs which are compiled against our
 * headers do not find them. The arguments are ignored. */
#include "runtime.h"

#define ABSENT(name)                                          \
	NBOX_CUDART_API cudaError_t name(void);               \
	cudaError_t name(void)                                \
	{                                                     \
		return runtime_return(cudaErrorNotSupported); \
	}

ABSENT(cudaGraphAddNode)
ABSENT(cudaGraphConditionalHandleCreate)
ABSENT(cudaMemcpyBatchAsync)
ABSENT(cudaStreamBeginCaptureToGraph)
ABSENT(cudaKernelSetAttributeForDevice)
ABSENT(cudaLibraryGetGlobal)
ABSENT(cudaLibraryGetKernel)
ABSENT(cudaLibraryGetKernelCount)
ABSENT(cudaLibraryGetManaged)
ABSENT(cudaLibraryGetUnifiedFunction)
ABSENT(cudaLibraryLoadData)
ABSENT(cudaLibraryLoadFromFile)
ABSENT(cudaLibraryUnload)
