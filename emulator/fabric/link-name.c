/* See fabric.h: what a link is called. */
#include <stdio.h>

#include "fabric/fabric.h"
#include "fabric/link-number.h"

char *fabric_link_name(const struct fabric *f, uint64_t link, char *buf, size_t size)
{
	bool is_in = link_direction(link) == LINK_IN;
	uint32_t a = link_a(link), b = link_b(link);
	const char *direction = is_in ? "in" : "out";

	switch (link_kind(link)) {
	case LINK_GPU:
		snprintf(buf, size, "node%u.gpu%u.%s", a, b, direction);
		break;
	case LINK_PCIE:
		snprintf(buf, size, "node%u.pcie%u.%s", a, b, direction);
		break;
	case LINK_NIC:
		snprintf(buf, size, "node%u.nic%u.%s", a, b, direction);
		break;
	case LINK_LEAF:
		snprintf(buf, size, b ? "leaf%u.%s, cable %u" : "leaf%u.%s", a,
			 is_in ? "down" : "up", b - 1);
		break;
	case LINK_POD:
		snprintf(buf, size, "pod%u.%s", a, is_in ? "down" : "up");
		break;
	case LINK_GROUP:
		snprintf(buf, size, "group%u.to%u.out", a, b);
		break;
	case LINK_CABLE:
	case LINK_KINDS:
	default:
		snprintf(buf, size, "sw%u.sw%u.%s", f->cables[a].from, f->cables[a].to, direction);
		break;
	}
	return buf;
}
