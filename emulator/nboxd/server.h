/* nboxd's loop and all that it owns. One thread: libevent wakes it for links,
 * signals and timers, and in between it polls, so that a message never waits for a
 * sleeping process.
 *
 *   server_open() → server_run() → server_close() */
#pragma once

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/spin.h"
#include "config/config.h"
#include "engine/delay.h"
#include "engine/engine.h"
#include "engine/record.h"
#include "links/link.h"
#include "members/members.h"
#include "nboxd/comm/failure.h"
#include "nboxd/job/door.h"
#include "nboxd/job/exited.h"
#include "nboxd/job/notes.h"
#include "nboxd/job/processes.h"
#include "nboxd/op/ops.h"

struct comm;
struct gather;
struct groups;
struct store_hooks;
struct store_server;
struct worker;

#define SERVER_WORKERS_MAX 4096 /* open links */
#define SERVER_GATHERS_MAX 4096
#define SERVER_HELLO_NS (10 * NS_PER_S)
#define SERVER_DRAIN_NS NS_PER_S
#define SERVER_SILENCE_NS (20 * NS_PER_S)

/* An address at which links come in. */
struct listening {
	struct server *server; /* borrowed */
	struct listener *listener;
	struct event *event;
};

struct server {
	const struct config *config; /* borrowed */
	struct cluster cluster;
	struct event_base *base;
	struct listening *listening; /* owned: one for each address */
	size_t n_listening;
	struct event *term_event, *int_event, *timer_event;
	uint32_t n_aborts, n_ends; /* lines in aborts.txt, in ends.txt */
	struct notes notes;
	bool has_command;   /* it was looked at what ran: results_note_command() */
	bool has_addr_file; /* in the results directory: config/addr-file.h */
	struct comms comms;
	struct failures failures;
	struct ops ops;
	struct ended ended;
	struct launched launched;
	struct door door;
	struct store_server *store;            /* NULL: no store is asked for */
	struct groups *groups;                 /* owned; torch's process groups */
	const struct store_hooks *store_hooks; /* borrowed; NULL allowed */

	struct worker *workers; /* list, owned */
	struct worker *turn;    /* who is served first in the next round */
	uint32_t n_workers, n_accepted;
	struct worker **players; /* owned; who plays config->real[i], or NULL */
	struct gather *gathers;  /* list, owned */
	struct gather *failed; /* list, owned; of those that have failed: who comes later is told */
	uint32_t n_gathers, n_failed;

	uint64_t start_ns;
	uint64_t next_due_ns; /* of the engine */
	uint64_t active_ns;   /* when a frame moved last */
	struct spin spin;     /* how long the pauses between frames have been */
	uint64_t tick_ns;     /* next look at what waits */
	uint8_t boot_id[16];
	bool is_stopping;
	uint64_t stop_ns; /* give up draining then */
	int stop_signal;
	bool is_silence_told;
	bool is_once;           /* ends when the last worker has left */
	uint32_t n_workers_max; /* most workers that were welcome at a time */
	uint64_t left_ns;       /* since when none is there; or the start */
};

/* What config_finish() cannot look at: the options of rdma links, the model, the what-ifs. Return:
 * 0; negative errno with the sentence. */
int server_check(const struct config *c, struct err *err);
/* Return: 0; negative errno with the sentence. @ret is the caller's to close. */
int server_open(const struct config *c, struct server **ret, struct err *err);
struct server *server_close(struct server *s);   /* NULL allowed; returns NULL */
const char *server_addr(const struct server *s); /* that of `nbox run`'s workers */
/* The others, each after a space. Return: @buf. */
char *server_more_addrs(const struct server *s, char *buf, size_t size);
/* The network that times come from, in words; "": the model is none. Return: @buf. */
char *server_network(const struct server *s, char *buf, size_t size);
const char *server_store_addr(const struct server *s); /* HOST:PORT; NULL: no store */
/* A libevent callback that does nothing: being awake is all that is wanted. */
void server_on_wake(evutil_socket_t fd, short what, void *server);
void server_stop_listening(struct server *s); /* for workers; again is allowed */
/* server_run() is to end by itself. With a door: when all processes that came in by it have ended
 * and no link is left. Without a door: when the last link has closed; at once where there were as
 * many workers at a time as real ranks, 2 s later where there were fewer. In both cases also when
 * no worker has come within 60 s. */
void server_end_when_left(struct server *s);
/* The links of those who have said BYE, and wait to see theirs closed, stay open until this process
 * ends. */
void server_hold_leaving(struct server *s);
/* Until SIGTERM or SIGINT. Return: 0; negative errno. */
int server_run(struct server *s, struct err *err);
void server_flush_record(struct server *s); /* and says once when it cannot be written */
/* status.c: the answer to WIRE_STATUS; the caller's to free(). NULL: no memory. */
char *status_json(const struct server *s);
