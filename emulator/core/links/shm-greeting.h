/* Inside links/: how the memory of a shm link gets from the side that accepts to the side that
 * connects. The memory is a memfd of fixed size; its descriptor goes over the unix socket with a
 * few words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_HEAD_BYTES 4096 /* counts and sleep flags of both rings; their data follow */

struct shm_greeting {
	uint32_t magic, version; /* WIRE_VERSION */
	uint64_t ring_bytes;     /* of each ring */
};

static inline size_t shm_area_bytes(uint64_t ring_bytes)
{
	return (size_t)(SHM_HEAD_BYTES + 2 * ring_bytes);
}

/* Return: a descriptor, the caller's to close; negative errno. */
int shm_make_memory(uint64_t ring_bytes);
/* Never blocks. Return: 0; negative errno. */
int shm_send_greeting(int fd, int mem, uint64_t ring_bytes);
/* Of a socket that is readable. The version and the memory are still to be looked at. Return: 0,
 * *ret_mem is the caller's to close; -EPROTO: no greeting; -ECONNRESET: it hung up; other negative
 * errno. */
int shm_receive_greeting(int fd, struct shm_greeting *g, int *ret_mem);
/* Return: whether the memory has that size, and is sealed to keep it. */
bool shm_memory_is_sound(int mem, uint64_t ring_bytes);
