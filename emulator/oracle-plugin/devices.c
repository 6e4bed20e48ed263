/* See devices.h. */
#include "oracle-plugin/devices.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TEXT_BYTES 256

struct device {
	struct nbox_oracle_device is; /* name and pci_path: into the two below */
	char name[TEXT_BYTES], pci_path[TEXT_BYTES];
	struct net_fused of;
};

static struct {
	pthread_mutex_t lock;
	bool was_asked;
	int n_single, n; /* fused ones come behind the others */
	struct device devices[2 * NBOX_ORACLE_DEVICES_MAX];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int check(const struct nbox_oracle_device *d)
{
	if (!d->name || !*d->name || d->speed_mbps <= 0)
		return -EINVAL;
	if (strlen(d->name) >= TEXT_BYTES || (d->pci_path && strlen(d->pci_path) >= TEXT_BYTES))
		return -ENAMETOOLONG;
	return 0;
}

int devices_set(const struct nbox_oracle_device *devices, size_t n)
{
	int r = 0;

	if (n > NBOX_ORACLE_DEVICES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n && r == 0; i++)
		r = check(&devices[i]);
	if (r < 0)
		return r;
	pthread_mutex_lock(&all.lock);
	if (all.was_asked) {
		r = -EBUSY;
	} else {
		all.n = all.n_single = (int)n;
		for (int i = 0; i < all.n; i++) {
			struct device *d = &all.devices[i];

			d->is = devices[i];
			strcpy(d->name, devices[i].name);
			strcpy(d->pci_path, devices[i].pci_path ? devices[i].pci_path : "");
			d->of = (struct net_fused){.n_devices = 1, .devices = {i}};
		}
	}
	pthread_mutex_unlock(&all.lock);
	return r;
}

int devices_count(void)
{
	int n;

	pthread_mutex_lock(&all.lock);
	all.was_asked = true;
	n = all.n;
	pthread_mutex_unlock(&all.lock);
	return n;
}

static void fill(struct device *d, struct net_properties_v9 *ret)
{
	*ret = (struct net_properties_v9){
		.name = d->name,
		.pci_path = *d->pci_path ? d->pci_path : NULL,
		.guid = d->is.guid,
		.memory = NET_MEMORY_HOST | (d->is.has_gdr ? NET_MEMORY_CUDA : 0),
		.registrations_are_global = 1,
		.speed_mbps = d->is.speed_mbps,
		.port = d->is.port,
		.latency_us = d->is.latency_us,
		.n_comms_max = d->is.n_comms_max,
		.n_receives_max = 1,
		.fused = d->of,
		.p2p_bytes_max = NET_BYTES_MAX,
		.collective_bytes_max = NET_BYTES_MAX,
	};
}

int devices_properties(int device, struct net_properties_v9 *ret)
{
	int r = PLUGIN_INVALID_ARGUMENT;

	pthread_mutex_lock(&all.lock);
	if (device >= 0 && device < all.n) {
		fill(&all.devices[device], ret);
		r = PLUGIN_OK;
	}
	pthread_mutex_unlock(&all.lock);
	return r;
}

static int fuse(const struct net_fused *of, struct device *ret)
{
	struct device made = all.devices[of->devices[0]];

	made.of = *of;
	for (int i = 1; i < of->n_devices; i++) {
		const struct device *part = &all.devices[of->devices[i]];
		size_t at = strlen(made.name), left = TEXT_BYTES - at;

		if ((size_t)snprintf(made.name + at, left, "+%s", part->name) >= left)
			return PLUGIN_INVALID_USAGE;
		made.is.speed_mbps += part->is.speed_mbps;
	}
	*ret = made;
	return PLUGIN_OK;
}

int devices_fuse(const struct net_fused *of, int *ret_device)
{
	int r = PLUGIN_OK;

	if (of->n_devices < 1 || of->n_devices > NET_FUSED_MAX)
		return PLUGIN_INVALID_USAGE;
	pthread_mutex_lock(&all.lock);
	for (int i = 0; i < of->n_devices; i++)
		if (of->devices[i] < 0 || of->devices[i] >= all.n_single)
			r = PLUGIN_INVALID_USAGE;
	if (all.n == 2 * NBOX_ORACLE_DEVICES_MAX)
		r = PLUGIN_INVALID_USAGE;
	if (r == PLUGIN_OK)
		r = fuse(of, &all.devices[all.n]);
	if (r == PLUGIN_OK)
		*ret_device = all.n++;
	pthread_mutex_unlock(&all.lock);
	return r;
}
