/* libnvidia-ml.so.1 that knows GPUs 1 to 8, at buses 0x13, 0x23 ... 0x83. By the environment's
 * FAKE_NVML they are: switch: H100 with 18 NVLinks, of which 16 are up, to two NVSwitches that
 * nobody else sees; pairs: A100 with 12, all to the GPU beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pci_info {
	char legacy_bus[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char bus_text[32];
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **ret);
int nvmlDeviceGetCudaComputeCapability(void *device, int *ret_major, int *ret_minor);
int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *ret_is_up);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, struct pci_info *ret);

static unsigned int gpus[] = {1, 2, 3, 4, 5, 6, 7, 8};

#define PUBLIC __attribute__((visibility("default")))

static int are_pairs(void)
{
	return strcmp(getenv("FAKE_NVML"), "pairs") == 0;
}

PUBLIC int nvmlInit_v2(void)
{
	return 0;
}

PUBLIC int nvmlShutdown(void)
{
	return 0;
}

PUBLIC int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **ret)
{
	unsigned int n;

	if (sscanf(bus, "0000:%1x3:00.0", &n) != 1 || n < 1 || n > 8)
		return 6; /* not found */
	*ret = &gpus[n - 1];
	return 0;
}

PUBLIC int nvmlDeviceGetCudaComputeCapability(void *device, int *ret_major, int *ret_minor)
{
	*ret_major = are_pairs() ? 8 : 9;
	*ret_minor = 0;
	return device ? 0 : 2;
}

PUBLIC int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *ret_is_up)
{
	*ret_is_up = link < (are_pairs() ? 12 : 16);
	return device && link < (are_pairs() ? 12 : 18) ? 0 : 2;
}

PUBLIC int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link,
					       struct pci_info *ret)
{
	unsigned int n = *(unsigned int *)device - 1;

	*ret = (struct pci_info){.bus = are_pairs() ? ((n ^ 1) + 1) << 4 | 3 : 0xa0 + link % 2};
	return 0;
}
