/* Calls that the host CUDA runtime has not: libraries of device code, conditional graph nodes,
 * captures into a graph that is there. Programs such as PyTorch ask the dynamic linker for them
 * before they use any; to call one is cudaErrorNotSupported.
 *
 * They are declared here and in no header: programs that are compiled against ours shall not find
 * them. The arguments are not looked at. */
#include "runtime.h"

#define ABSENT(name)                                          \
	NBOX_CUDART_API cudaError_t name(void);               \
	cudaError_t name(void)                                \
	{                                                     \
		return runtime_return(cudaErrorNotSupported); \
	}

ABSENT(cudaGraphAddNode)
ABSENT(cudaGraphConditionalHandleCreate)
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
