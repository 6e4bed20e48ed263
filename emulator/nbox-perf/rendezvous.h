/* How the ranks of a job get the same ncclUniqueId. */
#pragma once

#include <nccl.h>

/* With NCCL_COMM_ID in the environment every rank asks NCCL, which derives it from that address.
 * Else rank 0 makes it and writes it to a file, which the others wait for: @path, or when that is
 * NULL a file in TMPDIR named after MASTER_PORT and the session. Return: 0, or -1 after a line to
 * stderr. */
int rendezvous(int rank, const char *path, ncclUniqueId *ret_id);
/* Removes the file; rank 0 does it as soon as the communicator is there, and at exit. */
void rendezvous_end(void);
