/* What the model nccl says of measured ops over a fabric whose links are a little otherwise: the
 * predictor of calibrate/links.h. */
#pragma once

#include "calibrate/links.h"
#include "fabric/fabric.h"

struct worlds;

/* A virtual cluster for each number of ranks and nodes in @samples. @fabric: a preset's name or a
 * file. Return: 0; negative errno with the sentence. */
int worlds_open(const char *fabric, const struct samples *samples, struct worlds **ret,
		struct err *err);
struct worlds *worlds_close(struct worlds *w); /* NULL; takes NULL */

int worlds_predict(void *worlds, const double factors[LINK_NUMBERS],
		   const struct residuals *residuals, const struct sample *samples, size_t n,
		   double *ret_ns, struct err *err);

/* Of each factor: latencies, where software adds to them, twelve times; bandwidths up to the data
 * sheets'. */
void worlds_most(const struct worlds *w, double ret[LINK_NUMBERS]);
/* The largest cluster's fabric with its numbers times @factors, and @residuals. Borrowed. NULL: out
 * of memory. */
struct fabric *worlds_fabric(struct worlds *w, const double factors[LINK_NUMBERS],
			     const struct residuals *residuals);
