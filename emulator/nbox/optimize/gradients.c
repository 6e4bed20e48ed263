/* See gradients.h. Layers are in the order of the forward pass, gradients in that of the backward
 * pass: the last layer's is the first. A layer without parameters belongs to the next gradient. */
#include "nbox/optimize/gradients.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int make(size_t n, struct gradients *ret, struct err *err)
{
	*ret = (struct gradients){.ready = calloc(n + 1, sizeof(*ret->ready)),
				  .lead = calloc(n + 1, sizeof(*ret->lead)),
				  .fused = calloc(n + 1, sizeof(*ret->fused)),
				  .bytes = calloc(n + 1, sizeof(*ret->bytes)),
				  .names = calloc(n + 1, sizeof(*ret->names)),
				  .recorded = calloc(n + 1, sizeof(*ret->recorded))};
	ret->job = (struct buckets_job){.ready = ret->ready,
					.lead = ret->lead,
					.bytes = ret->bytes,
					.fused = ret->fused};
	return ret->ready && ret->lead && ret->fused && ret->bytes && ret->names && ret->recorded
		       ? 0
		       : err_set(err, ENOMEM, "out of memory");
}

int gradients_of_layers(const struct layers *l, uint32_t parts, double part, double recomputed_ns,
			struct gradients *ret, struct err *err)
{
	CLEANUP(gradients_deinit) struct gradients g = {.ready = NULL};
	double forward = 0, backward = 0, at, stretch;
	int r = make(l->n, &g, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < l->n; i++) {
		forward += l->list[i].forward_ns;
		backward += l->list[i].backward_ns;
	}
	stretch = part * (backward > 0 ? 1 + recomputed_ns / backward : 1);
	at = (parts - 1) * (part * forward + stretch * backward) + part * forward;
	g.job.begin = at;
	for (size_t i = l->n; i-- > 0;) {
		const struct layer *layer = &l->list[i];

		at += stretch * layer->backward_ns;
		if (!layer->params_bytes)
			continue;
		snprintf(g.names[g.job.n], sizeof(g.names[0]), "%s", layer->name);
		g.bytes[g.job.n] = layer->params_bytes;
		g.ready[g.job.n] = at;
		/* of ops with other ops between them nobody knows it */
		g.fused[g.job.n++] = i + 1 < l->n && l->list[i + 1].params_bytes
					     ? stretch * layer->fused_ns
					     : NAN;
	}
	g.job.end = at;
	if (!g.job.n)
		return err_set(err, EINVAL, "no layer has parameters (params=...)");
	free(g.recorded);
	g.recorded = NULL;
	*ret = g;
	g = (struct gradients){.ready = NULL};
	return 0;
}

static int mismatch(const struct found *f, uint32_t k, const char *what, uint64_t bytes,
		    struct err *err)
{
	return err_set(err, EINVAL,
		       "the record's all-reduce %u of a step has %llu bytes, and the layers' "
		       "gradients, from the last layer on, %s %llu",
		       k, (unsigned long long)f->bytes[k], what, (unsigned long long)bytes);
}

/* The layers of one bucket, the last of which is ready when it was. */
static void set_ready(const struct found_times *t, uint32_t k, struct gradients *g, uint32_t first,
		      const double *backward)
{
	double sum = 0, room = k ? t->ready[k] - t->ready[k - 1] : t->ready[k], scale = 1;

	for (uint32_t i = first; i < g->job.n; i++)
		sum += backward[i];
	if (sum > room && sum > 0)
		scale = room / sum;
	for (uint32_t i = g->job.n; i-- > first;) {
		g->ready[i] =
			i + 1 == g->job.n ? t->ready[k] : g->ready[i + 1] - scale * backward[i + 1];
		if (k == 0)
			g->job.begin = g->ready[i] - scale * backward[i];
	}
}

int gradients_of_record(const struct found *f, const struct found_times *t, const struct layers *l,
			struct gradients *ret, struct err *err)
{
	CLEANUP(gradients_deinit) struct gradients g = {.ready = NULL};
	CLEANUP(freep) double *backward = calloc((l ? l->n : 0) + 1, sizeof(*backward));
	size_t layer = l ? l->n : 0;
	int r = make(l ? l->n : f->n, &g, err);

	if (r < 0 || !backward)
		return r < 0 ? r : err_set(err, ENOMEM, "out of memory");
	g.job.end = t->end;
	g.job.fused = NULL;
	g.job.after = l ? NULL : t->after; /* which layer's it is the record does not say */
	for (uint32_t k = 0; k < f->n && !l; k++) {
		g.bytes[k] = f->bytes[k];
		g.ready[k] = t->ready[k];
		g.lead[k] = t->lead[k];
		g.recorded[k] = k;
		g.job.n++;
	}
	for (uint32_t k = 0; k < f->n && l; k++) {
		uint32_t first = g.job.n;
		uint64_t bytes = 0;
		double before = 0; /* of layers without parameters */

		while (layer > 0 && bytes < f->bytes[k]) {
			const struct layer *of = &l->list[--layer];

			before += of->backward_ns;
			if (!of->params_bytes)
				continue;
			snprintf(g.names[g.job.n], sizeof(g.names[0]), "%s", of->name);
			backward[g.job.n] = before;
			g.bytes[g.job.n] = of->params_bytes;
			g.lead[g.job.n] = t->lead[k];
			g.recorded[g.job.n++] = k;
			bytes += of->params_bytes;
			before = 0;
		}
		if (bytes != f->bytes[k])
			return mismatch(f, k, layer ? "come to" : "end with", bytes, err);
		set_ready(t, k, &g, first, backward);
	}
	*ret = g;
	g = (struct gradients){.ready = NULL};
	return 0;
}

void gradients_deinit(struct gradients *g)
{
	free(g->ready);
	free(g->lead);
	free(g->fused);
	free(g->bytes);
	free(g->names);
	free(g->recorded);
	*g = (struct gradients){.ready = NULL};
}
