/* One link of nboxd and who is at its other end: a shim process (worker) or a
 * client that asks for the status. What is legal when is data: a table of states,
 * each with its successors and its frame handler. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nboxd/server.h"
#include "wire/wire.h"

enum worker_state {
	WORKER_HELLO,    /* connected, nothing said yet */
	WORKER_READY,    /* a worker that was welcomed */
	WORKER_CLIENT,   /* a client that was welcomed */
	WORKER_BACK,     /* the second connection of a worker, for messages towards it */
	WORKER_LEAVING,  /* said BYE */
	WORKER_DRAINING, /* was told ERROR; what is queued still goes out */
	WORKER_CLOSED,
	WORKER_STATES
};

struct worker {
	struct server *server; /* borrowed */
	struct link *link;     /* owned */
	struct event *event;   /* owned; NULL before the first sleep */
	short armed_events;
	uint32_t number; /* counted from 0 */
	enum worker_state state;
	uint64_t deadline_ns; /* of HELLO and of draining */
	uint32_t pid;
	char host[64];
	bool is_same_clock;
	uint64_t clock_error_ns; /* else: at most so far off is what it thinks of our clock */
	bool is_client;          /* asks for the status only */
	uint64_t hello_ns;
	uint64_t n_frames;
	uint32_t n_members;  /* open */
	struct worker *back; /* BACK connection of this worker, or of which this one is */
	struct worker *prev, *next;
};

struct worker_state_info {
	const char *name;
	unsigned next; /* one bit for each legal successor */
	int (*on_frame)(struct worker *w, const struct wire_hdr *h, const void *body);
};
extern const struct worker_state_info worker_states[WORKER_STATES];

/* Takes the next peer from @from. Return: 0; -EAGAIN; others with the sentence. */
int worker_accept(struct server *s, struct listener *from, struct err *err);
/* Ends what the worker took part in and frees it. */
void worker_remove(struct worker *w);
/* The only writer of ->state; an illegal step is a programming error. */
void worker_set_state(struct worker *w, enum worker_state to);

/* Moves frames. Return: true when something moved. Never frees. */
bool worker_progress(struct worker *w);
/* Looks now whether the link of @w has ended, and takes in the frames that came before. */
bool worker_has_gone(struct worker *w);
/* Who has not said HELLO for longest, but for @but (NULL: nobody). Return: NULL: there is none. */
struct worker *worker_oldest_silent(struct server *s, const struct worker *but);
/* Removes one that is silent, with a word to it. Not inside link_progress(). */
void worker_oust(struct worker *w);
/* Whether worker_remove() is due at @now_ns. */
bool worker_is_over(const struct worker *w, uint64_t now_ns);

/* Queues a control frame; a worker that is going is skipped. */
void worker_send(struct worker *w, const struct wire_hdr *h, const void *body);
/* Queues a MESSAGE whose body is borrowed for ever (the fill buffer). */
void worker_send_message(struct worker *w, const struct wire_hdr *h, const void *body);
/* Sends ERROR with the sentence, then drains and closes; logged. Return: 0. */
int worker_refuse(struct worker *w, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "worker 3 (pid 123 on host)". Return: @buf. */
char *worker_name(const struct worker *w, char *buf, size_t size);
#define WORKER_NAME_MAX 128
