/* Rows of bench-scale: what one late rank costs. */
#pragma once

#include <stdio.h>

#include "engine/delay.h"

/* Prints a table, and rows to @json (NULL: none) after others. @most: messages to simulate. Return:
 * 0 or 1. */
int late_rank_rows(struct delay_chain *alphabeta, FILE *json, unsigned long long most);
