/* A run whose command is a launcher. The command and nbox's options both speak of the cluster:
 * their words are compared and completed. Then the command is made one for this machine. */
#pragma once

#include "nbox/run/run.h"

/* Reads the command; fills in nodes, gpus-per-node and as-node that only it says. Before
 * config_finish(). Return: 0; -EINVAL a contradiction, with the sentence; -ENOMEM. */
int run_launcher_read(struct run *run, struct err *err);
/* Checks against the finished configuration and makes run->local_command. */
int run_launcher_finish(struct run *run, struct err *err);
/* Makes the launcher's own variables in this process's environment those of one machine. Return: 0;
 * -ENOMEM. */
int run_launcher_env(const struct run *run);

/* A TCP port that is free on loopback now. */
int run_free_port(void);
