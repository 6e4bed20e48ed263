/* What the live view shows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

#define WATCH_TIMES 512 /* are kept: more than a screen is wide */

struct watch {
	double step_ms[WATCH_TIMES]; /* the last ones */
	size_t n_steps_kept;
	uint64_t n_steps;
	double p50_ms, p95_ms;
	double rates[WATCH_TIMES]; /* ops a second between two answers; the last ones */
	size_t n_rates;
	uint64_t n_ops;
	double uptime_s; /* of the last answer; 0: there was none */
};

void watch_add_rate(struct watch *w, double rate);
/* Takes the counts of an answer. Return: 0; -EPROTO with the sentence. */
int watch_take(struct watch *w, const char *json, struct err *err);
/* One line, for a log. */
void watch_print_line(const struct watch *w, const char *json, FILE *to);
/* A screen, lines cut to @columns; @has_blocks: it can show block characters. */
void watch_print(const struct watch *w, const char *json, unsigned columns, unsigned rows,
		 bool has_blocks, FILE *to);
