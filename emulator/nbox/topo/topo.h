/* What nbox topo shows of a fabric. */
#pragma once

#include <stdio.h>

#include "fabric/fabric.h"
#include "nbox/draw/svg.h"

void topo_print(const struct fabric *f, FILE *to);
int topo_print_json(const struct fabric *f, FILE *to); /* 0; -EILSEQ: a name is no UTF-8 */
void topo_print_presets(FILE *to);
/* Equal nodes are drawn once. Return: 0; -ENOMEM. */
int topo_draw(const struct fabric *f, enum svg_place place, FILE *to);
int topo_draw_svg(const struct fabric *f, FILE *to);
int topo_draw_dot(const struct fabric *f, FILE *to);
