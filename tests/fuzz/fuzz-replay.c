/* Records that the reader accepts, played again: in a world of their size, in one of twice as many
 * nodes with counts that are declared, and in that with counts fitted to the record and to itself
 * in another world. A replay or a sentence. */
#include "fuzz.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <zstd.h>

#include "base/file.h"
#include "engine/record-read.h"
#include "replay/replay.h"

/* The plug-ins of this build: beside tests/ in the build folder. */
static const char *models_dir(void)
{
	static char dir[PATH_MAX - 16];
	char ring[PATH_MAX];

	if (dir[0] || file_own_folder(dir, sizeof(dir) - 32) < 0)
		return dir;
	strcat(dir, "/../../delaymodels");
	/* stays: libFuzzer counts in it */
	snprintf(ring, sizeof(ring), "%s/ring.so", dir);
	dlopen(ring, RTLD_NOW | RTLD_NODELETE);
	return dir;
}

static int set(struct config *c, enum option_id id, uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	return config_set(c, id, SOURCE_FLAG, text);
}

/* The ranks of @c's world that do what the record's real ranks did; those that are nowhere: none.
 */
static int set_real(struct config *c, const struct record *r)
{
	bool is_real[128] = {false};
	char text[512] = "";
	struct world from, to;
	struct err err = {""};
	size_t used = 0;

	if (world_of_record(&r->header, &from, &err) < 0)
		return -EINVAL;
	world_of_config(c, &to);
	if (world_check(&from, &to, &err) < 0)
		return -EINVAL;
	for (uint64_t i = 0; i < r->n_comms; i++)
		for (uint32_t k = 0; k < r->comms[i].n_real; k++) {
			int64_t rank = world_rank(&from, &to, r->comms[i].real[k].world_rank);

			if (rank >= 0)
				is_real[rank] = true;
		}
	for (uint32_t i = 0; i < to.size; i++)
		if (is_real[i])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u",
						 used ? "," : "", i);
	return used ? config_set(c, CONFIG_REAL, SOURCE_FLAG, text) : 0;
}

static void play(const struct record *r, const struct config *c, const struct sizes *sizes,
		 const struct declared_counts *declared)
{
	const char *dirs[] = {models_dir(), NULL};
	struct rows_graph g;
	struct record out;
	struct replay_told told;
	struct err err = {""};

	if (rows_graph_make(r, &g, &err) < 0)
		return;
	const struct replay in = {
		.graph = &g, .config = c, .dirs = dirs, .sizes = sizes, .declared = declared};

	if (replay_play(&in, &out, &told, &err) == 0) {
		if (out.n_ops > r->n_ops || out.n_points > r->n_points)
			abort();
		record_deinit(&out);
	} else if (!err.text[0]) {
		abort();
	}
	rows_graph_deinit(&g);
}

/* The configuration of @n_nodes nodes; NULL: none. */
static struct config *configure(const struct record *r, uint32_t n_nodes)
{
	struct config *c = NULL;
	struct err err = {""};

	if (config_new(&c) < 0)
		return NULL;
	if (set(c, CONFIG_NODES, n_nodes) < 0 ||
	    set(c, CONFIG_GPUS_PER_NODE, r->header.gpus_per_node) < 0 ||
	    (r->header.layout[0] &&
	     config_set(c, CONFIG_LAYOUT, SOURCE_FILE, r->header.layout) < 0) ||
	    config_set(c, CONFIG_MODEL, SOURCE_FLAG, "ring") < 0)
		return config_free(c);
	c->is_of_run = true; /* the layout follows the nodes */
	if (config_finish(c, &err) < 0 || set_real(c, r) < 0 || config_finish(c, &err) < 0)
		return config_free(c);
	return c;
}

static void play_all(const struct record *r)
{
	struct record other = *r;
	const struct record *const others[] = {&other};
	struct config *same = configure(r, r->header.n_nodes),
		      *twice = configure(r, 2 * r->header.n_nodes);
	struct declared_counts declared;
	struct sizes sizes;
	struct err err = {""};

	memset(declared.law, LAW_TOTAL, sizeof(declared.law));
	if (same)
		play(r, same, NULL, NULL);
	if (twice)
		play(r, twice, NULL, &declared);
	other.header.world_size *= 3;
	other.header.n_nodes *= 3;
	memset(other.header.layout, 0, sizeof(other.header.layout));
	if (twice && sizes_match(r, others, 1, &sizes, &err) == 0) {
		play(r, twice, &sizes, NULL);
		sizes_deinit(&sizes);
	}
	config_free(same);
	config_free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char packed[1 << 17];
	struct record r;
	struct err err = {""};
	size_t n;

	if (size < 4 || memcmp(data, RECORD_MAGIC, 4) != 0) {
		n = ZSTD_compress(packed + RECORD_MAGIC_BYTES, sizeof(packed) - RECORD_MAGIC_BYTES,
				  data, size, 1);
		if (ZSTD_isError(n))
			return 0;
		memcpy(packed, RECORD_MAGIC, RECORD_MAGIC_BYTES);
		data = (const uint8_t *)packed;
		size = n + RECORD_MAGIC_BYTES;
	}
	if (record_parse(data, size, &r, &err))
		return 0;
	if (r.header.world_size <= 64)
		play_all(&r);
	record_deinit(&r);
	return 0;
}
