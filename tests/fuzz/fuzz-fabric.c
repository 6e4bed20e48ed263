/* The readers of fabrics on any file, whichever of the formats it is: an error names the file, and
 * a fabric that they take has paths, a view and a bound, and reads the same after it was written.
 */
#include "fuzz.h"

#include "fabric/read/open.h"
#include "fabric/read/write.h"

static void use(const struct fabric *f)
{
	uint32_t world = f->n_nodes * f->gpus_per_node;
	struct membership m = {.n_ranks = world < 64 ? world : 64, .stride = 1};
	uint64_t links[FABRIC_PATH_MAX];
	struct fabric_view v;
	char text[128];
	int n;

	for (uint32_t i = 0; i < m.n_ranks; i++) {
		n = fabric_path(f, i, world - 1 - i, i, links);
		REQUIRE(n >= 0 && n <= FABRIC_PATH_MAX);
		for (int k = 0; k < n; k++) {
			struct fabric_link l;

			fabric_link(f, links[k], &l);
			REQUIRE(l.bytes_per_ns > 0 && l.latency_ns >= 0);
		}
	}
	REQUIRE(fabric_view(f, &m, &v) == 0 && v.n_domains > 0);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		REQUIRE(fabric_bound(f, (enum coll_kind)kind, 1 << 20, 0, &m, text, sizeof(text)) >=
			0);
}

static void round_trip(const struct fabric *f)
{
	struct fabric *again = NULL;
	struct err err = {""};
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	REQUIRE(to);
	fabric_write(f, to);
	fclose(to);
	REQUIRE(fabric_parse("again", text, n, f->n_nodes, f->gpus_per_node, &again, &err) == 0);
	REQUIRE(again->n_nodes == f->n_nodes && again->n_changes == f->n_changes);
	fabric_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric *f = NULL;
	struct err err = {""};
	int r = fabric_parse("file", (const char *)data, size, 0, 0, &f, &err);

	if (r < 0) {
		REQUIRE(!f && strncmp(err.text, "file:", 5) == 0);
		return 0;
	}
	use(f);
	round_trip(f);
	fabric_free(f);
	return 0;
}
