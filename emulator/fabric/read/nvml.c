/* See nvml.h. Its functions are NVML's public ones, declared here as its documentation gives them.
 */
#include "fabric/read/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>

/* nvmlPciInfo_t */
struct pci_info {
	char legacy_bus[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char bus_text[32];
};

struct nvml {
	void *library;
	int (*shutdown)(void);
	int (*by_bus)(const char *bus, void **ret_device);
	int (*capability)(void *device, int *ret_major, int *ret_minor);
	int (*link_state)(void *device, unsigned int link, unsigned int *ret_is_up);
	int (*far_end)(void *device, unsigned int link, struct pci_info *ret);
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
	*(void **)&n->far_end = dlsym(n->library, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
	if (!init || !n->by_bus || !n->capability || !n->link_state || !n->far_end || init() != 0)
		return nvml_close(n);
	*(void **)&n->shutdown = dlsym(n->library, "nvmlShutdown");
	return n;
}

int nvml_ask(struct nvml *n, const char *bus, struct machine_gpu *gpu)
{
	int major, minor;
	uint32_t links = 0;
	void *device;

	if (n->by_bus(bus, &device) != 0 || n->capability(device, &major, &minor) != 0)
		return -1;
	gpu->sm = (uint32_t)(10 * major + minor);
	for (unsigned int i = 0; i < MACHINE_LINKS_MAX; i++) {
		struct pci_info far = {.domain = 0};
		unsigned int is_up = 0;

		if (n->link_state(device, i, &is_up) != 0 || is_up != 1)
			continue;
		links++;
		if (n->far_end(device, i, &far) == 0)
			gpu->far_ends[gpu->n_far_ends++] =
				far.domain << 16 | far.bus << 8 | far.device << 3;
	}
	gpu->nvlink_bytes_per_ns = links * machine_nvlink_rate(gpu->sm);
	return 0;
}
