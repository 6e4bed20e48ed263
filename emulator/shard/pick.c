#include "shard/pick.h"

struct pick pick_judge(double picked, double fastest)
{
	double excess = (picked - fastest) / fastest;

	return (struct pick){.excess = excess, .is_success = excess < PICK_NEAR};
}

struct pick pick_of(const double *predicted, const double *actual, uint32_t n)
{
	uint32_t picked = 0, fastest = 0;
	struct pick pick;

	for (uint32_t i = 1; i < n; i++) {
		picked = predicted[i] < predicted[picked] ? i : picked;
		fastest = actual[i] < actual[fastest] ? i : fastest;
	}
	pick = pick_judge(actual[picked], actual[fastest]);
	pick.picked = picked;
	pick.fastest = fastest;
	return pick;
}
