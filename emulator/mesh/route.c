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

/* A ring: what starts at a host's first device does not come back to it. */
static struct mesh_crossing global_ag_at(uint64_t bytes, struct mesh_group to, uint32_t host)
{
	uint32_t behind = (host + 1) % to.hosts;
	struct mesh_part first, next;

	cut(bytes, all(to), host * to.devices, &first);
	cut(bytes, all(to), behind * to.devices, &next);
	return (struct mesh_crossing){(behind ? next.from : bytes) - first.from,
				      to.hosts > 1 ? bytes - next.bytes : 0};
}

struct mesh_crossing mesh_crossing_at(enum mesh_strategy s, uint64_t bytes, struct mesh_group to,
				      uint32_t host)
{
	switch (s) {
	case MESH_SENDRECV:
		return (struct mesh_crossing){bytes * to.devices, 0};
	case MESH_LOCAL_AG:
		return (struct mesh_crossing){bytes, 0};
	case MESH_GLOBAL_AG:
		return global_ag_at(bytes, to, host);
	case MESH_BROADCAST:
		return (struct mesh_crossing){host == 0 ? bytes : 0,
					      host + 1 < to.hosts ? bytes : 0};
	case MESH_SIGNAL:
	case MESH_STRATEGIES:
		break;
	}
	return (struct mesh_crossing){to.devices, 0};
}

uint64_t mesh_crossing_bytes(enum mesh_strategy s, uint64_t bytes, struct mesh_group to)
{
	uint64_t sum = 0;

	for (uint32_t host = 0; host < to.hosts; host++) {
		struct mesh_crossing c = mesh_crossing_at(s, bytes, to, host);

		sum += c.from_sender + c.to_next;
	}
	return sum;
}
