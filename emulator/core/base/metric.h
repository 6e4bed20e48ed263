/* Metrics as Prometheus reads them: its text format, version 0.0.4. A family is its head, then its
 * samples, which the caller prints: name, labels, value. */
#pragma once

#include <stdio.h>

#define METRIC_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* @type: "counter", "gauge", "histogram", "summary"; @help: a line without a backslash. */
void metric_head(FILE *to, const char *name, const char *type, const char *help);
/* A family of one sample without labels. */
void metric_one(FILE *to, const char *name, const char *type, const char *help, double value);
/* The value of a label, in quotes. @text: plain (base/plain.h). */
void metric_label(FILE *to, const char *text);
