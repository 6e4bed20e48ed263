/* See cuda-driver.h. */
#include "shim/gate/cuda-driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "shim/gate/cuda-runtime.h"

/* The file that the code at @ptr was loaded from; NULL: none. */
static const void *object_of(const void *ptr)
{
	Dl_info info;

	return ptr && dladdr(ptr, &info) ? info.dli_fbase : NULL;
}

/* The driver's function as the process's CUDA runtime knows it. Return: false: there is no runtime
 * to ask, it may be linked statically. */
static bool ask_runtime(const char *symbol, void **ret)
{
	int (*by_version)(const char *, void **, unsigned int, unsigned long long, int *);
	int (*plain)(const char *, void **, unsigned long long, int *);
	void *runtime = cuda_runtime_find();
	int status = 0;

	*ret = NULL;
	if (runtime == CUDA_RUNTIME_NONE)
		return false;
	by_version = (__typeof__(by_version))dlsym(runtime, "cudaGetDriverEntryPointByVersion");
	plain = (__typeof__(plain))dlsym(runtime, "cudaGetDriverEntryPoint");
	if (by_version && by_version(symbol, ret, 12000, 0, &status))
		*ret = NULL;
	else if (!by_version && plain && plain(symbol, ret, 0, &status))
		*ret = NULL;
	return true;
}

static int refuse_foreign_runtime(void *driver, struct err *err)
{
	void *ours = dlsym(driver, "cuStreamBatchMemOp_v2"), *theirs;

	if (!ask_runtime("cuStreamBatchMemOp", &theirs))
		return 0;
	if (theirs && object_of(theirs) == object_of(ours))
		return 0;
	return err_set(err, ENOTSUP,
		       "the CUDA runtime of this process does not stand on libcuda.so.1 (or is "
		       "older than CUDA 12): use NBOX_DEVICE=host");
}

int cuda_driver_find(struct cuda_driver *ret, struct err *err)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	struct cuda_driver d;
	int r;

	if (!handle)
		handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return err_set(err, ENOENT, "there is no NVIDIA driver here (libcuda.so.1: %s)",
			       dlerror());
	if (dlsym(handle, "nbox_host_driver")) /* emulator/standins/driver's mark */
		return err_set(err, ENXIO,
			       "libcuda.so.1 is nbox's host stand-in, not NVIDIA's driver");
#define LOOK_UP(field, name, params)                            \
	d.field = (__typeof__(d.field))dlsym(handle, #name);    \
	if (!d.field)                                           \
		return err_set(err, ENOTSUP,                    \
			       "the NVIDIA driver lacks " #name \
			       ": it is older than CUDA 12, update it or use NBOX_DEVICE=host");
	CUDA_DRIVER_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	d.StreamGetDevice = (__typeof__(d.StreamGetDevice))dlsym(handle, "cuStreamGetDevice");
	d.StreamGetCaptureInfo =
		(__typeof__(d.StreamGetCaptureInfo))dlsym(handle, "cuStreamGetCaptureInfo_v3");
	if (!d.StreamGetCaptureInfo)
		d.StreamGetCaptureInfo =
			(__typeof__(d.StreamGetCaptureInfo))dlsym(handle,
								  "cuStreamGetCaptureInfo_v2");
	r = refuse_foreign_runtime(handle, err);
	if (r)
		return r;
	*ret = d;
	return 0;
}

const char *cuda_driver_error(const struct cuda_driver *d, CUresult error)
{
	static _Thread_local char number[24];
	const char *name = NULL;

	if (d->GetErrorName(error, &name) == CUDA_SUCCESS && name)
		return name;
	snprintf(number, sizeof(number), "error %d", (int)error);
	return number;
}
