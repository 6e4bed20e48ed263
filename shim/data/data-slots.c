/* See data-slots.h. */
#include "shim/data/data-slots.h"

#include <errno.h>

#include "shim/data/scalar.h"

bool slots_are_contiguous(const struct comm *c)
{
	return c->members[c->n_real - 1].rank - c->members[0].rank == c->n_real - 1;
}

/* One piece that repeats: slot v holds what slot v mod n_real holds. */
static bool is_block(const struct comm *c)
{
	return slots_are_contiguous(c) && c->is_periodic;
}

int slots_fill(const struct call *call, void *at, uint64_t bytes, device_stream s, struct err *err)
{
	return DEVICE(call->comm, fill, (s, at, scalar_fill_byte(call->dtype), bytes));
}

/* Slots 0..period-1 hold the pattern: repeat it to the end, doubling. */
static int repeat(const struct call *call, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	uint64_t period = c->n_real, n = c->n_ranks, have = period;
	int r = 0;

	while (!r && have < n) {
		uint64_t now = have < n - have ? have : n - have;

		r = DEVICE(c, copy,
			   (s, (char *)call->recv + have * call->bytes, call->recv,
			    now * call->bytes));
		have += now;
	}
	return r;
}

int slots_replicate(const struct call *call, const char *from, device_stream s, struct err *err)
{
	struct comm *c = call->comm;
	uint64_t b = call->bytes;
	int r = 0, real;

	if (call_policy(call) == DATA_MIRROR && is_block(c)) {
		if (c->members[0].rank)
			r = DEVICE(c, copy,
				   (s, call->recv, slot_at(call->recv, b, c->members[0].rank),
				    b * c->n_real));
		return r ? r : repeat(call, s, err);
	}
	for (uint32_t v = 0; !r && v < c->n_ranks; v++) {
		real = comm_member(c, v);
		if (real >= 0 && from)
			r = DEVICE(c, copy,
				   (s, slot_at(call->recv, b, v), slot_at(from, b, (uint32_t)real),
				    b));
		else if (real < 0 && call_policy(call) == DATA_FILL)
			r = slots_fill(call, slot_at(call->recv, b, v), b, s, err);
		else if (real < 0 && call_policy(call) == DATA_MIRROR)
			r = DEVICE(c, copy,
				   (s, slot_at(call->recv, b, v),
				    from ? slot_at(from, b, template_of(&c->templates, v))
					 : slot_at(call->recv, b,
						   c->members[template_of(&c->templates, v)].rank),
				    b));
	}
	return r;
}
