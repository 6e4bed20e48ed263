/* libcuda.so.1 for test environments. It is nearly empty: all that it offers lies in the host
 * CUDA runtime, which it links. It is never installed, and lies on the library path of such an
 * environment only. */
#include <cuda.h>

/* A reference, so that the linker notes the need; and a mark by which people, and libnbox,
 * recognise the library. */
__attribute__((visibility("default"))) CUresult (*const nbox_host_driver)(unsigned int) = cuInit;
