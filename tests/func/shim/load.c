/* Ways to get at NCCL without linking it.
 *
 *   load local USER.so WORLD       a library linked with NCCL, loaded RTLD_LOCAL
 *   load default USER.so WORLD     dlsym(RTLD_DEFAULT) finds libnbox
 *   load handle USER.so WORLD      dlopen("libnccl.so.2") gives libnbox (by its SONAME) */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_ours(void *sym)
{
	Dl_info info;
	Dl_info ours;

	return sym && dladdr(sym, &info) && info.dli_fbase &&
	       dladdr(dlsym(RTLD_DEFAULT, "pncclCommRevoke"), &ours) &&
	       info.dli_fbase == ours.dli_fbase && strstr(info.dli_fname, "libnbox") != NULL;
}

int main(int argc, char **argv)
{
	int (*user)(int n, int rank);
	void *handle;
	int r;

	if (argc != 4)
		return 2;
	if (!strcmp(argv[1], "handle")) {
		handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
		if (!handle || !is_ours(dlsym(handle, "ncclAllReduce"))) {
			fprintf(stderr, "libnccl.so.2 is not libnbox\n");
			return 1;
		}
	}
	handle = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (!strcmp(argv[1], "default") && !is_ours(dlsym(RTLD_DEFAULT, "ncclAllReduce"))) {
		fprintf(stderr, "RTLD_DEFAULT finds another ncclAllReduce\n");
		return 1;
	}
	user = (int (*)(int, int))dlsym(handle, "nccl_user");
	r = user ? user(atoi(argv[3]), atoi(getenv("RANK"))) : 9;
	if (r)
		fprintf(stderr, "nccl_user: %d\n", r);
	return r;
}
