/* See law.h. */
#include "replay/law.h"

typedef __int128 wide;

const char *law_name(enum law_kind kind)
{
	static const char *const names[LAW_KINDS] = {
		[LAW_NONE] = "?",    [LAW_KEEP] = "keep",         [LAW_TOTAL] = "total",
		[LAW_GROW] = "grow", [LAW_FALL] = "a + b / size", [LAW_RISE] = "a + b x size"};

	return names[kind];
}

static wide floor_div(wide a, wide b)
{
	return a / b - (a % b < 0);
}

/* Through both samples, filled up to whole ones; counts are below 2^64 and sizes at most 2^20. */
static wide on_line(const struct law *law, uint32_t size)
{
	wide few = (wide)law->few.count, lost = few - (wide)law->many.count,
	     done = (wide)size - law->few.size, all = (wide)law->many.size - law->few.size;

	if (law->kind == LAW_FALL) { /* in 1 / size */
		done *= law->many.size;
		all *= size;
	}
	return few - floor_div(lost * done, all);
}

bool law_count(const struct law *law, uint32_t size, uint64_t *ret)
{
	wide count = -1;

	switch (law->kind) {
	case LAW_KEEP:
		count = (wide)law->few.count;
		break;
	case LAW_TOTAL:
		count = (wide)((law->total + size - 1) / size);
		break;
	case LAW_GROW:
		count = ((wide)law->few.count * size + law->few.size - 1) / law->few.size;
		break;
	case LAW_FALL:
	case LAW_RISE:
		count = on_line(law, size);
		break;
	case LAW_NONE:
	case LAW_KINDS:
		break;
	}
	if (count < 0 || count > UINT64_MAX)
		return false;
	*ret = (uint64_t)count;
	return true;
}

bool law_make(enum law_kind kind, const struct law_sample *samples, size_t n, struct law *ret)
{
	struct law law = {.kind = kind, .few = samples[0], .many = samples[0]};

	law.total = (unsigned __int128)samples[0].count * samples[0].size;
	for (size_t i = 1; i < n; i++) {
		unsigned __int128 total = (unsigned __int128)samples[i].count * samples[i].size;

		law.few = samples[i].size < law.few.size ? samples[i] : law.few;
		law.many = samples[i].size > law.many.size ? samples[i] : law.many;
		law.total = total < law.total ? total : law.total; /* the least filled up */
	}
	if ((kind == LAW_FALL && law.many.count >= law.few.count) ||
	    (kind == LAW_RISE && law.many.count <= law.few.count) ||
	    (kind >= LAW_FALL && law.many.size == law.few.size))
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t count;

		if (!law_count(&law, samples[i].size, &count) || count != samples[i].count)
			return false;
	}
	*ret = law;
	return true;
}

bool law_fit(const struct law_sample *samples, size_t n, struct law *ret)
{
	for (int kind = LAW_KEEP; kind < LAW_KINDS; kind++)
		if (law_make((enum law_kind)kind, samples, n, ret))
			return true;
	return false;
}

static uint32_t distance(const struct law_sample *s, uint32_t size)
{
	return s->size > size ? s->size - size : size - s->size;
}

bool law_fit_nearest(const struct law_sample *samples, size_t n, uint32_t size, struct law *ret)
{
	const struct law_sample *one = samples, *two = NULL;

	for (size_t i = 1; i < n; i++)
		if (distance(&samples[i], size) < distance(one, size))
			one = &samples[i];
	for (size_t i = 0; i < n; i++)
		if (samples[i].size != one->size &&
		    (!two || distance(&samples[i], size) < distance(two, size)))
			two = &samples[i];
	return two && law_fit((const struct law_sample[]){*one, *two}, 2, ret);
}

bool law_is_beyond(const struct law *law, uint32_t size)
{
	return law->kind >= LAW_FALL && (size < law->few.size || size > law->many.size);
}
