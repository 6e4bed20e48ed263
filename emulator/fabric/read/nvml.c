/* See nvml.h. Its functions are NVML's public ones, declared here as its documentation gives them.
 */
#include "fabric/read/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>

#define LINKS_MAX 18

struct nvml {
	void *library;
	int (*shutdown)(void);
	int (*by_bus)(const char *bus, void **ret_device);
	int (*capability)(void *device, int *ret_major, int *ret_minor);
	int (*link_state)(void *device, unsigned int link, unsigned int *ret_is_up);
};

struct nvml *nvml_close(struct nvml *n)
{
	if (n && n->shutdown)
		n->shutdown();
	if (n && n->library)
		dlclose(n->library);
	free(n);
	return NULL;
}

struct nvml *nvml_open(void)
{
	struct nvml *n = calloc(1, sizeof(*n));
	int (*init)(void);

	if (!n)
		return NULL;
	n->library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!n->library)
		return nvml_close(n);
	*(void **)&init = dlsym(n->library, "nvmlInit_v2");
	*(void **)&n->by_bus = dlsym(n->library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&n->capability = dlsym(n->library, "nvmlDeviceGetCudaComputeCapability");
	*(void **)&n->link_state = dlsym(n->library, "nvmlDeviceGetNvLinkState");
	if (!init || !n->by_bus || !n->capability || !n->link_state || init() != 0)
		return nvml_close(n);
	*(void **)&n->shutdown = dlsym(n->library, "nvmlShutdown");
	return n;
}

int nvml_ask(struct nvml *n, const char *bus, uint32_t *ret_sm, uint32_t *ret_links)
{
	int major, minor;
	void *device;

	if (n->by_bus(bus, &device) != 0 || n->capability(device, &major, &minor) != 0)
		return -1;
	*ret_sm = (uint32_t)(10 * major + minor);
	*ret_links = 0;
	for (unsigned int i = 0; i < LINKS_MAX; i++) {
		unsigned int is_up = 0;

		*ret_links += n->link_state(device, i, &is_up) == 0 && is_up == 1;
	}
	return 0;
}
