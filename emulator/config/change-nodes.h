/* Nodes that are otherwise than those of their preset or file: their NICs, and how many of them
 * NVLink joins. */
#pragma once

#include "config/config.h"

/* Of c->fabric, which may be NULL. Return: 0; -EINVAL with the sentence. */
int change_nodes(struct config *c, struct err *err);
