/* See fabric.h: which NICs are near to a GPU. */
#include "fabric/fabric.h"

uint32_t fabric_near_nics(const struct fabric_class *class, uint32_t local)
{
	uint32_t bits = 0, gpu = UINT32_MAX;

	for (uint32_t i = 0; i < class->n_nics && class->nic_gpu[i] <= local; i++) {
		if (class->nic_gpu[i] != gpu)
			bits = 0; /* a nearer GPU has some */
		gpu = class->nic_gpu[i];
		bits |= UINT32_C(1) << i;
	}
	return bits || !class->n_nics ? bits : 1;
}

uint32_t fabric_near_nic(const struct fabric_class *class, uint32_t local, uint32_t i)
{
	uint32_t bits = fabric_near_nics(class, local), n = (uint32_t)__builtin_popcount(bits);

	for (i = n ? i % n : 0; i > 0; i--)
		bits &= bits - 1;
	return bits ? (uint32_t)__builtin_ctz(bits) : 0;
}
