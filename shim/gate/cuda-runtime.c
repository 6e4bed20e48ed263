/* See cuda-runtime.h. */
#include "shim/gate/cuda-runtime.h"

#include <dlfcn.h>

#include "base/cleanup.h"

void *cuda_runtime_find(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
					    "libcudart.so.11.0", "libcudart.so"};
	const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD;
	void *handle, *seen;
	Dl_info where;

	seen = dlsym(RTLD_DEFAULT, "cudaLaunchHostFunc");
	if (seen) {
		handle = dladdr(seen, &where) ? dlopen(where.dli_fname, how) : NULL;
		return handle ? handle : RTLD_DEFAULT; /* the program itself has it */
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		handle = dlopen(names[i], how);
		if (handle && dlsym(handle, "cudaLaunchHostFunc"))
			return handle;
	}
	return CUDA_RUNTIME_NONE;
}
