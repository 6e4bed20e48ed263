/* Notes for the progress thread: how any other thread hands it something to do. The thread runs
 * notes in the order in which they were posted. It sleeps in poll() on an eventfd that a post
 * wakes. */
#pragma once

#include <stdbool.h>

struct note {
	struct note *next;
	void (*run)(struct note *n); /* on the progress thread; may free the note */
};

/* --- any thread ---------------------------------------------------------------------- */

enum note_wake { NOTE_WAKE, NOTE_LAZY };
/* Hands a note over. NOTE_LAZY: may wait up to some milliseconds. In the child of a fork: does
 * nothing. After note_close(): runs it at once. */
void note_post(struct note *n, enum note_wake wake);
/* Something was enqueued on a device whose gates are polled: the thread looks soon. */
void note_nudge(void);
/* Is this process the child of a fork after note_open()? It has no progress thread. */
bool note_is_child(void);

/* --- the progress thread and its owner --------------------------------------------------- */

/* Return: 0 or negative errno. */
int note_open(void);
/* Return: whether there were any. */
bool note_run_all(void);
/* The thread is about to sleep; *ret_fd is readable once something was posted. Return: false:
 * something was posted already. */
bool note_arm(int *ret_fd);
/* It has slept. @is_readable: what poll() said of the descriptor. Return: whether a post woke it.
 */
bool note_disarm(bool is_readable);
/* The thread is gone: runs what is left. */
void note_close(void);
/* In the child of a fork. */
void note_in_child(void);
