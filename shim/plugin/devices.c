/* See devices.h. */
#include "shim/plugin/devices.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define DEFAULT "nbox0:100000"
#define N_COMMS_MAX 65536

static struct {
	int n; /* or -EINVAL */
	char *text;
	struct {
		char *name, *pci_path;
		int speed_mbps;
	} devices[DEVICES_MAX];
	struct err err;
} g;

static int wrong(const char *text, const char *why)
{
	return err_set(&g.err, EINVAL,
		       "NBOX_NET_DEVICES: \"%.200s\": %s; write NAME:MBPS[:PCIPATH], and a comma "
		       "between devices",
		       text, why);
}

/* @text is cut in pieces, which stay. */
static int add(char *text)
{
	CLEANUP(freep) char *whole = strdup(text);
	char *name = strsep(&text, ":"), *speed = strsep(&text, ":"), *end;
	unsigned long mbps;

	if (g.n == DEVICES_MAX)
		return wrong(whole ? whole : name, "too many devices");
	if (!*name || !speed || *speed < '0' || *speed > '9')
		return wrong(whole ? whole : name, "no name, or no speed");
	errno = 0;
	mbps = strtoul(speed, &end, 10);
	if (*end || !mbps || errno || mbps > INT_MAX)
		return wrong(whole ? whole : name, "the speed is no number of Mbps");
	g.devices[g.n].name = name;
	g.devices[g.n].speed_mbps = (int)mbps;
	g.devices[g.n++].pci_path = text && *text ? text : NULL;
	return 0;
}

static void read_all(void)
{
	const char *value = getenv("NBOX_NET_DEVICES");
	int before = errno, r = 0;
	char *at, *one;

	at = g.text = strdup(value && *value ? value : DEFAULT);
	if (!at)
		r = err_set(&g.err, ENOMEM, "no memory for NBOX_NET_DEVICES");
	while (!r && (one = strsep(&at, ",")))
		r = add(one);
	if (r)
		g.n = r;
	errno = before;
}

int devices_count(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	if (g.n < 0)
		*err = g.err;
	return g.n;
}

int devices_properties(int device, struct net_properties_v9 *ret)
{
	struct err err;

	if (device < 0 || device >= devices_count(&err))
		return PLUGIN_INVALID_ARGUMENT;
	*ret = (struct net_properties_v9){
		.name = g.devices[device].name,
		.pci_path = g.devices[device].pci_path,
		.guid = (uint64_t)device + 1,
		.memory = NET_MEMORY_HOST,
		.registrations_are_global = 1,
		.speed_mbps = g.devices[device].speed_mbps,
		.port = 1,
		.n_comms_max = N_COMMS_MAX,
		.n_receives_max = 1,
		.fused = {.n_devices = 1, .devices = {device}},
		.p2p_bytes_max = NET_BYTES_MAX,
		.collective_bytes_max = NET_BYTES_MAX,
	};
	return PLUGIN_OK;
}
