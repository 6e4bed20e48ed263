/* NCCL's functions that host NCCL does not have: the device API, which needs
 * a GPU's memory and kernels, and the newest functions about communicators. Programs such as
 * PyTorch ask the dynamic linker for them before they use any. A call of one returns an error
 * that says so.
 *
 * They are declared here and not in nccl.h, so that programs which are compiled against that
 * header do not find them. The arguments are ignored. */
#include "standins/nccl/comm.h"

#define EXPORT __attribute__((visibility("default")))
#define ABSENT(name)                                                                               \
	EXPORT ncclResult_t name(void);                                                            \
	EXPORT ncclResult_t name(void)                                                             \
	{                                                                                          \
		return fail(ncclInvalidUsage, #name ": host NCCL has no such call; programs that " \
						    "need it run on GPUs only");                   \
	}

/* NCCL 2.28 */
ABSENT(ncclDevCommCreate)
ABSENT(ncclDevCommDestroy)
/* NCCL 2.29 and later */
ABSENT(ncclCommGetUniqueId)
ABSENT(ncclCommGrow)
ABSENT(ncclCommMemStats)
ABSENT(ncclCommResume)
ABSENT(ncclCommSuspend)
ABSENT(ncclGetLsaMultimemDevicePointer)
ABSENT(ncclGetPeerDevicePointer)
ABSENT(ncclWinGetUserPtr)
