/* A plan of buckets, for people and for frameworks. */
#pragma once

#include <stdio.h>

#include "nbox/optimize/optimize.h"

void optimize_print(const struct optimize_asked *asked, const struct optimized *o, FILE *to);
/* All of it, with the search. Return: 0; negative errno with the sentence. */
int optimize_write_json(const struct optimize_asked *asked, const struct optimized *o,
			const char *path, struct err *err);
/* {"mapping": ["0+1+2", "3"]}: gradients by number, in the order in which they become ready.
 * Return: as above. */
int optimize_write_mapping(const struct optimized *o, const char *path, struct err *err);
