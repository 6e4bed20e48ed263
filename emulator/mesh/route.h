/* The messages of a unit task, as strategy.h's strategies have them: the sender gives each part to
 * one receiver, and receivers pass it on. */
#pragma once

#include <stdint.h>

#include "mesh/strategy.h"

struct mesh_part {
	uint64_t from, bytes; /* of the task's bytes */
	uint32_t first;       /* place of who gets it from the sender */
	uint32_t forwards;    /* how many pass it on, one to the next */
};

#define MESH_NOBODY UINT32_MAX

/* How many parts the sender sends; @k: pieces of a broadcast, a number. */
uint32_t mesh_parts(enum mesh_strategy s, struct mesh_group to, uint32_t k);
void mesh_part(enum mesh_strategy s, uint64_t bytes, struct mesh_group to, uint32_t k,
	       uint32_t number, struct mesh_part *ret);
/* To whom the receiver at @place passes parts on. */
uint32_t mesh_next(enum mesh_strategy s, struct mesh_group to, uint32_t place);
/* Bytes that cross to the @host-th host of the group: from the sender, and from there to the next
 * one, which of the last is the first. */
struct mesh_crossing {
	uint64_t from_sender, to_next;
};
struct mesh_crossing mesh_crossing_at(enum mesh_strategy s, uint64_t bytes, struct mesh_group to,
				      uint32_t host);
/* The same of all hosts. */
uint64_t mesh_crossing_bytes(enum mesh_strategy s, uint64_t bytes, struct mesh_group to);
