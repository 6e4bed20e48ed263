/* See write.h. */
#include "fabric/read/write.h"

#include "fabric/read/fields.h"

static void write_class(const struct fabric_class *c, FILE *to)
{
	for (const struct field *field = fields_class; field->key; field++) {
		if (!field_is_given(field, c))
			continue;
		fputs(field == fields_class ? "  - " : "    ", to);
		field_write(field, c, to);
		fputc('\n', to);
	}
	fputs("    nic_gpus: [", to);
	for (uint32_t i = 0; i < c->n_nics; i++)
		fprintf(to, "%s%u", i ? ", " : "", c->nic_gpu[i]);
	fputs("]\n", to);
}

static void write_cables(const struct fabric *f, FILE *to)
{
	uint32_t first = 0;

	fprintf(to, "  switches: %u\n  nodes:\n", f->n_switches);
	for (uint32_t i = 1; i <= f->n_nodes; i++) {
		if (i < f->n_nodes && f->node_switch[i] == f->node_switch[first])
			continue;
		fprintf(to, "    - {switch: %u, nodes: %u}\n", f->node_switch[first], i - first);
		first = i;
	}
	fprintf(to, "  cables:%s\n", f->n_cables ? "" : " []");
	for (size_t i = 0; i < f->n_cables; i++) {
		fputs("    - {", to);
		for (const struct field *field = fields_cable; field->key; field++) {
			fputs(field == fields_cable ? "" : ", ", to);
			field_write(field, &f->cables[i], to);
		}
		fputs("}\n", to);
	}
}

static void write_fit(const struct fabric_fit *fit, FILE *to)
{
	fputs("fitted:\n", to);
	for (const struct field *field = fields_fit; field->key; field++) {
		fputs("  ", to);
		field_write(field, fit, to);
		fputc('\n', to);
	}
}

static void write_residuals(const struct fabric *f, FILE *to)
{
	fputs("residuals:\n", to);
	for (size_t i = 0; i < f->n_residuals; i++) {
		fputs("  - {", to);
		for (const struct field *field = fields_residual; field->key; field++) {
			fputs(field == fields_residual ? "" : ", ", to);
			field_write(field, &f->residuals[i], to);
		}
		fputs("}\n", to);
	}
}

static void write_nodes(const struct fabric *f, FILE *to)
{
	fputs("nodes:\n", to);
	for (size_t i = 0; i < f->n_nodes_runs; i++) {
		fputs("  - {class: ", to);
		field_write_text(f->classes[f->nodes[i].class].name, to);
		fprintf(to, ", nodes: %u}\n", f->nodes[i].n);
	}
}

void fabric_write(const struct fabric *f, FILE *to)
{
	fputs("name: ", to);
	field_write_text(f->name, to);
	fputs("\nclasses:\n", to);
	for (uint32_t i = 0; i < f->n_classes; i++)
		write_class(&f->classes[i], to);
	/* what was fitted is asked for other numbers of nodes, too */
	if (!f->fit.n_points || f->n_nodes_runs > 1)
		write_nodes(f, to);
	fputs("network:\n", to);
	for (const struct field *field = fields_network; field->key; field++) {
		fputs("  ", to);
		field_write(field, &f->network, to);
		fputc('\n', to);
	}
	if (f->network.kind == FABRIC_CABLES)
		write_cables(f, to);
	if (f->fit.n_points)
		write_fit(&f->fit, to);
	if (f->n_residuals)
		write_residuals(f, to);
	if (f->n_changes)
		fputs("links:\n", to);
	for (size_t i = 0; i < f->n_changes; i++) {
		const struct fabric_change *c = &f->changes[i];
		char name[64];

		fprintf(to, "  - {link: %s", fabric_link_name(f, c->link, name, sizeof(name)));
		if (c->bytes_per_ns >= 0) {
			fputs(", bandwidth: ", to);
			field_write_bandwidth(c->bytes_per_ns, to);
		}
		if (c->latency_ns >= 0) {
			fputs(", latency: ", to);
			field_write_time(c->latency_ns, to);
		}
		fputs("}\n", to);
	}
}
