/* nboxd for a job that nobody started one for:
 *
 *   LD_PRELOAD=libnbox.so NBOX_NODES=64 NBOX_MODEL=ring torchrun --nproc-per-node=8 train.py
 *
 * At its first communicator a worker looks at an address that all workers of the job derive
 * from what their launcher told them. Nobody there: the one who gets a lock (an abstract
 * socket name, gone with its owner) starts nboxd, the others look again. nboxd takes its options
 * from the NBOX_ variables and ends when the last worker has left. */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define AUTOSTART_MS 30000 /* longest time from nobody there to connected */

/* The address of this job's nboxd: "shm:@nbox-auto-UID-HASH". Return: @buf. */
char *autostart_addr(char *buf, size_t size);

/* Nobody listens at @addr. Starts nboxd, or waits a little for the one who does.
 * Return: 0 look again; negative errno with the sentence: nboxd cannot be started. */
int autostart_try(const char *addr, struct err *err);
