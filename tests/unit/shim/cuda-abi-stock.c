/* What the vendor's cuda.h says; and that our table's functions have its types. */
#include <cuda.h>

#include "shim/gate/cuda-driver.h"
#include "tests/unit/shim/cuda-abi.h"

#define SAME_TYPE(field, name, params)                                                             \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name),                             \
						    __typeof__(((struct cuda_driver *)0)->field)), \
		       #name " has another type");
CUDA_DRIVER_FUNCTIONS(SAME_TYPE)

const long cuda_abi_stock[] = {CUDA_ABI_NUMBERS};
const size_t n_cuda_abi_stock = sizeof(cuda_abi_stock) / sizeof(cuda_abi_stock[0]);
