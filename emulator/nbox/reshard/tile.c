/* See tile.h. A row is what lies side by side: the last dimension of a box. */
#include "nbox/reshard/tile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define SEED UINT64_C(0x6e626f78)

static uint64_t rows(const struct mesh_box *b, uint32_t n_dims)
{
	return mesh_box_elements(b, n_dims - 1);
}

static uint64_t row_length(const struct mesh_box *b, uint32_t n_dims)
{
	return b->hi[n_dims - 1] - b->lo[n_dims - 1];
}

/* Where the @row-th row of @b begins. */
static void row_at(const struct mesh_box *b, uint32_t n_dims, uint64_t row, uint64_t *ret)
{
	ret[n_dims - 1] = b->lo[n_dims - 1];
	for (uint32_t i = n_dims - 1; i-- > 0; row /= b->hi[i] - b->lo[i])
		ret[i] = b->lo[i] + row % (b->hi[i] - b->lo[i]);
}

/* The number of the element there, in a box. */
static uint64_t number_in(const struct mesh_box *b, uint32_t n_dims, const uint64_t *at)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_dims; i++)
		n = n * (b->hi[i] - b->lo[i]) + (at[i] - b->lo[i]);
	return n;
}

static uint64_t number(const struct mesh_tensor *t, const uint64_t *at)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->n_dims; i++)
		n = n * t->dims[i] + at[i];
	return n;
}

int tile_init(struct tile *t, const struct mesh_tensor *tensor, const struct mesh_box *box)
{
	uint64_t bytes;

	*t = (struct tile){.tensor = tensor, .box = *box};
	bytes = tile_bytes(t);
	t->bytes = malloc(bytes ? bytes : 1);
	return t->bytes ? 0 : -ENOMEM;
}

void tile_deinit(struct tile *t)
{
	free(t->bytes);
	t->bytes = NULL;
}

uint64_t tile_bytes(const struct tile *t)
{
	return mesh_box_elements(&t->box, t->tensor->n_dims) * t->tensor->element_bytes;
}

void tile_fill(struct tile *t)
{
	uint32_t n_dims = t->tensor->n_dims, each = t->tensor->element_bytes;
	uint64_t length = row_length(&t->box, n_dims), at[MESH_DIMS];
	unsigned char *to = t->bytes;

	for (uint64_t row = 0; length && row < rows(&t->box, n_dims); row++) {
		uint64_t first;

		row_at(&t->box, n_dims, row, at);
		first = number(t->tensor, at);
		for (uint64_t i = 0; i < length; i++, to += each) {
			uint64_t value = rng_hash(SEED, first + i);

			memcpy(to, &value, each);
		}
	}
}

void tile_spoil(struct tile *t)
{
	tile_fill(t);
	for (uint64_t i = 0; i < tile_bytes(t); i++)
		t->bytes[i] = (unsigned char)~t->bytes[i];
}

/* The @row-th row of @box in the tile. */
static unsigned char *row_of(const struct tile *t, const struct mesh_box *box, uint64_t row)
{
	uint64_t at[MESH_DIMS];

	row_at(box, t->tensor->n_dims, row, at);
	return t->bytes + number_in(&t->box, t->tensor->n_dims, at) * t->tensor->element_bytes;
}

void tile_take(const struct tile *t, const struct mesh_box *box, unsigned char *ret)
{
	uint64_t bytes = row_length(box, t->tensor->n_dims) * t->tensor->element_bytes;

	for (uint64_t row = 0; row < rows(box, t->tensor->n_dims); row++)
		memcpy(ret + row * bytes, row_of(t, box, row), bytes);
}

void tile_put(struct tile *t, const struct mesh_box *box, const unsigned char *bytes)
{
	uint64_t n = row_length(box, t->tensor->n_dims) * t->tensor->element_bytes;

	for (uint64_t row = 0; row < rows(box, t->tensor->n_dims); row++)
		memcpy(row_of(t, box, row), bytes + row * n, n);
}

uint64_t tile_wrong(const struct tile *t, uint64_t *ret_first)
{
	uint32_t n_dims = t->tensor->n_dims, each = t->tensor->element_bytes;
	uint64_t length = row_length(&t->box, n_dims), wrong = 0, at[MESH_DIMS];
	const unsigned char *is = t->bytes;

	for (uint64_t row = 0; length && row < rows(&t->box, n_dims); row++) {
		row_at(&t->box, n_dims, row, at);
		for (uint64_t i = 0; i < length; i++, is += each) {
			uint64_t e = number(t->tensor, at) + i, value = rng_hash(SEED, e);

			if (memcmp(is, &value, each) == 0)
				continue;
			*ret_first = wrong++ ? *ret_first : e;
		}
	}
	return wrong;
}
