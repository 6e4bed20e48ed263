/* The raw line: a worker for which nobody started nboxd.
 *
 *   LD_PRELOAD=libnbox.so torchrun --nproc-per-node=8 train.py
 *
 * A file (NBOX_CONFIG, else ./nbox.yaml) or NBOX_ variables describe the cluster, or both do. The
 * shim reads no files: before main() it runs the nboxd that lies beside it. That reads them, sees
 * to it that the job has an nboxd (nboxd/job/join.h), and says in variables what this worker must
 * know. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define RAW_LINE_FILE "nbox.yaml"

/* What asks for a virtual cluster: the name of a variable or of a file; NULL: nothing does. */
const char *raw_line_wanted(void);
/* Is NBOX_QUIET 1? */
bool raw_line_is_quiet(void);
/* Sets the variables. @rank, @n_ranks and @local_size as the launcher says them. Blocks, at most 20
 * s. Return: 0; negative errno with the sentence. */
int raw_line_join(uint32_t rank, uint32_t n_ranks, uint32_t local_size, struct err *err);
