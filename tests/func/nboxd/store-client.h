/* Clients of nboxd's TCPStore, and nboxd with one, for tests: what a test asks for fails it when it
 * does not come within a time that is far above any answer, also on a busy machine. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../unit/nboxd/store/talk.h"
#include "cmocka-all.h"
#include "fake-worker.h"

/* 4 nodes of 2; @real: "0,1" or "2,3", node 0 or node 1. */
void nboxd_start(struct daemon *d, const char *real);
/* @ended_fd: who tells of processes that have ended. */
void nboxd_start_told(struct daemon *d, const char *real, int ended_fd);

/* Return: a connection to the store of @d, which has said nothing yet; the caller's to close(). */
int store_dial(const struct daemon *d);
/* ... which has said that it is a client. */
int store_client(const struct daemon *d);
/* Sends @r and frees it. */
void store_put(int fd, struct buffer r);
void store_take(int fd, void *ret_bytes, size_t n);
int store_take_u8(int fd);
int64_t store_take_i64(int fd);
/* Return: how many bytes the value has. */
size_t store_take_value(int fd, void *ret_bytes, size_t size);

/* Whether something can be read within @ms. */
bool is_readable(int fd, int ms);
/* The next that is read is the end; after what was answered before. */
bool is_hung_up(int fd);
bool is_cut_off(int fd);
