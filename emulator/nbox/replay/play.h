/* The global data-flow graph of a job, played: computation on streams, the messages of each op on
 * links (dfg/hops.h), in virtual time. */
#pragma once

#include "nbox/replay/played.h"

/* Return: 0; -ELOOP, -EINVAL, -ENOMEM with the sentence. */
int play(const struct play *p, struct played *ret, struct err *err);
