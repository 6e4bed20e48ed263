/* What NCCL's tuner in the workers (shim/plugin/tuner.c) has NCCL take: what a decision file says
 * of the collectives of a communicator. */
#pragma once

#include "wire/wire.h"

struct full;
struct worker;

/* Answers TUNE. The answer follows from the shape, kind and bytes, so all ranks get the same. */
int full_on_tune(struct full *f, struct worker *w, const struct wire_hdr *h, const void *body);
