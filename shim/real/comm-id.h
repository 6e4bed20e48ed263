/* NCCL_COMM_ID: the job means all ranks of the virtual world by it, and an address that may be
 * another node's. The real communicators have ids of their own, so the real library does not see it
 * while it makes them. */
#pragma once

#include <stddef.h>

/* Its value; NULL: not set. */
const char *comm_id_get(void);
/* Around calls of the real library that make ids and communicators, by any thread. The job's own
 * getenv() does not find the variable in between. */
void comm_id_hide(void);
void comm_id_show(void);
/* In the child of a fork. Async-signal-safe. */
void comm_id_in_child(void);
