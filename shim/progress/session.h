/* The session with nboxd: one link a process, and a second one for messages towards us (exchange
 * payload over tcp, or bodies in a GPU's memory); HELLO and WELCOME; the two clocks; the loss of
 * the link. It knows no communicators: it hands frames about them to its owner. All of it runs on
 * the progress thread, but where it says otherwise. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "links/link.h"
#include "wire/wire.h"

/* What the owner does with what comes. */
struct session_events {
	/* Checked by wire_body_check(). Return: 0; -EPROTO: no such frame is expected. */
	int (*on_frame)(const struct wire_hdr *h, const void *body);
	/* Of a MESSAGE. NULL: no memory; of NCCL's own (NCCL_FULL): it is discarded. */
	void *(*body_for)(const struct wire_hdr *h);
	void (*on_sent)(uint64_t cookie); /* of link_send() */
	/* Return: whether it is news to anybody. */
	bool (*on_lost)(const char *text);
};

/* Any thread, after progress_start(). */
const struct wire_welcome *session_welcome(void);
/* By world rank (topology/template.h); NULL: there is one class. */
const uint32_t *session_classes(void);

/* NULL: lost. */
struct link *session_link(void);
/* Sends a frame (body copied); nothing once the link is lost. Return: 0 or negative errno. */
int session_send(enum wire_type type, uint32_t comm, uint32_t rank, uint64_t seq, const void *body,
		 size_t bytes);
/* @code: of struct wire_text. */
void session_send_abort(uint32_t comm, uint32_t rank, uint64_t seq, int code, const char *text);
/* nboxd's clock and ours; how wrong they are at most for times near @own_ns. */
uint64_t session_to_daemon(uint64_t own_ns);
uint64_t session_from_daemon(uint64_t daemon_ns);
uint64_t session_clock_error_ns(uint64_t own_ns);

/* Any thread: whether nboxd has ever sent a frame. */
bool session_was_answered(void);

/* --- for progress.c -------------------------------------------------------------- */

/* Before the thread is there: threads in session_wait() stay there ... */
void session_begin(const struct session_events *ev);
/* ... until the session is up, or fails with a negative errno and the sentence. */
void session_fail(int r, const char *text);
/* Any thread. Return: 0 it is up; negative errno with the sentence. */
int session_wait(struct err *err);

/* Connects and says HELLO; a failure goes to session_wait(). */
void session_open(void);
void session_close(void);
/* Moves frames on both links; deals with a lost one: everything that waits for
 * nboxd is told. Return: whether something moved. */
bool session_progress(void);
/* Pings nboxd now and then, where its clock is not ours. Return: when to call again. */
uint64_t session_follow_clock(uint64_t now_ns);
/* What to poll; fd -1 where there is none. Return: false: there is more to do now. */
bool session_arm(struct pollfd fds[2]);
void session_say_bye(int exit_code);
bool session_is_flushed(void); /* nothing is left to send */
/* On the raw line a worker that has said BYE waits until nboxd closes its link; the last one's is
 * closed when the summary is printed. So the summary is there before the job's command ends. A
 * launcher that ends all that its tasks left (srun) then does not end nboxd in the middle of it. */
bool session_is_joined(void);
bool session_is_awaited(void); /* ... and it has not closed it yet */
/* In the child of a fork: the copies of the links' descriptors go, nboxd must see the
 * end of the parent. Async-signal-safe. */
void session_in_child(void);
