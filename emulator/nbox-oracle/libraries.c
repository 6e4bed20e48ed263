/* See libraries.h. */
#include "nbox-oracle/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

struct wanted {
	const char *name;
	void **to;
};

static int find(void *library, const char *file, const struct wanted *w, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		*w[i].to = dlsym(library, w[i].name);
		if (!*w[i].to)
			return err_set(err, ENOSYS, "%s has no %s", file, w[i].name);
	}
	return 0;
}

/* The runtime that lies where PyPI's packages put it: nvidia/nccl/lib beside
 * nvidia/cuda_runtime/lib of CUDA 12 or nvidia/cu13/lib. */
static void *open_beside(const char *nccl_path)
{
	static const char *const places[] = {"cu13/lib/libcudart.so.13",
					     "cuda_runtime/lib/libcudart.so.12"};
	const char *end = strstr(nccl_path, "nccl/lib/");
	char path[PATH_MAX];

	for (size_t i = 0; end && i < ARRAY_SIZE(places); i++) {
		void *library;

		if (snprintf(path, sizeof(path), "%.*s%s", (int)(end - nccl_path), nccl_path,
			     places[i]) >= (int)sizeof(path))
			continue;
		library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
		if (library)
			return library;
	}
	return NULL;
}

static void *open_cudart(const char *chosen, const char *nccl_path)
{
	static const char *const names[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so"};
	void *library = chosen ? dlopen(chosen, RTLD_NOW | RTLD_GLOBAL) : NULL;

	if (chosen)
		return library;
	/* one that NCCL has brought along comes first */
	for (size_t i = 0; !library && i < ARRAY_SIZE(names); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
	for (size_t i = 0; !library && i < ARRAY_SIZE(names); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
	return library ? library : open_beside(nccl_path);
}

static int open_nccl(const char *chosen, struct libraries *l, struct err *err)
{
	void *library = dlopen(chosen ? chosen : "libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
	const struct wanted w[] = {
		{"ncclGetVersion", (void **)&l->GetVersion},
		{"ncclCommInitRank", (void **)&l->CommInitRank},
		{"ncclCommDestroy", (void **)&l->CommDestroy},
		{"ncclGroupStart", (void **)&l->GroupStart},
		{"ncclGroupEnd", (void **)&l->GroupEnd},
		{"ncclGetErrorString", (void **)&l->GetErrorString},
		{"ncclGetLastError", (void **)&l->GetLastError},
		{"ncclAllReduce", (void **)&l->AllReduce},
		{"ncclAllGather", (void **)&l->AllGather},
		{"ncclReduceScatter", (void **)&l->ReduceScatter},
		{"ncclBroadcast", (void **)&l->Broadcast},
		{"ncclReduce", (void **)&l->Reduce},
	};
	Dl_info info;
	int r;

	if (!library)
		return err_set(err, ENOENT,
			       "there is no NCCL here (%s): --nccl FILE names the job's, such as "
			       ".../site-packages/nvidia/nccl/lib/libnccl.so.2",
			       dlerror());
	r = find(library, chosen ? chosen : "libnccl.so.2", w, ARRAY_SIZE(w), err);
	if (r < 0)
		return r;
	if (dladdr(*(void **)&l->GetVersion, &info) && info.dli_fname)
		snprintf(l->nccl_path, sizeof(l->nccl_path), "%s", info.dli_fname);
	if (l->GetVersion(&l->version) != ncclSuccess)
		return err_set(err, ENOSYS, "%s does not tell its version", l->nccl_path);
	return 0;
}

/* The runtime tells it in a struct that is not alike in its versions; the driver in a call. */
static void find_gpu_name(char *buf, size_t size)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*name)(char *, int, int) = NULL;

	if (driver)
		*(void **)&name = dlsym(driver, "cuDeviceGetName");
	if (!name || name(buf, (int)size, 0))
		buf[0] = 0;
}

int libraries_open(const char *nccl, const char *cudart, struct libraries *ret, struct err *err)
{
	struct libraries l = {.version = 0};
	const struct wanted w[] = {
		{"cudaGetDeviceCount", (void **)&l.cudaGetDeviceCount},
		{"cudaSetDevice", (void **)&l.cudaSetDevice},
		{"cudaMalloc", (void **)&l.cudaMalloc},
		{"cudaFree", (void **)&l.cudaFree},
		{"cudaMemGetInfo", (void **)&l.cudaMemGetInfo},
		{"cudaGetErrorString", (void **)&l.cudaGetErrorString},
	};
	void *runtime;
	int r = open_nccl(nccl, &l, err), cuda;

	if (r < 0)
		return r;
	runtime = open_cudart(cudart, l.nccl_path);
	if (!runtime)
		return err_set(
			err, ENOENT,
			"there is no CUDA runtime here (%s): --cudart FILE names one, such as "
			".../site-packages/nvidia/cuda_runtime/lib/libcudart.so.12",
			dlerror());
	r = find(runtime, cudart ? cudart : "libcudart", w, ARRAY_SIZE(w), err);
	if (r < 0)
		return r;
	cuda = l.cudaGetDeviceCount(&l.n_gpus);
	if (cuda || l.n_gpus == 0)
		return err_set(err, ENODEV,
			       "there is no GPU here (%s): NCCL makes its communicators on a node "
			       "that has the job's GPUs; the file that it writes there is good "
			       "everywhere",
			       cuda ? l.cudaGetErrorString(cuda) : "no device");
	find_gpu_name(l.gpu_name, sizeof(l.gpu_name));
	*ret = l;
	return 0;
}
