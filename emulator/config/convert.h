/* The text of an option as what it is: a count, a time, a choice. A sentence about one begins with
 * the place that it stands at. */
#pragma once

#include "config/config.h"

#define VALUE_WHERE_MAX 256 /* for config_where() */

/* "place: sentence". Return: -EINVAL. */
int value_refuse(const struct config *c, enum option_id id, size_t item, struct err *err,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* A parser of base/units.h has written its sentence into @err: puts the place in front. Return:
 * -EINVAL. */
int value_refuse_text(const struct config *c, enum option_id id, struct err *err);
/* "chunk: " where the place is one of a file, which does not say which option stands there; else
 * "". Return: @buf. */
const char *value_name(const struct config *c, enum option_id id, char *buf, size_t size);
/* The option as what it is. Without a text *ret stays as it is. Return: 0; -EINVAL with the
 * sentence. */
int value_count(const struct config *c, enum option_id id, uint64_t min, uint64_t max,
		uint64_t *ret, struct err *err);
int value_time(const struct config *c, enum option_id id, double max_ns, double *ret_ns,
	       struct err *err);
int value_choice(const struct config *c, enum option_id id, int *ret,
		 struct err *err); /* has a text */
