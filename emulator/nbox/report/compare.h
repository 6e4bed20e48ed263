/* Two runs side by side: what differs in what was asked for, and in what came out. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "nbox/report/report.h"
#include "nbox/report/runs.h"

struct json_t;
struct config;

struct compare_side {
	char dir[256]; /* as printed */
	struct run_info info;
	struct report rep;
	struct config *config; /* owned; the effective one; NULL: not there, or not to be read */
	char *versions;        /* owned; versions.txt; NULL as above */
};

/* @word: a results directory or the name of a run. Return: 0; negative errno with the sentence. */
int compare_load(const char *word, struct compare_side *ret, struct err *err);
void compare_deinit(struct compare_side *s);

/* Do two medians differ by more than the runs vary? They do when the ranges of their quartiles do
 * not meet. The quartiles of a handful of steps say nothing, and nothing is printed of them. */
bool compare_is_beyond_noise(const struct report_stat *a, const struct report_stat *b);

void compare_print(const struct compare_side *a, const struct compare_side *b, FILE *to);
struct json_t *compare_json(const struct compare_side *a,
			    const struct compare_side *b); /* the caller's reference; or NULL */
