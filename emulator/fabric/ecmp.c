/* See fabric.h: which cable up from its leaf a connection takes. */
#include "fabric/fabric.h"
#include "fabric/link-number.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return h ^ h >> 32;
}

void fabric_ecmp(const struct fabric *f, uint32_t src, uint32_t dst, uint16_t lane, uint64_t *links,
		 uint32_t n)
{
	uint64_t h = mix(mix(mix(mix(0, f->network.ecmp), src), dst), lane);

	for (uint32_t i = 0; f->network.ecmp && i < n; i++) {
		uint32_t leaf = link_a(links[i]);

		if (link_kind(links[i]) == LINK_LEAF)
			links[i] = link_number(LINK_LEAF, leaf,
					       1 + (uint32_t)(h % link_cables(f, leaf)),
					       link_direction(links[i]));
	}
}
