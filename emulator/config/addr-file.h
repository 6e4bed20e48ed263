/* The file <results>/nboxd.addr says where the nboxd of a run listens and what token it wants.
 * `nbox status` reads it. nboxd writes it when it listens and removes it at its end. Only its owner
 * may read it, since the token is a secret. An nboxd killed by SIGKILL leaves the file behind: a
 * reader finds that out by connecting. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "wire/wire.h"

#define ADDR_FILE_NAME "nboxd.addr"

struct addr_file {
	char addr[256];                   /* shm:..., tcp:..., rdma:... */
	char token[WIRE_TOKEN_BYTES + 1]; /* "": none */
	int pid;
};

/* Makes @dir/nboxd.addr, readable by its owner alone. Return: 0; -EEXIST: one is there already;
 * another negative errno; the sentence is in @err. */
int addr_file_write(const char *dir, const struct addr_file *a, struct err *err);
/* Return: 0; -ENOENT: none is there; another negative errno with the sentence. */
int addr_file_read(const char *dir, struct addr_file *ret, struct err *err);
/* Nothing happens where none is. */
void addr_file_remove(const char *dir);

/* The text of such a file, @size bytes without an end. Return: 0; -EINVAL with the sentence.
 * Fuzzed. */
int addr_file_parse(const char *text, size_t size, struct addr_file *ret, struct err *err);
