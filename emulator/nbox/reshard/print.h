/* What nbox reshard plan says. */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "nbox/reshard/question.h"

void answer_print(const struct answer *a, FILE *to);
json_t *answer_json(const struct answer *a); /* NULL: no memory */
/* Chrome's trace form: a lane for each host's NIC. */
void answer_trace(const struct answer *a, FILE *to);
