/* What shim/gate/cuda-driver.h says. */
#include "shim/gate/cuda-driver.h"
#include "tests/unit/shim/cuda-abi.h"

const long cuda_abi_ours[] = {CUDA_ABI_NUMBERS};
const size_t n_cuda_abi_ours = sizeof(cuda_abi_ours) / sizeof(cuda_abi_ours[0]);
