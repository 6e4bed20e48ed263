/* Whether the next message of a receive can go, but for the time. */
#pragma once

#include "traffic/comm.h"

/* Something has come that receive @f may have waited for. */
void ready_look(struct flow *f);
/* A message of send @f has come, or @f itself. */
void ready_wake(struct flow *f);
/* Can the next message of @f go? When not, it is noted what it waits for. */
bool ready_is(struct flow *f);
uint64_t ready_due(const struct flow *f); /* of its next message */
