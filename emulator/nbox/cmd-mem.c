/* nbox mem: what memory an iteration needs, by layers of a file, and what makes it fit. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/units.h"
#include "buckets/memory.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"

#define GB 1e9
#define MS 1e6

static int usage(void)
{
	fputs("usage: nbox mem FILE [OPTION...]\n\n"
	      "What memory an iteration needs at its peak, as it is, with recomputation, with accumulation of gradients, as dPRO\n"
	      "estimates it. FILE has the layers in the order of the forward pass, a line each:\n\n"
	      "  NAME [xN] backward=2ms [forward=1ms] [params=4MiB] [out=8MiB] [temp=1MiB] [grad=8MiB] [kept=no] [checkpoint=yes]\n\n"
	      "out: of the output, which stays until the backward pass unless kept=no; temp: only while the layer runs; grad: of the\n"
	      "output's gradient, else as out. Recomputation keeps the outputs of checkpoints, else of the tenth of the layers that\n"
	      "take longest.\n\n",
	      stdout);
	option_help(COMMAND_MEM, 23, stdout);
	return 0;
}

struct args {
	const char *file, *json;
	struct memory_asked asked;
};

static int take_batch(const char *text, double *ret, struct err *err)
{
	double batch;
	int r = units_ratio(text, &batch, err);

	if (r == 0 && batch == 0)
		return err_set(err, EINVAL, "of no batch there is nothing to keep");
	*ret = r == 0 ? batch : *ret;
	return r;
}

/* Return: 0; 1: help was given; negative errno with the sentence. */
static int take_words(struct args *a, int argc, char **argv, struct err *err)
{
	struct option_word w;
	uint64_t bytes = 0;
	int r = 0;

	for (int i = 1; i < argc && r == 0;) {
		r = option_take(COMMAND_MEM, argc, argv, &i, &w, err);
		if (r == OPTION_NONE && a->file)
			return err_set(err, EINVAL, "one file at a time: '%s' and '%s'?", a->file,
				       argv[i]);
		if (r < 0)
			return r;
		if (r == OPTION_NONE) {
			a->file = argv[i++];
			r = 0;
			continue;
		}
		if (w.id == FLAG_HELP) {
			usage();
			return 1;
		}
		if (w.id == FLAG_MEM_BATCH)
			r = take_batch(w.value, &a->asked.batch, err);
		else if (w.id == FLAG_MEM_STATE)
			r = units_ratio(w.value, &a->asked.state, err);
		else if (w.id == FLAG_OPTIMIZE_JSON)
			a->json = w.value;
		else {
			r = units_bytes(w.value, &bytes, err);
			a->asked.budget = (double)bytes;
		}
		if (r < 0)
			return err_prefix(err, r, "%s", w.name);
	}
	return a->file ? 0 : err_set(err, EINVAL, "layers of which file? nbox mem --help");
}

static void print_way(const struct memory_way *w, const struct memory_asked *asked, bool is_taken)
{
	char name[64] = "as it is";

	if (w->recomputes && w->parts > 1)
		snprintf(name, sizeof(name), "recomputed, in %u parts", w->parts);
	else if (w->recomputes)
		snprintf(name, sizeof(name), "recomputed");
	else if (w->parts > 1)
		snprintf(name, sizeof(name), "accumulated, %u parts", w->parts);
	printf("%24s  %10.3f  %10.3f%s%s\n", name, w->bytes / GB, w->ns / MS,
	       isinf(asked->budget)        ? ""
	       : w->bytes <= asked->budget ? "  fits"
					   : "  too much",
	       is_taken ? "  <- fastest" : "");
}

static json_t *ways_json(const struct memory_way *ways, size_t n, const struct memory_way *best)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list,
				      json_pack("{sI, sb, sf, sf, sb}", "parts",
						(json_int_t)ways[i].parts, "recomputes",
						(int)ways[i].recomputes, "bytes", ways[i].bytes,
						"compute_ms", ways[i].ns / MS, "is_fastest",
						(int)(best && ways[i].parts == best->parts &&
						      ways[i].recomputes == best->recomputes)));
	return list;
}

static int answer(const struct args *a, const struct layers *l, struct err *err)
{
	struct memory_way ways[7], best;
	size_t n = 0;
	int found = memory_fit(l, &a->asked, &best), r = 0;

	for (uint32_t parts = 1; parts <= 4; parts *= 2)
		for (int recomputes = 0; recomputes <= 1 && r == 0; recomputes++)
			r = memory_way(l, &a->asked, parts, recomputes, &ways[n++]);
	if (r < 0 || found == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	if (found == 0 && best.parts > 4)
		ways[n++] = best;
	if (!a->json || strcmp(a->json, "-") != 0) {
		printf("%24s  %10s  %10s\n", "", "memory, GB", "compute, ms");
		for (size_t i = 0; i < n; i++)
			print_way(&ways[i], &a->asked,
				  found == 0 && !isinf(a->asked.budget) &&
					  ways[i].parts == best.parts &&
					  ways[i].recomputes == best.recomputes);
	}
	if (a->json)
		r = json_file_write(ways_json(ways, n, found == 0 ? &best : NULL), a->json, err);
	if (r == 0 && found == -ENOSPC)
		return err_set(err, ENOSPC, "nothing fits: in %u parts it still needs %.3f GB",
			       best.parts, best.bytes / GB);
	return r;
}

int cmd_mem(int argc, char **argv)
{
	struct args a = {.asked = {.batch = 1, .state = MEMORY_STATE, .budget = INFINITY}};
	CLEANUP(layers_deinit) struct layers layers = {.n = 0};
	struct err err = {""};
	int r = take_words(&a, argc, argv, &err), exit_code = 2;

	if (r == 1)
		return 0;
	if (r == 0)
		r = layers_read(a.file, &layers, &err);
	if (r == 0) {
		exit_code = 1;
		r = answer(&a, &layers, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox mem: %s\n", err.text[0] ? err.text : strerror(-r));
	return r < 0 ? exit_code : 0;
}
