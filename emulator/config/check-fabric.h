/* The fabric of the virtual cluster: a preset, a file, or a plain one of the four hop options. */
#pragma once

#include "config/config.h"

/* Before the world is known: a preset or a file says how many GPUs a node has, and where nobody
 * else does, that is taken. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int check_nodes_of_fabric(struct config *c, struct err *err);
/* After it: makes c->fabric of what was given. Hop options that were not set get what the fabric
 * says. Return: as above. */
int check_fabric(struct config *c, struct err *err);
/* After the hops: where nothing else was given but hops, makes the plain fabric of them; changes
 * single links. Return: as above. */
int check_links_of_fabric(struct config *c, struct err *err);
