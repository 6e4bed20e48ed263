/* See real.h. */
#include "shim/real/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "shim/real/last-error.h"
#include "shim/real/real-find.h"

static struct real the_real;

/* Where an address was loaded from; NULL when the linker does not know. */
static const void *base_of(const void *addr, const char **ret_name)
{
	Dl_info info;

	if (!addr || !dladdr(addr, &info))
		return NULL;
	if (ret_name)
		*ret_name = info.dli_fname;
	return info.dli_fbase;
}

/* pncclX, else ncclX; never our own. */
static void *look_up(void *handle, const char *pname)
{
	const void *own = base_of((const void *)real_get, NULL);
	void *sym = dlsym(handle, pname);

	if (!sym || base_of(sym, NULL) == own)
		sym = dlsym(handle, pname + 1);
	if (!sym || base_of(sym, NULL) == own)
		return NULL;
	return sym;
}

static bool try_path(void *ctx, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		log_debug("%s", dlerror());
		return false;
	}
	if (!look_up(handle, "pncclGetVersion")) { /* libnbox itself, by a link of that name */
		dlclose(handle);
		return false;
	}
	*(void **)ctx = handle;
	return true;
}

/* The handle to look symbols up in. */
static void *find(struct err *err)
{
	const char *path = getenv("NBOX_NCCL");
	void *handle;

	if (path && *path) {
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!handle) {
			err_set(err, ENOENT,
				"NBOX_NCCL: %s; give the path of the real libnccl.so.2", dlerror());
			return NULL;
		}
		if (look_up(handle, "pncclGetVersion"))
			return handle;
		err_set(err, ENOENT, "NBOX_NCCL=%s is not an NCCL library (or is libnbox itself)",
			path);
		return NULL;
	}
	if (real_find(try_path, &handle))
		return handle;
	err_set(err, ENOENT,
		"no real NCCL found (PyTorch's nvidia/nccl/lib, the library path, ldconfig's "
		"cache): set NBOX_NCCL to the path of libnccl.so.2");
	return NULL;
}

static void load(void)
{
	void *handle = find(&the_real.err);
	const char *name = NULL;
	unsigned int n = 0, found = 0;
	char mapped[1024];

	if (!handle)
		return;
	base_of(look_up(handle, "pncclGetVersion"), &name);
	snprintf(the_real.path, sizeof(the_real.path), "%s", name ? name : "?");
#define NCCL_SYMBOL(how, ret, fn, params, args)                    \
	the_real.fn = (ret(*) params)look_up(handle, "pnccl" #fn); \
	n++;                                                       \
	found += the_real.fn != NULL;
#include "shim/real/nccl-symbols.h"
#undef NCCL_SYMBOL
	log_debug("real NCCL: %s, %u of %u functions", the_real.path, found, n);
	/* One of them was opened by its path, or another library brought it: nbox does not see
	 * calls into it. */
	if (real_mapped(mapped, sizeof(mapped)) > 1)
		log_warn(
			"two NCCLs are in this process (%s): calls that go to one by its path, not through "
			"libnbox.so, leave the virtual cluster",
			mapped);
}

const struct real *real_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load);
	return &the_real;
}

ncclResult_t real_missing(const char *name)
{
	const struct real *real = real_get();

	if (!real->path[0])
		return last_error_set(ncclSystemError, "%s: %s", name, real->err.text);
	return last_error_set(ncclInvalidUsage, "%s: the NCCL in use (%s) does not have it", name,
			      real->path);
}

int real_check(ncclResult_t result, const char *what, struct err *err)
{
	const struct real *real = real_get();

	if (result == ncclSuccess || result == ncclInProgress)
		return 0;
	err_set(err, EIO, "the real NCCL says in %s: %s", what,
		real->GetLastError ? real->GetLastError(NULL) : "error");
	return (int)result;
}
