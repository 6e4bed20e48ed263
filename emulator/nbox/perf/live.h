/* nbox perf --live: nbox-perf, a benchmark program in the manner of nccl-tests, run as one rank of
 * a virtual world through libnbox.so. */
#pragma once

/* @argv: without --live; @argv[1]: the collective. @typed: as typed, for command.txt. Return: the
 * exit code. */
int perf_live(int argc, char **argv, int n_typed, char **typed);
