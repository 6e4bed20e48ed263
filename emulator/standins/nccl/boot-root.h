/* The root thread of one id. */
#pragma once

#include <stdint.h>

#include <nccl.h>

/* Starts the root thread of an id on a listening socket, which it takes. */
ncclResult_t boot_root_start(int listen_fd, uint64_t magic);
