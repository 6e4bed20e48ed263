/* See svg.h. Classes, not attributes: one picture serves a light screen, a dark one and paper.
 * f-NAME fills, s-NAME strokes. */
#include "nbox/draw/svg.h"

#include <stdarg.h>

#include "base/plain.h"

#define LARGEST 1.4 /* times its own size: how large a page shows a picture */

static const struct {
	const char *name, *light, *dark;
} roles[SVG_ROLES] = {
	[SVG_INK] = {"ink", "#1a1f26", "#e8ebef"},
	[SVG_SOFT] = {"soft", "#525b66", "#a9b3be"},
	[SVG_GRID] = {"grid", "#d5dae0", "#3a434d"},
	[SVG_PAPER] = {"paper", "#ffffff", "#14181d"},
	[SVG_COMPUTE] = {"compute", "#0072b2", "#4aa8e0"},
	[SVG_NETWORK] = {"network", "#009e73", "#2fbf95"},
	[SVG_EXPOSED] = {"exposed", "#d55e00", "#f08a3c"},
	[SVG_INJECTED] = {"injected", "#a8467f", "#dd8fbd"},
	[SVG_OTHERS] = {"others", "#b9c2cc", "#5b6672"},
	[SVG_BAD] = {"bad", "#c00000", "#ff7b72"},
	[SVG_NODE] = {"node", "#f6f7f9", "#1d232a"},
	[SVG_GPU] = {"gpu", "#cfe6c0", "#3d5a2b"},
	[SVG_NIC] = {"nic", "#cfe2f3", "#274a68"},
	[SVG_LEAF] = {"leaf", "#fff0c2", "#5c4a14"},
	[SVG_SPINE] = {"spine", "#f9e0c7", "#5f3d1c"},
	[SVG_SERIES_1] = {"c1", "#0072b2", "#4aa8e0"},
	{"c2", "#d55e00", "#f08a3c"},
	{"c3", "#009e73", "#2fbf95"},
	{"c4", "#a8467f", "#dd8fbd"},
	{"c5", "#8a6d00", "#e0c040"},
	{"c6", "#2a8fc7", "#7cc8ef"},
	{"c7", "#6a51a3", "#b3a0e0"},
	{"c8", "#555555", "#b0b0b0"},
};

static const char common[] =
	".svg text{font:11px system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}"
	".svg .mid{text-anchor:middle}.svg .end{text-anchor:end}.svg .bold{font-weight:600}"
	".svg .large{font-size:15px}.svg .line{fill:none;stroke-width:1}.svg .thick{stroke-width:2}"
	".svg .dash{stroke-dasharray:5 4}.svg .faint{opacity:.45}.svg .area{opacity:.2}"
	".svg .thing{stroke:#7d8894;stroke-width:1}\n";

const char *svg_role_name(enum svg_role role)
{
	return roles[role].name;
}

static void colors(FILE *to, int is_dark)
{
	for (int i = 0; i < SVG_ROLES; i++) {
		const char *color = is_dark ? roles[i].dark : roles[i].light;

		fprintf(to, ".f-%s{fill:%s}.s-%s{stroke:%s}.b-%s{border-color:%s}", roles[i].name,
			color, roles[i].name, color, roles[i].name, color);
	}
	fputc('\n', to);
}

void svg_style(FILE *to)
{
	fputs(common, to);
	colors(to, 0);
	fputs("@media screen and (prefers-color-scheme:dark){", to);
	colors(to, 1);
	fputs("}\n", to);
}

void svg_begin(FILE *to, enum svg_place place, double width, double height, const char *name)
{
	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"svg\" viewBox=\"0 0 %.0f %.0f\"",
		width, height);
	if (place == SVG_ALONE)
		fprintf(to, " width=\"%.0f\" height=\"%.0f\"", width, height);
	else
		fprintf(to, " style=\"max-width:%.0fpx\"", width * LARGEST);
	fputs(" role=\"img\" aria-label=\"", to);
	plain_xml(name, to);
	fputs("\">\n", to);
	if (place == SVG_IN_PAGE)
		return;
	fputs("<style>", to);
	fputs(common, to);
	colors(to, 0);
	fputs("</style>\n<rect width=\"100%\" height=\"100%\" class=\"f-paper\"/>\n", to);
}

void svg_end(FILE *to)
{
	fputs("</svg>\n", to);
}

void svg_print(FILE *to, double x, double y, unsigned what, enum svg_role role, const char *fmt,
	       ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	plain_text(text); /* a character may have been cut */
	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"f-%s%s%s%s\">", x, y, roles[role].name,
		what & SVG_MIDDLE ? " mid"
		: what & SVG_END  ? " end"
				  : "",
		what & SVG_BOLD ? " bold" : "", what & SVG_LARGE ? " large" : "");
	plain_xml(text, to);
	fputs("</text>\n", to);
}

static void end_shape(FILE *to, const char *tip, const char *tag)
{
	if (!tip) {
		fputs("/>\n", to);
		return;
	}
	fputs("><title>", to);
	plain_xml(tip, to);
	fprintf(to, "</title></%s>\n", tag);
}

void svg_box(FILE *to, double x, double y, double width, double height, enum svg_role role,
	     unsigned how, const char *tip)
{
	fprintf(to, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" class=\"f-%s%s\"",
		x, y, width, height, roles[role].name, how & SVG_FAINT ? " faint" : "");
	end_shape(to, tip, "rect");
}

void svg_thing(FILE *to, double x, double y, double width, double height, enum svg_role role)
{
	fprintf(to,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" class=\"thing f-%s\"/>\n",
		x, y, width, height, roles[role].name);
}

void svg_line(FILE *to, double x, double y, double to_x, double to_y, enum svg_role role,
	      unsigned how)
{
	fprintf(to,
		"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"line s-%s%s%s\"/>\n",
		x, y, to_x, to_y, roles[role].name, how & SVG_THICK ? " thick" : "",
		how & SVG_DASHED ? " dash" : "");
}

void svg_dot(FILE *to, double x, double y, enum svg_role role, const char *tip)
{
	fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" class=\"f-%s\"", x, y,
		roles[role].name);
	end_shape(to, tip, "circle");
}

void svg_path_begin(FILE *to, enum svg_role role, unsigned how)
{
	fprintf(to, "<polyline class=\"line s-%s%s%s\" points=\"", roles[role].name,
		how & SVG_THICK ? " thick" : "", how & SVG_DASHED ? " dash" : "");
}

void svg_area_begin(FILE *to, enum svg_role role)
{
	fprintf(to, "<polyline class=\"area f-%s\" points=\"", roles[role].name);
}

void svg_corner(FILE *to, double x, double y)
{
	fprintf(to, "%.1f,%.1f ", x, y);
}

void svg_path_end(FILE *to)
{
	fputs("\"/>\n", to);
}
