/* The gradients that a plan is made of: of the layers of a file, of the buckets of a record, or of
 * both, where layers say what was in each bucket. */
#pragma once

#include "buckets/buckets.h"
#include "buckets/layers.h"
#include "nbox/optimize/found.h"

struct gradients {
	struct buckets_job job; /* of the lists below */
	double *ready, *lead;   /* owned */
	double *fused;          /* owned */
	uint64_t *bytes;        /* owned */
	char (*names)[64];      /* owned; "": of a bucket of the record */
	uint32_t *recorded;     /* owned; the recorded bucket of each; NULL: there is no record */
};

/* The batch runs in @parts, one after the other, of which only the last one's gradients are
 * reduced; a part takes @part as long as the batch. @recomputed_ns: forward passes that run again
 * in the backward pass. Return: 0; -EINVAL with the sentence: no layer has parameters; -ENOMEM. */
int gradients_of_layers(const struct layers *l, uint32_t parts, double part, double recomputed_ns,
			struct gradients *ret, struct err *err);
/* As @t has them, of @f's times. @l: NULL, or what is in the buckets: layers behind each other have
 * as many bytes as one. Return: 0; -EINVAL with the sentence: they have not; -ENOMEM. */
int gradients_of_record(const struct found *f, const struct found_times *t, const struct layers *l,
			struct gradients *ret, struct err *err);
void gradients_deinit(struct gradients *g);
