/* Links and their other ends: a shim process (worker), or a client that asks for the status. The
 * greeting, the second connection, pings and the end are handled here; all other frames of a worker
 * go up through the sink. Which frame may come when is data: a table of states, each with its
 * successors and its frame handler. Knows nothing of communicators. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "links/link.h"
#include "nboxd/loop/lent.h"
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

struct event;
struct listener;
struct traffic_body;
struct worker;

/* What the owner of the workers does. All but on_status may run inside link_progress(), where no
 * link may be freed. */
struct workers_sink {
	/* A worker is welcome. */
	void (*on_ready)(void *ctx, struct worker *w);
	/* A frame of a worker that is ready, its body checked. BYE is among them. Return: 0. */
	int (*on_frame)(void *ctx, struct worker *w, const struct wire_hdr *h, const void *body);
	/* Where the body of a MESSAGE goes. Return: 0; 1: hold the link, the worker was refused. */
	int (*on_message_header)(void *ctx, struct worker *w, const struct wire_hdr *h,
				 void **ret_body);
	/* The body that was lent with @cookie is the owner's again. NULL-able: none is lent. */
	void (*on_sent)(void *ctx, uint64_t cookie);
	/* A ready worker's link has ended, or @w is about to be freed: it takes part in nothing any
	 * more. May come twice. */
	void (*on_gone)(void *ctx, struct worker *w, const char *why);
	/* The answer to STATUS; the caller's to free(). NULL: no memory. */
	char *(*on_status)(void *ctx);
};

struct workers {
	const struct workers_sink *sink; /* borrowed */
	void *ctx;                       /* borrowed: the sink's */
	const uint8_t *token;            /* borrowed: WIRE_TOKEN_BYTES */
	struct wire_welcome welcome;     /* of what it says to all alike */
	const uint32_t *classes;         /* borrowed; by world rank; NULL: there is one */
	uint8_t clock_id[16];
	struct worker *list; /* owned */
	struct worker *turn; /* served first in the next round */
	uint32_t n, n_accepted;
	uint32_t n_ready_max; /* most workers that were welcome at a time */
	bool has_sent;        /* a message was queued since the owner has looked */
	bool is_stopping;     /* refusals are no warnings */
};

struct worker {
	struct workers *workers; /* borrowed */
	struct link *link;       /* owned */
	struct event *event;     /* owned; NULL before the first sleep */
	short armed_events;
	uint32_t number; /* counted from 0 */
	enum worker_state state;
	uint64_t deadline_ns; /* of HELLO and of draining */
	uint32_t pid;
	char host[64];
	bool is_same_clock;
	bool is_client; /* asks for the status only */
	uint64_t hello_ns;
	uint64_t n_frames;
	uint32_t n_members;          /* open */
	struct lent lent;            /* bodies that its link has */
	struct traffic_body *coming; /* a reference, the sink's: of the MESSAGE that is coming in */
	struct worker *back;         /* BACK connection of this worker, or of which this one is */
	struct worker *prev, *next;
};

struct worker_state_info {
	const char *name;
	unsigned next; /* one bit for each legal successor */
	int (*on_frame)(struct worker *w, const struct wire_hdr *h, const void *body);
};
extern const struct worker_state_info worker_states[WORKER_STATES];

/* Takes the next peer from @from. Return: 0; -EAGAIN; others with the sentence. */
int worker_accept(struct workers *ws, struct listener *from, struct worker **ret, struct err *err);
/* Ends what the worker took part in and frees it. */
void worker_remove(struct worker *w);
/* The only writer of ->state; an illegal step is a programming error. */
void worker_set_state(struct worker *w, enum worker_state to);

/* Moves frames. Return: true when something moved. Never frees. */
bool worker_progress(struct worker *w);
/* Looks now whether the link of @w has ended, and takes in the frames that came before. */
bool worker_has_gone(struct worker *w);
/* Has @w run on this host, in this container? Its pid means something here then. */
bool worker_is_here(const struct worker *w);

/* Every link once, beginning with another one each time. Return: true when something moved. */
bool workers_progress(struct workers *ws);
/* Removes the links that have closed or drained. */
void workers_remove_over(struct workers *ws, uint64_t now_ns);
/* Refuses links that have not said HELLO in time. Return: whether any still may. */
bool workers_tick(struct workers *ws, uint64_t now_ns);
/* Is there a link whose worker has not said BYE? */
bool workers_any_stays(const struct workers *ws);
/* The one that has not said HELLO for longest, but for @but. Return: NULL: there is none. */
struct worker *workers_oldest_silent(struct workers *ws, const void *but);
/* Removes a silent one, with a sentence to it. Not inside link_progress(). */
void worker_oust(struct worker *w);

/* Queues a control frame; a worker that is going is skipped. */
void worker_send(struct worker *w, const struct wire_hdr *h, const void *body);
/* Queues a MESSAGE whose body is borrowed for ever (the fill buffer). */
void worker_send_message(struct worker *w, const struct wire_hdr *h, const void *body);
/* The same with a body that is lent until the sink's on_sent(@cookie), which comes once, at once or
 * later, whatever becomes of the link. @is_offered: by link_send_offer(). @cookie: not 0. */
void worker_send_lent(struct worker *w, const struct wire_hdr *h, const void *body, bool is_offered,
		      uint64_t cookie);
/* Sends ERROR with the sentence, then drains and closes; logged. Return: 0. */
int worker_refuse(struct worker *w, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "worker 3 (pid 123 on host)". Return: @buf. */
char *worker_name(const struct worker *w, char *buf, size_t size);
#define WORKER_NAME_MAX 128
