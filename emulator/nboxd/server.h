/* nboxd as a whole: owns all its rooms, gives each frame to the room it is for, carries what a room
 * says upwards to the room above, and calls all of them when it is time.
 *
 *   server_open() → server_run() → server_close() */
#pragma once

#include <stddef.h>

#include "nboxd/rooms.h"

/* What config_finish() cannot look at: the options of rdma links, the model, the what-ifs. Return:
 * 0; negative errno with the sentence. */
int server_check(const struct config *c, struct err *err);
/* Return: 0; negative errno with the sentence. */
int server_open(const struct config *c, struct server **ret, struct err *err);
struct server *server_close(struct server *s); /* NULL allowed; returns NULL */
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
