/* Messages that wait until they are used: a ring of bodies by index, each with the number of those
 * who will still use it. */
#pragma once

#include <stdint.h>

#include "traffic/body.h"

#define SLOT_USERS_UNKNOWN UINT32_MAX

struct slot {
	struct traffic_body *body; /* a reference; NULL: an empty message */
	uint32_t users;
};

struct slots {
	struct slot *ring;       /* owned */
	uint64_t first, n, room; /* index of the first; room: a power of two */
};

void slots_deinit(struct slots *s);
/* The next message. @body: consumed. Return: 0; -ENOMEM. */
int slots_push(struct slots *s, struct traffic_body *body, uint32_t users);
/* first <= @index < first + n */
struct slot *slots_at(const struct slots *s, uint64_t index);
/* The message for one of its users. Return: a reference, or NULL. */
struct traffic_body *slots_take(struct slots *s, uint64_t index);
uint64_t slots_bytes(const struct slots *s); /* that its bodies take */
/* Drops what nobody uses. */
void slots_trim(struct slots *s);
