/* Inside links/: the tcp kind of link. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct link;
struct link_addr;
struct link_events;

/* Connected, non-blocking @fd is consumed on success only. */
int tcp_link_new(int fd, const struct link_events *ev, void *owner, struct link **ret);
int tcp_connect(const struct link_addr *a, uint64_t due_ns, int *ret_fd, struct err *err);
int tcp_listen(const struct link_addr *a, int *ret_fd, struct err *err);
