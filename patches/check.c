/* Is a table consistent? */
#include <stdio.h>

#include "records.h"

#define FIELDS_MAX 16

/* The fields of one record. */
struct record {
	const char *name;
	size_t bytes, n;
	struct {
		const char *name;
		size_t at, bytes, want;
	} fields[FIELDS_MAX];
};

static void add_span(struct record *r, const char *name, size_t at, size_t bytes, size_t want)
{
	r->fields[r->n].name = name;
	r->fields[r->n].at = at;
	r->fields[r->n].want = want;
	r->fields[r->n++].bytes = bytes;
}

/* A field of @want bytes; some versions do not have those of ADD_OR_NOT. */
#define ADD(record, of, field, want) \
	add_span(record, #field, (of)->field.at, (of)->field.bytes, want)
#define ADD_OR_NOT(record, of, field, want)           \
	do {                                          \
		if ((of)->field.bytes)                \
			ADD(record, of, field, want); \
	} while (0)

static bool tell(const struct record *r, size_t i, const char *what, const char *other,
		 char *sentence, size_t size)
{
	snprintf(sentence, size, "%s: %s (%zu bytes at %zu) %s %s", r->name, r->fields[i].name,
		 r->fields[i].bytes, r->fields[i].at, what, other);
	return true;
}

static bool is_wrong_record(const struct record *r, char *sentence, size_t size)
{
	for (size_t i = 0; i < r->n; i++) {
		size_t end = r->fields[i].at + r->fields[i].bytes;

		if (r->fields[i].bytes != r->fields[i].want)
			return tell(r, i, "is of another size in", "all other tables", sentence,
				    size);
		if (end > r->bytes)
			return tell(r, i, "ends behind", "the record", sentence, size);
		for (size_t j = 0; j < i; j++)
			if (r->fields[j].at < end &&
			    r->fields[i].at < r->fields[j].at + r->fields[j].bytes)
				return tell(r, i, "lies over", r->fields[j].name, sentence, size);
	}
	return false;
}

static bool is_wrong_first(const struct nccl_records *t, char *sentence, size_t size)
{
	struct record id = {.name = "id", .bytes = NCCL_ID_BYTES};
	struct record in = {.name = "check_in", .bytes = t->check_in.bytes};
	struct record connect = {.name = "connect", .bytes = t->connect_bytes};

	ADD(&id, t, id_magic, 8);
	ADD(&id, t, id_address, NCCL_ADDRESS_BYTES);
	ADD_OR_NOT(&id, t, id_n_ranks, 4);
	ADD(&in, &t->check_in, rank, 4);
	ADD(&in, &t->check_in, n_ranks, 4);
	ADD_OR_NOT(&in, &t->check_in, root, 4);
	ADD_OR_NOT(&in, &t->check_in, n_roots, 4);
	ADD_OR_NOT(&in, &t->check_in, offset, 4);
	ADD(&in, &t->check_in, root_address, NCCL_ADDRESS_BYTES);
	ADD(&in, &t->check_in, ring_address, NCCL_ADDRESS_BYTES);
	ADD_OR_NOT(&connect, t, use_gdr, 4);
	return is_wrong_record(&id, sentence, size) || is_wrong_record(&in, sentence, size) ||
	       is_wrong_record(&connect, sentence, size);
}

static bool is_wrong_peer(const struct record_peer *p, char *sentence, size_t size)
{
	struct record peer = {.name = "peer", .bytes = p->bytes};

	ADD(&peer, p, rank, 4);
	ADD(&peer, p, host_hash, 8);
	ADD(&peer, p, pid_hash, 8);
	ADD(&peer, p, comm, 8);
	ADD(&peer, p, cluster_uuid, 16);
	ADD(&peer, p, clique, 4);
	ADD_OR_NOT(&peer, p, version, 4);
	return is_wrong_record(&peer, sentence, size);
}

static bool is_wrong_graph(const struct record_graph *g, char *sentence, size_t size)
{
	struct record graph = {.name = "graph", .bytes = g->bytes};
	struct record one = {.name = "one graph", .bytes = g->graph_bytes};
	size_t graphs = (size_t)g->n_graphs * g->graph_bytes;
	size_t arrays = (size_t)RECORD_ARRAYS * g->n_channels_max * sizeof(int32_t);

	ADD(&one, g, pattern, 4);
	ADD(&one, g, n_channels, 4);
	ADD(&one, g, same_channels, 4);
	ADD(&one, g, bw_intra, 4);
	ADD(&one, g, bw_inter, 4);
	ADD(&one, g, type_intra, 4);
	ADD(&one, g, type_inter, 4);
	ADD(&one, g, cross_nic, 4);
	add_span(&graph, "graphs", 0, graphs, graphs);
	add_span(&graph, "arrays", g->arrays_at, arrays, arrays);
	ADD(&graph, g, nvls_head_count, 4);
	ADD_OR_NOT(&graph, g, local_ranks, 4);
	return is_wrong_record(&one, sentence, size) || is_wrong_record(&graph, sentence, size);
}

static bool is_wrong_contacts(const struct nccl_records *t, char *sentence, size_t size)
{
	for (size_t i = 0; i < t->n_contacts; i++) {
		struct record contact = {.name = "contact", .bytes = t->contacts[i].bytes};

		ADD_OR_NOT(&contact, &t->contacts[i], peer_address, NCCL_ADDRESS_BYTES);
		if (is_wrong_record(&contact, sentence, size))
			return true;
	}
	return false;
}

static bool is_wrong_split(const struct record_split *s, char *sentence, size_t size)
{
	struct record first = {.name = "split", .bytes = s->bytes}, second = first;

	ADD(&first, s, color, 4);
	ADD(s->n_gathers > 1 ? &second : &first, s, key, 4);
	return is_wrong_record(&first, sentence, size) || is_wrong_record(&second, sentence, size);
}

int nccl_records_check(const struct nccl_records *t, char *sentence, size_t size)
{
	bool is_wrong = is_wrong_first(t, sentence, size) || is_wrong_contacts(t, sentence, size) ||
			is_wrong_peer(&t->peer, sentence, size) ||
			is_wrong_graph(&t->graph, sentence, size) ||
			is_wrong_split(&t->split, sentence, size);

	return is_wrong ? -1 : 0;
}
