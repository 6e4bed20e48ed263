/* How a rank finds the others: ids, the way to the root, the check-in. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <nccl.h>

#include "standins/nccl/boot-io.h"

struct boot_id {
	uint64_t magic;
	struct sockaddr_in addr;
};

ncclResult_t boot_make_id(ncclUniqueId *ret);
/* The id that NCCL_COMM_ID stands for; rank 0 also becomes its root.
 * Return: ncclSuccess; ncclInProgress: the variable is not set. */
ncclResult_t boot_common_id(bool is_root, struct boot_id *ret);
/* Connects to the root of @id; *ret_local: our address on the way there. */
ncclResult_t boot_connect(const struct boot_id *id, const _Atomic bool *abort, int *ret_fd,
			  struct sockaddr_in *ret_local);
/* Checks in and waits for the table of all ranks, the caller's to free(). */
ncclResult_t boot_check_in(int fd, const struct boot_id *id, const struct peer_info *me,
			   const _Atomic bool *abort, struct peer_info **ret_table,
			   uint8_t ret_magic[16]);
void boot_dismiss(const struct boot_id *id);
