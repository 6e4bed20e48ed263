/* What a played job says: how long an iteration takes, who was busy, the critical path. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "nbox/replay/play.h"

struct result_part {
	enum { PART_COMPUTATION, PART_COMMUNICATION, PART_WAIT } of;
	double ns;
	char text[160];
};

struct result_device {
	double busy_ns; /* of all that was played */
	char text[96];
};

struct result {
	bool has_steps; /* else one iteration is all there is */
	uint32_t n_steps;
	double median_ns, mean_ns;
	double was_median_ns, was_mean_ns; /* the same in the record */
	double end_ns;                     /* of all that was played */
	struct result_part *parts;         /* owned; of the median iteration; longest first */
	uint32_t n_parts;
	double of_ns[3];               /* its sum by kind */
	double path_ns;                /* the iteration that the path is of */
	struct result_device *devices; /* owned; busiest first */
	uint32_t n_devices;
	uint32_t n_ops, n_hops, n_by_hops, n_whole;
};

/* Return: 0; -ENOMEM. */
int result_make(const struct job *j, const struct played *p, struct result *ret);
void result_deinit(struct result *r);
void result_print(const struct result *r, FILE *to);
json_t *result_json(const struct result *r); /* NULL: no memory */
/* Chrome's trace events of all that was played: streams, and links with their SENDs. Return: 0;
 * negative errno with the sentence. */
int result_write_trace(const struct job *j, const struct played *p, const char *path,
		       struct err *err);
/* "AllReduce of 128 ranks" */
char *result_op_name(const struct job *j, uint32_t op, char *buf, size_t size);
