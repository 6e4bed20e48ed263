/* See usage.h. */
#include "contention/usage.h"

#include <stdlib.h>

struct usage *usage_ref(struct usage *u)
{
	u->n_refs++;
	return u;
}

struct usage *usage_unref(struct usage *u)
{
	if (u && --u->n_refs == 0)
		free(u);
	return NULL;
}
