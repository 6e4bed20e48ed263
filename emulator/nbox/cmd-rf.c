/* nbox rf: reuse factors of look-ups in tables of embeddings. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "shard/indices.h"

#define FILE_BYTES_MAX (1u << 30)

static int usage(void)
{
	fputs("usage: nbox rf --indices FILE\n\n"
	      "How often rows of tables of embeddings are looked up within a batch: for each batch and table the shares of the\n"
	      "rows that are touched up to 1, 2, 4, ..., 2^15 times and more often (17 bins), and the share of look-ups that\n"
	      "find a row that was looked up before. The columns rf1 to rf17 are those of nbox shard --tables.\n\n",
	      stdout);
	option_help(COMMAND_RF, 17, stdout);
	return 0;
}

/* Look-ups that are not the first of their row. */
static double again(const struct reuse *r)
{
	return r->n_lookups ? 1 - (double)r->n_rows / (double)r->n_lookups : 0;
}

static void print(const struct reuse_of_table *list, uint32_t n, FILE *to)
{
	fputs("batch,table,lookups,rows,again", to);
	for (int b = 1; b <= REUSE_BINS; b++)
		fprintf(to, ",rf%d", b);
	fputc('\n', to);
	for (uint32_t i = 0; i < n; i++) {
		const struct reuse *r = &list[i].reuse;

		fprintf(to, "%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%.6g", list[i].batch,
			list[i].table, r->n_lookups, r->n_rows, again(r));
		for (int b = 0; b < REUSE_BINS; b++)
			fprintf(to, ",%.6g", r->shares[b]);
		fputc('\n', to);
	}
}

static json_t *reuse_json(const struct reuse_of_table *list, uint32_t n)
{
	json_t *doc = json_array();

	for (uint32_t i = 0; i < n; i++) {
		const struct reuse *u = &list[i].reuse;
		json_t *shares = json_array();

		for (int b = 0; b < REUSE_BINS; b++)
			json_array_append_new(shares, json_real(u->shares[b]));
		json_array_append_new(doc,
				      json_pack("{s:i, s:i, s:I, s:I, s:f, s:o}", "batch",
						(int)list[i].batch, "table", (int)list[i].table,
						"lookups", (json_int_t)u->n_lookups, "rows",
						(json_int_t)u->n_rows, "again", again(u), "shares",
						shares));
	}
	return doc;
}

static int take_words(int argc, char **argv, const char **ret_file, const char **ret_json,
		      struct err *err)
{
	struct option_word w;
	int r = 0;

	for (int i = 1; r == 0 && i < argc;) {
		r = option_take(COMMAND_RF, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(err, EINVAL, "'%s': what is it? Indices come by --indices",
				       argv[i]);
		if (r == 0 && w.id == FLAG_HELP)
			return 1;
		if (r == 0)
			*(w.id == FLAG_RF_JSON ? ret_json : ret_file) = w.value;
	}
	return r < 0 || *ret_file ? r : err_set(err, EINVAL, "needs --indices FILE");
}

int cmd_rf(int argc, char **argv)
{
	CLEANUP(freep) struct reuse_of_table *list = NULL;
	const char *file = NULL, *json = NULL;
	struct err err = {""};
	uint32_t n = 0;
	int r = take_words(argc, argv, &file, &json, &err), code = 2;
	CLEANUP(freep) char *text = NULL;
	size_t len;

	if (r == 1)
		return usage();
	if (r == 0)
		r = file_read(file, FILE_BYTES_MAX, &text, &len, &err);
	if (r == 0)
		r = indices_read(file, text, &list, &n, &err);
	if (r == 0 && (!json || strcmp(json, "-") != 0))
		print(list, n, stdout);
	if (r == 0 && json) {
		code = 1;
		r = json_file_write(reuse_json(list, n), json, &err);
	}
	if (r < 0)
		fprintf(stderr, "nbox rf: %s\n", err.text);
	return r < 0 ? code : 0;
}
