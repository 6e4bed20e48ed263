/* What a stock nccl.h says. */
#include <nccl.h>

#include "tests/unit/shim/abi.h"

const long abi_stock[] = {ABI_NUMBERS};
const size_t abi_stock_blocking = offsetof(ncclConfig_t, blocking);
const size_t abi_stock_config = sizeof(ncclConfig_t);
const size_t abi_stock_names[3] = {
	offsetof(ncclConfig_t, netName),
#if NCCL_VERSION_CODE >= 22700
	offsetof(ncclConfig_t, commName),
	offsetof(ncclConfig_t, nvlsCTAs),
#endif
};
