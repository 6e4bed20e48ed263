/* How a record lies in its file; RECORD.md says it for others. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "engine/record.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian");

/* The file begins with a skippable frame of zstd that holds the name and version. */
#define RECORD_MAGIC "\x50\x2a\x4d\x18\x08\0\0\0nboxrec2"
#define RECORD_MAGIC_BYTES (sizeof(RECORD_MAGIC) - 1)
#define RECORD_VERSION_AT (RECORD_MAGIC_BYTES - 1)

#define RECORD_FRAME_MAX (UINT32_C(16) << 20) /* bytes that a frame unpacks to, at most */

enum record_kind {
	RECORD_HEADER = 1,
	RECORD_END,
	RECORD_COMM,
	RECORD_OP,
	RECORD_POINT,
};

/* A row: this, the fields, the lists. Both, and each list, are filled up to a multiple of 8. */
struct record_row {
	uint32_t kind;  /* enum record_kind */
	uint32_t bytes; /* of the whole row */
	uint32_t fields_bytes;
	uint32_t n_lists;
};

struct record_list {
	uint32_t n, entry_bytes;
};

/* The fields that a file holds of each struct: all before its lists. */
#define RECORD_COMM_BYTES offsetof(struct record_comm, n_members)
#define RECORD_OP_BYTES offsetof(struct record_op, n_deps)
#define RECORD_POINT_BYTES offsetof(struct record_point, n_deps)

static inline uint32_t record_padded(uint64_t bytes)
{
	return (uint32_t)((bytes + 7) & ~UINT64_C(7));
}
