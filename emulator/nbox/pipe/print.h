/* The answer of nbox pipe, for people and as JSON. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "nbox/pipe/pipeline.h"

void pipeline_print(const struct pipeline_answer *a, FILE *to);
json_t *
pipeline_json(const struct pipeline_answer *a); /* the caller's reference; NULL: no memory */
/* When each stage computes, by each row. Return: 0; -EINVAL with the sentence: too much for a
 * picture; -ENOMEM. */
int pipeline_draw(const struct pipeline_answer *a, FILE *to, struct err *err);
