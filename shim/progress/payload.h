/* Memory for the dummy bytes of exchange `payload`. The progress thread's alone. Buffers only grow,
 * and stay until the end: a link may still read an older one. */
#pragma once

#include <stdint.h>

#include "player/player.h"

/* Where a body is sent from: @src when it lies in the scratch buffers of payload_data(), which
 * stay; else a common place, since a player's own memory may go before the link is done. NULL: no
 * memory. */
const void *payload_source(const void *src, uint64_t bytes);
/* Where body @index of @bytes is received, of an op with a buffer of @footprint bytes: places
 * follow each other, so that a large op works through memory as a real one does. */
void *payload_sink(uint64_t index, uint64_t bytes, uint64_t footprint);
/* Scratch input and output as large as rank @rank's own in this call, and a
 * reduction as costly as the real one. Return: 0 or -ENOMEM. */
int payload_data(const struct sched *s, uint32_t rank, uint32_t dtype, struct player_data *ret);
