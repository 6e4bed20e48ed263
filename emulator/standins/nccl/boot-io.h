/* What ranks and the root of an id send each other, and the sockets for it: every wait has a bound.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standins/nccl/settings.h"

#define BOOT_VERSION 1
#define BOOT_ADDR_MAX 112

/* What each rank tells the others about itself. */
struct peer_info {
	uint8_t host_id[16];
	uint32_t rank, n_ranks;
	uint32_t pid, device;
	struct settings settings;
	char host[64];
	char unix_addr[BOOT_ADDR_MAX], tcp_addr[BOOT_ADDR_MAX];
};

enum boot_command { BOOT_CHECK_IN = 1, BOOT_DISMISS };

struct boot_hello {
	uint64_t magic; /* of the id */
	uint32_t version, command;
	struct peer_info info;
};

struct boot_reply {
	uint64_t magic;
	int32_t code; /* ncclResult_t; the table follows ncclSuccess */
	uint32_t n_ranks;
	uint8_t comm_magic[16];
	char text[256];
};

/* Return: 0, or negative errno; -ETIMEDOUT at @until_ns, -ECANCELED with *@abort, which may be
 * NULL. */
int boot_wait_fd(int fd, short events, uint64_t until_ns, const _Atomic bool *abort);
int boot_transfer(int fd, void *buf, size_t len, bool is_write, uint64_t until_ns,
		  const _Atomic bool *abort);
/* Return: 0, or negative errno; -ETIMEDOUT after @timeout_ms. */
int boot_write(int fd, const void *buf, size_t len, int timeout_ms);
int boot_random(void *buf, size_t len);
