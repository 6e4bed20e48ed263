/* See page.h. */
#include "nbox/oracle/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "nccl/words.h"

/* The word number @n of a list of words between bars. */
static const char *word(const char *words, uint32_t n, char *buf, size_t size)
{
	size_t len;

	while (n--)
		words = strchr(words, '|') + 1;
	len = strcspn(words, "|");
	snprintf(buf, size, "%.*s", (int)len, words);
	return buf;
}

/* "256K", as NCCL's users write sizes; others are printed whole. */
static const char *size_text(uint64_t bytes, char *buf, size_t size)
{
	static const char letters[] = "KMG";
	char letter[2] = "";

	for (int i = 0; letters[i] && bytes && bytes % 1024 == 0; i++) {
		bytes /= 1024;
		letter[0] = letters[i];
	}
	snprintf(buf, size, "%" PRIu64 "%s", bytes, letter);
	return buf;
}

void oracle_page_head(const struct oracle_nccl *n, FILE *to)
{
	fprintf(to, "NCCL %s, %s\n", n->name, n->path);
	if (n->tried)
		fprintf(to, "  tried with nbox: %s\n", n->tried);
	else
		fprintf(to,
			"  never tried with nbox: compare what it says with a run of a few nodes\n");
}

static void print_cost(const struct oracle_world *w, FILE *to)
{
	char init[32], responder[32], asked[32], rss[32], gpu[32];

	fprintf(to, "  initialisation %s, of which nbox's CPU %s; %zu questions %s\n",
		units_print_time((double)w->init_ns, init, sizeof(init)),
		units_print_time((double)w->responder_ns, responder, sizeof(responder)), w->n_costs,
		units_print_time((double)w->ask_ns, asked, sizeof(asked)));
	fprintf(to, "  memory: %s of the process, %s of the first GPU\n",
		units_print_bytes(w->rss_bytes > 0 ? (uint64_t)w->rss_bytes : 0, rss, sizeof(rss)),
		units_print_bytes(w->gpu_bytes > 0 ? (uint64_t)w->gpu_bytes : 0, gpu, sizeof(gpu)));
	if (w->n_transports || w->n_connections)
		fprintf(to,
			"  transports: %" PRIu64
			" were set up with ranks that do not exist, %" PRIu64
			" connections over nbox's network: this NCCL connects in its "
			"initialisation\n",
			w->n_transports, w->n_connections);
	else
		fprintf(to, "  transports: none was made\n");
}

static void print_graph(const struct decisions_graph *g, uint32_t number, FILE *to)
{
	char name[24], pattern[24], intra[8], inter[8];

	fprintf(to,
		"  graph %-13s %u channels of %g GB/s in the node (%s), %g between nodes (%s), %s\n",
		word(DECISIONS_GRAPHS, number, name, sizeof(name)), g->n_channels,
		(double)g->bw_intra, word(DECISIONS_PATHS, g->type_intra, intra, sizeof(intra)),
		(double)g->bw_inter, word(DECISIONS_PATHS, g->type_inter, inter, sizeof(inter)),
		word(DECISIONS_PATTERNS, g->pattern, pattern, sizeof(pattern)));
}

/* "tree LL; 256K tree LL128; ...": from which size on NCCL takes it. */
static void print_op(const struct decisions_op *op, const char *name, FILE *to)
{
	char algo[24], proto[16], size[32];

	fprintf(to, "  %-13s", name);
	for (size_t i = 0; i < op->n; i++) {
		const struct decisions_point *p = &op->points[i];

		if (i && p->algo == p[-1].algo && p->proto == p[-1].proto)
			continue;
		fprintf(to, "%s%s %s %s", i ? "; " : " ", size_text(p->bytes, size, sizeof(size)),
			word(ALGO_WORDS, p->algo, algo, sizeof(algo)),
			word(PROTO_WORDS, p->proto, proto, sizeof(proto)));
	}
	fputc('\n', to);
}

void oracle_page_world(const struct oracle_world *w, const struct decisions_comm *c, FILE *to)
{
	char name[24];

	fprintf(to, "\n%u ranks on %u node%s (%u here, %u played by nbox)\n", w->n_ranks,
		w->n_nodes, w->n_nodes == 1 ? "" : "s", w->gpus_per_node,
		w->n_ranks - w->gpus_per_node);
	print_cost(w, to);
	if (c->n_channels != DECISIONS_NOT_KNOWN)
		fprintf(to, "  channels: %d, NVLS %d, sends and receives %d, %d a peer\n",
			c->n_channels, c->n_nvls_channels, c->n_p2p_channels,
			c->n_p2p_channels_per_peer);
	for (uint32_t g = 0; g < N_DECISIONS_GRAPHS; g++)
		if (c->graphs[g].n_channels)
			print_graph(&c->graphs[g], g, to);
	for (uint32_t k = 0; k < N_COSTED; k++)
		if (c->ops[k].n)
			print_op(&c->ops[k], word(KIND_WORDS, k, name, sizeof(name)), to);
}

void oracle_page_tail(const char *path, const struct oracle_world *last, FILE *to)
{
	fprintf(to,
		"\nwritten to %s; to use it, with the preset of this kind of machine (nbox topo --list) for NAME:\n"
		"  nbox perf allreduce --preset NAME --nodes %u --gpus-per-node %u --model nccl:decisions=%s\n",
		path, last->n_nodes, last->gpus_per_node, path);
}
