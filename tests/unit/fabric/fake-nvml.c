/* libnvidia-ml.so.1 with one GPU: an H100 with 18 links, of which 16 are up. */
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **ret);
int nvmlDeviceGetCudaComputeCapability(void *device, int *ret_major, int *ret_minor);
int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *ret_is_up);

static int gpu;

#define PUBLIC __attribute__((visibility("default")))

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
	*ret = &gpu;
	return strcmp(bus, "0000:18:00.0") == 0 ? 0 : 6; /* not found */
}

PUBLIC int nvmlDeviceGetCudaComputeCapability(void *device, int *ret_major, int *ret_minor)
{
	*ret_major = 9;
	*ret_minor = 0;
	return device == &gpu ? 0 : 2;
}

PUBLIC int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *ret_is_up)
{
	*ret_is_up = link < 16;
	return device == &gpu && link < 18 ? 0 : 2;
}
