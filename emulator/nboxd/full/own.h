/* Inside nboxd/full: what its files work on.
 *
 * bootstrap/ and traffic/ may not be called from their sinks, and no op may end inside the release
 * of another one. So what fails there is only noted, by full_fail(), and full_advance() aborts the
 * communicator in the same round of the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bootstrap/serve/serve.h"
#include "nboxd/comm/comm.h"
#include "nboxd/full/took.h"
#include "traffic/traffic.h"

struct full {
	struct comms *comms;           /* borrowed */
	struct bootstrap_serve *serve; /* owned */
	struct traffic *traffic;       /* owned */
	struct traffic_bodies *bodies; /* owned; NULL: messages have none */
	uint64_t queue_max_bytes;      /* of messages that a worker has not taken */
	struct traffic_body *fill;     /* a reference; what bodies of no meaning are sent from */
	int version;                   /* of the job's NCCL, as NCCL_CODE; 0: not known */
	struct full_comm *list;        /* owned by their communicators: comm->full */
	uint32_t n_failed;             /* of them */
	uint64_t n_transports;         /* of those that are gone */
	uint64_t look_ns;              /* when full_tick() looks again */
	struct took took;              /* what NCCL took for ops */
};

/* A communicator from the moment that its id is made until it is aborted or freed. */
struct full_comm {
	struct full *full;                  /* borrowed */
	struct comm *comm;                  /* borrowed */
	struct bootstrap_comm *bootstrap;   /* ours to end */
	struct traffic_comm *traffic;       /* ours to end */
	const struct nccl_records *records; /* borrowed; as its bootstrap has them */
	uint32_t n_tree_channels;           /* the least of all real ranks' */
	int code;                           /* not 0: it has failed, and @why */
	char why[WIRE_TEXT_MAX];
	/* what its bootstrap waits for, since when, and when that is said next */
	char waits[256];
	uint64_t since_ns, warn_ns;
	struct full_comm *prev, *next;
};

/* Nothing more is done with it; the first reason counts. */
void full_fail(struct full_comm *fc, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
