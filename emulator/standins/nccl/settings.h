/* What NCCL_* variables say. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <nccl.h>

struct settings {
	uint64_t chunk_bytes;
	uint32_t n_channels;
	int32_t allreduce_algo; /* enum sched_algo; -1: the schedule's own choice */
	uint32_t shm_disabled;
	uint32_t net_is_ib; /* NCCL_NET=IB: rdma links between hosts, instead of TCP */
};

ncclResult_t settings_read(struct settings *ret);
/* The interface NCCL_SOCKET_IFNAME names; loopback when unset. */
ncclResult_t settings_interface(struct sockaddr_in *ret);
bool settings_has_interface(void);
void settings_host_id(uint8_t ret[16]); /* equal: shared memory works between the two */
