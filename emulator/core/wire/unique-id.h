/* The 128 bytes of an ncclUniqueId that the shim or nboxd made. Users of NCCL treat them as
 * opaque. Such an id is only a name, nobody listens behind it. It names its creator, as a rule
 * rank 0 of the communicator. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/wire.h"

#define WIRE_UNIQUE_ID_MAGIC "nbox-id" /* with its zero */
#define WIRE_CREATOR_UNKNOWN UINT32_MAX

struct wire_unique_id {
	char magic[8];
	uint32_t version; /* 1 */
	uint32_t creator; /* world rank of the process that made it, or WIRE_CREATOR_UNKNOWN */
	uint32_t serial;  /* of the ids of this process, from 0 */
	uint32_t pid;
	uint64_t random[3];
	uint8_t zero[80];
};
_Static_assert(sizeof(struct wire_unique_id) == WIRE_ID_BYTES, "an id is 128 bytes");

/* An id that NCCL_COMM_ID stands for: this and the variable's value. Every communicator of the job
 * may have it. */
#define WIRE_COMMON_ID "nbox-id "

static inline bool wire_unique_id_is_common(const void *id)
{
	return memcmp(id, WIRE_COMMON_ID, sizeof(WIRE_COMMON_ID) - 1) == 0;
}

/* The world rank that made @id (WIRE_ID_BYTES); -1: not known, or not one of ours. */
static inline int64_t wire_unique_id_creator(const void *id)
{
	struct wire_unique_id u;

	memcpy(&u, id, sizeof(u));
	if (memcmp(u.magic, WIRE_UNIQUE_ID_MAGIC, sizeof(u.magic)) != 0 || u.version != 1 ||
	    u.creator == WIRE_CREATOR_UNKNOWN)
		return -1;
	return u.creator;
}
