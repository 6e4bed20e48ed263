/* Looks where the time of a run's iterations goes: found.h. */
#pragma once

#include "nbox/why/found.h"
#include "nbox/why/won.h"

/* Return: 0; negative errno with the sentence. */
int why_make(const struct recorded *r, const struct why_config *from, struct why *ret,
	     struct err *err);
