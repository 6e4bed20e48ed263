/* The checks before anything is started or made. */
#pragma once

#include "nbox/run/run.h"

/* Reads file and environment, checks everything, finds nbox's parts and loads the
 * model once to see that it is right. Return: 0 or negative errno with the sentence. */
int run_prepare(struct run *run, struct err *err);
