/* Barriers of all ranks: each sends log2 of them messages, the one with mask 1, 2, 4, ... to the
 * rank that far ahead. Those of virtual ranks are sent once all real ranks have begun. */
#pragma once

#include "bootstrap/comm.h"

#define BARRIER_BYTES 4

/* The place of @tag among the barriers' tags; -1: none of them. */
int barrier_number(const struct bootstrap_comm *comm, int32_t tag);
/* A real rank has sent one of its messages, to whomever. @comm may fail. */
void barrier_message(struct bootstrap_comm *comm, struct member *m, int32_t tag);
/* Which ranks the barrier waits for: has @m not begun it though others have? */
bool barrier_waits(const struct bootstrap_comm *comm, const struct member *m, int number);
