/* Sockets as NCCL uses them in its bootstrap: a connection begins with a magic and what it is for,
 * messages are a size and that many bytes, and several directions go on at once. Each function is
 * given until when it may take; what it says of a failure is in wire_error(). A thread's own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "patches/records.h"

/* One direction of an exchange. */
struct wire_op {
	int fd;
	bool is_send;
	uint8_t *bytes;
	size_t n, at;
};

/* All of @ops, at once. Return: 0; -1. */
int wire_exchange(struct wire_op *ops, int n, uint64_t until_ns);
int wire_send(int fd, const void *bytes, size_t n, uint64_t until_ns);
int wire_recv(int fd, void *bytes, size_t n, uint64_t until_ns);
/* With its size in front. */
int wire_send_message(int fd, const void *bytes, int32_t n, uint64_t until_ns);
/* One of exactly @n bytes. */
int wire_recv_message(int fd, void *bytes, int32_t n, uint64_t until_ns);
/* The other side says no more. */
int wire_recv_end(int fd, uint64_t until_ns);

/* Listens at the host of @at, at any port. Return: descriptor; -1. */
int wire_listen(const uint8_t at[NCCL_ADDRESS_BYTES], uint8_t ret_address[NCCL_ADDRESS_BYTES]);
/* Return: descriptor; -1. */
int wire_connect(const uint8_t address[NCCL_ADDRESS_BYTES], uint64_t magic, uint64_t until_ns);
/* Connects, and says nothing. */
int wire_connect_silent(const uint8_t address[NCCL_ADDRESS_BYTES], uint64_t until_ns);
/* The next that says @magic; others are hung up. Return: descriptor; -1. */
int wire_accept(int listen_fd, uint64_t magic, uint64_t until_ns);
void wire_close(int *fd); /* sets it to -1 */

/* While *@flag is set, this thread waits for nothing: as NCCL's abort flag. NULL: none. */
void wire_abort_by(const _Atomic bool *flag);
const char *wire_error(void);
/* Return: -1. */
int wire_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
