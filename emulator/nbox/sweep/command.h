/* What the command lines of nbox sweep and nbox plan have in common: a run, points, a folder. */
#pragma once

#include "nbox/sweep/point.h"

struct sweep_command {
	struct sweep sweep;
	struct recorded run; /* of sweep.run */
	struct values with;  /* other runs of the job */
	struct declared_counts declared;
	struct values words; /* what makes the same sweep elsewhere */
	char run_dir[PATH_MAX], dir[PATH_MAX];
	const char *json, *out, *on;
	unsigned n_jobs; /* 0: as many as processors */
	uint64_t point;  /* the one to do */
	bool is_live, has_point;
};

/* Takes the words of @command's line: the run, options of a run, flags. @take: has those that are
 * the command's own. Return: 0; 1: help is asked for; negative errno with the sentence. */
int sweep_command_parse(struct sweep_command *c, enum command command, int argc, char **argv,
			int (*take)(void *ctx, const struct option_word *w, struct err *err),
			void *ctx, struct err *err);
/* An option of a run, or a flag of both commands. Return: 0; negative errno with the sentence. */
int sweep_command_take(struct sweep_command *c, const struct option_word *w, struct err *err);
/* What is missing, or does not go together. Return: 0; -EINVAL with the sentence. */
int sweep_command_check(const struct sweep_command *c, struct err *err);
/* Loads the run, and sees that one point at least is right. Return: 0; negative errno with the
 * sentence. */
int sweep_command_load(struct sweep_command *c, struct err *err);
/* The folder: new, empty, or of the same run. Return: as above. */
int sweep_command_prepare(struct sweep_command *c, int argc, char **argv, struct err *err);
/* All points that are not complete, here, or the lines that play them elsewhere; or the one point.
 * Return: 0, also where some fail; 1: nothing is to be shown yet; as above. */
int sweep_command_play(struct sweep_command *c, struct err *err);
void sweep_command_deinit(struct sweep_command *c);
