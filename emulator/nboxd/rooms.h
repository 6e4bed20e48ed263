/* The rooms of nboxd, together: server.h makes and connects them. */
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
#include "nboxd/op/live.h"

struct full;
struct groups;
struct metrics;
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
	struct metrics *metrics;    /* owned; NULL: none are asked for */
	struct groups *groups;      /* owned */
	struct full *full;          /* owned; NULL: gate mode */
	struct comms comms;
	struct gathers gathers;
	struct failures failures;
	struct live live; /* what it points to is owned here */
	char *job_texts;  /* owned; told.h; NULL: no process has come yet */

	uint64_t start_ns;
	bool has_command;   /* it was looked at what ran: results_note_command() */
	bool has_addr_file; /* in the results directory: config/addr-file.h */
	bool is_silence_told;
	bool is_once;     /* ends when the last worker has left */
	uint64_t left_ns; /* since when none is there; or the start */
};

const char *server_addr(const struct server *s);       /* that of `nbox run`'s workers */
const char *server_store_addr(const struct server *s); /* HOST:PORT; NULL: no store */
