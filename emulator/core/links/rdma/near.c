/* See near.h. */
#include "links/rdma/near.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const char *rdma_near_sysfs = "/sys";

static char gpu[RDMA_PCI_MAX];

void rdma_near(const char *pci)
{
	snprintf(gpu, sizeof(gpu), "%s", pci ? pci : "");
}

const char *rdma_near_gpu(void)
{
	return gpu[0] ? gpu : NULL;
}

/* sysfs has lower case and four digits of the domain or more; some tools of NVIDIA write
 * eight. */
static int normalize(const char *pci, char *ret, size_t size)
{
	unsigned int domain, bus, device, function;
	int end = -1;

	if (strspn(pci, "0123456789abcdefABCDEF:.") != strlen(pci) ||
	    sscanf(pci, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 ||
	    end < 0 || pci[end])
		return -EINVAL;
	snprintf(ret, size, "%04x:%02x:%02x.%x", domain, bus, device, function);
	return 0;
}

/* Return: the place, to be freed; NULL: it cannot be read. */
static char *place(const char *sysfs, const char *folder, const char *name, const char *rest)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s/%s%s", sysfs, folder, name, rest);

	if (strchr(name, '/') || n < 0 || (size_t)n >= sizeof(path))
		return NULL;
	return realpath(path, NULL);
}

/* Both are absolute, without links. */
static size_t n_common(const char *a, const char *b)
{
	size_t n = 0;

	for (; *a && *a == *b; a++, b++)
		n += *a == '/';
	/* the component behind the last of these slashes may differ */
	return n && !((!*a || *a == '/') && (!*b || *b == '/')) ? n - 1 : n;
}

int rdma_near_choose(const char *sysfs, const char *pci, const char *const *names, size_t n,
		     size_t *ret)
{
	char id[RDMA_PCI_MAX];
	CLEANUP(freep) char *from = NULL;
	size_t best = 0, most = 0, n_best = 0;
	int r = normalize(pci, id, sizeof(id));

	if (r)
		return r;
	from = place(sysfs, "bus/pci/devices", id, "");
	for (size_t i = 0; from && i < n; i++) {
		CLEANUP(freep) char *at = place(sysfs, "class/infiniband", names[i], "/device");
		size_t common = at ? n_common(from, at) : 0;

		if (at && common > most) {
			most = common;
			best = i;
			n_best = 0;
		}
		n_best += at && common == most;
	}
	if (!n_best)
		return -ENOENT;
	if (n_best > 1)
		return RDMA_NEAR_EQUAL;
	*ret = best;
	return 0;
}
