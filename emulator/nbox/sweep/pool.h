/* Plays the points of a sweep that are not complete, each in a process of its own: a point that
 * fails, however it does, ends no other. */
#pragma once

#include "nbox/sweep/point.h"

/* @n_jobs: at a time. A line of progress, or a bar on a terminal, goes to the standard error.
 * Return: 0, also where points failed; negative errno with the sentence. */
int pool_play(const struct sweep *s, unsigned n_jobs, struct err *err);
