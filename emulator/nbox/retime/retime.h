/* A run that was recorded, and what it would have been on other clusters: what nbox retime, sweep
 * and plan stand on. */
#pragma once

#include "config/config.h"
#include "nbox/report/load.h"
#include "replay/counts.h"
#include "replay/replay.h"
#include "replay/worlds.h"

/* Loaded once. Several processes may play it at the same time, each forked from the one that loaded
 * it. */
struct recorded {
	struct loaded_run run;
	struct loaded_run *others; /* owned; of the same job, with other real ranks or nodes */
	size_t n_others;
	struct worlds worlds;            /* the run's first */
	struct declared_counts declared; /* the caller's to fill */
	struct rows_graph graph;
	char models[PATH_MAX];
};

/* @n runs of one job (replay/worlds.h); those of the first one's world are played. The first one's
 * options count. @words: as run_load() has them. Return: 0; negative errno with the
 * sentence.
 */
int recorded_load_all(const char *const *words, size_t n, struct recorded *ret, struct err *err);
void recorded_deinit(struct recorded *r);
/* The run's own options, where @ret takes flags in their place before recorded_finish(). Return: as
 * above. */
int recorded_config(const struct recorded *r, struct config **ret, struct err *err);
/* config_finish(). With a layout, the real ranks become those that compute in the new world what
 * they did. Return: as above. */
int recorded_finish(const struct recorded *r, struct config *c, struct err *err);
/* Whether the models and what-ifs of @c, finished, are such. Return: as above. */
int recorded_check_models(const struct recorded *r, const struct config *c, struct err *err);

/* Refuses options that a record does not depend on, and that would be without effect. Return: 0;
 * -EINVAL with the sentence. */
int retime_check(const struct config *c, struct err *err);

/* Refuses options that a record does not depend on, and that would be without effect. Return: 0;
 * -EINVAL with the sentence. */
int retime_check(const struct config *c, struct err *err);

struct retimed {
	struct record rec; /* its lists lie in the run's */
	struct replay_told told;
	struct report report; /* what the summary says */
};

/* @c: finished. Return: 0; negative errno with the sentence. */
int retime(const struct recorded *r, const struct config *c, struct retimed *ret, struct err *err);
/* The same with the model's times so many times as long; @scale NULL: as it says. */
int retime_scaled(const struct recorded *r, const struct config *c, const struct delay_scale *scale,
		  struct retimed *ret, struct err *err);
void retimed_deinit(struct retimed *r);
/* The results directory @dir of it, as a run leaves one; without the record unless @has_record.
 * @argv: the command line, to be seen again. Return: 0; negative errno with the sentence. */
int retimed_write(const struct retimed *r, const struct config *c, const char *dir, bool has_record,
		  int argc, char *const argv[], struct err *err);
