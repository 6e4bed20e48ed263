/* The shapes of all our pictures, and their look: what a shape stands for (its role) gives it its
 * colour, by a style sheet that a file brings along and a page has once for all its pictures. Sizes
 * are of the picture's own box, whose text is 11 high. */
#pragma once

#include <stdio.h>

/* SVG_SERIES_1 and the next seven: curves, rails. The colours of neighbours are those of Okabe and
 * Ito, which the colour-blind tell apart. */
enum svg_role {
	SVG_INK,
	SVG_SOFT,
	SVG_GRID,
	SVG_PAPER,
	SVG_COMPUTE,
	SVG_NETWORK,
	SVG_EXPOSED,
	SVG_INJECTED,
	SVG_OTHERS, /* waiting for other ranks */
	SVG_BAD,
	SVG_NODE,
	SVG_GPU,
	SVG_NIC,
	SVG_LEAF,
	SVG_SPINE,
	SVG_SERIES_1,
	SVG_ROLES = SVG_SERIES_1 + 8
};

enum svg_place {
	SVG_ALONE, /* a file of its own, on white */
	SVG_IN_PAGE,
};

/* Where a text's (x, y) is, and how it looks. */
enum svg_text {
	SVG_START = 0,
	SVG_MIDDLE = 1,
	SVG_END = 2,
	SVG_BOLD = 4,
	SVG_LARGE = 8,
};

/* How a line or box is drawn. */
enum svg_stroke {
	SVG_THIN = 0,
	SVG_THICK = 1,
	SVG_DASHED = 2,
	SVG_FAINT = 4, /* a box: half transparent */
};

/* "compute"; b-NAME is a class of the style sheet that gives a page's boxes that border. */
const char *svg_role_name(enum svg_role role);
/* The style sheet of a page, for light and dark screens and for paper. */
void svg_style(FILE *to);

/* @name: what a reader who sees no pictures is told. */
void svg_begin(FILE *to, enum svg_place place, double width, double height, const char *name);
void svg_end(FILE *to);
/* @what: of enum svg_text */
void svg_print(FILE *to, double x, double y, unsigned what, enum svg_role role, const char *fmt,
	       ...) __attribute__((format(printf, 6, 7)));
/* @tip: shown where a mouse points; NULL: nothing. @how: of enum svg_stroke. */
void svg_box(FILE *to, double x, double y, double width, double height, enum svg_role role,
	     unsigned how, const char *tip);
/* A box with a border, for drawings of things. */
void svg_thing(FILE *to, double x, double y, double width, double height, enum svg_role role);
void svg_line(FILE *to, double x, double y, double to_x, double to_y, enum svg_role role,
	      unsigned how);
void svg_dot(FILE *to, double x, double y, enum svg_role role, const char *tip);
/* Through svg_corner()s, up to svg_path_end(). */
void svg_path_begin(FILE *to, enum svg_role role, unsigned how);
void svg_area_begin(FILE *to, enum svg_role role); /* filled, half transparent */
void svg_corner(FILE *to, double x, double y);
void svg_path_end(FILE *to);
