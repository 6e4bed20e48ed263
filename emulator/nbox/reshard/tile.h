/* A box of a tensor in memory, its last dimension's elements side by side. The value of an element
 * follows from its place in the tensor, so that whoever has it knows what it must be. */
#pragma once

#include <stdint.h>

#include "mesh/spec.h"

struct tile {
	const struct mesh_tensor *tensor; /* borrowed */
	struct mesh_box box;
	unsigned char *bytes; /* owned */
};

/* Return: 0; -ENOMEM. */
int tile_init(struct tile *t, const struct mesh_tensor *tensor, const struct mesh_box *box);
void tile_deinit(struct tile *t); /* a zeroed struct is allowed */
uint64_t tile_bytes(const struct tile *t);
void tile_fill(struct tile *t);
/* No element is right. */
void tile_spoil(struct tile *t);
/* Copies @box, which lies in the tile, to @ret or from @bytes, where it lies alone. */
void tile_take(const struct tile *t, const struct mesh_box *box, unsigned char *ret);
void tile_put(struct tile *t, const struct mesh_box *box, const unsigned char *bytes);
/* Return: how many elements are wrong; *ret_first: the first, by its number in the tensor. */
uint64_t tile_wrong(const struct tile *t, uint64_t *ret_first);
