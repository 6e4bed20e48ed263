/* What the room shim/plugin stands on, in memory: notes that run when the test says, a link that
 * keeps what is sent, communicators that fail. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/progress/comm.h"
#include "wire/wire.h"

struct sent_frame {
	struct wire_hdr h;
	struct wire_flow flow; /* FLOW */
	const void *body;      /* borrowed, until session_take() */
	uint64_t cookie;
	bool is_lent;
};

void session_reset(enum wire_exchange exchange);
struct comm *fake_comm(uint32_t number, uint32_t rank, uint32_t n_ranks);
/* Runs the notes that were posted. Return: how many. */
size_t notes_run(void);
/* The oldest frame that was sent and not looked at. Return: false: there is none. Any thread. */
bool session_next(struct sent_frame *ret);
/* The link registers memory from now on, at most @locks_most bytes at a time (0: any). */
void session_register(uint64_t locks_most);
size_t session_registered(void); /* how many that were not unregistered */
bool session_lands(void);        /* whether the last body went into registered memory */
const char *session_note(void);  /* the last one for the summary */
void session_lose(void);         /* the link is gone */
/* Why the last communicator failed; "": none has. */
const char *session_failure(void);
/* So many notes were posted. */
size_t notes_posted(void);
