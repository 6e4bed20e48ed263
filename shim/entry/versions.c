/* See versions.h. */
#include "shim/entry/versions.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "shim/gate/cuda-runtime.h"
#include "shim/gate/device.h"
#include "shim/real/real.h"

#define LINE_MAX_BYTES 256
#define PROP_BYTES 8192 /* above any cudaDeviceProp, which begins with the name */

/* NCCL's number: 22809 is 2.28.9; up to 2.8 it was 2804. */
char *versions_nccl(char *buf, size_t size)
{
	const struct real *real = real_get();
	int v = 0, bare;

	buf[0] = '\0';
	if (!real->GetVersion || real->GetVersion(&v) != ncclSuccess || v <= 0)
		return buf;
	bare = v < 10000 ? 1000 : 10000;
	snprintf(buf, size, "%d.%d.%d", v / bare, v % bare / 100, v % 100);
	return buf;
}

static void tell_nccl(void (*tell)(const char *line))
{
	char line[LINE_MAX_BYTES], version[32];
	void *handle;

	if (!versions_nccl(version, sizeof(version))[0])
		return;
	handle = dlopen(real_get()->path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	snprintf(line, sizeof(line), "nccl %s%s", version,
		 handle && dlsym(handle, "nbox_host_nccl") ? " (nbox's stand-in, on the CPU)" : "");
	if (handle)
		dlclose(handle);
	tell(line);
}

static void tell_cuda(void *runtime, void (*tell)(const char *line))
{
	int (*get)(int *) = (int (*)(int *))dlsym(runtime, "cudaRuntimeGetVersion");
	char line[LINE_MAX_BYTES];
	int v = 0;

	if (!get || get(&v) != 0 || v <= 0)
		return;
	snprintf(line, sizeof(line), "cuda %d.%d", v / 1000, v % 1000 / 10);
	tell(line);
}

static void tell_gpu(void *runtime, int device, void (*tell)(const char *line))
{
	char line[LINE_MAX_BYTES], prop[PROP_BYTES] = "";
	int (*get)(void *, int) =
		(int (*)(void *, int))dlsym(runtime, "cudaGetDeviceProperties_v2");

	if (!get)
		get = (int (*)(void *, int))dlsym(runtime, "cudaGetDeviceProperties");
	if (!get || get(prop, device == DEVICE_NONE ? 0 : device) != 0 || !prop[0])
		return;
	snprintf(line, sizeof(line), "gpu %.200s", prop);
	tell(line);
}

/* The folder of a loaded library of PyTorch, with its last slash; dl_iterate_phdr()'s callback. */
static int is_torch(struct dl_phdr_info *info, size_t size, void *ret_folder)
{
	static const char *const names[] = {"libtorch_cuda.so", "libtorch.so", "libtorch_cpu.so"};
	const char *slash = strrchr(info->dlpi_name, '/');

	(void)size;
	for (size_t i = 0; slash && i < ARRAY_SIZE(names); i++)
		if (!strcmp(slash + 1, names[i])) {
			snprintf(ret_folder, PATH_MAX, "%.*s", (int)(slash + 1 - info->dlpi_name),
				 info->dlpi_name);
			return 1;
		}
	return 0;
}

/* torch/version.py beside torch/lib/: __version__ = '2.11.0+cu130' */
static void tell_torch(void (*tell)(const char *line))
{
	char folder[PATH_MAX] = "", path[PATH_MAX + 32], text[2048], line[LINE_MAX_BYTES];
	const char *at;
	ssize_t n;
	int fd;

	if (!dl_iterate_phdr(is_torch, folder))
		return;
	snprintf(path, sizeof(path), "%s../version.py", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	at = strstr(text, "__version__ = '");
	if (!at)
		return;
	at += strlen("__version__ = '");
	snprintf(line, sizeof(line), "torch %.*s",
		 (int)(strcspn(at, "'\n") < 64 ? strcspn(at, "'\n") : 64), at);
	tell(line);
}

void versions_tell(int device, void (*tell)(const char *line))
{
	void *runtime = cuda_runtime_find();

	tell_nccl(tell);
	if (runtime != CUDA_RUNTIME_NONE) {
		tell_cuda(runtime, tell);
		tell_gpu(runtime, device, tell);
	}
	tell_torch(tell);
}
