/* See cuda-runtime.h. */
#include "shim/gate/cuda-runtime.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/cleanup.h"

#define A_FUNCTION "cudaLaunchHostFunc"

/* The first in the process that is not libnbox.so's own. */
static const void *a_function(Dl_info *ret_where)
{
	const void *fn = dlsym(RTLD_DEFAULT, A_FUNCTION);
	Dl_info own;

	if (fn && dladdr(fn, ret_where) && dladdr((void *)cuda_runtime_find, &own) &&
	    own.dli_fbase == ret_where->dli_fbase)
		fn = dlsym(RTLD_NEXT, A_FUNCTION);
	return fn && dladdr(fn, ret_where) ? fn : NULL;
}

void *cuda_runtime_find(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
					    "libcudart.so.11.0", "libcudart.so"};
	const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD;
	Dl_info where;
	void *handle;

	if (a_function(&where)) {
		handle = dlopen(where.dli_fname, how);
		return handle ? handle : RTLD_DEFAULT; /* the program itself has it */
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		handle = dlopen(names[i], how);
		if (handle && dlsym(handle, A_FUNCTION))
			return handle;
	}
	return CUDA_RUNTIME_NONE;
}
