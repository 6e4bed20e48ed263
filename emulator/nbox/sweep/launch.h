/* The points of a sweep on other machines that share its folder: a job array of Slurm, or command
 * lines for any launcher. */
#pragma once

#include "nbox/sweep/point.h"

/* @words: of the command line that makes the sweep, from the run on; --point K is added. */

/* A line for each point that is not complete, on the standard output. Return: 0; negative errno
 * with the sentence. */
int launch_commands(const struct sweep *s, const struct values *words, struct err *err);
/* Writes <dir>/sweep.sbatch, and submits it. Return: 0; negative errno with the sentence. */
int launch_slurm(const struct sweep *s, const struct values *words, struct err *err);
