/* All images of a communicator (image.h), one after the other: they play its ops at the same time,
 * over links of the network that they share with it. */
#pragma once

#include "base/bitmap.h"
#include "engine/usage-op.h"
#include "op/comm.h"

struct images {
	const struct comm *comm; /* borrowed */
	struct bitmap met;       /* world ranks that are members of those before */
	uint32_t *table;         /* owned; of the last one; NULL: not begun */
};

void images_deinit(struct images *x);
/* The next(ctx) of struct usage_images; @ctx: struct images with a communicator, else zero. None
 * where ops meet no others': without a fabric, or within a domain. */
int images_next(void *ctx, struct membership *ret);
