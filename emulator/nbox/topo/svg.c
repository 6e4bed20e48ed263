/* The fabric as a picture: spines, leaves, nodes with NICs, GPUs and what joins these. */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "fabric/leaf.h"
#include "fabric/link-number.h"
#include "nbox/draw/svg.h"
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
	const struct topo_loads *loads; /* NULL: none */
	enum svg_place place;
	double width;
};

static enum svg_role rail_role(uint32_t i)
{
	return SVG_SERIES_1 + i % 8;
}

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

/* Of the link at the nodes that the unit stands for, in both directions. */
static double share_of(const struct picture *p, const struct topo_unit *u, enum link_kind kind,
		       uint32_t i)
{
	double most = 0;

	for (uint32_t k = 0; p->loads && k < u->n_nodes * u->n_equal; k++)
		for (unsigned direction = 0; direction < 2; direction++)
			most = fmax(most,
				    p->loads->share(p->loads->ctx,
						    link_number(kind, u->first + k, i, direction)));
	return most;
}

/* A box that is so full. */
static void draw_load(struct picture *p, double x, double y, double width, double share)
{
	double height = fmax(BAR * fmin(share, 1), 1.5);
	char tip[64];

	if (share <= 0)
		return;
	snprintf(tip, sizeof(tip), "busy %.1f %% of the iteration", 100 * share);
	svg_box(p->to, x, y + BAR - height, width, height, share > .7 ? SVG_EXPOSED : SVG_NETWORK,
		0, tip);
}

static void draw_gpus(struct picture *p, const struct topo_unit *u, double x)
{
	uint32_t n = p->f->gpus_per_node, shown = gpus_shown(p->f);
	double w = unit_width(p->f), step = (w - 16) / shown;

	for (uint32_t i = 0; i < shown; i++) {
		bool is_rest = i + 1 == shown && n > shown;
		double at = x + 8 + i * step;

		svg_thing(p->to, at + 2, GPU_Y, step - 4, BAR, SVG_GPU);
		draw_load(p, at + 2, GPU_Y, step - 4, share_of(p, u, LINK_GPU, i));
		svg_print(p->to, at + step / 2, GPU_Y + 16, SVG_MIDDLE, SVG_SOFT,
			  is_rest ? "..." : "%u", i);
		svg_line(p->to, at + step / 2, GPU_Y + BAR, at + step / 2, BUS_Y, SVG_SOFT,
			 SVG_THIN);
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
			svg_line(p->to, at, NIC_Y + BAR, gpu, GPU_Y, SVG_SOFT, SVG_THIN);
		}
		svg_thing(p->to, at - side / 2, NIC_Y, side, BAR, is_changed ? SVG_BAD : SVG_NIC);
		draw_load(p, at - side / 2, NIC_Y, side, share_of(p, u, LINK_NIC, i));
		svg_print(p->to, at, NIC_Y + 16, SVG_MIDDLE, is_changed ? SVG_PAPER : SVG_SOFT,
			  "%u", i);
	}
}

static void draw_captions(struct picture *p, const struct topo_unit *u, double x)
{
	const struct fabric_class *c = &p->f->classes[u->class];
	double middle = x + unit_width(p->f) / 2, y = NODE_Y + NODE_HEIGHT + 18;
	char text[96], rate[32];

	if (u->n_equal > 1 && u->n_nodes > 1)
		svg_print(p->to, middle, y, SVG_MIDDLE | SVG_BOLD, SVG_INK,
			  "%u domains of %u nodes", u->n_equal, u->n_nodes);
	else
		svg_print(p->to, middle, y, SVG_MIDDLE | SVG_BOLD, SVG_INK, "%s",
			  topo_nodes(u->first, u->n_nodes * u->n_equal, text, sizeof(text)));
	if (u->n_nodes > 1)
		svg_print(p->to, middle, y + 16, SVG_MIDDLE, SVG_SOFT,
			  "%u nodes of %u x %s on one NVLink", u->n_nodes, p->f->gpus_per_node,
			  c->gpu[0] ? c->gpu : "GPU");
	else
		svg_print(p->to, middle, y + 16, SVG_MIDDLE, SVG_SOFT, "%s%u x %s",
			  u->n_equal > 1 ? "each " : "", p->f->gpus_per_node,
			  c->gpu[0] ? c->gpu : "GPU");
	svg_print(p->to, middle, y + 31, SVG_MIDDLE, SVG_SOFT, "%u x %s %s", c->n_nics,
		  topo_bits(c->nic_bytes_per_ns, rate, sizeof(rate)), topo_nic(c->nic));
	if (p->f->n_classes > 1)
		svg_print(p->to, middle, y + 46, SVG_MIDDLE, SVG_SOFT, "class %s", c->name);
}

static void draw_unit(struct picture *p, const struct topo_unit *u, double x, uint32_t n_rows)
{
	const struct fabric_class *c = &p->f->classes[u->class];
	double w = unit_width(p->f);
	char rate[32];

	for (int i = u->n_equal * u->n_nodes * n_rows > 1 ? 2 : 0; i > 0; i--)
		svg_thing(p->to, x + 4.0 * i, NODE_Y + 4.0 * i, w, NODE_HEIGHT, SVG_NODE);
	svg_thing(p->to, x, NODE_Y, w, NODE_HEIGHT, SVG_NODE);
	draw_nics(p, u, x);
	draw_gpus(p, u, x);
	svg_thing(p->to, x + 8, BUS_Y, w - 16, BAR, SVG_GPU);
	svg_print(p->to, x + w / 2, BUS_Y + 16, SVG_MIDDLE, SVG_SOFT, "%s %s", topo_intra(c),
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
		double up = 0;

		svg_thing(p->to, at - side / 2, LEAF_Y, side, BAR, SVG_LEAF);
		for (unsigned k = 0; p->loads && k < 2; k++)
			up = fmax(up, p->loads->share(p->loads->ctx,
						      link_number(LINK_LEAF, number, 0, k)));
		draw_load(p, at - side / 2, LEAF_Y, side, up);
		svg_print(p->to, at, LEAF_Y + 16, SVG_MIDDLE, SVG_SOFT, "%s%u",
			  side < 40 ? "" : topo_leaf(p->f), number);
	}
	if (row->n_equal > 1)
		svg_print(p->to, x + row_width(p, row) / 2 + 8, LEAF_Y - 8, SVG_START, SVG_SOFT,
			  "one of %u alike", row->n_equal);
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
			svg_line(p->to, nic_x(unit_x, w, i, n), NIC_Y,
				 rails > 1 ? leaf_x(p, row, x, i) : nic_x(unit_x, w, i, n),
				 LEAF_Y + BAR, rail_role(rails > 1 ? i : 7), SVG_THIN);
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
	svg_print(p->to, p->width / 2, SPINE_Y + 16, SVG_MIDDLE, SVG_SOFT, "%s", text);
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
	svg_thing(p->to, LEFT, SPINE_Y, p->width - 2 * LEFT, BAR, SVG_SPINE);
	if (is_cabled)
		label_cables(p);
	else
		svg_print(p->to, p->width / 2, SPINE_Y + 16, SVG_MIDDLE, SVG_SOFT,
			  "%s: oversubscription %g, bisection %s", what,
			  f->network.oversubscription, topo_rate(half, rate, sizeof(rate)));
	for (size_t k = 0; k < p->fold.n_rows; k++) {
		const struct topo_row *row = &p->fold.rows[k];

		for (uint32_t i = 0; i < leaf_rails(f); i++) {
			double at = leaf_x(p, row, x, i);

			svg_line(p->to, at, LEAF_Y, at, SPINE_Y + BAR, SVG_SOFT, SVG_THICK);
		}
		x += row_width(p, row) + GAP;
	}
}

static void draw_changes(struct picture *p, double y)
{
	const struct fabric *f = p->f;

	for (size_t i = 0; i < f->n_changes && i < 4; i++) {
		char text[128];

		svg_print(p->to, LEFT, y + 16.0 * (double)i, SVG_START, SVG_BAD, "%s%s",
			  topo_change(f, i, text, sizeof(text)),
			  i == 3 && f->n_changes > 4 ? ", and more" : "");
	}
}

static void draw_page(struct picture *p)
{
	const struct fabric *f = p->f;
	double y = NODE_Y + NODE_HEIGHT + 88, height = y + (f->n_changes ? 74 : 10), x = LEFT;
	char text[192];

	svg_begin(p->to, p->place, p->width, height, f->name);
	svg_print(p->to, LEFT, 26, SVG_BOLD | SVG_LARGE, SVG_INK, "%s: %u x %u GPUs", f->name,
		  f->n_nodes, f->gpus_per_node);
	svg_print(p->to, LEFT, 46, SVG_START, SVG_SOFT, "%s", topo_network(f, text, sizeof(text)));
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
		svg_print(p->to, LEFT, y - 16, SVG_START, SVG_SOFT, "%u more nodes are not drawn",
			  p->fold.n_left_out);
	draw_changes(p, y);
	svg_end(p->to);
}

int topo_draw(const struct fabric *f, const struct topo_loads *loads, enum svg_place place,
	      FILE *to)
{
	struct picture p = {
		.f = f, .to = to, .loads = loads, .place = place, .width = 2 * LEFT - GAP};
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

int topo_draw_svg(const struct fabric *f, FILE *to)
{
	return topo_draw(f, NULL, SVG_ALONE, to);
}
