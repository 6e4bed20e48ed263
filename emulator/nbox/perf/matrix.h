/* nbox perf alltoall --matrix: an all-to-all whose ranks do not send alike. */
#pragma once

/* @argv: without --live. Return: an exit code. */
int perf_matrix(int argc, char **argv);
