/* The communicators of a run: how many there were of each size, and how their members are known. */
#pragma once

#include <jansson.h>

#include "nbox/report/report.h"

/* Fills @ret's comms. Return: 0; -ENOMEM. */
int report_comms(const struct record *rec, struct report *ret);
/* Warns of members that were guessed, and of a job that believes in a smaller world. */
void report_comms_warn(struct report *r);
void report_comms_print(const struct report *r, FILE *to);
json_t *report_comms_json(const struct report *r); /* the caller's reference */
