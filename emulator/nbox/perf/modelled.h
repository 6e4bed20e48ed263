/* nbox perf without --live: the model is asked for each size, and no process is started. */
#pragma once

/* @argv[1]: the collective. Return: the exit code. */
int perf_modelled(int argc, char **argv);
