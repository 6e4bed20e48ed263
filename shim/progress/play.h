/* What the progress thread does with one op between arrive and passed: ARRIVE,
 * its rank's side of the schedule, RELEASE, the gate, DONE.
 *
 *   state     until                            then
 *   live      messages all in and end known    open
 *   open      the device passed the gate       DONE is sent, the record is free
 *
 * Links carry dummy bytes: in exchange `payload` sends come from one fill buffer
 * and receives go to one scratch buffer. So that a rank works as hard as a real
 * one, the player then also gets data (unless NBOX_PAYLOAD_WORK=none): it copies
 * and reduces in scratch memory as large as the job's own buffers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shim/progress/comm.h"
#include "shim/progress/op.h"

/* --- any thread ----------------------------------------------------------------------- */

/* Makes a new op ready for its gate. */
void play_prepare(struct op *op, bool is_captured);
/* Enqueues @op's arrival on @s. From then on the op is the device's and the progress thread's.
 * @before: as in struct gate. Return: 0; -EIO with the sentence: the op is still the
 * caller's, but a captured one is kept for good. */
int play_enqueue_arrive(struct op *op, device_stream s, struct gate *before, struct err *err);
/* Of an op that arrives WIRE_ARRIVE_UNDECIDED: what NCCL takes for it; NULL: that is not told. The
 * first word counts, and there must be one before its wait is enqueued. */
void play_decided(struct op *op, const struct wire_took *took);
/* Opens all gates of @c; later ones open at once. The communicator must have its error set. */
void play_kill(struct comm *c);

/* --- the progress thread -------------------------------------------------------------- */

/* A RELEASE or a MESSAGE for an op of @c. */
void play_frame(struct comm *c, const struct wire_hdr *h, const void *body);
/* Where the body of a MESSAGE for an op of @c goes. @c: NULL: unknown. Return: NULL: no memory. */
void *play_body(struct comm *c, const struct wire_hdr *h);
/* The link has sent a body. */
void play_body_sent(uint64_t cookie);

/* Hands queued deliveries to the players. Return: whether there were any. */
bool play_step(void);
/* Opens gates that are due, for devices that do not wait for it. Return: when to
 * come back (own clock; UINT64_MAX: never). */
uint64_t play_open_due(uint64_t now_ns);
/* Something is wrong with @c alone: marks it with @r (see comm_fail()), opens its gates, tells
 * nboxd, prints one line. */
void play_fail(struct comm *c, int r, const char *text);
/* Opens all gates of @c, which has failed. */
void play_open_gates(struct comm *c);
/* How many gates are open and not yet passed. */
uint32_t play_n_open(void);
