/* See cuda-runtime.h. */
#include "shim/gate/cuda-runtime.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/cleanup.h"

#define A_FUNCTION "cudaLaunchHostFunc"

/* Where the process's own scope has it first, after libnbox.so's. (RTLD_DEFAULT asks libnbox.so
 * first: it is linked with -Bsymbolic.) */
static bool is_seen(void *process, Dl_info *ret_where)
{
	const void *fn = dlsym(process, A_FUNCTION);
	Dl_info own;

	if (fn && dladdr(fn, ret_where) && dladdr((void *)cuda_runtime_find, &own) &&
	    own.dli_fbase == ret_where->dli_fbase)
		fn = dlsym(RTLD_NEXT, A_FUNCTION);
	return fn && dladdr(fn, ret_where);
}

void *cuda_runtime_find(void)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
					    "libcudart.so.11.0", "libcudart.so"};
	const int how = RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD;
	void *handle, *process = dlopen(NULL, how);
	Dl_info where;

	if (process && is_seen(process, &where)) {
		handle = dlopen(where.dli_fname, how);
		return handle ? handle : process; /* the program itself has it */
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		handle = dlopen(names[i], how);
		if (handle && dlsym(handle, A_FUNCTION))
			return handle;
	}
	return CUDA_RUNTIME_NONE;
}

bool cuda_runtime_is_host(void)
{
	void *handle = cuda_runtime_find();

	return handle != CUDA_RUNTIME_NONE && dlsym(handle, "__cudaNboxProduct");
}
