/* ncclGroupStart/End on virtual communicators. Each thread has a list of its calls since the
 * outermost start; the outermost end carries it out, and makes communicators first. Calls on the
 * real library's own communicators inside a group go into a real group, which the first of them
 * opens. */
#pragma once

#include "shim/data/call.h"
#include "shim/entry/entry.h"
#include "shim/entry/init-run.h"
#include "shim/real/last-error.h"

/* Carries the call out now, or at the end of the group. */
ncclResult_t group_call(const struct call *call);
ncclResult_t group_init(const struct init *init);
/* A call inside this thread's group was wrong: the group's end will say so. */
ncclResult_t group_failed(ncclResult_t result);
#define group_fail(result, ...) group_failed(last_error_set(result, __VA_ARGS__))
/* Before a call on a communicator of the real library. Return: whether it is in a group of that. */
bool group_enter_real(void);
#define FORWARD(fn, args) (group_enter_real(), CALL_REAL(fn, args))
