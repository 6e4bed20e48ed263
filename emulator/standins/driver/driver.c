/* libcuda.so.1 for test environments: nearly empty, for all that it offers lies in the host CUDA
 * runtime that it needs. Never installed, and on no library path but that of such an environment.
 */
#include <cuda.h>

/* A reference, so that the linker notes the need; and a mark by which people, and libnbox,
 * recognise the library. */
__attribute__((visibility("default"))) CUresult (*const nbox_host_driver)(unsigned int) = cuInit;
