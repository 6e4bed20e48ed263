/* How far the delay model of a configuration is from real networks, as far as that was measured. */
#pragma once

#include "calibrate/sample.h"
#include "config/config.h"
#include "engine/delay.h"

enum model_end { MODEL_FAST, MODEL_SLOW, MODEL_ENDS };

struct model_error {
	/* By size (sample_band()): an op takes between so many times as long as the model says.
	 * Ratios, from less than 1 to more than 1 */
	double times[MODEL_ENDS][BANDS];
	char source[512];   /* where they are from */
	uint32_t max_nodes; /* the largest cluster that they were measured on; 0: not known */
};

/* Of a fitted model or fabric the error that its file states; of the model nccl on presets'
 * nodes that of the published figures. @c: finished. Return: false: not known, *ret is not set but
 * for the source, which says why. */
bool model_error_of(const struct config *c, struct model_error *ret);
/* All times as far off as the model may be. @ctx: a struct model_error_at, borrowed. */
struct model_error_at {
	const struct model_error *error;
	enum model_end end;
};
double model_error_scale(const void *ctx, const struct nbox_op *op); /* of struct delay_scale */
