/* Memory for the dummy bytes of exchange `payload`. The progress thread's alone.
 * Buffers only grow and stay until the end: a link may still read an older one. */
#pragma once

#include <stdint.h>

#include "player/player.h"

const void *payload_fill(uint64_t bytes); /* bodies of sends; NULL: no memory */
void *payload_sink(uint64_t bytes);       /* bodies of receives */
/* Scratch input and output as large as rank @rank's own in this call, and a
 * reduction as costly as the real one. Return: 0 or -ENOMEM. */
int payload_data(const struct sched *s, uint32_t rank, uint32_t dtype,
		 struct player_data *ret);
void payload_deinit(void);
