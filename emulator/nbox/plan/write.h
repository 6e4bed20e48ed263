/* A plan for programs. */
#pragma once

#include <jansson.h>

#include "nbox/plan/plan.h"

json_t *plan_json(const struct plan *p); /* the caller's reference; NULL: no memory */
/* plan.json. @path: "-": standard output. Return: 0; negative errno with the sentence. */
int plan_write_json(const struct plan *p, const char *path, struct err *err);
/* plan.csv. Return: as above. */
int plan_write_csv(const struct plan *p, const char *path, struct err *err);
