/* What nbox topo shows of a fabric. */
#pragma once

#include <stdio.h>

#include "fabric/fabric.h"
#include "nbox/draw/svg.h"

void topo_print(const struct fabric *f, FILE *to);
int topo_print_json(const struct fabric *f, FILE *to); /* 0; -EILSEQ: a name is no UTF-8 */
void topo_print_presets(FILE *to);
/* How much of the time links are busy, 0 to 1, drawn as how full NICs, ports and leaves are. */
struct topo_loads {
	double (*share)(const void *ctx, uint64_t link);
	const void *ctx;
};

/* Equal nodes are drawn once; with @loads (NULL: none) the fullest of them counts. Return: 0;
 * -ENOMEM. */
int topo_draw(const struct fabric *f, const struct topo_loads *loads, enum svg_place place,
	      FILE *to);
int topo_draw_svg(const struct fabric *f, FILE *to);
int topo_draw_dot(const struct fabric *f, FILE *to);
