/* Addresses of sockets as NCCL sends them: NCCL_ADDRESS_BYTES, of which an IPv4 one uses the
 * first 16. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "patches/records.h"

#define ADDRESS_TEXT_MAX 80

/* Return: how long @address is as a socket address; 0: it is neither IPv4 nor IPv6. */
socklen_t address_len(const uint8_t address[NCCL_ADDRESS_BYTES]);
/* Return: 0; -EAFNOSUPPORT. */
int address_set(uint8_t address[NCCL_ADDRESS_BYTES], const struct sockaddr *a);
void address_set_port(uint8_t address[NCCL_ADDRESS_BYTES], uint16_t port);
/* "10.0.0.2:4711" or "[fd00::2]:4711". Return: @buf. */
char *address_text(const uint8_t address[NCCL_ADDRESS_BYTES], char *buf, size_t size);
