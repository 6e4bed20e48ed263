/* What is replayed: a run's record in the world and with the models of a configuration, or traces.
 */
#pragma once

#include <jansson.h>

#include "base/options.h"
#include "nbox/replay/costs.h"
#include "nbox/replay/job.h"
#include "nbox/report/report.h"
#include "nbox/retime/retime.h"

/* As the command line has them. */
struct source_words {
	const char *
		*words; /* owned list: RUN, or traces; of a run the others are of the same job */
	size_t n_words;
	struct option_word *options; /* owned list: of the configuration; only a run takes them */
	size_t n_options;
	const char *nic, *algo, *json; /* NULL: not given */
	uint32_t ranks;                /* 0: as many as it has */
	struct declared_counts declared;
};

/* @take: the options that only this command has; NULL: none. Return: 1: this is none. Return: 0; 1:
 * help is wanted; negative errno with the sentence. */
int source_words_take(enum command command, int argc, char **argv,
		      int (*take)(void *ctx, const struct option_word *w, struct err *err),
		      void *ctx, struct source_words *ret, struct err *err);
void source_words_deinit(struct source_words *w);

struct source {
	bool is_run, has_run;
	struct recorded run;
	struct config *config; /* owned; NULL: of traces */
	struct record rec;     /* owned; the run as nbox retime has it */
	struct job job;
	struct costs costs;
	double link_bytes_per_ns; /* of a NIC */
	struct report notes;      /* its warnings: what the user should know of the replay */
};

/* Return: 0; negative errno with the sentence. source_close() in any case. */
int source_open(const struct source_words *from, struct source *ret, struct err *err);
void source_close(struct source *s);
void source_print_notes(const struct source *s, FILE *to);
/* @o: taken over, and what all say of @s added; NULL: no memory. "-": standard output. Return: 0;
 * negative errno with the sentence. */
int source_write_json(const struct source *s, json_t *o, const char *path, struct err *err);
