/* The door of an nboxd that the workers of a job start (join.h): an abstract socket. All workers of
 * the job derive its name from the variables that their launcher set. A worker's helper knocks and
 * names the worker's process; nboxd answers with the variables that the worker needs. nboxd keeps a
 * list of those processes. It does not end while one of them lives, and lets no new one in once one
 * has ended: so a new job does not get into the nboxd of a job that has died. Both sides check that
 * the other belongs to the same user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct door_guest;
struct event;
struct loop;

#define DOOR_TEXT_MAX 16383 /* what libnbox.so reads at most */
#define DOOR_MAGIC UINT32_C(0x726f6f64)

struct door_knock { /* one SOCK_SEQPACKET message */
	uint32_t magic;
	int32_t rank;           /* as the launcher counts */
	int32_t pid;            /* of the worker, as its own pid namespace counts */
	uint64_t pid_namespace; /* that one's inode */
};

/* The first byte of the answer; the rest is: */
enum door_answer {
	DOOR_COME = 'c',   /* NAME=VALUE, each ended by a NUL byte */
	DOOR_WAIT = 'w',   /* why, a sentence; knock again */
	DOOR_FAILED = 'f', /* why nboxd cannot start */
};

struct door_worker {
	int32_t rank;
	pid_t pid;
	int pid_fd;              /* owned; -1: the kernel has none */
	struct event *end_event; /* owned; wakes nboxd; NULL allowed */
	bool has_left;           /* it has said BYE: its process is ending */
};

struct door {
	struct loop *loop;           /* borrowed */
	int fd;                      /* owned, while event is there */
	struct event *event;         /* NULL: there is no door */
	struct door_worker *workers; /* owned */
	size_t n_workers;
	struct door_guest *guests;    /* list, owned */
	char text[1 + DOOR_TEXT_MAX]; /* of DOOR_COME */
	size_t n_text;
};

/* Binds @name. Return: a listening socket; -EADDRINUSE another process has it; other negative
 * errno. */
int door_bind(const char *name);
/* Knocks at @name. Return: a connected socket; -ECONNREFUSED no nboxd is there; -EACCES with the
 * sentence: it belongs to another user; other negative errno with the sentence. */
int door_connect(const char *name, struct err *err);

/* @text: of DOOR_COME, at most DOOR_TEXT_MAX bytes. Takes @fd. Return: 0; -ENOMEM. */
int door_open(struct door *d, struct loop *loop, int fd, const char *text, size_t n);
void door_close(struct door *d); /* lets no worker in any more; again is allowed */
/* The process @pid has said BYE. */
void door_on_bye(struct door *d, pid_t pid);
/* All workers that came have ended, or are ending. */
bool door_is_deserted(const struct door *d);
/* Instead of door_open(), when nboxd cannot start: tells all that knock, now or soon, why.
 * Takes @fd. */
void door_refuse(int fd, const char *why);
