/* One side of the comparison: abi_theirs with -DABI_THEIRS and NVIDIA's headers in front. */
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "abi-kernels.h"
#include "abi-table.h"

#define FUNCTION(name, ret, ...)                                                         \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), ret(__VA_ARGS__)), \
		       #name " has another type");
ABI_FUNCTIONS(FUNCTION)
ABI_FUNCTIONS_2(FUNCTION)

#define CONSTANT(name) {#name, (unsigned long long)(name)},
#define SIZE(type) {"sizeof " #type, sizeof(type)},
#define OFFSET(type, field) {"offset of " #field " in " #type, offsetof(type, field)},

#ifdef ABI_THEIRS
#define ROWS abi_theirs
#define N_ROWS abi_n_theirs
#else
#define ROWS abi_ours
#define N_ROWS abi_n_ours
#endif

const struct abi_row ROWS[] = {
	ABI_CONSTANTS(CONSTANT) ABI_DRIVER_CONSTANTS(CONSTANT) ABI_SIZES(SIZE) ABI_OFFSETS(OFFSET)
		ABI_CONSTANTS_2(CONSTANT) ABI_SIZES_2(SIZE) ABI_OFFSETS_2(OFFSET)
			CONSTANT((size_t)cudaStreamLegacy) CONSTANT((size_t)cudaStreamPerThread)};
const unsigned N_ROWS = sizeof(ROWS) / sizeof(ROWS[0]);
