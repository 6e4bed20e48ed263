/* See decisions.h. */
#include <stdlib.h>
#include <string.h>

#include "decisions.h"

static void put_word(const char *words, uint32_t i, FILE *to)
{
	int len;
	const char *word = words_at(words, i, &len);

	fprintf(to, "%.*s", len, word);
}

/* A line of its own, never an empty one. */
static void put_text(const char *key, const char *text, FILE *to)
{
	fprintf(to, "%s = ", key);
	for (const char *p = text; *p; p++)
		fputc((unsigned char)*p < ' ' ? '_' : *p, to);
	fputs(text[0] ? "\n" : "-\n", to);
}

static void put_channels(const char *key, int32_t n, FILE *to)
{
	if (n == DECISIONS_NOT_KNOWN)
		fprintf(to, "%s = -\n", key);
	else
		fprintf(to, "%s = %d\n", key, n);
}

/* With as few digits as say the same float. */
static void put_float(float v, FILE *to)
{
	char text[32];

	for (int digits = 5; digits <= 9; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, (double)v);
		if (strtof(text, NULL) == v)
			break;
	}
	fputs(text, to);
}

static void put_graph(uint32_t number, const struct decisions_graph *g, FILE *to)
{
	fputs("graph ", to);
	put_word(DECISIONS_GRAPHS, number, to);
	fprintf(to, " = channels %u bw_intra ", g->n_channels);
	put_float(g->bw_intra, to);
	fputs(" bw_inter ", to);
	put_float(g->bw_inter, to);
	fputs(" type_intra ", to);
	put_word(DECISIONS_PATHS, g->type_intra, to);
	fputs(" type_inter ", to);
	put_word(DECISIONS_PATHS, g->type_inter, to);
	fputs(" pattern ", to);
	put_word(DECISIONS_PATTERNS, g->pattern, to);
	fprintf(to, " cross_nic %u same_channels %u\n", g->cross_nic, g->same_channels);
}

static void put_pair(uint32_t algo, uint32_t proto, FILE *to)
{
	put_word(ALGO_WORDS, algo, to);
	fputc('/', to);
	put_word(PROTO_WORDS, proto, to);
}

static void put_point(const struct decisions_point *p, FILE *to)
{
	fprintf(to, "at %llu = ", (unsigned long long)p->bytes);
	put_pair(p->algo, p->proto, to);
	if (p->n_channels == DECISIONS_NOT_KNOWN)
		fputs(" - of", to);
	else
		fprintf(to, " %d of", p->n_channels);
	for (uint32_t a = 0; a < N_ALGOS; a++)
		for (uint32_t q = 0; q < N_PROTOS; q++) {
			if (p->us[a][q] < 0)
				continue;
			fputc(' ', to);
			put_pair(a, q, to);
			fputc(' ', to);
			put_float(p->us[a][q], to);
		}
	fputc('\n', to);
}

static void put_comm(const struct decisions_comm *c, FILE *to)
{
	fprintf(to, "\n[comm]\nranks = %u\nnodes = %u\n", c->n_ranks, c->n_nodes);
	put_channels("channels", c->n_channels, to);
	put_channels("nvls_channels", c->n_nvls_channels, to);
	put_channels("p2p_channels", c->n_p2p_channels, to);
	put_channels("p2p_channels_per_peer", c->n_p2p_channels_per_peer, to);
	for (uint32_t i = 0; i < N_DECISIONS_GRAPHS; i++)
		if (c->graphs[i].n_channels)
			put_graph(i, &c->graphs[i], to);
	for (size_t i = 0; i < c->n_orders; i++) {
		fputs("order ", to);
		put_word(DECISIONS_GRAPHS, c->orders[i].graph, to);
		fprintf(to, " %u =", c->orders[i].channel);
		for (uint32_t k = 0; k < c->orders[i].n; k++)
			fprintf(to, " %u", c->orders[i].ranks[k]);
		fputc('\n', to);
	}
	for (uint32_t kind = 0; kind < N_COSTED; kind++) {
		if (!c->ops[kind].n)
			continue;
		fputs("\n[cost ", to);
		put_word(KIND_WORDS, kind, to);
		fputs("]\n", to);
		for (size_t i = 0; i < c->ops[kind].n; i++)
			put_point(&c->ops[kind].points[i], to);
	}
}

void decisions_write(const struct decisions *d, FILE *to)
{
	fprintf(to,
		"# What stock NCCL decides, by nbox oracle; nbox run --model nccl:decisions=FILE "
		"takes it. Costs in us.\nformat = %d\n",
		DECISIONS_FORMAT);
	put_text("nccl", d->nccl, to);
	put_text("date", d->date, to);
	put_text("gpus", d->gpus, to);
	put_text("made", d->made, to);
	for (size_t i = 0; i < d->n; i++)
		put_comm(&d->comms[i], to);
}

uint32_t decisions_path(int version, uint32_t type)
{
	enum { C2C = 3, P2C = 6, LAST = 11 };

	if (version < 22600 && type >= C2C) /* without c2c and p2c */
		type += type >= P2C - 1 ? 2 : 1;
	else if (version < 22703 && type >= P2C) /* without p2c */
		type++;
	else if (version < 22705 && (type == P2C || type == P2C + 1)) /* pxn before p2c */
		type = P2C + P2C + 1 - type;
	return type < LAST ? type : LAST;
}
