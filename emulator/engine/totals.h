/* What the rows of a record sum up to, also while they come: of all real ranks. */
#pragma once

#include <stdio.h>

#include "engine/record-rows.h"
#include "schedule/coll.h"

#define TOTALS_BUCKETS 8 /* of lateness: up to 1 us, 10 us, ... 1 s, 10 s */

struct totals {
	struct totals_kind {
		uint64_t n, bytes;
		double modelled_ns, injected_ns, shared_ns, queued_ns;
	} kinds[COLL_KINDS];
	uint64_t n_gates, n_late[TOTALS_BUCKETS]; /* that were at most so late */
	double late_ns;
	double exposed_ns; /* what computation waited for communication */
	uint64_t n_debts;
	double debt_ns;
};

void totals_op(struct totals *t, const struct record_op *op);
void totals_point(struct totals *t, const struct record_point *point);
void totals_debt(struct totals *t, double ns);
/* As metrics (base/metric.h), named nbox_...; times in seconds. First the cluster's. @model: plain
 * (base/plain.h). */
void totals_print_cluster(const char *model, uint32_t world_size, uint32_t n_real, uint32_t n_nodes,
			  FILE *to);
void totals_print(const struct totals *t, FILE *to);
