/* A record, row by row, as text or as a JSON object a line: RECORD.md's rows and fields, and
 * nothing made of them. nbox_record.py prints the same. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "engine/record-rows.h"

struct dump {
	bool is_json;
	enum record_kind kind; /* 0: all */
	int64_t world_rank;    /* ops and points of this rank alone; -1: of all */
};

/* The kind that @name says in letters of any case; 0: none. */
enum record_kind dump_kind(const char *name);
extern const char *const dump_kinds[]; /* all names; ends with NULL */

/* The header, communicators, ops, points, the end where there is one; text leaves out
 * numbers of 64 bits that are zero, and empty lists. */
void dump_print(const struct record *rec, const struct dump *what, FILE *to);
