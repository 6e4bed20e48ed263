/* From the options of a command to its whole configuration, and to what can be asked. */
#pragma once

#include "nbox/ask/ask.h"

/* Adds variables and the file, and finishes. @file: of --config; NULL: NBOX_CONFIG's, or none.
 * Return: 0; negative errno with the sentence. */
int configure(struct config *c, const char *file, struct err *err);
/* The same, and the model. */
int ask_configure(struct config *c, const char *file, struct ask **ret, struct err *err);
/* The same of a world of @n_gpus ranks, all of them real, on --nodes nodes, or else as many as
 * --gpus-per-node says, or 8 on each. */
int ask_configure_world(struct config *c, const char *file, uint32_t n_gpus, struct ask **ret,
			struct err *err);
/* The same without what-ifs. */
int ask_configure_plain(struct config *c, const char *file, uint32_t n_gpus, struct ask **ret,
			struct err *err);
