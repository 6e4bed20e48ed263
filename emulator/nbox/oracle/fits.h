/* Does the table of records fit this NCCL? A rank's own record of its graphs says what it has
 * logged, or the table's places are wrong, and with them all that was made of it. */
#pragma once

#include "nbox/oracle/log.h"
#include "patches/records.h"

/* @record: of r->bytes. Return: it does; or it has no graph that a log would show. */
bool graph_record_fits(const struct record_graph *r, const uint8_t *record,
		       const struct nccl_log *log);
