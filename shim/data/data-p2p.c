/* See data-p2p.h. The copies of receives that lie next to each other, as in an all-to-all, become
 * few: what repeats with the number of real members is copied once and then doubled. */
#include "shim/data/data-p2p.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "shim/data/scalar.h"

/* A receive from a virtual rank and what goes there: a copy of @from, or a fill. */
struct piece {
	const struct call *call;
	const char *from; /* NULL: fill */
};

/* What another real rank sent to us in this group, of @call's size. The root of a gather made of
 * sends and receives gets nothing from itself, and yet the slots of its copies need something. */
static const struct call *find_stand_in(const struct call *call, const struct call_index *x)
{
	const struct call *other;

	for (uint32_t i = 0; i < call->comm->n_real; i++) {
		other = call_index_find(x, call->comm, false, call->comm->members[i].rank,
					call->nth);
		if (other && other->bytes == call->bytes)
			return other;
	}
	return NULL;
}

/* Under mirror: what v's template sent to us when that has the same size. When we are v's template
 * ourselves: what we sent to the rank that is as far from us as we are from v, else what another
 * real rank sent to us. NULL: the buffer stays as it is. */
static const void *find_source(const struct call *call, const struct call_index *x)
{
	struct comm *c = call->comm;
	uint32_t template = template_of(&c->templates, call->root), peer;
	const struct call *other;

	other = call_index_find(x, c, false, c->members[template].rank, call->nth);
	if (other && other->bytes == call->bytes)
		return other->recv;
	if (template != c->index)
		return NULL;
	peer = (uint32_t)((2 * (uint64_t)c->rank + c->n_ranks - call->root) % c->n_ranks);
	other = call_index_find(x, c, true, peer, call->nth);
	if (other && other->bytes == call->bytes)
		return other->send;
	other = find_stand_in(call, x);
	return other ? other->recv : NULL;
}

/* Does @b follow @a in the buffer, and come from a copy or a fill as @a does? */
static bool is_next(const struct piece *a, const struct piece *b)
{
	return (char *)a->call->recv + a->call->bytes == (char *)b->call->recv &&
	       a->call->bytes == b->call->bytes && !a->from == !b->from &&
	       scalar_fill_byte(a->call->dtype) == scalar_fill_byte(b->call->dtype);
}

/* @n pieces, each next to the one before. Pieces whose sources are next to each other too become
 * one copy. */
static int copy_pieces(const struct piece *p, uint32_t n, device_stream s, struct err *err)
{
	uint64_t bytes = p->call->bytes;
	uint32_t end;
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i = end) {
		for (end = i + 1; end < n && p[end].from == p[end - 1].from + bytes; end++)
			;
		r = DEVICE(p->call->comm, copy, (s, p[i].call->recv, p[i].from, (end - i) * bytes));
	}
	return r;
}

static int carry_out(const struct piece *p, uint32_t n, device_stream s, struct err *err)
{
	struct comm *c = p->call->comm;
	uint64_t bytes = p->call->bytes, have = c->n_real < n ? c->n_real : n, now;
	char *at = p->call->recv;
	int r;

	if (!p->from)
		return DEVICE(c, fill, (s, at, scalar_fill_byte(p->call->dtype), n * bytes));
	for (uint32_t i = (uint32_t)have; i < n; i++)
		if (p[i].from != p[i - have].from)
			return copy_pieces(p, n, s, err);
	r = copy_pieces(p, (uint32_t)have, s, err);
	for (; !r && have < n; have += now) {
		now = have < n - have ? have : n - have;
		r = DEVICE(c, copy, (s, at + have * bytes, at, now * bytes));
	}
	return r;
}

int data_p2p_after(struct comm *c, const struct call_index *x, device_stream s, struct err *err)
{
	uint32_t data = comm_data(c, COLL_SENDRECV), n = 0, end;
	CLEANUP(freep) struct piece *list = NULL;
	int r = 0;

	if ((data != DATA_MIRROR && data != DATA_FILL) || c->n_real == c->n_ranks)
		return 0;
	list = malloc(x->n_calls * sizeof(*list));
	if (!list)
		return err_set(err, ENOMEM, "no memory for a group");
	for (uint32_t i = 0; i < x->n_calls; i++) {
		const struct call *call = &x->calls[i];
		struct piece piece = {.call = call};

		if (call->comm != c || call->kind != COLL_SENDRECV || call->is_send ||
		    call->is_onesided || !call->bytes || comm_member(c, call->root) >= 0)
			continue;
		if (data == DATA_MIRROR)
			piece.from = find_source(call, x);
		if (data == DATA_FILL || piece.from)
			list[n++] = piece;
	}
	for (uint32_t i = 0; !r && i < n; i = end) {
		for (end = i + 1; end < n && is_next(&list[end - 1], &list[end]); end++)
			;
		r = carry_out(&list[i], end - i, s, err);
	}
	return r;
}
