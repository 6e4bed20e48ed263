/* See device-choose.h. */
#include "shim/gate/device-choose.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "shim/gate/device-cuda.h"
#include "shim/gate/device-host.h"

static _Atomic(const struct device *) chosen; /* release; pairs with device_chosen() */
static struct err why, fallback;

static void choose(void)
{
	const char *name = getenv("NBOX_DEVICE");
	const char *local_rank = getenv("LOCAL_RANK");
	const char *kernels = getenv("NBOX_HOST_KERNEL_TIME");
	struct err no_cuda = {""};
	int r;
	bool is_auto = !name || !*name || !strcmp(name, "auto");

	if (!is_auto && strcmp(name, "host") && strcmp(name, "cuda")) {
		err_set(&why, EINVAL, "NBOX_DEVICE=%s: unknown; one of auto, host, cuda", name);
		return;
	}
	if (is_auto || !strcmp(name, "cuda")) {
		r = device_cuda.open(&no_cuda);
		if (r == 0) {
			atomic_store_explicit(&chosen, &device_cuda, memory_order_release);
			return;
		}
		if (!is_auto) {
			err_set(&why, ENODEV, "NBOX_DEVICE=cuda: %s", no_cuda.text);
			return;
		}
		if (r == -EINVAL) { /* an option is wrong: no device will do */
			why = no_cuda;
			return;
		}
		if (r == -ENOTSUP)
			err_set(&fallback, ENOTSUP,
				"the gates are host functions, not the GPU's own waits: they open later, and "
				"ops of independent streams may hold each other up: %s%s",
				no_cuda.text,
				strstr(no_cuda.text, "NBOX_DEVICE=host")
					? ""
					: "; NBOX_DEVICE=host if that is wanted");
		else if (r == -ENXIO) /* nbox's stand-in; `nbox run` says the same */
			err_set(&fallback, ENXIO,
				"no GPU: the job ran on the CPU through the host CUDA runtime and host "
				"NCCL; %s%.200s",
				kernels && *kernels ? "compute is modelled: NBOX_HOST_KERNEL_TIME="
						    : "its compute times are this CPU's",
				kernels ? kernels : "");
		if (r != -ENOTSUP) /* a machine without a GPU */
			log_info("no gate on CUDA: %s", no_cuda.text);
		else if (!local_rank || !strcmp(local_rank, "0")) /* once a node */
			log_warn("%s", fallback.text);
	}
	if (device_host.open(&why) == 0)
		atomic_store_explicit(&chosen, &device_host, memory_order_release);
	else if (is_auto)
		err_prefix(&why, 0, "no gate on CUDA (%.200s), and none on host functions",
			   no_cuda.text);
}

const struct device *device_get(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose);
	if (!device_chosen() && err)
		*err = why;
	return device_chosen();
}

const char *device_fallback(void)
{
	return device_chosen() == &device_host && fallback.text[0] ? fallback.text : NULL;
}

const struct device *device_chosen(void)
{
	return atomic_load_explicit(&chosen, memory_order_acquire);
}
