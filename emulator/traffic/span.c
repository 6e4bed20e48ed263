/* See span.h. */
#include "traffic/span.h"

/* a * b / c, down or up; no more than fits. */
static uint64_t scale_down(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t ab;

	if (!__builtin_mul_overflow(a, b, &ab))
		return ab / c;
	return (uint64_t)((unsigned __int128)a * b / c);
}

static uint64_t scale_up(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t ab;

	if (!__builtin_mul_overflow(a, b, &ab) && ab <= UINT64_MAX - c)
		return (ab + c - 1) / c;
	return (uint64_t)(((unsigned __int128)a * b + c - 1) / c);
}

void span_init(struct span *s, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns < start_ns)
		end_ns = start_ns;
	*s = (struct span){start_ns, end_ns, start_ns, start_ns, end_ns};
}

void span_move(struct span *s, uint64_t now_ns, uint64_t end_ns)
{
	if (now_ns > s->now_ns) {
		if (now_ns >= s->until_ns)
			s->at_ns = s->end_ns;
		else
			s->at_ns += scale_down(now_ns - s->now_ns, s->end_ns - s->at_ns,
					       s->until_ns - s->now_ns);
		s->now_ns = now_ns;
	}
	s->until_ns = end_ns > s->now_ns ? end_ns : s->now_ns;
}

uint64_t span_due(const struct span *s, uint64_t index, uint64_t n)
{
	uint64_t at_ns = s->start_ns + scale_up(index + 1, s->end_ns - s->start_ns, n);

	if (at_ns <= s->at_ns)
		return s->now_ns;
	return s->now_ns +
	       scale_up(at_ns - s->at_ns, s->until_ns - s->now_ns, s->end_ns - s->at_ns);
}
