/* Goes through a decision file (delaymodels/nccl/decisions.h): where NCCL decides otherwise than
 * nbox's own rules. */
#pragma once

#include <stdio.h>

#include "nbox/ask/ask.h"

/* Before ask_configure(): the model that reads the file @path, and where the user gave no --nodes,
 * as many as its largest communicator has. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int explain_file_configure(struct config *c, const char *path, struct err *err);
/* Asks both about each size of each communicator of the file that has a place in the cluster.
 * Return: 0; negative errno with the sentence. */
int explain_file_print(struct ask *a, const char *path, bool is_json, FILE *to, struct err *err);
