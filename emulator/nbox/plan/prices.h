/* What a node costs, from a file (YAML):
 *
 *   currency: USD
 *   node_hour:
 *     8x400Gbps: 98.3        # by a value of the point's preset, fabric or NICs
 *     nodes=2: 60            # or by option and value
 *     default: 80
 *
 * The first line that fits counts. */
#pragma once

#include "config/config.h"

struct price {
	char key[128];
	double node_hour;
};

struct prices {
	char currency[16];
	struct price *list; /* owned; NULL: none were given */
	size_t n;
};

/* Return: 0; negative errno with the sentence. */
int prices_read(const char *path, struct prices *ret, struct err *err);
void prices_deinit(struct prices *p);
/* Of one node of the configuration, an hour. Return: 0; -ENOENT with the sentence: no line fits. */
int prices_find(const struct prices *p, const struct config *c, double *ret, struct err *err);
