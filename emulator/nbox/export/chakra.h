/* A run as Chakra execution traces, MLCommons' graphs of what each rank does: for simulators such
 * as ASTRA-sim. Nodes are ops, the computation before them and what a host took; where each begins
 * when the ones before it are over, the graph has the run's virtual times. */
#pragma once

#include "base/err.h"
#include "engine/record-rows.h"

/* A file @prefix.N.et for each real rank N. Return: 0; negative errno, perhaps with the sentence.
 */
int chakra_write(const struct record *rec, const char *prefix, struct err *err);
