/* The windows that the job has registered: memory that ranks put into, and from. Any thread. */
#pragma once

#include "shim/progress/comm.h"

struct window {
	const struct comm *comm;
	ncclWindow_t handle; /* the real library's where @is_real; windows_add() */
	bool is_real, is_symmetric;
	char *base;
	uint64_t bytes;
};

/* Takes a copy of @w, whose handle goes to the job's @place. Where it @is_real the real library
 * sets it, by the end of this thread's group, at the place that is returned, and it is none before
 * windows_end_group(); where that has set none the window is dropped. Else it is one of our own.
 * Return: NULL: no memory. */
ncclWindow_t *windows_add(const struct window *w, ncclWindow_t *place);
void windows_end_group(void);
/* Return: whether @c has such a one. */
bool windows_find(const struct comm *c, ncclWindow_t handle, struct window *ret);
/* The same, and it is none any more. */
bool windows_take(const struct comm *c, ncclWindow_t handle, struct window *ret);
/* Whether @at lies in a symmetric window of @c, and all @bytes from there on. */
bool windows_hold(const struct comm *c, const void *at, uint64_t bytes);
void windows_forget(const struct comm *c); /* all of it */
