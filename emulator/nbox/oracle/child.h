/* nbox-oracle, as a process of ours: started, talked to, ended. What it has of NCCL cannot harm
 * nbox: it may crash or hang. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "nbox/oracle/request.h"

struct oracle_child {
	pid_t pid;  /* 0: none */
	int socket; /* lines.h */
	int log;    /* what NCCL logs, in memory */
};

/* @program, @plugin: paths. Return: 0; negative errno with the sentence. */
int oracle_child_start(struct oracle_child *ret, const char *program, const char *plugin,
		       const struct oracle_request *q, struct err *err);
/* Ends it, whatever it does. Return: its wait status; 0 where there is none. */
int oracle_child_end(struct oracle_child *c);
/* What it has logged behind @from, with an end ('\0'). *ret is the caller's, by free().
 * Return: bytes; negative errno. */
ssize_t oracle_child_log(const struct oracle_child *c, off_t from, char **ret);
off_t oracle_child_log_bytes(const struct oracle_child *c);
