/* What the owner of a player lends it: callbacks that move messages, and the bytes of the op. */
#pragma once

#include <stdint.h>

/* Lent by the owner. Both: Return 0, or negative errno, which ends the op. They
 * may not call back into the player. */
struct player_io {
	/* Send @bytes at @src as message @index of (us -> peer, lane). @src stays
	 * valid until player_sent(). NULL when the player has no data. */
	int (*send)(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		    uint64_t bytes);
	/* Message @index of (peer -> us, lane) goes to @dst, NULL when the player has
	 * no data. Posted in order, up to four steps ahead in each thread. */
	int (*post)(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		    uint64_t bytes);
};

/* What to do with the bytes; NULL in player_start() for a player without data. */
struct player_data {
	const void *input;
	void *output; /* may equal input where the kind allows it in place */
	/* dst = a (op) b, @bytes long; dst may be a or b */
	void (*reduce)(const struct player_data *d, void *dst, const void *a, const void *b,
		       uint64_t bytes);
	/* Own input before it takes part (PreMulSum); NULL: as it is */
	void (*pre)(const struct player_data *d, void *dst, const void *src, uint64_t bytes);
	/* A finished reduction (avg); NULL: as it is */
	void (*post)(const struct player_data *d, void *buf, uint64_t bytes);
	void *ctx;
};
