/* The RDMA devices of this machine, for nbox doctor. The kernel lists devices in
 * /sys/class/infiniband, libibverbs lists those that programs can use. A device that only the
 * kernel lists lacks a provider or a device node. */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "links/rdma/address.h"
#include "links/rdma/options.h"
#include "links/rdma/verbs.h"
#include "nbox/doctor/doctor.h"

#define RDMA "RDMA"
#define SYS "/sys/class/infiniband"
#define GIDS_MAX 256
#define CAP_IPC_LOCK_BIT 14
#define MEMLOCK_LEAST (UINT64_C(64) << 20) /* rings of a few workers, and bodies */

static bool is_wanted(const struct doctor *d)
{
	return d->hca || (d->link && strcmp(d->link, "rdma") == 0);
}

/* WRONG when rdma was asked for. */
static enum doctor_level bad(const struct doctor *d)
{
	return is_wanted(d) ? DOCTOR_WRONG : DOCTOR_NOTE;
}

/* First line of a file below /sys. Return: whether there is one. */
static bool read_sys(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static bool read_sys(char *buf, size_t size, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	FILE *f;
	bool ok;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	buf[0] = 0;
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(buf, (int)size, f) != NULL; /* of an unused GID the attributes are errors */
	fclose(f);
	buf[strcspn(buf, "\n")] = 0;
	return ok;
}

/* --- locked memory ---------------------------------------------------------------------- */

static bool may_lock_all(void)
{
	CLEANUP(freep) char *line = NULL;
	unsigned long long caps = 0;
	size_t size = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && getline(&line, &size, f) > 0)
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps >> CAP_IPC_LOCK_BIT & 1;
}

static void check_memlock(struct doctor *d)
{
	struct rlimit limit;
	char text[32];

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		doctor_add(d, DOCTOR_OK, RDMA, "memlock", "unlimited");
	else if (may_lock_all())
		doctor_add(d, DOCTOR_OK, RDMA, "memlock",
			   "%s, which does not count for this user (CAP_IPC_LOCK)",
			   units_print_bytes(limit.rlim_cur, text, sizeof(text)));
	else
		doctor_add(
			d, limit.rlim_cur < MEMLOCK_LEAST ? bad(d) : DOCTOR_OK, RDMA, "memlock",
			"%s%s", units_print_bytes(limit.rlim_cur, text, sizeof(text)),
			limit.rlim_cur < MEMLOCK_LEAST
				? ": too little for rdma links; `ulimit -l unlimited`, or a line `* - memlock "
				  "unlimited` in /etc/security/limits.conf and a new login"
				: "");
}

/* --- ports -------------------------------------------------------------------------------- */

static const char *state_name(enum ibv_port_state s)
{
	static const char *const names[] = {"no state", "down",   "initializing",
					    "armed",    "active", "active (deferred)"};

	return (unsigned int)s < ARRAY_SIZE(names) ? names[s] : "unknown state";
}

/* "RoCE v2 10.0.0.1 (GID 1, eth0)" of each GID. */
static void read_gids(const char *device, unsigned int port, int n_gids, char *text, size_t size,
		      json_t *ret_gids)
{
	size_t used = 0;

	text[0] = 0;
	for (int i = 0; i < n_gids && i < GIDS_MAX; i++) {
		char gid[64], type[32], netdev[32], address[INET6_ADDRSTRLEN] = "";
		struct in6_addr a;
		bool is_v4;
		json_t *j;

		if (!read_sys(gid, sizeof(gid), SYS "/%s/ports/%u/gids/%d", device, port, i) ||
		    inet_pton(AF_INET6, gid, &a) != 1 || IN6_IS_ADDR_UNSPECIFIED(&a) ||
		    memcmp(a.s6_addr + 8, "\0\0\0\0\0\0\0", 8) == 0)
			continue;
		read_sys(type, sizeof(type), SYS "/%s/ports/%u/gid_attrs/types/%d", device, port,
			 i);
		read_sys(netdev, sizeof(netdev), SYS "/%s/ports/%u/gid_attrs/ndevs/%d", device,
			 port, i);
		is_v4 = IN6_IS_ADDR_V4MAPPED(&a);
		if (is_v4)
			inet_ntop(AF_INET, a.s6_addr + 12, address, sizeof(address));
		else
			inet_ntop(AF_INET6, &a, address, sizeof(address));
		j = json_pack("{s:i, s:s, s:s, s:s}", "index", i, "address", address, "type", type,
			      "netdev", netdev);
		if (j)
			json_array_append_new(ret_gids, j);
		if (used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%d %s%s%s%s%s",
						 used ? ", " : "", i, address, netdev[0] ? " " : "",
						 netdev, type[0] ? " " : "", type);
	}
}

static void look_at_port(struct doctor *d, const struct verbs *v, struct ibv_context *ctx,
			 const char *device, unsigned int port, bool is_chosen)
{
	struct ibv_port_attr attr;
	char name[96], rate[64], gids[512];
	bool is_active;
	int r;
	json_t *f, *list = json_array();

	memset(&attr, 0, sizeof(attr));
	snprintf(name, sizeof(name), "%s port %u", device, port);
	r = v->query_port(ctx, (uint8_t)port, (struct _compat_ibv_port_attr *)(void *)&attr);
	if (r) {
		doctor_add(d, is_chosen ? bad(d) : DOCTOR_NOTE, RDMA, name, "cannot be queried: %s",
			   strerror(r < 0 ? errno : r));
		json_decref(list);
		return;
	}
	is_active = attr.state == IBV_PORT_ACTIVE;
	read_sys(rate, sizeof(rate), SYS "/%s/ports/%u/rate", device, port);
	read_gids(device, port, attr.gid_tbl_len, gids, sizeof(gids), list);
	f = doctor_add(d, is_active ? DOCTOR_OK : DOCTOR_NOTE, RDMA, name,
		       "%s, %s, %s, MTU %d; GIDs: %s", state_name(attr.state),
		       attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE (Ethernet)"
								  : "InfiniBand",
		       rate[0] ? rate : "rate unknown", 128 << attr.active_mtu,
		       gids[0] ? gids : "none");
	if (!f) {
		json_decref(list);
		return;
	}
	json_object_set_new(f, "device", json_string(device));
	json_object_set_new(f, "port", json_integer((json_int_t)port));
	json_object_set_new(f, "is_active", json_boolean(is_active));
	json_object_set_new(f, "link_layer",
			    json_string(attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "ethernet"
										   : "infiniband"));
	json_object_set_new(f, "active_mtu_bytes", json_integer(128 << attr.active_mtu));
	json_object_set_new(f, "gids", list);
}

/* --- devices -------------------------------------------------------------------------------- */

/* By what this device could reach memory of a GPU (links/rdma/gpu.c). To register what is no
 * descriptor fails in any case, with EBADF where dma-bufs are known. */
static void look_for_gpu_memory(struct doctor *d, const struct verbs *v, struct ibv_context *ctx,
				const char *name)
{
	bool has_dmabuf = false,
	     has_peermem = access("/sys/module/nvidia_peermem", F_OK) == 0 ||
			   access("/sys/kernel/mm/memory_peers/nv_mem", F_OK) == 0;
	struct ibv_pd *pd = v->alloc_pd(ctx);

	if (pd && v->reg_dmabuf_mr && !v->reg_dmabuf_mr(pd, 0, 0, 0, -1, 0))
		has_dmabuf = errno == EBADF;
	if (pd)
		v->dealloc_pd(pd);
	doctor_add(d, DOCTOR_OK, RDMA, name, "memory of GPUs: %s",
		   has_dmabuf && has_peermem ? "as dma-bufs, and by address (nvidia-peermem)"
		   : has_dmabuf              ? "as dma-bufs, where the GPU's driver gives them"
		   : has_peermem             ? "by address (nvidia-peermem)"
				 : "out of reach: no dma-bufs here, and no nvidia-peermem");
}

/* The name of the library that drives the device: the library that its polling function is in. */
static const char *provider_of(const struct ibv_context *ctx)
{
	Dl_info info;
	const char *slash;

	if (!dladdr(*(void *const *)&ctx->ops.poll_cq, &info) || !info.dli_fname)
		return "unknown";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static void look_at_device(struct doctor *d, const struct verbs *v, struct ibv_device *dev)
{
	const char *name = v->get_device_name(dev);
	bool is_chosen = !d->hca || strcmp(d->hca, name) == 0;
	struct ibv_context *ctx = v->open_device(dev);
	struct ibv_device_attr attr;
	int r = ctx ? 0 : errno ? errno : ENODEV;
	json_t *f;

	memset(&attr, 0, sizeof(attr));
	if (ctx)
		r = v->query_device(ctx, &attr);
	if (r) {
		r = r < 0 ? errno : r;
		doctor_add(d, is_chosen ? bad(d) : DOCTOR_NOTE, RDMA, name, "cannot be %s: %s%s",
			   ctx ? "queried" : "opened", strerror(r),
			   r == EACCES || r == EPERM
				   ? "; look at who may open /dev/infiniband/uverbs*"
				   : "");
		if (ctx)
			v->close_device(ctx);
		return;
	}
	f = doctor_add(d, DOCTOR_OK, RDMA, name,
		       "provider %s, firmware %.32s, at most %d queue pairs%s", provider_of(ctx),
		       attr.fw_ver[0] ? attr.fw_ver : "-", attr.max_qp,
		       strncmp(name, "rxe", 3) == 0 ? "; soft-RoCE: correct, not fast" : "");
	if (f)
		json_object_set_new(f, "provider", json_string(provider_of(ctx)));
	for (unsigned int p = 1; p <= attr.phys_port_cnt; p++)
		look_at_port(d, v, ctx, name, p, is_chosen);
	look_for_gpu_memory(d, v, ctx, name);
	v->close_device(ctx);
}

/* What the kernel has and @list has not. Return: how many devices the kernel has. */
static int compare_with_kernel(struct doctor *d, const struct verbs *v, struct ibv_device **list)
{
	DIR *dir = opendir(SYS);
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir))) {
		bool is_known = false;

		if (e->d_name[0] == '.')
			continue;
		n++;
		for (int i = 0; list && list[i]; i++)
			is_known |= strcmp(v->get_device_name(list[i]), e->d_name) == 0;
		if (!is_known)
			doctor_add(
				d, bad(d), RDMA, e->d_name,
				"the kernel has this device, libibverbs does not: %s",
				access("/dev/infiniband", F_OK) != 0
					? "there is no /dev/infiniband (module ib_uverbs; in a container, --device)"
					: "its provider is missing (package ibverbs-providers)");
	}
	if (dir)
		closedir(dir);
	return n;
}

/* "1 RoCE v2" of each GID of a port that has @address. Return: how many. */
static size_t gids_with(const json_t *port, const char *address, int only, char *text, size_t size)
{
	const json_t *g;
	size_t i, n = 0, used = 0;

	text[0] = 0;
	json_array_foreach(json_object_get(port, "gids"), i, g)
	{
		int index = (int)json_integer_value(json_object_get(g, "index"));

		if (strcmp(json_string_value(json_object_get(g, "address")), address) != 0 ||
		    (only >= 0 && index != only))
			continue;
		n++;
		if (used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%d %s",
						 used ? ", " : "", index,
						 json_string_value(json_object_get(g, "type")));
	}
	return n;
}

/* Finds the port that has the address. No port of InfiniBand has: the address is IPoIB's. */
static void say_used(struct doctor *d, const struct rdma_options *o, const char *address)
{
	json_t *p, *f;
	char gids[128];
	size_t i;

	json_array_foreach(d->findings, i, p)
	{
		const char *device = json_string_value(json_object_get(p, "device"));
		int port = (int)json_integer_value(json_object_get(p, "port"));

		if (!device || !json_is_true(json_object_get(p, "is_active")) ||
		    (o->hca[0] && strcmp(o->hca, device) != 0) ||
		    (o->port && port != (int)o->port) ||
		    !gids_with(p, address, o->gid_index, gids, sizeof(gids)))
			continue;
		f = doctor_add(d, DOCTOR_OK, RDMA, "used", "device %s port %d, GID %s", device,
			       port, gids);
		if (f)
			json_object_set(f, "used_device", json_object_get(p, "device"));
		return;
	}
}

/* The address that links would be listened at without another one, found as they find it. */
static void choose_address(struct doctor *d)
{
	struct sockaddr_storage at;
	struct rdma_options o;
	struct err err = {""};
	char text[INET6_ADDRSTRLEN];
	int r = rdma_options_get(&o, &err);

	if (r < 0) {
		doctor_add(d, DOCTOR_WRONG, RDMA, "options", "%s", err.text);
		return;
	}
	r = rdma_own_address(&o, &at, &err);
	if (r == -EADDRNOTAVAIL || r == -ENXIO) {
		doctor_add(
			d, bad(d), RDMA, "address",
			"no active port has an IPv4 or global IPv6 address%s; give its network interface (InfiniBand: "
			"that of IPoIB, such as ib0) one (ip addr add ...) and bring it up",
			o.port || o.gid_index >= 0
				? " that NBOX_IB_PORT and NBOX_IB_GID_INDEX allow"
				: "");
	} else if (r < 0) {
		doctor_add(d, bad(d), RDMA, "address", "%s", err.text);
	} else if (at.ss_family == AF_INET) {
		inet_ntop(AF_INET, &((struct sockaddr_in *)&at)->sin_addr, text, sizeof(text));
		snprintf(d->rdma_address, sizeof(d->rdma_address), "%s", text);
	} else {
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&at)->sin6_addr, text, sizeof(text));
		snprintf(d->rdma_address, sizeof(d->rdma_address), "[%s]", text);
	}
	if (d->rdma_address[0]) {
		doctor_add(d, DOCTOR_OK, RDMA, "address", "rdma:%s", d->rdma_address);
		say_used(d, &o, text);
	}
}

static void choose_device(struct doctor *d, const struct verbs *v, struct ibv_device **list, int n)
{
	const char *names[64], *near;
	int k = 0;

	for (; d->hca && k < n && k < (int)ARRAY_SIZE(names); k++) {
		names[k] = v->get_device_name(list[k]);
		if (strcmp(names[k], d->hca) == 0)
			break;
	}
	near = d->hca && k == n ? suggest(d->hca, names, (size_t)k) : NULL;
	if (d->hca && k == n)
		doctor_add(d, DOCTOR_WRONG, RDMA, d->hca, "there is no such device%s%s%s",
			   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
	else
		choose_address(d);
}

void doctor_rdma(struct doctor *d)
{
	const struct verbs *v;
	struct err err = {""};
	struct ibv_device **list;
	int n = 0;

	check_memlock(d);
	if (verbs_get(&v, &err) < 0) {
		doctor_add(d, bad(d), RDMA, "libraries", "%s", err.text);
		return;
	}
	list = v->get_device_list(&n);
	if (!compare_with_kernel(d, v, list) && n == 0) {
		doctor_add(d, bad(d), RDMA, "devices",
			   "none; soft-RoCE needs only an Ethernet interface where the "
			   "kernel has it (rdma link add rxe0 type rxe netdev eth0)");
	} else if (n > 0) {
		for (int i = 0; i < n; i++)
			look_at_device(d, v, list[i]);
		choose_device(d, v, list, n);
	}
	if (list)
		v->free_device_list(list);
}
