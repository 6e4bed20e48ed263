/* The nine reshardings of AlpaComm's Table 2: its cases as the authors' public suite has them, but
 * for 7 and 8, where that is a slip (RRR to RRR, as the paper's text says of 8). Broadcasts are of
 * endless pieces; times are in units of the whole tensor through one NIC. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "mesh/turn.h"

#define TABLE2_CASES 9

struct table2_row {
	const char *tensor, *src, *dst;
	uint32_t tasks;
	double bound, naive, lb, ours;
	bool is_optimal;
	double local_ag, global_ag, sendrecv; /* by Alpa's planner */
	double local_ag_task, sendrecv_task;  /* the longest task of each */
};

/* @number: from 1. Return: 0; -ENOMEM. */
int table2_row(uint32_t number, uint64_t seed, struct table2_row *ret);
/* Text, or JSON. Return: 0; -ENOMEM. */
int table2_print(uint64_t seed, FILE *to);
int table2_json(uint64_t seed, FILE *to);
