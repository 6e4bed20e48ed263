/* See memory.h. */
#include "buckets/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define PARTS_MAX 1024

static int longer(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a < b) - (a > b);
}

/* Fills @ret: whose outputs stay until the backward pass. Return: 0; -ENOMEM. */
static int find_kept(const struct layers *l, bool recomputes, bool *ret)
{
	CLEANUP(freep) double *times = calloc(l->n + 1, sizeof(*times));
	bool is_named = false;

	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++) {
		times[i] = l->list[i].forward_ns;
		is_named = is_named || l->list[i].is_checkpoint;
	}
	qsort(times, l->n, sizeof(*times), longer);
	for (size_t i = 0, left = (l->n + 9) / 10; i < l->n; i++) {
		ret[i] = !recomputes ? !l->list[i].is_dropped
			 : is_named  ? l->list[i].is_checkpoint
				     : left && l->list[i].forward_ns >= times[(l->n + 9) / 10 - 1];
		left -= recomputes && ret[i] && left;
	}
	return 0;
}

double memory_peak(const struct layers *l, bool recomputes)
{
	CLEANUP(freep) bool *lives = calloc(l->n + 1, sizeof(*lives));
	double live = 0, peak = 0;

	if (!lives || find_kept(l, recomputes, lives) < 0)
		return -1;
	for (size_t i = 0; i < l->n; i++) {
		live += lives[i] ? (double)l->list[i].out_bytes : 0;
		peak = fmax(peak, live + (double)l->list[i].temp_bytes);
	}
	for (size_t i = l->n; i-- > 0;) {
		for (size_t k = i + 1; k-- > 0 && !lives[k];) {
			lives[k] = true;
			live += (double)l->list[k].out_bytes;
		}
		peak = fmax(peak, live + (double)l->list[i].grad_bytes);
		live -= (double)l->list[i].out_bytes;
	}
	return peak;
}

int memory_way(const struct layers *l, const struct memory_asked *asked, uint32_t parts,
	       bool recomputes, struct memory_way *ret)
{
	CLEANUP(freep) bool *kept = calloc(l->n + 1, sizeof(*kept));
	struct memory_way w = {.parts = parts, .recomputes = recomputes};
	double peak = memory_peak(l, recomputes), params = 0;

	if (!kept || peak < 0 || find_kept(l, recomputes, kept) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < l->n; i++) {
		params += (double)l->list[i].params_bytes;
		w.ns += l->list[i].forward_ns * (kept[i] ? 1 : 2) + l->list[i].backward_ns;
	}
	w.bytes = peak * asked->batch / parts + params * asked->state;
	w.ns *= asked->batch * pow(2 * MEMORY_HALF_NS, log2(parts));
	*ret = w;
	return 0;
}

int memory_fit(const struct layers *l, const struct memory_asked *asked, struct memory_way *ret)
{
	struct memory_way best = {0}, least = {.bytes = INFINITY}, w;

	for (int recomputes = 0; recomputes <= 1; recomputes++)
		for (uint32_t parts = 1; parts <= PARTS_MAX; parts *= 2) {
			if (memory_way(l, asked, parts, recomputes, &w) < 0)
				return -ENOMEM;
			if (w.bytes < least.bytes)
				least = w;
			if (w.bytes <= asked->budget && (!best.parts || w.ns < best.ns))
				best = w;
		}
	*ret = best.parts ? best : least;
	return best.parts ? 0 : -ENOSPC;
}
