/* From the options of a command to what can be asked: file, variables, checks, the model. */
#pragma once

#include "nbox/ask/ask.h"

/* @file: of --config; NULL: NBOX_CONFIG's, or none. Return: 0; negative errno with the sentence. */
int ask_configure(struct config *c, const char *file, struct ask **ret, struct err *err);
