#include "predict/path.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct list {
	struct path_segment *segments; /* owned */
	uint32_t n, capacity;
	double begin; /* of the rank at which it ends */
};

/* Those that take no time are none. */
static int add(struct list *l, enum path_part part, uint32_t rank, uint32_t kernel, double begin,
	       double end)
{
	begin = begin > l->begin ? begin : l->begin;
	if (!(end > begin))
		return 0;
	if (l->n == l->capacity) {
		uint32_t capacity = l->capacity ? 2 * l->capacity : 64;
		struct path_segment *more = realloc(l->segments, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->segments = more;
		l->capacity = capacity;
	}
	l->segments[l->n++] = (struct path_segment){part, rank, kernel, begin, end};
	return 0;
}

/* From kernel @k's end back to the beginning. */
static int walk(const struct predict *p, uint32_t k, struct list *l)
{
	while (k != PREDICT_NONE) {
		double end = p->kernels[k].end;
		const struct predict_time *time;
		uint32_t by;
		int r;

		if (p->kernels[k].peer != PREDICT_NONE)
			k = p->kernels[k].peer;
		time = &p->kernels[k];
		by = time->by;
		r = add(l, PATH_KERNEL, time->rank, k, time->ready, end);
		if (r == 0 && by != PREDICT_NONE) {
			r = add(l, PATH_GAP, time->rank, k, p->kernels[by].end, time->ready);
		} else if (r == 0) {
			by = time->host_by;
			r = add(l, PATH_LAUNCH, time->rank, k, time->host, time->ready);
			r = r < 0 ? r
				  : add(l, PATH_HOST, time->rank, PREDICT_NONE,
					by == PREDICT_NONE ? 0 : p->kernels[by].end, time->host);
		}
		if (r < 0)
			return r;
		k = by;
	}
	return 0;
}

int path_find(const struct predict *p, struct path_segment **ret, uint32_t *ret_n)
{
	const struct predict_front *f = &p->ranks[p->last];
	struct list l = {.begin = f->begin};
	uint32_t k = f->comm >= f->compute ? f->comm_by : f->compute_by;
	int r = 0;

	if (f->host >= f->compute && f->host >= f->comm) {
		k = f->host_by;
		r = add(&l, PATH_HOST, p->last, PREDICT_NONE,
			k == PREDICT_NONE ? 0 : p->kernels[k].end, f->begin + f->host);
	}
	r = r < 0 ? r : walk(p, k, &l);
	if (r < 0) {
		free(l.segments);
		return r;
	}
	for (uint32_t i = 0; i < l.n / 2; i++) {
		struct path_segment s = l.segments[i];

		l.segments[i] = l.segments[l.n - 1 - i];
		l.segments[l.n - 1 - i] = s;
	}
	*ret = l.segments;
	*ret_n = l.n;
	return 0;
}
