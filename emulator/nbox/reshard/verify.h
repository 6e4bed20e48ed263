/* A plan carried out: a process for each device of both meshes, joined by links. The sources fill
 * their tiles, the bytes go as plan and strategy say, and each destination compares every element
 * of its tile with what it must be. Bytes that cross hosts are counted.
 *
 * It moves the right bytes over the right hops; it measures no time, and nobody keeps two tasks of
 * one host apart. */
#pragma once

#include "nbox/reshard/actor.h"

#define VERIFY_BYTES_MAX (UINT64_C(1) << 30) /* in all processes */

struct verified {
	uint32_t processes;
	uint64_t elements, wrong;
	uint64_t crossing_bytes,
		inside_bytes;    /* that were sent from host to host, and inside one */
	uint64_t expected_bytes; /* to cross, by the closed form */
};

/* Ends when all processes have, within ten minutes; they end when this one does. Return: 0, also
 * where something is wrong; -EINVAL: too large, or nothing to move; another negative errno: a
 * process failed; each with the sentence. */
int verify_run(const struct verify *v, struct verified *ret, struct err *err);
