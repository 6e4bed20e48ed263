/* The keys of a fabric file that are one value each: what reads them and what writes them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum field_kind { FIELD_TEXT, FIELD_COUNT, FIELD_BANDWIDTH, FIELD_TIME, FIELD_RATIO, FIELD_CHOICE };

/* A member of struct fabric_class, fabric_network or fabric_cable. */
struct field {
	const char *key;
	enum field_kind kind;
	size_t offset;
	const char *const *choices; /* ends with NULL */
	size_t size;                /* of a choice or a text */
};

extern const struct field fields_class[]; /* end with a NULL key, like the others */
extern const struct field fields_network[];
extern const struct field fields_cable[];
extern const struct field fields_fit[];
extern const struct field fields_residual[];

const struct field *field_find(const struct field *fields, const char *key); /* or NULL */
/* Return: 0; -EINVAL with the sentence. */
int field_set(const struct field *field, void *object, const char *text, struct err *err);
bool field_is_given(const struct field *field, const void *object);
void field_write(const struct field *field, const void *object, FILE *to);
void field_write_text(const char *text, FILE *to); /* in quotes */
/* "450GB/s" and "2000ns", as units_bandwidth() and units_time() read them back, bit for bit. */
void field_write_bandwidth(double bytes_per_ns, FILE *to);
void field_write_time(double ns, FILE *to);
