/* See sysfs.h. A PCI device stands in /sys/bus/pci/devices as a link whose target names the bridges
 * over it; an RDMA NIC in /sys/class/infiniband, an Ethernet one in /sys/class/net. */
#include "fabric/read/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fabric/read/nvml.h"

#define LINE 128

/* PCI device numbers of NVIDIA's, as pci.ids has them. */
static const struct {
	unsigned int device;
	const char *name;
	uint32_t sm;
	double port; /* of all its NVLinks, GB/s each way */
} cards[] = {
	{0x1db1, "V100", 70, 150},  {0x1db5, "V100", 70, 150},   {0x1db8, "V100", 70, 150},
	{0x1db4, "V100", 70, 0},    {0x1db6, "V100", 70, 0},     {0x1eb8, "T4", 75, 0},
	{0x20b0, "A100", 80, 300},  {0x20b2, "A100", 80, 300},   {0x20b5, "A100", 80, 0},
	{0x20f1, "A100", 80, 0},    {0x20f3, "A800", 80, 200},   {0x20b7, "A30", 80, 0},
	{0x2236, "A10", 86, 0},     {0x26b9, "L40S", 89, 0},     {0x27b8, "L4", 89, 0},
	{0x2330, "H100", 90, 450},  {0x2331, "H100", 90, 0},     {0x2324, "H800", 90, 200},
	{0x2329, "H20", 90, 450},   {0x2335, "H200", 90, 450},   {0x2342, "GH200", 90, 450},
	{0x2901, "B200", 100, 900}, {0x2941, "GB200", 100, 900},
};

struct tree {
	const char *root;
	struct machine *m;
	struct nvml *nvml; /* NULL */
	struct err *err;
	bool has_switch; /* a PCI device that is an NVSwitch */
};

static bool read_line(char line[LINE], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first line of a file, without its end. */
static bool read_line(char line[LINE], const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	FILE *f;

	line[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(line, LINE, f))
		line[0] = '\0';
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return line[0];
}

/* Calls @each for each entry of a folder. */
static int walk(struct tree *t, const char *folder, int (*each)(struct tree *t, const char *name))
{
	char path[PATH_MAX];
	struct dirent **names;
	int n, r = 0;

	snprintf(path, sizeof(path), "%s%s", t->root, folder);
	n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (r == 0 && names[i]->d_name[0] != '.')
			r = each(t, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return r;
}

/* Where a PCI device hangs: its NUMA node, then the bridges' addresses, its own last. @device: a
 * link in /sys. */
static bool find_place(const struct tree *t, const char *device, struct machine_place *ret)
{
	char path[PATH_MAX], target[PATH_MAX], line[LINE], *part, *rest;
	unsigned int domain, bus, slot, function;

	snprintf(path, sizeof(path), "%s%s", t->root, device);
	if (!realpath(path, target))
		return false;
	ret->depth = 0;
	read_line(line, "%s/numa_node", target);
	ret->path[ret->depth++] = (uint32_t)(strtol(line, NULL, 10) + 2);
	for (part = strtok_r(target, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		if (sscanf(part, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
			continue;
		if (ret->depth == MACHINE_DEPTH_MAX)
			return false;
		ret->path[ret->depth++] =
			domain << 16 | (bus & 0xff) << 8 | (slot & 0x1f) << 3 | (function & 7);
	}
	return ret->depth > 1;
}

static int known_card(struct tree *t, const char *bus, unsigned int device, struct machine_gpu *g)
{
	uint32_t links;

	for (size_t i = 0; i < ARRAY_SIZE(cards); i++)
		if (cards[i].device == device) {
			g->name = cards[i].name;
			g->sm = cards[i].sm;
			g->nvlink_bytes_per_ns = cards[i].port;
		}
	if (t->nvml && nvml_ask(t->nvml, bus, &g->sm, &links) == 0)
		g->nvlink_bytes_per_ns = links * machine_nvlink_rate(g->sm);
	if (g->sm)
		return 0;
	return err_set(t->err, ENODEV,
		       "GPU %s (10de:%04x) is not known here, and NVML is not there to ask: give "
		       "--preset or --fabric",
		       bus, device);
}

static int take_pci(struct tree *t, const char *bus)
{
	struct machine_gpu *g = &t->m->gpus[t->m->n_gpus];
	char line[LINE], speed[LINE], device[LINE];
	unsigned long class;

	read_line(line, "%s/sys/bus/pci/devices/%s/vendor", t->root, bus);
	if (strtoul(line, NULL, 16) != 0x10de)
		return 0;
	read_line(line, "%s/sys/bus/pci/devices/%s/class", t->root, bus);
	class = strtoul(line, NULL, 16) >> 8;
	t->has_switch |= class == 0x0680;
	if ((class != 0x0302 && class != 0x0300) || t->m->n_gpus == MACHINE_DEVICES_MAX)
		return 0;
	*g = (struct machine_gpu){.number = t->m->n_gpus, .has_gdr = true};
	snprintf(device, sizeof(device), "/sys/bus/pci/devices/%.64s", bus);
	if (!find_place(t, device, &g->place))
		return 0;
	read_line(speed, "%s%s/max_link_speed", t->root, device);
	read_line(line, "%s%s/max_link_width", t->root, device);
	g->pcie_bytes_per_ns =
		machine_pcie_rate(strtod(speed, NULL), (uint32_t)strtoul(line, NULL, 10));
	read_line(line, "%s%s/device", t->root, device);
	t->m->n_gpus++;
	return known_card(t, bus, (unsigned int)strtoul(line, NULL, 16), g);
}

static enum fabric_nic kind_of(const char *name, const char *layer)
{
	if (strcmp(layer, "InfiniBand") == 0)
		return FABRIC_INFINIBAND;
	if (strcmp(layer, "Ethernet") == 0)
		return FABRIC_ROCE;
	return strncmp(name, "efa", 3) == 0 || strncmp(name, "rdmap", 5) == 0 ? FABRIC_EFA2
									      : FABRIC_SOCKET;
}

/* An RDMA device's ports that are up. */
static int take_rdma(struct tree *t, const char *name)
{
	char line[LINE], layer[LINE], device[LINE];
	struct machine_place place;

	snprintf(device, sizeof(device), "/sys/class/infiniband/%.64s/device", name);
	if (!find_place(t, device, &place))
		return 0;
	for (int port = 1; port <= 4 && t->m->n_nics < MACHINE_DEVICES_MAX; port++) {
		const char *at = "sys/class/infiniband";
		struct machine_nic nic = {.place = place, .has_gdr = true};

		if (!read_line(line, "%s/%s/%s/ports/%d/state", t->root, at, name, port) ||
		    !strstr(line, "ACTIVE"))
			continue;
		read_line(line, "%s/%s/%s/ports/%d/rate", t->root, at, name, port);
		nic.bytes_per_ns = strtod(line, NULL) / 8; /* "400 Gb/sec (4X NDR)" */
		read_line(layer, "%s/%s/%s/ports/%d/link_layer", t->root, at, name, port);
		nic.kind = kind_of(name, layer);
		if (nic.bytes_per_ns > 0)
			t->m->nics[t->m->n_nics++] = nic;
	}
	return 0;
}

static int take_net(struct tree *t, const char *name)
{
	struct machine_nic nic = {.kind = FABRIC_SOCKET};
	char line[LINE], device[LINE];

	snprintf(device, sizeof(device), "/sys/class/net/%.64s/device", name);
	if (t->m->n_nics == MACHINE_DEVICES_MAX || !find_place(t, device, &nic.place))
		return 0;
	read_line(line, "%s/sys/class/net/%s/speed", t->root, name);
	nic.bytes_per_ns = strtod(line, NULL) / 8e3; /* Mbit/s; -1 where it is down */
	if (nic.bytes_per_ns > 0)
		t->m->nics[t->m->n_nics++] = nic;
	return 0;
}

static enum fabric_cpu read_cpu(const char *root)
{
	enum fabric_cpu cpu = FABRIC_OTHER_CPU;
	char path[PATH_MAX], line[LINE];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	f = fopen(path, "re");
	while (f && cpu == FABRIC_OTHER_CPU && fgets(line, sizeof(line), f))
		cpu = strstr(line, "GenuineIntel")      ? FABRIC_INTEL
		      : strstr(line, "AuthenticAMD")    ? FABRIC_AMD
		      : strstr(line, "CPU implementer") ? FABRIC_ARM
							: cpu;
	if (f)
		fclose(f);
	return cpu;
}

/* NVSwitches of newer boards are no PCI devices, and those of a virtual machine may be hidden:
 * eight GPUs with NVLink have had some since A100. */
static void find_switches(struct tree *t)
{
	struct machine *m = t->m;

	for (uint32_t i = 0; i < m->n_gpus; i++)
		m->gpus[i].has_switch = m->gpus[i].nvlink_bytes_per_ns > 0 &&
					(t->has_switch || (m->n_gpus >= 8 && m->gpus[i].sm >= 80));
}

int sysfs_read(const char *root, struct machine *ret, struct err *err)
{
	struct tree t = {.root = root, .m = ret, .err = err};
	int r;

	*ret = (struct machine){.cpu = read_cpu(root), .bridges_of_a_switch = 2};
	if (!root[0])
		t.nvml = nvml_open();
	r = walk(&t, "/sys/bus/pci/devices", take_pci);
	nvml_close(t.nvml);
	if (r == 0)
		r = walk(&t, "/sys/class/infiniband", take_rdma);
	if (r == 0 && !ret->n_nics)
		r = walk(&t, "/sys/class/net", take_net);
	if (r == 0)
		find_switches(&t);
	return r;
}
