/* From the options of a command to its whole configuration, and to what can be asked. */
#pragma once

#include "nbox/ask/ask.h"

/* Adds variables and the file, and finishes. @file: of --config; NULL: NBOX_CONFIG's, or none.
 * Return: 0; negative errno with the sentence. */
int configure(struct config *c, const char *file, struct err *err);
/* The same, and the model. */
int ask_configure(struct config *c, const char *file, struct ask **ret, struct err *err);
/* The world is @n_gpus ranks, all of them real, on --nodes nodes, or else 8 on each. Before
 * configure(). Return: 0; -EINVAL with the sentence; -ENOMEM. */
int configure_world(struct config *c, uint32_t n_gpus, struct err *err);
