/* The classes of a run's ranks (config/classes.h), and whose timeline each has. */
#pragma once

#include <jansson.h>

#include "config/config.h"
#include "nbox/report/report.h"

/* Which ranks were real in which run, where several were played together. */
struct report_origin {
	const char *run; /* borrowed, as all here */
	const struct record *rec;
	const uint32_t *was; /* by real rank of the configuration: which it was in this run */
};

/* Fills @r's classes, where there are several, and warns of those that no real rank of @c is of.
 * @origins: @n; 0: all real ranks are of this run. */
void report_classes_of(struct report *r, const struct config *c,
		       const struct report_origin *origins, size_t n);
/* The same of a live run, where records may have played some of the real ranks (--with). */
void report_classes_of_run(struct report *r, const struct config *c, const struct record *rec);
/* The same from the config.yaml in a run's folder, which the job may have run without `nbox run`.
 * Where that cannot be read nothing is said. */
void report_classes_of_folder(struct report *r, const struct record *rec, const char *dir);
#define REPORT_CLASS_TEXT_MAX 320
/* "2 ranks, 1 real (rank 2 of runs/stage1)". Return: @buf. */
char *report_class_text(const struct report *r, uint32_t class, char *buf, size_t size);
void report_classes_print(const struct report *r, FILE *to);
json_t *report_classes_json(const struct report *r); /* the caller's reference */
/* Fills them from a former summary's. */
void report_classes_recall(struct report *r, const json_t *list);
