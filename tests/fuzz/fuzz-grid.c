/* Lists, ranges and braces of nbox sweep: a line is an option by its first byte, and its value. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "nbox/sweep/grid.h"

#define LINES_MAX 4

static void look_at(const struct grid *g)
{
	char label[GRID_LABEL_MAX];

	REQUIRE(g->n_points > 0 && g->n_points <= GRID_POINTS_MAX);
	for (size_t p = 0; p < g->n_points; p += 1 + g->n_points / 4) {
		struct values words = {.list = NULL};
		struct err err = {""};

		REQUIRE(grid_label(g, p, label)[0]);
		REQUIRE(grid_words(g, p, &words, &err) == 0 && words.n == g->n_terms);
		values_deinit(&words);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum option_id ids[] = {CONFIG_NODES, CONFIG_WHAT_IF, CONFIG_MODEL,
					     CONFIG_INTER, CONFIG_INTER_BANDWIDTH};
	char *text = malloc(size + 1), *save = NULL, *line;
	struct grid g = {.axes = NULL};
	struct err err = {""};
	int r = 0;

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	line = strtok_r(text, "\n", &save);
	for (int i = 0; r == 0 && line && i < LINES_MAX; i++, line = strtok_r(NULL, "\n", &save)) {
		struct option_word w = {.id = ids[(uint8_t)line[0] % ARRAY_SIZE(ids)],
					.value = line + 1};

		snprintf(w.name, sizeof(w.name), "--%s", options[w.id].name);
		r = grid_take(&g, &w, &err);
		REQUIRE(r == 0 || err.text[0]);
	}
	if (r == 0 && g.n_axes)
		look_at(&g);
	grid_deinit(&g);
	free(text);
	return 0;
}
