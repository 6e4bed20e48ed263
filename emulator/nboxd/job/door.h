/* The door of an nboxd that the workers of a job start (join.h): an abstract socket whose name all
 * of them derive from what their launcher told them. A worker's helper knocks, says which process
 * it comes for, and is told the variables of that worker. nboxd keeps the list of those processes:
 * while one of them lives it does not end, and once one of them has ended nobody new comes in. So a
 * job that begins while the nboxd of one that has died is still there does not get into it. The
 * other end must be of the same user, which both sides check. */
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

/* Binds @name. Return: a listening socket; -EADDRINUSE somebody has it; other negative errno. */
int door_bind(const char *name);
/* Knocks at @name. Return: a connected socket; -ECONNREFUSED nobody is there; -EACCES with the
 * sentence: the one who is there is another user; other negative errno with the sentence. */
int door_connect(const char *name, struct err *err);

/* @text: of DOOR_COME, at most DOOR_TEXT_MAX bytes. Takes @fd. Return: 0; -ENOMEM. */
int door_open(struct door *d, struct loop *loop, int fd, const char *text, size_t n);
void door_close(struct door *d); /* nobody comes in any more; again is allowed */
/* The process @pid has said BYE. */
void door_on_bye(struct door *d, pid_t pid);
/* All workers that came have ended, or are ending. */
bool door_is_deserted(const struct door *d);
/* Instead of door_open(), when nboxd cannot start: tells those who knock, and those who do so soon.
 * Takes @fd. */
void door_refuse(int fd, const char *why);
