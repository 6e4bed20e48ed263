/* Data policies: what a buffer holds after an op (the table is in README.md). The real NCCL among
 * the real members and copies on the device carry them out. Everything is enqueued on one stream,
 * in three phases, because a group of real calls starts nothing before its end: before the real
 * calls, during their group, after it. */
#pragma once

#include "shim/data/call-index.h"

/* @s: the stream that all real work of the group goes to. @x: all calls of the group. Return: 0;
 * negative errno with the sentence; ncclResult_t > 0 when the real library refused. */
int data_before(struct call *call, device_stream s, bool is_captured, struct err *err);
int data_during(struct call *call, const struct call_index *x, device_stream s, struct err *err);
int data_after(struct call *call, device_stream s, struct err *err);
/* After data_before(): will data_during() call the real library? */
bool data_needs_real(const struct call *call);
/* What data_during() leaves to a single real member: what that does with itself. */
int data_during_alone(struct call *call, const struct call_index *x, device_stream s,
		      struct err *err);

/* Scratch on the device. Calls of one group get disjoint parts; data_begin() starts over: groups on
 * one communicator are ordered. */
void data_begin(struct comm *c);
void data_deinit(struct comm *c); /* scratch and the one-rank communicator */
