/* See run-page.h. */
#include "nbox/page/run-page.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "fabric/link-number.h"
#include "nbox/draw/lanes.h"
#include "nbox/page/run-iterations.h"
#include "nbox/report/classes.h"
#include "nbox/report/summary.h"
#include "nbox/report/ways.h"
#include "nbox/topo/topo.h"
#include "schedule/coll.h"
#include "topology/topology.h"
#include "wire/wire.h"

#define WIDE 760.0   /* of a picture over the whole page */
#define NARROW 400.0 /* of one in the grid: its text is readable on a phone */
#define GROUPS_MAX 16
#define CLASSES_MAX 16

static bool has_what_ifs(const struct report *r)
{
	return strstr(r->header.model, " + ") != NULL;
}

static struct doc_cell text_cell(const char *text)
{
	return (struct doc_cell){.text = text};
}

static double percent_of(double part, double all)
{
	return all > 0 ? 100 * part / all : 0;
}

/* --- the answer ------------------------------------------------------------------------------ */

static void write_answer(const struct page_run *p, struct doc *d)
{
	const struct report *r = p->rep;
	const struct topology world = {.n_nodes = r->header.n_nodes,
				       .gpus_per_node = r->header.gpus_per_node};
	char text[64], injected[160] = "";

	topology_print(&world, text, sizeof(text));
	if (has_what_ifs(r))
		snprintf(injected, sizeof(injected),
			 " Without the what-ifs it would be %.3f ms shorter.",
			 r->injected_ns / 1e6);
	if (r->n_steps)
		doc_text(
			d,
			"On %s an iteration takes %.3f ms (median). In %s%.1f %% of its time computation waits for communication.%s",
			text, r->step_ns.p50 / 1e6, r->is_exposed_bound ? "at most " : "",
			percent_of(r->exposed_ns, r->virtual_ns), injected);
	else
		doc_text(d,
			 "A run on %s. Its times are of all of it, no iterations were found: %s.%s",
			 text, r->steps_how, injected);
}

static void write_cards(const struct page_run *p, struct doc *d)
{
	const struct report *r = p->rep;
	const char *per = r->n_steps ? "an iteration, mean" : "in all";
	char range[96], exposed[96], text[5][32];
	struct doc_card cards[5];
	size_t n = 0;

	snprintf(range, sizeof(range), "p25 %.3f, p95 %.3f ms; %llu timed", r->step_ns.p25 / 1e6,
		 r->step_ns.p95 / 1e6, (unsigned long long)r->step_ns.n);
	snprintf(exposed, sizeof(exposed), "%s%s", r->is_exposed_bound ? "at most; " : "", per);
	if (r->n_steps)
		cards[n++] = (struct doc_card){"iteration, median", range, SVG_COMPUTE,
					       doc_ms(r->step_ns.p50, "steps.ms.p50", text[0],
						      sizeof(text[0]))};
	else
		cards[n++] = (struct doc_card){"the whole run", "virtual time", SVG_COMPUTE,
					       doc_ms(r->virtual_ns, "virtual_ms", text[0],
						      sizeof(text[0]))};
	cards[n++] =
		(struct doc_card){"exposed communication", exposed, SVG_EXPOSED,
				  doc_ms(r->exposed_ns, "exposed_ms", text[1], sizeof(text[1]))};
	cards[n++] =
		(struct doc_card){"modelled communication", per, SVG_NETWORK,
				  doc_ms(r->modelled_ns, "modelled_ms", text[2], sizeof(text[2]))};
	cards[n++] =
		(struct doc_card){"injected by what-ifs",
				  has_what_ifs(r) ? per : "none were asked for", SVG_INJECTED,
				  doc_ms(r->injected_ns, "injected_ms", text[3], sizeof(text[3]))};
	doc_cards(d, cards, n);
}

/* --- one iteration --------------------------------------------------------------------------- */

static const struct lane_key iteration_keys[] = {{SVG_COMPUTE, "computation"},
						 {SVG_EXPOSED, "waits for communication"},
						 {SVG_OTHERS, "op waits for other ranks"},
						 {SVG_NETWORK, "op"},
						 {SVG_INJECTED, "injected"}};

void run_page_draw(const struct page_run *p, enum svg_place place, FILE *to)
{
	double top = place == SVG_ALONE ? 26 : 0; /* a page has the keys as text */
	const struct lanes l = {p->view->lanes, p->view->n_lanes,
				fmax(p->view->length_ns / 1e6, 1e-6), "virtual time (ms)"};

	svg_begin(to, place, WIDE, lanes_height(&l) + top, "where the time of an iteration goes");
	if (place == SVG_ALONE)
		lanes_keys(iteration_keys, ARRAY_SIZE(iteration_keys), to, 4, 6);
	lanes_draw(&l, to, 4, top, WIDE - 8);
	svg_end(to);
}

static void write_timeline(const struct page_run *p, struct doc *d)
{
	char caption[192];

	if (p->view->n_lanes == 0)
		return;
	snprintf(
		caption, sizeof(caption),
		"Rank %u, a real one, in iteration %llu, one of about the median time; from its first op to that of the next one",
		p->rep->rank, (unsigned long long)p->view->shown);
	if (!p->view->shown)
		snprintf(caption, sizeof(caption), "Rank %u, a real one, in all of the run",
			 p->rep->rank);
	if (d->form == DOC_HTML)
		doc_heading(d, "Where the time goes");
	doc_keys(d, iteration_keys, ARRAY_SIZE(iteration_keys));
	if (doc_picture_begin(d, caption, true)) {
		run_page_draw(p, SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
}

/* --- ops ------------------------------------------------------------------------------------- */

static void write_kinds(const struct page_run *p, struct doc *d)
{
	static const char *const heads[] = {"op, in all of the run", "calls",
					    "bytes a call",          "modelled a call",
					    "injected a call",       "modelled in all"};
	char text[5][32], keys[3][64];
	int row = 0;

	doc_table_begin(d, "lrrrrr", heads);
	for (uint32_t k = 0; k < COLL_KINDS; k++) {
		const struct report_kind *c = &p->rep->kinds[k];
		double n = (double)c->n_ops;

		if (c->n_ops == 0)
			continue;
		snprintf(text[0], sizeof(text[0]), "%llu", (unsigned long long)c->n_ops);
		units_print_bytes(c->bytes / c->n_ops, text[1], sizeof(text[1]));
		units_print_time(c->model_ns / n, text[2], sizeof(text[2]));
		units_print_time(c->injected_ns / n, text[3], sizeof(text[3]));
		snprintf(keys[0], sizeof(keys[0]), "ops_by_kind.%d.calls", row);
		snprintf(keys[1], sizeof(keys[1]), "ops_by_kind.%d.modelled_ms", row++);
		doc_row(d, (struct doc_cell[]){text_cell(coll_kind_name(k)),
					       {text[0], keys[0], n},
					       text_cell(text[1]),
					       text_cell(text[2]),
					       text_cell(text[3]),
					       doc_ms(c->model_ns, keys[1], text[4],
						      sizeof(text[4]))});
	}
	doc_table_end(d);
}

static const struct lane_key group_keys[] = {{SVG_OTHERS, "waits for other ranks"},
					     {SVG_NETWORK, "takes"},
					     {SVG_INJECTED, "injected"}};

/* Of each group a bar: waits for others, takes, injected. */
static int draw_groups(const struct view *v, size_t n, FILE *to)
{
	CLEANUP(freep) struct lane *lanes = calloc(n, sizeof(*lanes));
	CLEANUP(freep) struct lane_bar *bars = calloc(3 * n, sizeof(*bars));
	struct lanes l = {lanes, n, 0, "mean time of an op (ms)"};
	char name[96];

	if (!lanes || !bars)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct view_group *g = &v->groups[i];
		const double parts[] = {g->others_ns / 1e6, g->network_ns / 1e6,
					g->injected_ns / 1e6};
		double from = 0;

		snprintf(lanes[i].name, sizeof(lanes[i].name), "%llu x %.50s",
			 (unsigned long long)g->n, view_op_name(g->first, name, sizeof(name)));
		lanes[i].bars = &bars[3 * i];
		lanes[i].n = 3;
		for (int k = 0; k < 3; k++) {
			struct lane_bar *b = &lanes[i].bars[k];

			b->from = from;
			b->to = from += parts[k];
			b->role = group_keys[k].role;
			snprintf(b->tip, sizeof(b->tip), "%s %.3f ms", group_keys[k].text,
				 parts[k]);
		}
		l.length = fmax(l.length, from);
	}
	l.length = fmax(l.length * 1.02, 1e-6);
	svg_begin(to, SVG_IN_PAGE, NARROW, lanes_height(&l), "times of ops");
	lanes_draw(&l, to, 4, 0, NARROW - 8);
	svg_end(to);
	return 0;
}

static void write_groups(const struct view *v, size_t n, struct doc *d)
{
	static const char *const heads[] = {
		"op, bytes, ranks", "communicator", "calls", "waits for others", "takes",
		"injected",         "p50",          "p95"};
	char text[8][96];

	doc_table_begin(d, "lrrrrrrr", heads);
	for (size_t i = 0; i < n; i++) {
		const struct view_group *g = &v->groups[i];
		const double times[] = {g->others_ns, g->network_ns, g->injected_ns, g->p50_ns,
					g->p95_ns};
		struct doc_cell cells[8];

		view_op_name(g->first, text[0], sizeof(text[0]));
		snprintf(text[1], sizeof(text[1]), "%u", g->first->comm);
		snprintf(text[2], sizeof(text[2]), "%llu", (unsigned long long)g->n);
		for (int k = 0; k < 5; k++)
			units_print_time(times[k], text[3 + k], sizeof(text[0]));
		for (int k = 0; k < 8; k++)
			cells[k] = text_cell(text[k]);
		doc_row(d, cells);
	}
	doc_table_end(d);
	if (n < v->n_groups)
		doc_text(d, "And %zu more, which take less time in all.", v->n_groups - n);
}

static int write_ops(const struct page_run *p, struct doc *d)
{
	size_t n = p->view->n_groups < GROUPS_MAX ? p->view->n_groups : GROUPS_MAX;
	int r = 0;

	if (!p->rep->n_ops)
		return 0;
	doc_heading(d, "Ops");
	write_kinds(p, d);
	doc_keys(d, group_keys, ARRAY_SIZE(group_keys));
	if (doc_picture_begin(
		    d,
		    p->rep->n_steps
			    ? "Ops of the iterations, those that are alike as one, means: from the rank's arrival to the end"
			    : "Ops that are alike as one, means: from the rank's arrival to the end",
		    false)) {
		r = draw_groups(p->view, n, d->to);
		doc_picture_end(d);
	}
	write_groups(p->view, n, d);
	return r;
}

/* --- what to believe ------------------------------------------------------------------------- */

static void write_warnings(const struct page_run *p, struct doc *d)
{
	const char *texts[REPORT_WARNINGS_MAX + 1];
	size_t n = 0;

	if (p->rep->lost[0])
		texts[n++] = p->rep->lost;
	for (uint32_t i = 0; i < p->rep->n_warnings; i++)
		texts[n++] = p->rep->warnings[i];
	if (n == 0)
		return;
	doc_heading(d, "Look at this before you trust the figures");
	doc_warnings(d, texts, n);
}

/* Where each figure comes from. */
static void write_sources(const struct page_run *p, struct doc *d)
{
	static const char *const heads[] = {"figure", "value", "is", "comes from"};
	const struct report *r = p->rep;
	const char *of = r->header.retimed_of; /* "": it was run */
	char text[8][64], compute[1100], ops[1100];

	snprintf(compute, sizeof(compute), "%s's clock at the real ranks%s%s%s%s",
		 of[0] ? "the machine" : "this machine", of[0] ? " in the run " : "", of,
		 r->device[0] ? "; " : "", r->device);
	snprintf(ops, sizeof(ops), "the model %s%s%s", r->header.model, r->network[0] ? "; " : "",
		 r->network);
	snprintf(text[6], sizeof(text[6]), "%.3f us", r->lateness_ns.p99 / 1e3);
	doc_heading(d, "Measured, modelled, injected");
	doc_table_begin(d, "lrll", heads);
#define ROW(...) doc_row(d, (struct doc_cell[]){__VA_ARGS__})
	ROW({.text = "time of computation"},
	    doc_ms(r->virtual_ns - r->exposed_ns, NULL, text[0], sizeof(text[0])),
	    {.text = strstr(r->device, "compute is modelled") ? "modelled" : "measured"},
	    {.text = compute});
	ROW({.text = "time of ops"},
	    doc_ms(r->modelled_ns, "modelled_ms", text[1], sizeof(text[1])), {.text = "modelled"},
	    {.text = ops});
	ROW({.text = "exposed communication"},
	    doc_ms(r->exposed_ns, "exposed_ms", text[2], sizeof(text[2])),
	    {.text = "follows from both"},
	    {.text = r->is_exposed_bound ? "an upper bound: what the job waited for was not seen"
					 : "how long computation waited for ops, in virtual time"});
	ROW({.text = "iteration"}, doc_ms(r->virtual_ns, "virtual_ms", text[3], sizeof(text[3])),
	    {.text = "follows from both"},
	    {.text = "computation and exposed communication, in virtual time"});
	ROW({.text = "what-ifs"}, doc_ms(r->injected_ns, "injected_ms", text[4], sizeof(text[4])),
	    {.text = "injected"},
	    {.text = has_what_ifs(r) ? "the same run without what-ifs, in virtual time"
				     : "none were asked for"});
	if (of[0]) {
		doc_table_end(d);
		return;
	}
	ROW({.text = "the same iteration by the wall clock"},
	    doc_ms(r->wall_ns, "wall_ms", text[5], sizeof(text[5])), {.text = "measured"},
	    {.text = "this machine; not a figure of the virtual cluster"});
	ROW({.text = "gates late, p99"}, {text[6], "lateness_us.p99", r->lateness_ns.p99 / 1e3},
	    {.text = "measured"}, {.text = "this machine; virtual time stands still meanwhile"});
#undef ROW
	doc_table_end(d);
}

/* --- the setting ----------------------------------------------------------------------------- */

static void setting(struct doc *d, const char *what, const char *value)
{
	if (value[0])
		doc_row(d, (struct doc_cell[]){text_cell(what), text_cell(value)});
}

static void write_setting(const struct page_run *p, struct doc *d)
{
	static const char *const heads[] = {"setting", ""};
	const struct record_header *h = &p->rep->header;
	const struct topology world = {.n_nodes = h->n_nodes, .gpus_per_node = h->gpus_per_node};
	time_t started = (time_t)(h->start_unix_ns / 1000000000);
	char text[128], class[REPORT_CLASS_TEXT_MAX];
	struct tm when;

	doc_heading(d, "Setting");
	doc_table_begin(d, "ll", heads);
	setting(d, "cluster", topology_print(&world, text, sizeof(text)));
	snprintf(text, sizeof(text), "%u", h->n_real);
	setting(d, "real ranks", text);
	for (uint32_t i = 0; i < p->rep->n_classes && i < CLASSES_MAX; i++)
		setting(d, p->rep->classes[i].name,
			report_class_text(p->rep, i, class, sizeof(class)));
	setting(d, "model and what-ifs", h->model);
	setting(d, "network", p->rep->network);
	setting(d, "decided by", p->rep->decided_by);
	setting(d, "layout", h->layout);
	for (uint32_t i = 0; i < p->rep->n_counts; i++)
		setting(d, "counts", p->rep->counts[i].text);
	setting(d, "nccl", report_way(h));
	setting(d, "NCCL took", p->rep->took);
	setting(d, "NCCL's messages", p->rep->messages);
	setting(d, "data", wire_data_name(h->data));
	setting(d, "values", report_values(p->rep, text, sizeof(text)));
	setting(d, "exchange", wire_exchange_name(h->exchange));
	setting(d, "device", p->rep->device);
	snprintf(text, sizeof(text), "%llu", (unsigned long long)h->seed);
	setting(d, "seed", text);
	if (gmtime_r(&started, &when) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &when))
		setting(d, "started", text);
	setting(d, "results", p->run->dir);
	doc_table_end(d);
}

/* --- the fabric ------------------------------------------------------------------------------ */

static double load_share(const struct page_run *p, const struct load *l)
{
	return l && l->bytes_per_ns > 0 && p->view->length_ns > 0
		       ? l->bytes / l->bytes_per_ns / p->view->length_ns
		       : 0;
}

static double link_share(const void *ctx, uint64_t link)
{
	const struct page_run *p = ctx;

	return load_share(p, loads_of_link(p->loads, link));
}

/* The links that are busy longest, of each kind in each direction one. */
static void write_busiest(const struct page_run *p, struct doc *d)
{
	static const char *const heads[] = {"busiest of their kind", "bytes an iteration",
					    "busy for", "of the iteration"};
	const struct load *most[LINK_KINDS][2] = {{NULL}};

	for (size_t i = 0; i < p->loads->n; i++) {
		const struct load *l = &p->loads->list[i],
				  **best = &most[link_kind(l->link)][link_direction(l->link)];

		if (load_share(p, l) > load_share(p, *best))
			*best = l;
	}
	doc_table_begin(d, "lrrr", heads);
	for (unsigned i = 0; i < LINK_KINDS * 2; i++) {
		const struct load *l = most[i / 2][i % 2];
		char text[4][64];

		if (!l)
			continue;
		fabric_link_name(p->fabric, l->link, text[0], sizeof(text[0]));
		units_print_bytes((uint64_t)l->bytes, text[1], sizeof(text[1]));
		units_print_time(l->bytes / l->bytes_per_ns, text[2], sizeof(text[2]));
		snprintf(text[3], sizeof(text[3]), "%.1f %%", 100 * load_share(p, l));
		doc_row(d, (struct doc_cell[]){text_cell(text[0]), text_cell(text[1]),
					       text_cell(text[2]), text_cell(text[3])});
	}
	doc_table_end(d);
	doc_text(
		d,
		"Modelled: what collectives of communicators with a real rank put on links in one iteration; "
		"not sends and receives, nor what-ifs on links.");
}

static int write_fabric(const struct page_run *p, struct doc *d)
{
	const struct topo_loads loads = {link_share, p};
	bool has_loads = p->loads->n && p->view->shown;
	int r = 0;

	if (!p->fabric || (d->form != DOC_HTML && !has_loads))
		return 0;
	doc_heading(d, "Fabric");
	if (doc_picture_begin(
		    d,
		    has_loads
			    ? "Equal nodes are drawn once; boxes are as full as their links are busy in an iteration"
			    : "Equal nodes are drawn once",
		    true)) {
		r = topo_draw(p->fabric, has_loads ? &loads : NULL, SVG_IN_PAGE, d->to);
		doc_picture_end(d);
	}
	if (has_loads)
		write_busiest(p, d);
	return r;
}

static int write_json(const struct page_run *p, struct doc *d)
{
	json_t *o = report_json(p->rep, p->run->info.exit_code);
	CLEANUP(freep) char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	if (!text)
		return -ENOMEM;
	doc_json(d, "summary", text);
	return 0;
}

int run_page_write(const struct page_run *p, struct doc *d)
{
	const char *of = p->rep->header.retimed_of;
	char title[640];
	int r;

	snprintf(title, sizeof(title), "A training job on %u ranks%s%s", p->rep->header.world_size,
		 of[0] ? ", re-timed from " : "", of);
	doc_begin(d, title);
	if (p->run->info.command[0])
		doc_code(d, p->run->info.command);
	if (p->rep->n_ops) {
		write_answer(p, d);
		write_cards(p, d);
	}
	write_warnings(p, d);
	write_timeline(p, d);
	r = run_iterations_write(p->rep, p->view, d);
	if (r == 0)
		r = write_ops(p, d);
	if (r == 0)
		r = write_fabric(p, d);
	if (p->rep->n_ops)
		write_sources(p, d);
	write_setting(p, d);
	if (r == 0)
		r = write_json(p, d);
	doc_end(d);
	return r;
}
