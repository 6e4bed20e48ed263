/* The fabric as a picture: spines, leaves, nodes with NICs, GPUs and what joins these. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/plain.h"
#include "fabric/leaf.h"
#include "fabric/link-number.h"
#include "nbox/topo/fold.h"
#include "nbox/topo/topo.h"
#include "nbox/topo/words.h"

#define GPUS_SHOWN 8
#define GPU_WIDTH 30.0
#define GAP 26.0
#define LEFT 20.0
#define WIDTH_MIN 200.0 /* of what stands in a node */

/* down the page */
#define SPINE_Y 66.0
#define LEAF_Y 138.0
#define NODE_Y 236.0
#define NIC_Y (NODE_Y + 10)
#define GPU_Y (NODE_Y + 54)
#define BUS_Y (NODE_Y + 92)
#define NODE_HEIGHT 124.0
#define BAR 24.0

struct picture {
	const struct fabric *f;
	FILE *to;
	struct topo_fold fold;
	double width;
};

static const char *rail_color(uint32_t i)
{
	static const char *const colors[] = {"#1f77b4", "#d95f02", "#1b9e77", "#c0297f",
					     "#6a51a3", "#8c6d31", "#5b8c2a", "#555555"};

	return colors[i % 8];
}

static void label(struct picture *p, double x, double y, const char *style, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
static void label(struct picture *p, double x, double y, const char *style, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(p->to, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
	plain_xml(text, p->to);
	fputs("</text>\n", p->to);
}

static void box(struct picture *p, double x, double y, double w, double h, const char *style)
{
	fprintf(p->to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" %s/>\n",
		x, y, w, h, style);
}

static void wire(struct picture *p, double x, double y, double to_x, double to_y, const char *color,
		 double width)
{
	fprintf(p->to,
		"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
		"stroke-width=\"%.1f\"/>\n",
		x, y, to_x, to_y, color, width);
}

#define MIDDLE "text-anchor=\"middle\""
#define SMALL "text-anchor=\"middle\" font-size=\"11\" fill=\"#444\""

static uint32_t gpus_shown(const struct fabric *f)
{
	return f->gpus_per_node < GPUS_SHOWN ? f->gpus_per_node : GPUS_SHOWN;
}

static double unit_width(const struct fabric *f)
{
	uint32_t n = gpus_shown(f);

	for (uint32_t i = 0; i < f->n_classes; i++) {
		uint32_t nics = f->classes[i].n_nics;

		n = nics > n ? nics : n;
	}
	return n * GPU_WIDTH + 16 > WIDTH_MIN ? n * GPU_WIDTH + 16 : WIDTH_MIN;
}

static double row_width(const struct picture *p, const struct topo_row *row)
{
	return (double)row->n_units * (unit_width(p->f) + GAP) - GAP;
}

static double nic_x(double unit_x, double width, uint32_t i, uint32_t n)
{
	return unit_x + 8 + (i + 0.5) * (width - 16) / n;
}

/* In any direction? */
static bool is_nic_changed(const struct fabric *f, uint32_t node, uint32_t nic)
{
	for (size_t i = 0; i < f->n_changes; i++)
		if ((f->changes[i].link & ~UINT64_C(1)) == link_number(LINK_NIC, node, nic, 0))
			return true;
	return false;
}

static void draw_gpus(struct picture *p, double x)
{
	uint32_t n = p->f->gpus_per_node, shown = gpus_shown(p->f);
	double w = unit_width(p->f), step = (w - 16) / shown;

	for (uint32_t i = 0; i < shown; i++) {
		bool is_rest = i + 1 == shown && n > shown;
		double at = x + 8 + i * step;

		box(p, at + 2, GPU_Y, step - 4, BAR, "fill=\"#76b900\" stroke=\"#4b7500\"");
		label(p, at + step / 2, GPU_Y + 16, SMALL, is_rest ? "..." : "%u", i);
		wire(p, at + step / 2, GPU_Y + BAR, at + step / 2, BUS_Y, "#4b7500", 1.5);
	}
}

static void draw_nics(struct picture *p, const struct topo_unit *u, double x)
{
	const struct fabric_class *c = &p->f->classes[u->class];
	double w = unit_width(p->f), step, side;

	if (!c->n_nics)
		return;
	step = (w - 16) / c->n_nics;
	side = step - 6 < 34 ? step - 6 : 34;
	for (uint32_t i = 0; i < c->n_nics; i++) {
		uint32_t shown = gpus_shown(p->f);
		double at = nic_x(x, w, i, c->n_nics), gpu;
		bool is_changed = u->changes && is_nic_changed(p->f, u->first, i);

		if (c->nic_gpu[i] < shown) {
			gpu = x + 8 + (c->nic_gpu[i] + 0.5) * (w - 16) / shown;
			wire(p, at, NIC_Y + BAR, gpu, GPU_Y, "#999", 1);
		}
		box(p, at - side / 2, NIC_Y, side, BAR,
		    is_changed ? "fill=\"#ffb3b3\" stroke=\"#c00\" stroke-width=\"2\""
			       : "fill=\"#cfe2f3\" stroke=\"#3d6d99\"");
		label(p, at, NIC_Y + 16, SMALL, "%u", i);
	}
}

static void draw_captions(struct picture *p, const struct topo_unit *u, double x)
{
	const struct fabric_class *c = &p->f->classes[u->class];
	double middle = x + unit_width(p->f) / 2, y = NODE_Y + NODE_HEIGHT + 18;
	char text[96], rate[32];

	if (u->n_equal > 1 && u->n_nodes > 1)
		label(p, middle, y, MIDDLE " font-weight=\"bold\"", "%u domains of %u nodes",
		      u->n_equal, u->n_nodes);
	else
		label(p, middle, y, MIDDLE " font-weight=\"bold\"", "%s",
		      topo_nodes(u->first, u->n_nodes * u->n_equal, text, sizeof(text)));
	if (u->n_nodes > 1)
		label(p, middle, y + 16, SMALL, "%u nodes of %u x %s on one NVLink", u->n_nodes,
		      p->f->gpus_per_node, c->gpu[0] ? c->gpu : "GPU");
	else
		label(p, middle, y + 16, SMALL, "%s%u x %s", u->n_equal > 1 ? "each " : "",
		      p->f->gpus_per_node, c->gpu[0] ? c->gpu : "GPU");
	label(p, middle, y + 31, SMALL, "%u x %s %s", c->n_nics,
	      topo_bits(c->nic_bytes_per_ns, rate, sizeof(rate)), topo_nic(c->nic));
	if (p->f->n_classes > 1)
		label(p, middle, y + 46, SMALL, "class %s", c->name);
}

static void draw_unit(struct picture *p, const struct topo_unit *u, double x, uint32_t n_rows)
{
	const struct fabric_class *c = &p->f->classes[u->class];
	double w = unit_width(p->f);
	char rate[32];

	for (int i = u->n_equal * u->n_nodes * n_rows > 1 ? 2 : 0; i > 0; i--)
		box(p, x + 4.0 * i, NODE_Y + 4.0 * i, w, NODE_HEIGHT,
		    "fill=\"#f4f4f4\" stroke=\"#999\"");
	box(p, x, NODE_Y, w, NODE_HEIGHT,
	    u->changes ? "fill=\"#fff7f7\" stroke=\"#c00\"" : "fill=\"#fcfcfc\" stroke=\"#555\"");
	draw_nics(p, u, x);
	draw_gpus(p, x);
	box(p, x + 8, BUS_Y, w - 16, BAR, "fill=\"#d9ead3\" stroke=\"#4b7500\"");
	label(p, x + w / 2, BUS_Y + 16, SMALL, "%s %s", topo_intra(c),
	      topo_rate(c->gpu_bytes_per_ns, rate, sizeof(rate)));
	draw_captions(p, u, x);
}

/* The middle of leaf @i of a row that begins at @x. */
static double leaf_x(const struct picture *p, const struct topo_row *row, double x, uint32_t i)
{
	return x + (i + 0.5) * row_width(p, row) / leaf_rails(p->f);
}

static void draw_leaves(struct picture *p, const struct topo_row *row, double x)
{
	uint32_t n = leaf_rails(p->f);
	double w = row_width(p, row) / n;

	for (uint32_t i = 0; i < n; i++) {
		double side = n > 1 ? (w - 6 < 60 ? w - 6 : 60) : w, at = leaf_x(p, row, x, i);
		uint32_t number = row->row * n + i;

		box(p, at - side / 2, LEAF_Y, side, BAR, "fill=\"#fff2cc\" stroke=\"#b8860b\"");
		label(p, at, LEAF_Y + 16, SMALL, "%s%u", side < 40 ? "" : topo_leaf(p->f), number);
	}
	if (row->n_equal > 1)
		label(p, x + row_width(p, row) / 2 + 8, LEAF_Y - 8,
		      "font-size=\"11\" fill=\"#444\"", "one of %u alike", row->n_equal);
}

/* From each NIC to its leaf, in the color of the rail; where there is one leaf, a wire a node. */
static void draw_wires(struct picture *p, const struct topo_row *row, double x)
{
	uint32_t rails = leaf_rails(p->f);
	double w = unit_width(p->f);

	for (size_t k = 0; k < row->n_units; k++) {
		const struct topo_unit *u = &p->fold.units[row->first_unit + k];
		uint32_t n = p->f->classes[u->class].n_nics;
		double unit_x = x + (double)k * (w + GAP);

		for (uint32_t i = 0; i < n; i++)
			wire(p, nic_x(unit_x, w, i, n), NIC_Y,
			     rails > 1 ? leaf_x(p, row, x, i) : nic_x(unit_x, w, i, n),
			     LEAF_Y + BAR, rail_color(rails > 1 ? i : 7), 1.5);
	}
}

/* The first cables; so many fit. */
static void label_cables(struct picture *p)
{
	const struct fabric *f = p->f;
	char text[256] = "", rate[32];
	size_t used = 0, n = f->n_cables < 4 ? f->n_cables : 4;

	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%ssw%u to sw%u: %s",
					 i ? ", " : "", f->cables[i].from, f->cables[i].to,
					 topo_rate(f->cables[i].bytes_per_ns, rate, sizeof(rate)));
	if (n < f->n_cables)
		snprintf(text + used, sizeof(text) - used, " and %zu more cables", f->n_cables - n);
	label(p, p->width / 2, SPINE_Y + 16, SMALL, "%s", text);
}

static void draw_spine(struct picture *p)
{
	const struct fabric *f = p->f;
	bool has_spine = leaf_count(f) > leaf_rails(f),
	     is_cabled = f->network.kind == FABRIC_CABLES;
	const char *what = f->network.kind == FABRIC_DRAGONFLY  ? "all groups are joined"
			   : f->network.kind == FABRIC_FAT_TREE ? "pods and core"
								: "spines";
	char rate[32];
	uint32_t n_half;
	double x = LEFT, half = fabric_bisection(f, &n_half);

	if (!has_spine && !is_cabled)
		return;
	box(p, LEFT, SPINE_Y, p->width - 2 * LEFT, BAR, "fill=\"#f9e0c7\" stroke=\"#b86b0b\"");
	if (is_cabled)
		label_cables(p);
	else
		label(p, p->width / 2, SPINE_Y + 16, SMALL, "%s: oversubscription %g, bisection %s",
		      what, f->network.oversubscription, topo_rate(half, rate, sizeof(rate)));
	for (size_t k = 0; k < p->fold.n_rows; k++) {
		const struct topo_row *row = &p->fold.rows[k];

		for (uint32_t i = 0; i < leaf_rails(f); i++) {
			double at = leaf_x(p, row, x, i);

			wire(p, at, LEAF_Y, at, SPINE_Y + BAR, "#b86b0b", 2);
		}
		x += row_width(p, row) + GAP;
	}
}

static void draw_changes(struct picture *p, double y)
{
	const struct fabric *f = p->f;

	for (size_t i = 0; i < f->n_changes && i < 4; i++) {
		char text[128];

		label(p, LEFT, y + 16.0 * (double)i, "fill=\"#c00\" font-size=\"12\"", "%s%s",
		      topo_change(f, i, text, sizeof(text)),
		      i == 3 && f->n_changes > 4 ? ", and more" : "");
	}
}

static void draw_page(struct picture *p)
{
	const struct fabric *f = p->f;
	double y = NODE_Y + NODE_HEIGHT + 88, height = y + (f->n_changes ? 74 : 10), x = LEFT;
	char text[192];

	fprintf(p->to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" font-size=\"13\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		p->width, height, p->width, height);
	label(p, LEFT, 26, "font-size=\"17\" font-weight=\"bold\"", "%s: %u x %u GPUs", f->name,
	      f->n_nodes, f->gpus_per_node);
	label(p, LEFT, 46, "fill=\"#444\"", "%s", topo_network(f, text, sizeof(text)));
	draw_spine(p);
	for (size_t i = 0; i < p->fold.n_rows; i++) {
		const struct topo_row *row = &p->fold.rows[i];

		draw_wires(p, row, x);
		draw_leaves(p, row, x);
		for (size_t k = 0; k < row->n_units; k++) {
			draw_unit(p, &p->fold.units[row->first_unit + k], x, row->n_equal);
			x += unit_width(f) + GAP;
		}
	}
	if (p->fold.n_left_out)
		label(p, LEFT, y - 16, "fill=\"#444\"", "%u more nodes are not drawn",
		      p->fold.n_left_out);
	draw_changes(p, y);
	fputs("</svg>\n", p->to);
}

int topo_draw_svg(const struct fabric *f, FILE *to)
{
	struct picture p = {.f = f, .to = to, .width = 2 * LEFT - GAP};
	int r = topo_fold(f, &p.fold);

	if (r < 0)
		return r;
	for (size_t i = 0; i < p.fold.n_rows; i++)
		p.width += row_width(&p, &p.fold.rows[i]) + GAP;
	p.width = p.width < 640 ? 640 : p.width;
	draw_page(&p);
	topo_fold_deinit(&p.fold);
	return 0;
}
