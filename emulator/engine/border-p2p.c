/* The border of point-to-point calls. The calls of the real ranks are its connections; where both
 * ends are real, the sender's call and the receiver's call must agree. */
#include "engine/border-p2p.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/border-maker.h"

/* The connections of one rank's calls. */
static int collect_calls(struct border_maker *m, const struct sched *s)
{
	for (uint32_t i = 0; i < s->n_p2p; i++) {
		const struct sched_p2p *call = &s->p2p[i];
		struct border_conn c = {.src = call->is_send ? s->p2p_rank : call->peer,
					.dst = call->is_send ? call->peer : s->p2p_rank,
					.lane = call->lane,
					.bytes = call->bytes};
		int r;

		c.n_messages = sched_conn_messages(s, c.src, c.dst, c.lane);
		if (c.n_messages == 0) /* without bytes, or to oneself */
			continue;
		r = border_add_conn(call->is_send ? &m->out : &m->in, &c);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Each send to a real rank needs its receive there, of the same size, and the other way round. */
static int check_pairs(const struct border_maker *m, struct err *err)
{
	for (uint32_t i = 0; i < m->out.n; i++) {
		const struct border_conn *c = &m->out.items[i];
		int64_t k;

		if (!border_is_real(m, c->dst))
			continue;
		k = border_find(&m->in, c->src, c->dst, c->lane);
		if (k < 0)
			return err_set(
				err, EPROTO,
				"rank %u sends %llu bytes to rank %u (send %u between them), "
				"which has no receive for it in this group",
				c->src, (unsigned long long)c->bytes, c->dst, c->lane);
		if (m->in.items[k].bytes != c->bytes)
			return err_set(
				err, EPROTO,
				"rank %u sends %llu bytes to rank %u (send %u between them), "
				"which receives %llu",
				c->src, (unsigned long long)c->bytes, c->dst, c->lane,
				(unsigned long long)m->in.items[k].bytes);
	}
	for (uint32_t i = 0; i < m->in.n; i++) {
		const struct border_conn *c = &m->in.items[i];

		if (border_is_real(m, c->src) && border_find(&m->out, c->src, c->dst, c->lane) < 0)
			return err_set(
				err, EPROTO,
				"rank %u receives %llu bytes from rank %u (receive %u between "
				"them), which has no send for it in this group",
				c->dst, (unsigned long long)c->bytes, c->src, c->lane);
	}
	return 0;
}

/* The schedule room checks one rank's calls and numbers their lanes. */
static int add_rank(struct border_maker *m, uint32_t rank, const struct sched_p2p *calls,
		    uint32_t n_calls, uint64_t chunk_bytes, uint64_t *ret_chunk_bytes,
		    struct err *err)
{
	CLEANUP(freep) struct sched_p2p *copy = calloc((size_t)n_calls + 1, sizeof(*copy));
	struct sched s = {.kind = COLL_SENDRECV,
			  .algo = SCHED_DIRECT,
			  .n_ranks = (uint32_t)m->real->n_bits,
			  .ranks_per_node = 1,
			  .n_channels = 1,
			  .elem_bytes = 1,
			  .chunk_bytes = chunk_bytes,
			  .p2p = copy,
			  .n_p2p = n_calls,
			  .p2p_rank = rank};
	int r;

	if (!copy)
		return err_set(err, ENOMEM, "no memory for %u calls", n_calls);
	if (n_calls > 0)
		memcpy(copy, calls, n_calls * sizeof(*copy));
	r = sched_init(&s, err);
	if (r < 0)
		return r;
	*ret_chunk_bytes = sched_max_step_bytes(&s);
	if (!border_is_real(m, rank)) /* a record makes its calls; nothing crosses a link */
		return 0;
	r = collect_calls(m, &s);
	return r < 0 ? err_set(err, -r, "no memory for %u calls", n_calls) : 0;
}

int border_make_p2p(const uint32_t *ranks, uint32_t n, const struct sched_p2p *const *calls,
		    const uint32_t *n_calls, uint64_t chunk_bytes, const struct bitmap *real,
		    struct border *ret, struct err *err)
{
	struct border_maker m = {.real = real};
	uint64_t chunk = chunk_bytes ? chunk_bytes : SCHED_CHUNK_DEFAULT;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = add_rank(&m, ranks[i], calls[i], n_calls[i], chunk_bytes, &chunk, err);
	if (r == 0) {
		border_arrange(&m.in);
		border_arrange(&m.out);
		r = check_pairs(&m, err);
	}
	if (r == 0 && (r = border_maker_finish(&m, NULL, NULL, ret)) < 0)
		err_set(err, -r, "no memory for the border of %u ranks' calls", n);
	if (r == 0)
		ret->p2p_chunk_bytes = chunk;
	border_maker_deinit(&m);
	return r;
}
