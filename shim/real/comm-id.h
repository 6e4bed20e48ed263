/* NCCL_COMM_ID: to the job it means all ranks of the virtual world, at an address that may be
 * another node's. The real communicators have ids of their own. So the real library must not see
 * the variable while it makes them. */
#pragma once

#include <stddef.h>

/* Its value; NULL: not set. */
const char *comm_id_get(void);
/* Around calls of the real library that make ids and communicators. Any thread. In between the
 * job's own getenv() does not find the variable. */
void comm_id_hide(void);
void comm_id_show(void);
/* In the child of a fork. Async-signal-safe. */
void comm_id_in_child(void);
