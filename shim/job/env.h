/* The variables of this process: read once, at the first NCCL call, so that a preloaded shell or
 * launcher is not touched. shim/README.md lists them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wire.h"

/* NBOX_PAYLOAD_MEMORY; payload-gpu.h */
enum payload_memory { PAYLOAD_AUTO, PAYLOAD_HOST, PAYLOAD_DEVICE };

struct env {
	bool is_virtual;  /* the job is to run in a virtual world: NBOX_ADDR is set, or raw-line.h
			     was to set it */
	const char *addr; /* NBOX_ADDR */
	uint8_t token[WIRE_TOKEN_BYTES];
	int rank;            /* world rank of this process; -1 unknown */
	uint64_t timeout_ns; /* NBOX_INIT_TIMEOUT: longest wait for other members */
	uint64_t connect_ns; /* NBOX_CONNECT_TIMEOUT: longest wait for nboxd's answer, at the start
			      */
	bool payload_work;   /* NBOX_PAYLOAD_WORK is not "none" */
	enum payload_memory payload_memory;
	bool is_full;    /* NBOX_NCCL_MODE is "full": NCCL's variables are set for that */
	bool ask_python; /* NBOX_ASK_PYTHON is not 0; job-ranks.h */
	int error;       /* 0; negative errno: a variable is wrong, and @err says why */
	struct err err;
};

/* Thread-safe; never NULL. Also opens the log. */
const struct env *env_get(void);
