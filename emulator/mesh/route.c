/* See route.h. */
#include "mesh/route.h"

static uint32_t all(struct mesh_group to)
{
	return to.hosts * to.devices;
}

uint32_t mesh_parts(enum mesh_strategy s, struct mesh_group to, uint32_t k)
{
	return s == MESH_BROADCAST ? k : all(to);
}

/* Part @i of @n, as equal as whole bytes can be. */
static void cut(uint64_t bytes, uint32_t n, uint32_t i, struct mesh_part *ret)
{
	uint64_t length = bytes / n, longer = bytes % n;

	ret->from = length * i + (i < longer ? i : longer);
	ret->bytes = length + (i < longer);
}

void mesh_part(enum mesh_strategy s, uint64_t bytes, struct mesh_group to, uint32_t k,
	       uint32_t number, struct mesh_part *ret)
{
	*ret = (struct mesh_part){.first = number};
	switch (s) {
	case MESH_LOCAL_AG:
		cut(bytes, to.devices, number % to.devices, ret);
		ret->forwards = to.devices - 1;
		return;
	case MESH_GLOBAL_AG:
		cut(bytes, all(to), number, ret);
		ret->forwards = all(to) - 1;
		return;
	case MESH_BROADCAST:
		cut(bytes, k, number, ret);
		ret->first = 0;
		ret->forwards = all(to) - 1;
		return;
	case MESH_SIGNAL:
		ret->bytes = 1;
		return;
	case MESH_SENDRECV:
	case MESH_STRATEGIES:
		ret->bytes = bytes;
		return;
	}
}

uint32_t mesh_next(enum mesh_strategy s, struct mesh_group to, uint32_t place)
{
	uint32_t host = place / to.devices;

	if (s == MESH_LOCAL_AG)
		return host * to.devices + (place + 1) % to.devices;
	if (s == MESH_GLOBAL_AG)
		return (place + 1) % all(to);
	if (s == MESH_BROADCAST && place + 1 < all(to))
		return place + 1;
	return MESH_NOBODY;
}

uint64_t mesh_crossing_bytes(enum mesh_strategy s, uint64_t bytes, struct mesh_group to)
{
	struct mesh_part part;
	uint64_t crossing;

	switch (s) {
	case MESH_SENDRECV:
		return bytes * to.hosts * to.devices;
	case MESH_GLOBAL_AG: /* a ring: what starts at a host's first device does not come back */
		crossing = bytes;
		for (uint32_t host = 0; to.hosts > 1 && host < to.hosts; host++) {
			mesh_part(s, bytes, to, 0, host * to.devices, &part);
			crossing += bytes - part.bytes;
		}
		return crossing;
	case MESH_LOCAL_AG:
	case MESH_BROADCAST:
		return bytes * to.hosts;
	case MESH_SIGNAL:
	case MESH_STRATEGIES:
		break;
	}
	return to.hosts * to.devices;
}
