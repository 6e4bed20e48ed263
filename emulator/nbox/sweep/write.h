/* What a sweep says: a table on the terminal, sweep.csv, sweep.json. */
#pragma once

#include "nbox/sweep/beside.h"
#include "nbox/sweep/knee.h"

struct sweep_results {
	const struct sweep *sweep;
	struct point_result *list; /* owned; of each point */
	bool *is_knee;             /* owned */
	size_t x_axis;             /* curve.h */
	const char *x_unit;
	struct knee knee;
	struct beside beside; /* borrowed; empty: none was asked for */
	size_t n_failed;      /* or not there */
	size_t n_unmet;       /* not as --expect says */
};

/* Reads what the points' folders hold. Return: 0; -ENOMEM. */
int sweep_results_read(const struct sweep *s, struct sweep_results *ret);
void sweep_results_deinit(struct sweep_results *r);

/* Parts of tables: the heads and the setting of a point, and what is to be known behind the table.
 */
void sweep_print_heads(const struct sweep_results *r, FILE *to);
void sweep_print_setting(const struct sweep_results *r, size_t point, FILE *to);
void sweep_print_notes(const struct sweep_results *r, FILE *to);
/* What is to be known of the points, each sentence once. */
void sweep_print_warnings(const struct sweep_results *r, FILE *to);
void sweep_csv_heads(const struct sweep_results *r, FILE *to);
void sweep_csv_setting(const struct sweep_results *r, size_t point, FILE *to);

/* What is paid of the longest delay, in words, where the knee is known. Return: @buf. */
char *sweep_paid_text(const struct sweep_results *r, char *buf, size_t size);

void sweep_print(const struct sweep_results *r, FILE *to);
/* sweep.json. @path: "-": standard output. Return: 0; negative errno with the sentence. */
int sweep_write_json(const struct sweep_results *r, const char *path, struct err *err);
/* sweep.json and sweep.csv, into the sweep's folder. Return: as above. */
int sweep_write(const struct sweep_results *r, struct err *err);
