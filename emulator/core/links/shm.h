/* Inside links/: the shm kind of link. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct link;
struct link_events;

/* @fd: connected, non-blocking; the link's on success, else it stays the caller's. */
int shm_link_accept(int fd, const struct link_events *ev, void *owner, struct link **ret,
		    struct err *err);
int shm_link_join(int fd, uint64_t due_ns, const struct link_events *ev, void *owner,
		  struct link **ret, struct err *err);
