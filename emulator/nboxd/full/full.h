/* Full mode (--nccl full): NCCL itself runs at the virtual size in the workers. nboxd makes the ids
 * of its communicators (ids.h), is their bootstrap for all virtual ranks (bootstrap/serve), and is
 * the other end of NCCL's own messages (message.h, traffic/), which go as the ops' times say
 * (release.h). Ops, their times and the record are as with exchange none. In gate mode there is no
 * struct full, and nothing of this room is called but with communicators that have no id. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "traffic/traffic.h"

struct comm;
struct comms;
struct event_base;
struct full;
struct listen;
struct notes;

/* @base, @comms: borrowed. @listen: it has bound its addresses. Return: 0; negative errno with the
 * sentence. */
int full_open(struct event_base *base, const struct listen *listen, struct comms *comms,
	      struct full **ret, struct err *err);
/* All communicators and links are gone. NULL allowed; returns NULL. */
struct full *full_close(struct full *f);
/* @version: of the job's NCCL, "2.28.9"; "": not known. For communicators from now on. */
void full_set_nccl(struct full *f, const char *version);

/* Sends what is due, aborts what has failed. Return: when to call again; UINT64_MAX: not before
 * something comes. */
uint64_t full_advance(struct full *f, uint64_t now_ns);
/* Warnings and bounds of bootstraps that wait. */
void full_tick(struct full *f, uint64_t now_ns);

/* What messages of NCCL's wait for in @c, "" for nothing. Return: @buf. */
char *full_waits(const struct comm *c, char *buf, size_t size);
/* For the status: calls @each with a sentence for what @c waits for. */
void full_describe(const struct comm *c, uint64_t now_ns,
		   void (*each)(void *ctx, const char *sentence), void *ctx);
void full_count(const struct full *f, struct traffic_counts *ret);
/* How many communicators NCCL has at the virtual size. */
uint32_t full_comms(const struct full *f);
/* How many connections real ranks have set up with virtual ones, each direction by itself. */
uint64_t full_transports(const struct full *f);
/* The lines of the summary. */
void full_note(const struct full *f, struct notes *notes);
