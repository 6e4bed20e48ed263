/* See cuda-runtime.h. */
#include "shim/gate/cuda-runtime.h"

#include <dlfcn.h>

#include "base/cleanup.h"

void *cuda_runtime_find(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
					    "libcudart.so.11.0", "libcudart.so"};
	void *handle;

	if (dlsym(RTLD_DEFAULT, "cudaLaunchHostFunc"))
		return RTLD_DEFAULT;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
		if (handle && dlsym(handle, "cudaLaunchHostFunc"))
			return handle;
	}
	return CUDA_RUNTIME_NONE;
}
