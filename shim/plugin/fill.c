/* See fill.h. Lines: of LL 16 bytes, {data, flag, data, flag} of 4 bytes each; of LL128 128 bytes,
 * 15 words of data and the flag. */
#include "shim/plugin/fill.h"

#include <string.h>

#include "schedule/coll.h"

#define LL128_WORDS 16

static const struct {
	uint64_t one, lowest, highest;
} elements[COLL_DTYPES] = {
	[COLL_INT8] = {1, 0x80, 0x7f},
	[COLL_UINT8] = {1, 0, 0xff},
	[COLL_INT32] = {1, 0x80000000, 0x7fffffff},
	[COLL_UINT32] = {1, 0, 0xffffffff},
	[COLL_INT64] = {1, UINT64_C(1) << 63, INT64_MAX},
	[COLL_UINT64] = {1, 0, UINT64_MAX},
	[COLL_FLOAT16] = {0x3c00, 0xfc00, 0x7c00},
	[COLL_FLOAT32] = {0x3f800000, 0xff800000, 0x7f800000},
	[COLL_FLOAT64] = {UINT64_C(0x3ff) << 52, UINT64_C(0xfff) << 52, UINT64_C(0x7ff) << 52},
	[COLL_BFLOAT16] = {0x3f80, 0xff80, 0x7f80},
	[COLL_FLOAT8E4M3] = {0x38, 0xfe, 0x7e}, /* it has no infinity */
	[COLL_FLOAT8E5M2] = {0x3c, 0xfc, 0x7c},
};

uint64_t fill_identity(uint32_t kind, uint32_t dtype, int redop)
{
	uint64_t element;

	if (!coll_reduces(kind) || dtype >= COLL_DTYPES)
		return 0;
	switch (redop) {
	case COLL_PROD:
		element = elements[dtype].one;
		break;
	case COLL_MAX:
		element = elements[dtype].lowest;
		break;
	case COLL_MIN:
		element = elements[dtype].highest;
		break;
	default:
		return 0;
	}
	for (size_t bytes = coll_dtype_bytes(dtype); bytes < 8; bytes *= 2)
		element |= element << 8 * bytes;
	return element;
}

void fill_words(void *at, size_t n, uint64_t identity)
{
	uint64_t *word = at;

	if (!identity) {
		memset(at, 0, n);
		return;
	}
	for (size_t i = 0; i < n / 8; i++)
		word[i] = identity;
	memcpy(&word[n / 8], &identity, n % 8);
}

/* A store of 8 bytes is whole or not there: no kernel sees a flag without its data. */
static void fill_ll(uint64_t *at, size_t n, const uint32_t *from, uint64_t identity, uint64_t step)
{
	uint64_t flag = (uint64_t)(uint32_t)(step + 1) << 32;

	for (size_t i = 0; i < (n + 15) / 16 * 2; i++) {
		uint64_t data = from ? from[2 * i] : (uint32_t)(i & 1 ? identity >> 32 : identity);

		__atomic_store_n(&at[i], flag | data, __ATOMIC_RELAXED);
	}
}

void fill_flags(void *at, size_t n, uint64_t step)
{
	uint64_t *line = at;

	for (size_t i = 0; i < (n + 127) / 128; i++, line += LL128_WORDS)
		__atomic_store_n(&line[LL128_WORDS - 1], step + 1, __ATOMIC_RELEASE);
}

void fill_lines(void *at, size_t n, const void *from, uint64_t identity, uint32_t protocol,
		uint64_t step)
{
	uint64_t *line = at;
	const uint64_t *data = from;

	if (protocol == PLUGIN_LL) {
		fill_ll(at, n, from, identity, step);
		return;
	}
	for (size_t i = 0; i < (n + 127) / 128; i++, line += LL128_WORDS) {
		if (data)
			memcpy(line, &data[i * LL128_WORDS], 8 * (LL128_WORDS - 1));
		else
			fill_words(line, 8 * (LL128_WORDS - 1), identity);
	}
	fill_flags(at, n, step);
}
