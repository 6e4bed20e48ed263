/* nboxd as a whole: owns all its rooms, gives each frame to the room it is for, carries what a room
 * says upwards to the room above, and calls all of them when it is time.
 *
 *   server_open() → server_run() → server_close() */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "members/members.h"
#include "nboxd/comm/comm.h"
#include "nboxd/comm/failure.h"
#include "nboxd/comm/gather.h"
#include "nboxd/job/door.h"
#include "nboxd/job/exited.h"
#include "nboxd/job/notes.h"
#include "nboxd/job/players.h"
#include "nboxd/job/processes.h"
#include "nboxd/loop/capacity.h"
#include "nboxd/loop/listen.h"
#include "nboxd/loop/loop.h"
#include "nboxd/op/ops.h"

struct groups;
struct store_server;

struct server {
	const struct config *config; /* borrowed */
	struct cluster cluster;
	struct loop loop;
	struct capacity capacity;
	struct listen listen;
	struct players players;
	struct notes notes;
	struct exited exited;
	struct processes processes;
	struct door door;
	struct store_server *store; /* owned; NULL: no store is asked for */
	struct groups *groups;      /* owned */
	struct comms comms;
	struct gathers gathers;
	struct failures failures;
	struct ops ops; /* what it points to is owned here */

	uint64_t start_ns;
	bool has_command;   /* it was looked at what ran: results_note_command() */
	bool has_addr_file; /* in the results directory: config/addr-file.h */
	bool is_silence_told;
	bool is_once;     /* ends when the last worker has left */
	uint64_t left_ns; /* since when none is there; or the start */
};

/* What config_finish() cannot look at: the options of rdma links, the model, the what-ifs. Return:
 * 0; negative errno with the sentence. */
int server_check(const struct config *c, struct err *err);
/* Return: 0; negative errno with the sentence. */
int server_open(const struct config *c, struct server **ret, struct err *err);
struct server *server_close(struct server *s);         /* NULL allowed; returns NULL */
const char *server_addr(const struct server *s);       /* that of `nbox run`'s workers */
const char *server_store_addr(const struct server *s); /* HOST:PORT; NULL: no store */
/* The network that times come from, in words; "": the model is none. Return: @buf. */
char *server_network(const struct server *s, char *buf, size_t size);
/* server_run() is to end by itself. With a door: when all processes that came in by it have ended
 * and no link is left. Without a door: when the last link has closed; at once where there were as
 * many workers at a time as real ranks, 2 s later where there were fewer. In both cases also when
 * no worker has come within 60 s. */
void server_end_when_left(struct server *s);
/* The links of workers that have said BYE, and wait to see them closed, stay open until this
 * process ends. */
void server_hold_leaving(struct server *s);
/* Until SIGTERM or SIGINT, or as server_end_when_left() says. */
void server_run(struct server *s);
