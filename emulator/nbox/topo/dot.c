/* The fabric as a graph for Graphviz. */
#include "fabric/leaf.h"
#include "nbox/topo/fold.h"
#include "nbox/topo/topo.h"
#include "nbox/topo/words.h"

static void write_escaped(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
}

static void draw_unit(const struct fabric *f, const struct topo_unit *u, uint32_t n_rows, FILE *to)
{
	const struct fabric_class *c = &f->classes[u->class];
	char text[64], rate[32];

	fprintf(to, "  subgraph cluster_%u {\n    label=\"%s", u->first,
		topo_nodes(u->first, u->n_nodes * u->n_equal, text, sizeof(text)));
	if (n_rows > 1)
		fprintf(to, ", one of %u groups alike", n_rows);
	fputs("\\n", to);
	write_escaped(c->name, to);
	fprintf(to, "\";\n    n%u_bus [shape=box, label=\"%s %s\"];\n", u->first, topo_intra(c),
		topo_rate(c->gpu_bytes_per_ns, rate, sizeof(rate)));
	for (uint32_t i = 0; i < f->gpus_per_node; i++)
		fprintf(to, "    n%u_gpu%u [label=\"GPU %u\"]; n%u_bus -- n%u_gpu%u;\n", u->first,
			i, i, u->first, u->first, i);
	for (uint32_t i = 0; i < c->n_nics; i++) {
		fprintf(to, "    n%u_nic%u [shape=box, label=\"NIC %u\\n%s\"];", u->first, i, i,
			topo_bits(c->nic_bytes_per_ns, rate, sizeof(rate)));
		if (c->nic_gpu[i] < f->gpus_per_node)
			fprintf(to, " n%u_gpu%u -- n%u_nic%u;", u->first, c->nic_gpu[i], u->first,
				i);
		fputc('\n', to);
	}
	fputs("  }\n", to);
}

static void draw_row(const struct fabric *f, const struct topo_fold *fold,
		     const struct topo_row *row, FILE *to)
{
	uint32_t rails = leaf_rails(f);

	for (uint32_t i = 0; i < rails; i++)
		fprintf(to, "  leaf%u [shape=box, label=\"%s%u\"];\n", row->row * rails + i,
			topo_leaf(f), row->row * rails + i);
	for (size_t k = 0; k < row->n_units; k++) {
		const struct topo_unit *u = &fold->units[row->first_unit + k];

		draw_unit(f, u, row->n_equal, to);
		for (uint32_t i = 0; i < f->classes[u->class].n_nics; i++)
			fprintf(to, "  n%u_nic%u -- leaf%u;\n", u->first, i,
				row->row * rails + (rails > 1 ? i : 0));
	}
}

static void draw_network(const struct fabric *f, const struct topo_fold *fold, FILE *to)
{
	uint32_t rails = leaf_rails(f);
	char rate[32];

	if (f->network.kind == FABRIC_CABLES) {
		for (size_t i = 0; i < f->n_cables; i++)
			fprintf(to,
				"  leaf%u [shape=box, label=\"sw%u\"]; leaf%u [shape=box, label=\"sw%u\"];\n"
				"  leaf%u -- leaf%u [label=\"%s\"];\n",
				f->cables[i].from, f->cables[i].from, f->cables[i].to,
				f->cables[i].to, f->cables[i].from, f->cables[i].to,
				topo_rate(f->cables[i].bytes_per_ns, rate, sizeof(rate)));
		return;
	}
	if (leaf_count(f) <= rails)
		return;
	fputs("  spine [shape=box, label=\"spines\"];\n", to);
	for (size_t k = 0; k < fold->n_rows; k++)
		for (uint32_t i = 0; i < rails; i++)
			fprintf(to, "  leaf%u -- spine;\n", fold->rows[k].row * rails + i);
}

int topo_draw_dot(const struct fabric *f, FILE *to)
{
	struct topo_fold fold;
	int r = topo_fold(f, &fold);

	if (r < 0)
		return r;
	fputs("graph \"", to);
	write_escaped(f->name, to);
	fputs("\" {\n  node [fontsize=10]; edge [fontsize=9];\n", to);
	for (size_t i = 0; i < fold.n_rows; i++)
		draw_row(f, &fold, &fold.rows[i], to);
	draw_network(f, &fold, to);
	if (fold.n_left_out)
		fprintf(to, "  rest [shape=plaintext, label=\"%u more nodes\"];\n",
			fold.n_left_out);
	fputs("}\n", to);
	topo_fold_deinit(&fold);
	return 0;
}
