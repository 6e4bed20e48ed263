/* Planners of turns (turn.h). */
#pragma once

#include "base/err.h"
#include "mesh/turn.h"

extern const char *const turns_algo_names[TURNS_ALGOS + 1]; /* ends with NULL */

/* Return: 0, *ret is the caller's to turns_deinit(); -ENOMEM; -EINVAL with the sentence: a task
 * that nobody could send or that nobody receives, too many tasks. Every plan has passed
 * turns_check(). */
int turns_make(const struct turns_task *tasks, uint32_t n, enum turns_algo algo,
	       const struct turns_effort *effort, struct turns *ret, struct err *err);
void turns_deinit(struct turns *t);

/* Every task once, its sender one of its own, no host in two tasks at once, times as the tasks say.
 * Return: 0; -EPROTO with the sentence that names task and host. */
int turns_check(const struct turns_task *tasks, uint32_t n, const struct turns *t, struct err *err);
