#include "shim/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const struct device *chosen;
static struct err why;

static void choose(void)
{
	const char *name = getenv("NBOX_DEVICE");

	if (name && !strcmp(name, "cuda")) {
		err_set(&why, ENOTSUP,
			"NBOX_DEVICE=cuda: this libnbox has no gate on the CUDA driver yet; use "
			"'host' or 'auto'");
		return;
	}
	if (name && *name && strcmp(name, "auto") && strcmp(name, "host")) {
		err_set(&why, EINVAL, "NBOX_DEVICE=%s: unknown; one of auto, host, cuda", name);
		return;
	}
	if (device_host.open(&why) == 0)
		chosen = &device_host;
}

const struct device *device_get(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose);
	if (!chosen && err)
		*err = why;
	return chosen;
}
