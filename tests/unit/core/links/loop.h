/* A link whose two ends are in one thread, for tests of the core of links and of code that uses
 * links. */
#pragma once

#include <stddef.h>

#include "links/link.h"

/* The two ends of a link. Return: 0; -ENOMEM. */
int link_loop_pair(const struct link_events *ev, void *owner_a, void *owner_b, struct link **ret_a,
		   struct link **ret_b);
/* At most @most bytes a read or write from now on. */
void loop_set_most(struct link *l, size_t most);
/* Raw bytes for @l to read. Return: how many fitted. */
size_t loop_inject(struct link *l, const void *bytes, size_t n);
