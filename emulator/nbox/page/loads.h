/* What the ops of one iteration put on the links of the fabric, by the model's plan of their
 * messages. Only ops of communicators with a real rank count, and sends and receives do not: which
 * of them other ranks make is not known here. */
#pragma once

#include "config/config.h"
#include "nbox/page/view.h"

struct load {
	uint64_t link;
	double bytes, bytes_per_ns; /* of an iteration; what the link can carry */
};

struct loads {
	struct load *list; /* owned; by link */
	size_t n;
};

/* @c: finished, with a fabric, of the run. Return: 0, n is 0 where the model plans no messages;
 * -ENOMEM. */
int loads_find(const struct config *c, const struct view *v, struct loads *ret);
void loads_deinit(struct loads *l);
/* NULL: it carries nothing. */
const struct load *loads_of_link(const struct loads *l, uint64_t link);
