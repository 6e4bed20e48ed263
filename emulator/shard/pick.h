/* Whether the plan that was predicted to be fastest was a good pick. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PICK_NEAR 0.1 /* Lin et al.: a pick up to so much slower than the fastest is a success */

struct pick {
	uint32_t picked, fastest; /* plans */
	double excess;            /* of the picked one over the fastest: a ratio; 0: it is that */
	bool is_success;
};

/* A picked plan that took @picked, where the fastest of all took @fastest. */
struct pick pick_judge(double picked, double fastest);
/* Of @n plans: the lowest of @predicted, judged by @actual. */
struct pick pick_of(const double *predicted, const double *actual, uint32_t n);
