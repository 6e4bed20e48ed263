/* How much memory an iteration needs, and what makes it fit: recomputation and gradient
 * accumulation, as dPRO estimates them. Its released code has the rules; the paper prints only how
 * near they come. */
#pragma once

#include "buckets/layers.h"

/* Weights, gradients, Adam's two moments are four times the parameters; the rest is dPRO's
 * experience. */
#define MEMORY_STATE 8.0
#define MEMORY_HALF_NS 0.8 /* what half a batch takes of a whole one's time, by that code */

struct memory_asked {
	double batch;  /* times the batch that the bytes of the layers are of */
	double state;  /* times the bytes of the parameters, such as MEMORY_STATE */
	double budget; /* bytes; INFINITY: there is none */
};

/* One way to run the iteration. */
struct memory_way {
	uint32_t parts;   /* of the batch, one after the other; 1: no accumulation */
	bool recomputes;  /* all outputs but those of checkpoints */
	double bytes, ns; /* it needs; forward and backward pass */
};

/* What lives at most at the same time of outputs, gradients of outputs and temporary memory. A
 * forward op's output stays if it is kept; one that is not is made again, from the last kept one
 * on, when the backward pass comes to it. @recomputes: only those of checkpoints are kept. Return:
 * bytes; -1: no memory. */
double memory_peak(const struct layers *l, bool recomputes);
/* Checkpoints are those that the text names, else the tenth of the ops that take longest. Each
 * half of a batch takes 0.8 times as long as the whole. @parts: a power of 2. Return: 0; -ENOMEM.
 */
int memory_way(const struct layers *l, const struct memory_asked *asked, uint32_t parts,
	       bool recomputes, struct memory_way *ret);
/* The fastest way that fits: as it is, recomputation, accumulation in up to 1024 parts, both.
 * Return: 0; -ENOSPC none does, *ret is what needs least; -ENOMEM. */
int memory_fit(const struct layers *l, const struct memory_asked *asked, struct memory_way *ret);
