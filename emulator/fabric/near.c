/* See fabric.h: which NICs are near to a GPU. */
#include "fabric/fabric.h"

uint32_t fabric_near_nics(const struct fabric_class *class, uint32_t local)
{
	uint32_t bits = 0, gpu = class->n_nics ? class->nic_gpu[0] : 0;

	for (uint32_t i = 0; i < class->n_nics && class->nic_gpu[i] <= local; i++)
		gpu = class->nic_gpu[i];
	for (uint32_t i = 0; i < class->n_nics; i++)
		bits |= (uint32_t)(class->nic_gpu[i] == gpu) << i;
	return bits;
}

uint32_t fabric_nics_of_gpus(const struct fabric_class *class, uint32_t from, uint32_t to)
{
	uint32_t bits = 0;

	for (; from < to; from++)
		bits |= fabric_near_nics(class, from);
	return bits;
}

uint32_t fabric_near_nic(const struct fabric_class *class, uint32_t local, uint32_t i)
{
	uint32_t bits = fabric_near_nics(class, local), n = (uint32_t)__builtin_popcount(bits);

	for (i = n ? i % n : 0; i > 0; i--)
		bits &= bits - 1;
	return bits ? (uint32_t)__builtin_ctz(bits) : 0;
}

void fabric_spread_nics(struct fabric_class *class)
{
	for (uint32_t i = 0; i < class->n_nics; i++)
		class->nic_gpu[i] = i * class->n_gpus / class->n_nics;
}
