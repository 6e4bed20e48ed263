/* See payload.h. */
#include "shim/progress/payload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST (UINT64_C(1) << 20)

struct area {
	void *mem;
	uint64_t bytes;
};

static struct area fill, sink, input, output;

/* Pages come into being when they are touched. */
static void *area_get(struct area *a, uint64_t bytes)
{
	uint64_t want = a->bytes ? 2 * a->bytes : FIRST;
	void *mem;

	if (bytes <= a->bytes)
		return a->mem;
	while (want < bytes)
		want *= 2;
	mem = mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	a->mem = mem;
	a->bytes = want;
	return mem;
}

static bool is_inside(const struct area *a, const void *p, uint64_t bytes)
{
	uintptr_t first = (uintptr_t)a->mem, at = (uintptr_t)p;

	return a->mem && at >= first && at - first <= a->bytes && bytes <= a->bytes - (at - first);
}

const void *payload_source(const void *src, uint64_t bytes)
{
	if (is_inside(&input, src, bytes) || is_inside(&output, src, bytes))
		return src;
	return area_get(&fill, bytes);
}

void *payload_sink(uint64_t index, uint64_t bytes, uint64_t footprint)
{
	uint64_t n = footprint > bytes ? footprint / bytes : 1;
	char *mem = area_get(&sink, n * bytes);

	return mem ? mem + index % n * bytes : NULL;
}

static float from_bf16(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static uint16_t to_bf16(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Elements of one size cost the same to add; values are dummy. */
#define DEFINE_ADD(name, type, sum)                                                            \
	static void name(const struct player_data *d, void *dst, const void *a, const void *b, \
			 uint64_t bytes)                                                       \
	{                                                                                      \
		type *to = dst;                                                                \
		const type *x = a, *y = b;                                                     \
                                                                                               \
		(void)d;                                                                       \
		for (uint64_t i = 0; i < bytes / sizeof(*to); i++)                             \
			to[i] = sum;                                                           \
	}
DEFINE_ADD(add_f64, double, x[i] + y[i])
DEFINE_ADD(add_f32, float, x[i] + y[i])
DEFINE_ADD(add_16, uint16_t, to_bf16(from_bf16(x[i]) + from_bf16(y[i])))
DEFINE_ADD(add_8, uint8_t, (uint8_t)(x[i] + y[i]))

int payload_data(const struct sched *s, uint32_t rank, uint32_t dtype, struct player_data *ret)
{
	uint64_t in = 0, out = 0;

	if (s->kind == COLL_SENDRECV) {
		for (uint32_t i = 0; i < s->n_p2p; i++) {
			uint64_t *most = s->p2p[i].is_send ? &in : &out;

			*most = s->p2p[i].bytes > *most ? s->p2p[i].bytes : *most;
		}
	} else {
		in = coll_input_bytes(s->kind, s->bytes, s->n_ranks, rank == s->root);
		out = coll_output_bytes(s->kind, s->bytes, s->n_ranks, rank == s->root);
	}
	memset(ret, 0, sizeof(*ret));
	ret->input = area_get(&input, in);
	/* Reduce uses the output of every rank as a place to work in */
	ret->output = area_get(&output, out > in ? out : in);
	if ((in && !ret->input) || ((in || out) && !ret->output))
		return -ENOMEM;
	switch (coll_dtype_bytes(dtype)) {
	case 8:
		ret->reduce = add_f64;
		break;
	case 4:
		ret->reduce = add_f32;
		break;
	case 2:
		ret->reduce = add_16;
		break;
	default:
		ret->reduce = add_8;
		break;
	}
	return 0;
}
