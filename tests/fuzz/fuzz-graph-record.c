/* The graph record that a real rank sends, on any bytes: nothing is read or written outside it, and
 * in one that is accepted every rank that is set stands on the virtual rank's node. */
#include "fuzz.h"

#include "patches/rewrite.h"

/* Two real nodes of 4, and three virtual ones, their ranks in turn. */
#define N_RANKS 20
static const uint32_t node[N_RANKS] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
static const uint32_t template[N_RANKS] = {0,  1,  0,  1,  0,  5,  6,  5,  6,  5,
					   10, 11, 10, 11, 10, 15, 16, 15, 16, 15};

static int32_t at(const uint8_t *record, size_t offset)
{
	int32_t value;

	memcpy(&value, record + offset, sizeof(value));
	return value;
}

/* The first byte: which table; the second: which rank; then the record. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rewrite_places p = {.n_ranks = N_RANKS, .node = node, .template = template};
	char sentence[256];
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);
	const struct record_graph *g;
	uint8_t *record, *given;
	uint32_t rank;

	if (size < 2)
		return 0;
	g = &all[data[0] % n]->graph;
	rank = data[1] % N_RANKS;
	record = calloc(1, g->bytes);
	given = calloc(1, g->bytes);
	REQUIRE(record && given && !rewrite_places_init(&p, sentence, sizeof(sentence)));
	memcpy(record, data + 2, size - 2 < g->bytes ? size - 2 : g->bytes);
	memcpy(given, record, g->bytes);
	if (rewrite_graph(g, &p, rank, record) == 0) {
		int32_t tree = at(given, g->n_channels.at),
			ring = at(given, g->graph_bytes + g->n_channels.at);
		int32_t heads = at(given, g->nvls_head_count.at), low = tree < ring ? tree : ring;

		for (uint32_t i = 0; i < g->bytes; i += 4) {
			int32_t index = (int32_t)((i - g->arrays_at) / 4),
				array = index / g->n_channels_max;
			int32_t was = at(given, i), is = at(record, i);

			if (i < g->arrays_at || array >= RECORD_ARRAYS || template[rank] == rank ||
			    index % g->n_channels_max >=
				    (array == RECORD_NVLS_HEADS ? heads : low)) {
				REQUIRE(is == was);
				continue;
			}
			REQUIRE(was == -1 ||
				(was >= 0 && was < N_RANKS && node[was] == node[template[rank]]));
			REQUIRE(was == -1 ? is == -1
					  : (is >= 0 && is < N_RANKS && node[is] == node[rank] &&
					     (int32_t) template[is] == was));
		}
	}
	rewrite_places_deinit(&p);
	free(record);
	free(given);
	return 0;
}
