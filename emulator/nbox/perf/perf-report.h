/* What nbox perf prints: nccl-tests' table with the times of the virtual cluster, made from the
 * record; before it the cluster, behind it how late this machine was and where the results are.
 * Each line that is no row begins with '#', as the remarks of nccl-tests' table do. */
#pragma once

#include <stdio.h>

#include "config/config.h"
#include "engine/record-read.h"
#include "nbox/report/report.h"

/* @network: in words; "": there is none to speak of. */
void perf_print_head(const struct config *c, const char *network, FILE *to);
/* A row for all ops of one size, of the rank that is looked at. @kind: what was asked for: the
 * record of an all-to-all that is made of sends and receives has those. Return: 0; -ENOMEM, and
 * nothing was printed. */
int perf_print_table(const struct record *rec, const struct report *rep, enum coll_kind kind,
		     FILE *to);
/* @dir: the results directory. */
void perf_print_tail(const struct report *rep, const char *dir, FILE *to);
