/* A connection to a running nboxd that asks for its state. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

struct link;

struct status_client {
	int state;         /* 0 waits for the welcome, 1 for the status, 2 has it, -1 failed */
	struct link *link; /* owned */
	char *json;        /* owned; the last answer */
	const volatile sig_atomic_t *stop; /* NULL: nothing ends the wait for an answer early */
	bool has_ended;                    /* nboxd has closed the link */
	struct err err;
};

/* Connects and asks. @token: NULL: none. Return: 0; negative errno, with the sentence in @c->err.
 */
int status_open(struct status_client *c, const char *addr, const char *token);
/* Once more. Return: as above; -EPIPE: nboxd has ended; -EINTR: told to stop. */
int status_ask(struct status_client *c);
void status_close(struct status_client *c); /* keeps @c->err */
