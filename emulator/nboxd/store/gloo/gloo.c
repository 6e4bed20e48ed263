/* See gloo.h. */
#include "nboxd/store/gloo/gloo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ADDRESS_BYTES (sizeof(struct sockaddr_storage) + sizeof(int64_t))
#define STEPS_MAX 32

static const char *const kind_names[GLOO_KINDS] = {"a point-to-point call",
						   "gather",
						   "all_gather",
						   "reduce",
						   "all_reduce",
						   "scatter",
						   "broadcast",
						   "barrier",
						   "all_to_all"};

enum gloo_kind gloo_kind(uint64_t slot)
{
	uint64_t prefix = slot >> 56;

	return prefix < GLOO_KINDS ? (enum gloo_kind)prefix : GLOO_P2P;
}

const char *gloo_kind_name(enum gloo_kind kind)
{
	return kind_names[kind];
}

static bool take_u64(struct store_bytes *b, uint64_t *ret)
{
	if (b->n < sizeof(*ret))
		return false;
	memcpy(ret, b->p, sizeof(*ret));
	b->p += sizeof(*ret);
	b->n -= sizeof(*ret);
	return true;
}

int gloo_address_parse(struct store_bytes b, struct gloo_address *ret)
{
	struct gloo_address a;
	uint64_t n;

	if (!take_u64(&b, &n) || n > b.n)
		return -EPROTO;
	b.p += n;
	b.n -= n;
	if (!take_u64(&b, &n) || n != ADDRESS_BYTES || b.n < n)
		return -EPROTO;
	memcpy(&a.sockaddr, b.p, sizeof(a.sockaddr));
	b.n -= n;
	if ((a.sockaddr.ss_family != AF_INET && a.sockaddr.ss_family != AF_INET6) ||
	    b.n % sizeof(int64_t) || b.n / sizeof(int64_t) > UINT32_MAX)
		return -EPROTO;
	a.n_peers = (uint32_t)(b.n / sizeof(int64_t));
	*ret = a;
	return 0;
}

int gloo_address_write(const struct sockaddr_storage *a, uint32_t rank, uint32_t n_peers,
		       struct buffer *ret)
{
	static const char host[] = "nboxd";
	const uint64_t n_host = sizeof(host) - 1, n_address = ADDRESS_BYTES;
	const int64_t no_seq = -1;
	struct buffer b = {0};
	int r = buffer_add(&b, &n_host, sizeof(n_host));

	r = r < 0 ? r : buffer_add(&b, host, n_host);
	r = r < 0 ? r : buffer_add(&b, &n_address, sizeof(n_address));
	r = r < 0 ? r : buffer_add(&b, a, sizeof(*a));
	r = r < 0 ? r : buffer_add(&b, &no_seq, sizeof(no_seq));
	for (uint32_t i = 0; i < n_peers && r == 0; i++) {
		int64_t id = (int64_t)rank * n_peers + i;

		r = buffer_add(&b, &id, sizeof(id));
	}
	if (r < 0)
		buffer_deinit(&b);
	else
		*ret = b;
	return r;
}

int gloo_frame_look(const uint8_t *bytes, size_t n, struct gloo_frame *ret)
{
	struct gloo_frame f;

	if (n < sizeof(f))
		return 0;
	memcpy(&f, bytes, sizeof(f));
	if (f.opcode >= GLOO_OPCODES || f.opcode == GLOO_BOUND_DATA || f.length > GLOO_LENGTH_MAX ||
	    f.n_bytes != sizeof(f) + (f.opcode == GLOO_DATA ? f.length : 0))
		return -EPROTO;
	if (n < f.n_bytes)
		return 0;
	*ret = f;
	return 1;
}

/* --- the barrier ------------------------------------------------------------------------ */

struct walk {
	const struct gloo_barrier *b;
	uint8_t *memo; /* by rank and step: 0 not looked at, 1 no, 2 yes */
};

/* Whether virtual rank @rank has done the steps before @step. Deep as the steps. */
static bool has_done(struct walk *w, uint32_t rank, unsigned step)
{
	uint8_t *memo = &w->memo[(size_t)rank * STEPS_MAX + step];
	bool is_done = true;

	if (*memo)
		return *memo == 2;
	for (unsigned j = 0; j < step && is_done; j++) {
		uint32_t n = w->b->n_ranks, from = (uint32_t)(((uint64_t)rank + n - (1u << j)) % n);

		is_done = w->b->is_real(w->b->ctx, from) ? w->b->has_come(w->b->ctx, from, rank)
							 : has_done(w, from, j);
	}
	*memo = is_done ? 2 : 1;
	return is_done;
}

int gloo_barrier_may_send(const struct gloo_barrier *b, uint32_t from, uint32_t to)
{
	uint64_t n = b->n_ranks, distance = n ? (to + n - from) % n : 0;
	CLEANUP(freep) uint8_t *memo = NULL;
	struct walk w = {b, NULL};

	if (from >= n || to >= n || distance == 0 || distance & (distance - 1))
		return -EINVAL;
	memo = calloc(n, STEPS_MAX);
	if (!memo)
		return -ENOMEM;
	w.memo = memo;
	return has_done(&w, from, (unsigned)__builtin_ctzll(distance));
}
