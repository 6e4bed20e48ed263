/* Names and sentences of errors. Sentences are our own; no program may depend on them. */
#include <stddef.h>

#include "runtime.h"

#define ERROR(name, sentence)         \
	{                             \
		name, #name, sentence \
	}

static const struct {
	int error;
	const char *name, *sentence;
} errors[] = {
	ERROR(cudaSuccess, "no error"),
	ERROR(cudaErrorInvalidValue, "invalid argument"),
	ERROR(cudaErrorMemoryAllocation, "out of memory"),
	ERROR(cudaErrorInitializationError, "initialization error"),
	ERROR(cudaErrorCudartUnloading, "the runtime is being unloaded"),
	ERROR(cudaErrorProfilerDisabled, "profiler disabled"),
	ERROR(cudaErrorProfilerNotInitialized, "profiler not initialized"),
	ERROR(cudaErrorProfilerAlreadyStarted, "profiler already started"),
	ERROR(cudaErrorProfilerAlreadyStopped, "profiler already stopped"),
	ERROR(cudaErrorInvalidConfiguration, "invalid configuration"),
	ERROR(cudaErrorInvalidPitchValue, "invalid pitch"),
	ERROR(cudaErrorInvalidSymbol, "invalid symbol"),
	ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
	ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
	ERROR(cudaErrorInvalidTexture, "invalid texture"),
	ERROR(cudaErrorInvalidTextureBinding, "invalid texture binding"),
	ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
	ERROR(cudaErrorInvalidMemcpyDirection, "invalid direction of a copy"),
	ERROR(cudaErrorAddressOfConstant, "address of constant"),
	ERROR(cudaErrorTextureFetchFailed, "texture fetch failed"),
	ERROR(cudaErrorTextureNotBound, "texture not bound"),
	ERROR(cudaErrorSynchronizationError, "synchronization error"),
	ERROR(cudaErrorInvalidFilterSetting, "invalid filter setting"),
	ERROR(cudaErrorInvalidNormSetting, "invalid norm setting"),
	ERROR(cudaErrorMixedDeviceExecution, "mixed device execution"),
	ERROR(cudaErrorNotYetImplemented, "not yet implemented"),
	ERROR(cudaErrorMemoryValueTooLarge, "memory value too large"),
	ERROR(cudaErrorStubLibrary, "stub library"),
	ERROR(cudaErrorInsufficientDriver, "insufficient driver"),
	ERROR(cudaErrorCallRequiresNewerDriver, "call requires newer driver"),
	ERROR(cudaErrorInvalidSurface, "invalid surface"),
	ERROR(cudaErrorDuplicateVariableName, "duplicate variable name"),
	ERROR(cudaErrorDuplicateTextureName, "duplicate texture name"),
	ERROR(cudaErrorDuplicateSurfaceName, "duplicate surface name"),
	ERROR(cudaErrorDevicesUnavailable, "devices unavailable"),
	ERROR(cudaErrorIncompatibleDriverContext, "incompatible driver context"),
	ERROR(cudaErrorMissingConfiguration, "missing configuration"),
	ERROR(cudaErrorPriorLaunchFailure, "prior launch failure"),
	ERROR(cudaErrorLaunchMaxDepthExceeded, "launch max depth exceeded"),
	ERROR(cudaErrorLaunchFileScopedTex, "launch file scoped tex"),
	ERROR(cudaErrorLaunchFileScopedSurf, "launch file scoped surf"),
	ERROR(cudaErrorSyncDepthExceeded, "sync depth exceeded"),
	ERROR(cudaErrorLaunchPendingCountExceeded, "launch pending count exceeded"),
	ERROR(cudaErrorInvalidDeviceFunction,
	      "invalid device function: there are no kernels on a host device"),
	ERROR(cudaErrorNoDevice, "no device is there"),
	ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
	ERROR(cudaErrorDeviceNotLicensed, "device not licensed"),
	ERROR(cudaErrorSoftwareValidityNotEstablished, "software validity not established"),
	ERROR(cudaErrorStartupFailure, "startup failure"),
	ERROR(cudaErrorInvalidKernelImage, "invalid kernel image"),
	ERROR(cudaErrorDeviceUninitialized, "device uninitialized"),
	ERROR(cudaErrorMapBufferObjectFailed, "map buffer object failed"),
	ERROR(cudaErrorUnmapBufferObjectFailed, "unmap buffer object failed"),
	ERROR(cudaErrorArrayIsMapped, "array is mapped"),
	ERROR(cudaErrorAlreadyMapped, "already mapped"),
	ERROR(cudaErrorNoKernelImageForDevice, "no kernel image for device"),
	ERROR(cudaErrorAlreadyAcquired, "already acquired"),
	ERROR(cudaErrorNotMapped, "not mapped"),
	ERROR(cudaErrorNotMappedAsArray, "not mapped as array"),
	ERROR(cudaErrorNotMappedAsPointer, "not mapped as pointer"),
	ERROR(cudaErrorECCUncorrectable, "ECC uncorrectable"),
	ERROR(cudaErrorUnsupportedLimit, "unsupported limit"),
	ERROR(cudaErrorDeviceAlreadyInUse, "device already in use"),
	ERROR(cudaErrorPeerAccessUnsupported, "peer access unsupported"),
	ERROR(cudaErrorInvalidPtx, "invalid ptx"),
	ERROR(cudaErrorInvalidGraphicsContext, "invalid graphics context"),
	ERROR(cudaErrorNvlinkUncorrectable, "nvlink uncorrectable"),
	ERROR(cudaErrorJitCompilerNotFound, "jit compiler not found"),
	ERROR(cudaErrorUnsupportedPtxVersion, "unsupported ptx version"),
	ERROR(cudaErrorJitCompilationDisabled, "jit compilation disabled"),
	ERROR(cudaErrorUnsupportedExecAffinity, "unsupported exec affinity"),
	ERROR(cudaErrorUnsupportedDevSideSync, "unsupported dev side sync"),
	ERROR(cudaErrorContained, "contained"),
	ERROR(cudaErrorInvalidSource, "invalid source"),
	ERROR(cudaErrorFileNotFound, "file not found"),
	ERROR(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found"),
	ERROR(cudaErrorSharedObjectInitFailed, "shared object init failed"),
	ERROR(cudaErrorOperatingSystem, "a call of the operating system failed"),
	ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
	ERROR(cudaErrorIllegalState, "the operation is not allowed in this state"),
	ERROR(cudaErrorLossyQuery, "lossy query"),
	ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
	ERROR(cudaErrorNotReady, "device not ready"),
	ERROR(cudaErrorIllegalAddress, "illegal address"),
	ERROR(cudaErrorLaunchOutOfResources, "launch out of resources"),
	ERROR(cudaErrorLaunchTimeout, "launch timeout"),
	ERROR(cudaErrorLaunchIncompatibleTexturing, "launch incompatible texturing"),
	ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
	ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
	ERROR(cudaErrorSetOnActiveProcess, "set on active process"),
	ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
	ERROR(cudaErrorAssert, "assert"),
	ERROR(cudaErrorTooManyPeers, "too many peers"),
	ERROR(cudaErrorHostMemoryAlreadyRegistered,
	      "a part of this memory is already registered or allocated here"),
	ERROR(cudaErrorHostMemoryNotRegistered, "this memory is not registered"),
	ERROR(cudaErrorHardwareStackError, "hardware stack error"),
	ERROR(cudaErrorIllegalInstruction, "illegal instruction"),
	ERROR(cudaErrorMisalignedAddress, "misaligned address"),
	ERROR(cudaErrorInvalidAddressSpace, "invalid address space"),
	ERROR(cudaErrorInvalidPc, "invalid pc"),
	ERROR(cudaErrorLaunchFailure, "launch failure"),
	ERROR(cudaErrorCooperativeLaunchTooLarge, "cooperative launch too large"),
	ERROR(cudaErrorTensorMemoryLeak, "tensor memory leak"),
	ERROR(cudaErrorNotPermitted, "operation not permitted"),
	ERROR(cudaErrorNotSupported, "operation not supported"),
	ERROR(cudaErrorSystemNotReady, "system not ready"),
	ERROR(cudaErrorSystemDriverMismatch, "system driver mismatch"),
	ERROR(cudaErrorCompatNotSupportedOnDevice, "compat not supported on device"),
	ERROR(cudaErrorMpsConnectionFailed, "mps connection failed"),
	ERROR(cudaErrorMpsRpcFailure, "mps rpc failure"),
	ERROR(cudaErrorMpsServerNotReady, "mps server not ready"),
	ERROR(cudaErrorMpsMaxClientsReached, "mps max clients reached"),
	ERROR(cudaErrorMpsMaxConnectionsReached, "mps max connections reached"),
	ERROR(cudaErrorMpsClientTerminated, "mps client terminated"),
	ERROR(cudaErrorCdpNotSupported, "cdp not supported"),
	ERROR(cudaErrorCdpVersionMismatch, "cdp version mismatch"),
	ERROR(cudaErrorStreamCaptureUnsupported,
	      "operation not permitted while a stream is capturing"),
	ERROR(cudaErrorStreamCaptureInvalidated,
	      "operation failed because of an earlier error during capture"),
	ERROR(cudaErrorStreamCaptureMerge, "the operation would merge two captures"),
	ERROR(cudaErrorStreamCaptureUnmatched, "the capture did not begin on this stream"),
	ERROR(cudaErrorStreamCaptureUnjoined,
	      "a captured stream was not joined into the one where the capture began"),
	ERROR(cudaErrorStreamCaptureIsolation,
	      "the operation would make a capture depend on work outside it"),
	ERROR(cudaErrorStreamCaptureImplicit,
	      "the operation would depend on the legacy stream implicitly during a capture"),
	ERROR(cudaErrorCapturedEvent,
	      "operation not permitted on an event last recorded in a capturing stream"),
	ERROR(cudaErrorStreamCaptureWrongThread, "the capture was begun by another thread"),
	ERROR(cudaErrorTimeout, "timeout"),
	ERROR(cudaErrorGraphExecUpdateFailure, "graph exec update failure"),
	ERROR(cudaErrorExternalDevice, "external device"),
	ERROR(cudaErrorInvalidClusterSize, "invalid cluster size"),
	ERROR(cudaErrorFunctionNotLoaded, "function not loaded"),
	ERROR(cudaErrorInvalidResourceType, "invalid resource type"),
	ERROR(cudaErrorInvalidResourceConfiguration, "invalid resource configuration"),
	ERROR(cudaErrorUnknown, "unknown error"),
};

/* Return: the index of @error, or -1. */
static int find(int error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return (int)i;
	return -1;
}

const char *cudaGetErrorName(cudaError_t error)
{
	int i = find((int)error);

	return i < 0 ? "unrecognized error code" : errors[i].name;
}

const char *cudaGetErrorString(cudaError_t error)
{
	int i = find((int)error);

	return i < 0 ? "unrecognized error code" : errors[i].sentence;
}
