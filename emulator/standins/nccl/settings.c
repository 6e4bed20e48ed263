/* What NCCL_* variables say: algorithm, chunk, channels, interface, host. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "schedule/schedule.h"
#include "standins/nccl/debug.h"
#include "standins/nccl/settings.h"

static ncclResult_t read_number(const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *s = getenv(name);
	unsigned long long v;
	char *end;

	if (!s || !*s)
		return ncclSuccess;
	errno = 0;
	v = strtoull(s, &end, 0);
	if (errno || *end || *s == '-' || v < min || v > max)
		return fail(ncclInvalidArgument, "%s=%s: a number from %llu to %llu is expected",
			    name, s, (unsigned long long)min, (unsigned long long)max);
	*value = v;
	return ncclSuccess;
}

/* One entry of NCCL_ALGO's list. Tree is for AllReduce only, as in NCCL; names of
 * algorithms that need hardware are known, and refused when nothing else is left. */
static ncclResult_t read_algo(const char *all, char *entry, uint32_t *allowed)
{
	static const char *const foreign[] = {"collnet", "collnetdirect", "collnetchain",
					      "nvls",    "nvlstree",      "pat"};
	char *colon = strchr(entry, ':'), *save = NULL, *name;
	bool is_not = false;
	uint32_t set = 0;
	size_t i;

	if (colon) {
		*colon = 0;
		if (coll_kind_parse(entry) < 0)
			return fail(ncclInvalidArgument, "NCCL_ALGO=%s: unknown collective %s", all,
				    entry);
		if (coll_kind_parse(entry) != COLL_ALLREDUCE)
			return ncclSuccess; /* nothing to choose there */
		entry = colon + 1;
	}
	if (*entry == '^') {
		is_not = true;
		entry++;
	}
	for (name = strtok_r(entry, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		int a = !strcasecmp(name, "ring")   ? SCHED_RING
			: !strcasecmp(name, "tree") ? SCHED_TREE
						    : -1;

		for (i = 0; a < 0 && i < ARRAY_SIZE(foreign); i++) {
			if (!strcasecmp(name, foreign[i]))
				break;
		}
		if (a < 0 && i == ARRAY_SIZE(foreign))
			return fail(ncclInvalidArgument,
				    "NCCL_ALGO=%s: unknown algorithm %s; ring and tree are known",
				    all, name);
		if (a >= 0)
			set |= 1u << a;
	}
	*allowed = is_not ? *allowed & ~set : set;
	return ncclSuccess;
}

static ncclResult_t read_algos(struct settings *s)
{
	const char *all = getenv("NCCL_ALGO");
	CLEANUP(freep) char *copy = NULL;
	uint32_t allowed = 1u << SCHED_RING | 1u << SCHED_TREE;
	char *save = NULL, *entry;

	s->allreduce_algo = -1;
	if (!all || !*all)
		return ncclSuccess;
	copy = strdup(all);
	if (!copy)
		return fail(ncclSystemError, "out of memory");
	for (entry = strtok_r(copy, ";", &save); entry; entry = strtok_r(NULL, ";", &save)) {
		ncclResult_t r = read_algo(all, entry, &allowed);

		if (r)
			return r;
	}
	if (!allowed)
		return fail(ncclInvalidUsage,
			    "NCCL_ALGO=%s leaves no algorithm for AllReduce: host "
			    "NCCL has ring and tree",
			    all);
	if (allowed == 1u << SCHED_TREE)
		s->allreduce_algo = SCHED_TREE;
	else if (allowed == 1u << SCHED_RING)
		s->allreduce_algo = SCHED_RING;
	return ncclSuccess;
}

static ncclResult_t read_net(struct settings *s)
{
	const char *net = getenv("NCCL_NET");

	if (net && *net && strcasecmp(net, "Socket") && strcasecmp(net, "IB"))
		return fail(
			ncclInvalidUsage,
			"NCCL_NET=%s: host NCCL has Socket and IB, and takes no plug-ins (of nccl full): "
			"NBOX_NCCL=PATH names an NCCL that does",
			net);
	s->net_is_ib = net && !strcasecmp(net, "IB");
	return ncclSuccess;
}

ncclResult_t settings_read(struct settings *ret)
{
	uint64_t buff = 4 * SCHED_CHUNK_DEFAULT, min = 1, max = 64, no_shm = 0;
	struct settings s = {0};
	ncclResult_t r;

	if ((r = read_number("NCCL_BUFFSIZE", 4096, UINT64_C(1) << 32, &buff)) ||
	    (r = read_number("NCCL_MIN_NCHANNELS", 1, 64, &min)) ||
	    (r = read_number("NCCL_MAX_NCHANNELS", 1, 64, &max)) ||
	    (r = read_number("NCCL_SHM_DISABLE", 0, INT32_MAX, &no_shm)) || (r = read_algos(&s)) ||
	    (r = read_net(&s)))
		return r;
	s.chunk_bytes = buff / 4 / 16 * 16; /* NCCL's chunks are a part of its buffer, too */
	s.n_channels = (uint32_t)(min < max ? min : max);
	s.shm_disabled = no_shm != 0;
	*ret = s;
	return ncclSuccess;
}

bool settings_has_interface(void)
{
	const char *s = getenv("NCCL_SOCKET_IFNAME");

	return s && *s;
}

/* NCCL's rule: a list of prefixes; '=' in front: of names; '^': all but these. */
static bool is_wanted(const char *list, const char *name)
{
	bool is_not = *list == '^', is_exact, is_in = false;

	list += is_not;
	is_exact = *list == '=';
	list += is_exact;
	while (*list && !is_in) {
		size_t n = strcspn(list, ",");

		is_in = n && !strncmp(list, name, n) && (!is_exact || !name[n]);
		list += n + (list[n] == ',');
	}
	return is_in != is_not;
}

ncclResult_t settings_interface(struct sockaddr_in *ret)
{
	const char *list = getenv("NCCL_SOCKET_IFNAME");
	struct ifaddrs *all, *i;
	bool has = false;

	memset(ret, 0, sizeof(*ret));
	ret->sin_family = AF_INET;
	ret->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!list || !*list)
		return ncclSuccess;
	if (getifaddrs(&all))
		return fail(ncclSystemError, "getifaddrs: %s", strerror(errno));
	for (i = all; i && !has; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
		    !is_wanted(list, i->ifa_name))
			continue;
		if (*list == '^' && i->ifa_flags & IFF_LOOPBACK)
			continue;
		memcpy(&ret->sin_addr,
		       &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr,
		       sizeof(ret->sin_addr));
		has = true;
	}
	freeifaddrs(all);
	if (!has)
		return fail(ncclInvalidUsage,
			    "NCCL_SOCKET_IFNAME=%s: no such interface with an IPv4 address", list);
	return ncclSuccess;
}

static uint64_t hash(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len--)
		h = (h ^ *p++) * UINT64_C(0x100000001b3);
	return h ^ h >> 29;
}

/* NCCL_HOSTID makes several hosts of one, as in NCCL. Processes in different
 * network namespaces do not see each other's sockets. */
void settings_host_id(uint8_t ret[16])
{
	uint64_t a = UINT64_C(0xcbf29ce484222325), b = UINT64_C(0x9e3779b97f4a7c15);
	const char *name = getenv("NCCL_HOSTID");
	char buf[64] = "";
	CLEANUP(closep) int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	struct stat st = {0};
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf));

	if (n <= 0)
		n = gethostname(buf, sizeof(buf)) ? 0 : (ssize_t)strnlen(buf, sizeof(buf));
	a = hash(a, buf, (size_t)n);
	b = hash(b, buf, (size_t)n);
	if (!stat("/proc/self/ns/net", &st)) {
		a = hash(a, &st.st_ino, sizeof(st.st_ino));
		b = hash(b, &st.st_ino, sizeof(st.st_ino));
	}
	if (name && *name) {
		a = hash(a, name, strlen(name));
		b = hash(b, name, strlen(name));
	}
	memcpy(ret, &a, 8);
	memcpy(ret + 8, &b, 8);
}
