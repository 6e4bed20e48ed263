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

#define LINE 128
#define EFA_WITHOUT_GDR 0xefa0 /* of a p3dn */

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

static unsigned long read_hex(const struct tree *t, const char *device, const char *name)
{
	char line[LINE];

	read_line(line, "%s%s/%s", t->root, device, name);
	return strtoul(line, NULL, 16);
}

/* The least that a device and its port say; 0: neither does. */
static double read_least(const struct tree *t, const char *device, const char *name)
{
	char line[LINE];
	double own, port;

	read_line(line, "%s%s/%s", t->root, device, name);
	own = strtod(line, NULL);
	read_line(line, "%s%s/../%s", t->root, device, name);
	port = strtod(line, NULL);
	return port > 0 && (port < own || !(own > 0)) ? port : own;
}

/* Where a PCI device hangs: its NUMA node, then the bridges' addresses, its own last. @device: a
 * link in /sys. */
static bool find_place(const struct tree *t, const char *device, struct machine_place *ret)
{
	char path[PATH_MAX], target[PATH_MAX], line[LINE], *part, *rest;

	snprintf(path, sizeof(path), "%s%s", t->root, device);
	if (!realpath(path, target))
		return false;
	ret->depth = 0;
	read_line(line, "%s/numa_node", target);
	ret->path[ret->depth++] = (uint32_t)(strtol(line, NULL, 10) + 2);
	for (part = strtok_r(target, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
		uint32_t bus = machine_bus(part);

		if (!bus)
			continue;
		if (ret->depth == MACHINE_DEPTH_MAX)
			return false;
		ret->path[ret->depth++] = bus;
	}
	return ret->depth > 1;
}

static int known_card(struct tree *t, const char *bus, unsigned int device, struct machine_gpu *g)
{
	for (size_t i = 0; i < ARRAY_SIZE(cards); i++)
		if (cards[i].device == device) {
			g->name = cards[i].name;
			g->sm = cards[i].sm;
			g->nvlink_bytes_per_ns = cards[i].port;
		}
	if (t->nvml)
		nvml_ask(t->nvml, bus, g);
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
	char device[LINE];
	unsigned long class;

	snprintf(device, sizeof(device), "/sys/bus/pci/devices/%.64s", bus);
	if (read_hex(t, device, "vendor") != 0x10de)
		return 0;
	class = read_hex(t, device, "class") >> 8;
	t->has_switch |= class == 0x0680;
	if ((class != 0x0302 && class != 0x0300) || t->m->n_gpus == MACHINE_DEVICES_MAX)
		return 0;
	*g = (struct machine_gpu){.number = t->m->n_gpus, .bus = machine_bus(bus), .has_gdr = true};
	if (!find_place(t, device, &g->place))
		return 0;
	g->pcie_bytes_per_ns = machine_pcie_rate(read_least(t, device, "max_link_speed"),
						 (uint32_t)read_least(t, device, "max_link_width"));
	t->m->n_gpus++;
	return known_card(t, bus, (unsigned int)read_hex(t, device, "device"), g);
}

/* What is neither counts as a socket: NCCL's verbs do not take it. */
static enum fabric_nic kind_of(const char *layer)
{
	return strcmp(layer, "InfiniBand") == 0 ? FABRIC_INFINIBAND
	       : strcmp(layer, "Ethernet") == 0 ? FABRIC_ROCE
						: FABRIC_SOCKET;
}

/* An RDMA device's ports that are up. */
static int take_rdma(struct tree *t, const char *name)
{
	char line[LINE], layer[LINE], device[LINE];
	struct machine_place place;
	unsigned long vendor, number;

	snprintf(device, sizeof(device), "/sys/class/infiniband/%.64s/device", name);
	if (!find_place(t, device, &place))
		return 0;
	vendor = read_hex(t, device, "vendor");
	number = read_hex(t, device, "device");
	for (int port = 1; port <= 4 && t->m->n_nics < MACHINE_DEVICES_MAX; port++) {
		const char *at = "sys/class/infiniband";
		struct machine_nic nic = {.place = place, .has_gdr = true};

		if (!read_line(line, "%s/%s/%s/ports/%d/state", t->root, at, name, port) ||
		    !strstr(line, "ACTIVE"))
			continue;
		read_line(line, "%s/%s/%s/ports/%d/rate", t->root, at, name, port);
		nic.bytes_per_ns = strtod(line, NULL) / 8; /* "400 Gb/sec (4X NDR)" */
		read_line(layer, "%s/%s/%s/ports/%d/link_layer", t->root, at, name, port);
		nic.kind = kind_of(layer);
		if (machine_is_efa(vendor, number, &nic.kind))
			nic.has_gdr = number != EFA_WITHOUT_GDR;
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

static bool is_gpu(const struct machine *m, uint32_t bus)
{
	for (uint32_t i = 0; i < m->n_gpus; i++)
		if (m->gpus[i].bus == bus)
			return true;
	return false;
}

/* The far end of an NVLink that is no GPU is an NVSwitch, which a virtual machine may not show. Who
 * cannot say where its links go: NVSwitches of newer boards are no PCI devices, but eight GPUs with
 * NVLink have had some since A100. */
static void find_switches(struct tree *t)
{
	struct machine *m = t->m;

	for (uint32_t i = 0; i < m->n_gpus; i++) {
		struct machine_gpu *g = &m->gpus[i];

		if (!g->n_far_ends)
			g->has_switch = g->nvlink_bytes_per_ns > 0 &&
					(t->has_switch || (m->n_gpus >= 8 && g->sm >= 80));
		for (uint32_t k = 0; k < g->n_far_ends; k++)
			g->has_switch = g->has_switch || !is_gpu(m, g->far_ends[k]);
	}
}

int sysfs_read(const char *root, struct nvml *nvml, struct machine *ret, struct err *err)
{
	struct tree t = {.root = root, .m = ret, .nvml = nvml, .err = err};
	int r;

	*ret = (struct machine){.cpu = read_cpu(root), .bridges_of_a_switch = 2};
	r = walk(&t, "/sys/bus/pci/devices", take_pci);
	if (r == 0)
		r = walk(&t, "/sys/class/infiniband", take_rdma);
	if (r == 0 && !ret->n_nics)
		r = walk(&t, "/sys/class/net", take_net);
	if (r == 0)
		find_switches(&t);
	return r;
}
