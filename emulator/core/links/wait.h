/* Inside links/: a bounded wait for a descriptor, while two ends of a link meet. */
#pragma once

#include <stdint.h>

/* Waits for @events on @fd until @due_ns. Return: 0; -ETIMEDOUT; negative errno. */
int link_wait_fd(int fd, short events, uint64_t due_ns);
