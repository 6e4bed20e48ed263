/* What nbox reshard plan says. */
#pragma once

#include <stdio.h>

#include "nbox/reshard/question.h"

void answer_print(const struct answer *a, FILE *to);
/* Return: 0; -ENOMEM. */
int answer_json(const struct answer *a, FILE *to);
/* Chrome's trace form: a lane for each host's NIC. */
void answer_trace(const struct answer *a, FILE *to);
