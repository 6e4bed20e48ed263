/* This machine's node, from made-up trees of /sys, and an NVML that is made up, too. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "fabric/read/open.h"
#include "fabric/read/sysfs.h"

static char root[64];

static void make_folders(const char *path)
{
	char part[512];

	for (size_t i = 1; path[i]; i++)
		if (path[i] == '/') {
			snprintf(part, sizeof(part), "%.*s", (int)i, path);
			(void)mkdir(part, 0777);
		}
}

static void put(const char *content, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *content, const char *fmt, ...)
{
	char name[256], path[512];
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	snprintf(path, sizeof(path), "%s/%s", root, name);
	make_folders(path);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "%s\n", content);
	fclose(f);
}

static void put_link(const char *at, const char *target)
{
	char path[512], to[512];

	snprintf(path, sizeof(path), "%s/%s", root, at);
	snprintf(to, sizeof(to), "%s/%s", root, target);
	make_folders(path);
	assert_int_equal(symlink(to, path), 0);
}

/* A PCI device under bridges; @place: "0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0" */
static void put_pci(const char *place, int numa, const char *vendor, const char *device,
		    const char *class)
{
	char folder[200], at[128];
	const char *bus = strrchr(place, '/') ? strrchr(place, '/') + 1 : place;

	snprintf(folder, sizeof(folder), "sys/devices/pci0000:%.2s/%s", place + 5, place);
	put(vendor, "%s/vendor", folder);
	put(device, "%s/device", folder);
	put(class, "%s/class", folder);
	put(numa ? "1" : "0", "%s/numa_node", folder);
	put("32.0 GT/s PCIe", "%s/max_link_speed", folder);
	put("16", "%s/max_link_width", folder);
	snprintf(at, sizeof(at), "sys/bus/pci/devices/%s", bus);
	put_link(at, folder);
}

static void put_rdma(const char *name, const char *place, const char *rate, const char *layer,
		     const char *state)
{
	char at[128], folder[200];

	snprintf(at, sizeof(at), "sys/class/infiniband/%s/device", name);
	snprintf(folder, sizeof(folder), "sys/devices/pci0000:%.2s/%s", place + 5, place);
	put_link(at, folder);
	put(rate, "sys/class/infiniband/%s/ports/1/rate", name);
	put(layer, "sys/class/infiniband/%s/ports/1/link_layer", name);
	put(state, "sys/class/infiniband/%s/ports/1/state", name);
}

static int begin(void **state)
{
	snprintf(root, sizeof(root), "/tmp/nbox-sysfs-XXXXXX");
	assert_non_null(mkdtemp(root));
	(void)state;
	return 0;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* A switch with a GPU and a NIC under it, each at a port of its own. */
static void put_pair(int i, const char *device, const char *rate, const char *layer)
{
	char place[128], name[16];

	snprintf(place, sizeof(place), "0000:%d0:01.0/0000:%d1:00.0/0000:%d2:00.0/0000:%d3:00.0", i,
		 i, i, i);
	put_pci(place, i >= 4, "0x10de", device, "0x030200");
	snprintf(place, sizeof(place), "0000:%d0:01.0/0000:%d1:00.0/0000:%d2:01.0/0000:%d4:00.0", i,
		 i, i, i);
	put_pci(place, i >= 4, "0x15b3", "0x1021", "0x020700");
	snprintf(name, sizeof(name), "mlx5_%d", i);
	put_rdma(name, place, rate, layer, "4: ACTIVE");
}

static void eight_gpus_with_switches_and_nics_are_an_hgx(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};
	const struct fabric_class *c;

	(void)state;
	for (int i = 0; i < 8; i++)
		put_pair(i, "0x2330", "400 Gb/sec (4X NDR)", "InfiniBand");
	put_pci("0000:90:01.0/0000:91:00.0", 0, "0x10de", "0x22a3", "0x068000");
	/* storage: slower, and one that is down */
	put_pci("0000:95:01.0/0000:96:00.0", 0, "0x15b3", "0x101d", "0x020000");
	put_rdma("mlx5_8", "0000:95:01.0/0000:96:00.0", "100 Gb/sec (4X EDR)", "Ethernet",
		 "4: ACTIVE");
	put_pci("0000:97:01.0/0000:98:00.0", 0, "0x15b3", "0x1021", "0x020700");
	put_rdma("mlx5_9", "0000:97:01.0/0000:98:00.0", "400 Gb/sec (4X NDR)", "InfiniBand",
		 "1: DOWN");
	put("vendor_id	: GenuineIntel", "proc/cpuinfo");
	assert_int_equal(fabric_open_machine(root, 64, 0, &f, &err), 0);
	c = &f->classes[0];
	assert_true(f->n_nodes == 64 && c->n_gpus == 8 && c->n_nics == 8 && c->sm == 90);
	assert_true(c->intra == FABRIC_NVSWITCH && c->has_nvls && c->gpu_bytes_per_ns == 450);
	assert_true(c->nic == FABRIC_INFINIBAND && c->nic_bytes_per_ns == 50 && c->has_gdr);
	assert_true(c->cpu == FABRIC_INTEL && c->distance == FABRIC_PIX);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(c->nic_gpu[i], i);
	assert_string_equal(c->gpu, "H100");
	assert_non_null(strstr(f->source, "the network is assumed"));
	fabric_free(f);
}

/* DGX H100: its NICs for storage are as fast as the others, and under root ports of their own. */
static void nics_that_no_gpu_prefers_are_left_out(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	for (int i = 0; i < 8; i++)
		put_pair(i, "0x2330", "400 Gb/sec (4X NDR)", "InfiniBand");
	for (int i = 0; i < 2; i++) {
		char place[64], name[16];

		snprintf(place, sizeof(place), "0000:9%d:01.0/0000:9%d:00.0", 5 * i, 5 * i + 1);
		snprintf(name, sizeof(name), "mlx5_%d", 8 + i);
		put_pci(place, i, "0x15b3", "0x1021", "0x020700");
		put_rdma(name, place, "400 Gb/sec (4X NDR)", "InfiniBand", "4: ACTIVE");
	}
	assert_int_equal(fabric_open_machine(root, 2, 0, &f, &err), 0);
	assert_int_equal(f->classes[0].n_nics, 8);
	assert_true(f->classes[0].distance == FABRIC_PIX);
	fabric_free(f);
}

/* p4d: an EFA a switch of two GPUs; its name and its link layer say nothing. */
static void efas_are_known_by_their_device(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};
	char place[128], name[16];

	(void)state;
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 3; k++) {
			snprintf(place, sizeof(place),
				 "0000:%d0:01.0/0000:%d1:00.0/0000:%d2:0%d.0/0000:%d%d:00.0", i, i,
				 i, k, i, 3 + k);
			if (k < 2)
				put_pci(place, 0, "0x10de", "0x20b0", "0x030200");
			else
				put_pci(place, 0, "0x1d0f", "0xefa1", "0x020000");
		}
		snprintf(name, sizeof(name), "nic%d", i);
		put_rdma(name, place, "100 Gb/sec (4X EDR)", "Unknown", "4: ACTIVE");
	}
	assert_int_equal(fabric_open_machine(root, 2, 0, &f, &err), 0);
	assert_true(f->classes[0].nic == FABRIC_EFA && f->classes[0].has_gdr);
	assert_true(f->classes[0].n_nics == 4 && f->classes[0].nic_bytes_per_ns == 12.5);
	assert_true(f->classes[0].intra == FABRIC_NVSWITCH && f->classes[0].sm == 80);
	fabric_free(f);
}

/* p5en: two EFAs of 200 Gbit/s a GPU are one for NCCL. */
static void two_efas_of_a_gpu_are_one_nic(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	for (int i = 0; i < 8; i++) {
		char place[128], name[16];

		put_pair(i, "0x2335", "1 Gb/sec", "Ethernet");
		for (int k = 0; k < 2; k++) {
			snprintf(place, sizeof(place),
				 "0000:%d0:01.0/0000:%d1:00.0/0000:%d2:0%d.0/0000:%d%d:00.0", i, i,
				 i, 2 + k, i, 6 + k);
			put_pci(place, i >= 4, "0x1d0f", "0xefa3", "0x020000");
			snprintf(name, sizeof(name), "rdmap%ds%d", i, k);
			put_rdma(name, place, "200 Gb/sec (4X HDR)", "Unknown", "4: ACTIVE");
		}
	}
	assert_int_equal(fabric_open_machine(root, 2, 0, &f, &err), 0);
	assert_true(f->classes[0].nic == FABRIC_EFA2 && f->classes[0].n_nics == 8);
	assert_true(f->classes[0].nic_bytes_per_ns == 50);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(f->classes[0].nic_gpu[i], i);
	fabric_free(f);
}

/* A card of PCIe 5 in a slot of PCIe 4, with half of its lanes. */
static void the_slot_may_be_slower_than_the_card(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	put_pci("0000:10:01.0/0000:11:00.0", 0, "0x10de", "0x2331", "0x030200");
	put("16.0 GT/s PCIe", "sys/devices/pci0000:10/0000:10:01.0/max_link_speed");
	put("8", "sys/devices/pci0000:10/0000:10:01.0/max_link_width");
	assert_int_equal(fabric_open_machine(root, 1, 0, &f, &err), 0);
	assert_true(f->classes[0].gpu_bytes_per_ns > 15.7 && f->classes[0].gpu_bytes_per_ns < 15.8);
	fabric_free(f);
}

static void class_with_nvml(const char *which, struct fabric_class *ret)
{
	struct err err = {""};
	struct machine m;
	struct nvml *n;

	setenv("FAKE_NVML", which, 1);
	n = nvml_open();
	assert_non_null(n);
	assert_int_equal(sysfs_read(root, n, &m, &err), 0);
	assert_int_equal(machine_class(&m, "this", ret, &err), 0);
	nvml_close(n);
}

static void nvml_says_which_links_are_up_and_where_they_go(void **state)
{
	struct fabric_class c;

	(void)state;
	for (int i = 1; i <= 4; i++)
		put_pair(i, "0x4242", "100 Gb/sec (4X EDR)", "Ethernet");
	class_with_nvml("switch", &c);
	assert_true(c.sm == 90 && c.gpu_bytes_per_ns == 400);
	assert_true(c.intra == FABRIC_NVSWITCH && c.has_nvls);
	class_with_nvml("pairs", &c); /* bridges do not join all GPUs */
	assert_true(c.sm == 80 && c.intra == FABRIC_PCIE);
	assert_true(c.gpu_bytes_per_ns > 63 && c.gpu_bytes_per_ns < 63.1);
}

static void two_gpus_with_a_bridge_have_nvlink(void **state)
{
	struct fabric_class c;

	(void)state;
	for (int i = 1; i <= 2; i++)
		put_pair(i, "0x20f1", "100 Gb/sec (4X EDR)", "Ethernet");
	class_with_nvml("pairs", &c);
	assert_true(c.intra == FABRIC_NVLINK && c.gpu_bytes_per_ns == 300);
}

static void v100s_without_a_switch_are_a_mesh(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	for (int i = 0; i < 8; i++)
		put_pair(i, "0x1db1", "100 Gb/sec (4X EDR)", "Ethernet");
	assert_int_equal(fabric_open_machine(root, 2, 0, &f, &err), 0);
	assert_true(f->classes[0].intra == FABRIC_NVLINK && !f->classes[0].has_nvls);
	assert_true(f->classes[0].nic == FABRIC_ROCE && f->classes[0].gpu_bytes_per_ns == 150);
	assert_true(f->classes[0].cpu == FABRIC_OTHER_CPU);
	fabric_free(f);
}

static void one_gpu_with_ethernet_has_a_socket(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	put_pci("0000:10:01.0/0000:11:00.0", 0, "0x10de", "0x20f1", "0x030200");
	put_pci("0000:20:01.0/0000:21:00.0", 0, "0x8086", "0x1592", "0x020000");
	put_link("sys/class/net/eth0/device", "sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0");
	put("100000", "sys/class/net/eth0/speed");
	put("-1", "sys/class/net/lo/speed");
	put("CPU implementer	: 0x41", "proc/cpuinfo");
	assert_int_equal(fabric_open_machine(root, 4, 0, &f, &err), 0);
	assert_true(f->classes[0].intra == FABRIC_PCIE && f->classes[0].nic == FABRIC_SOCKET);
	assert_true(f->classes[0].nic_bytes_per_ns == 12.5 && !f->classes[0].has_gdr);
	assert_true(f->classes[0].distance == FABRIC_PHB && f->classes[0].cpu == FABRIC_ARM);
	fabric_free(f);
}

static void what_nobody_knows_is_said(void **state)
{
	struct fabric *f = NULL;
	struct err err = {""};

	(void)state;
	assert_true(fabric_open_machine(root, 4, 0, &f, &err) < 0);
	assert_string_equal(err.text,
			    "this machine: no GPU here: take another --preset or --fabric");
	put_pci("0000:10:01.0/0000:11:00.0", 0, "0x10de", "0x4242", "0x030200");
	assert_int_equal(fabric_open_machine(root, 4, 0, &f, &err), -ENODEV);
	assert_non_null(strstr(err.text, "GPU 0000:11:00.0 (10de:4242) is not known here"));
	assert_null(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(eight_gpus_with_switches_and_nics_are_an_hgx, begin,
						end),
		cmocka_unit_test_setup_teardown(nics_that_no_gpu_prefers_are_left_out, begin, end),
		cmocka_unit_test_setup_teardown(efas_are_known_by_their_device, begin, end),
		cmocka_unit_test_setup_teardown(two_efas_of_a_gpu_are_one_nic, begin, end),
		cmocka_unit_test_setup_teardown(the_slot_may_be_slower_than_the_card, begin, end),
		cmocka_unit_test_setup_teardown(nvml_says_which_links_are_up_and_where_they_go,
						begin, end),
		cmocka_unit_test_setup_teardown(two_gpus_with_a_bridge_have_nvlink, begin, end),
		cmocka_unit_test_setup_teardown(v100s_without_a_switch_are_a_mesh, begin, end),
		cmocka_unit_test_setup_teardown(one_gpu_with_ethernet_has_a_socket, begin, end),
		cmocka_unit_test_setup_teardown(what_nobody_knows_is_said, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
