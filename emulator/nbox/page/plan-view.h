/* The curves of a plan's page: points of one plan.json over their nodes. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "nbox/draw/chart.h"

#define PLAN_LINES_MAX 8 /* colours */
#define PLAN_LINE_NAME_MAX 160

enum plan_column {
	PLAN_AT_NODES,
	PLAN_AT_RATE,
	PLAN_AT_RATE_LOW,
	PLAN_AT_RATE_HIGH,
	PLAN_AT_EFFICIENCY,
	PLAN_AT_EXPOSED,
	PLAN_AT_HOUR,
	PLAN_COLUMNS
};

struct plan_line {
	char name[PLAN_LINE_NAME_MAX];
	double *columns[PLAN_COLUMNS]; /* owned by struct plan_view; n each */
	size_t n;
};

struct plan_view {
	json_t *plan, *points; /* borrowed */
	const char *unit, *currency;
	json_t *chosen;           /* borrowed; NULL: none */
	size_t chosen_at;         /* its place */
	double unit_size;         /* rates are shown in so many a second */
	char unit_name[64];       /* "M tokens/s" */
	double goal;              /* rate; NAN: none of it */
	struct plan_line *lines;  /* owned; PLAN_LINES_MAX */
	struct chart_tick *ticks; /* owned; a node count each */
	double *room;             /* owned */
	size_t n, n_lines, n_ticks;
	bool is_wide_rate, is_wide_nodes; /* on a logarithmic axis */
	bool has_band, has_left_out;
};

/* @plan: borrowed. Return: 0; -ENOMEM; -EINVAL with the sentence: that is no plan. */
int plan_view_make(json_t *plan, struct plan_view *ret, struct err *err);
void plan_view_deinit(struct plan_view *v);

/* Members of an object that somebody else may have written: "", NAN: there is none. */
const char *plan_view_text(json_t *o, const char *key);
double plan_view_number(json_t *o, const char *key);
bool plan_view_is_known(json_t *point); /* it has steps */
