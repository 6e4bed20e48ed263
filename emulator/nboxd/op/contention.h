/* Ops that are alive at the same time share the network: the ends that an op has by itself become
 * those that it has beside others, whose ends move with it. */
#pragma once

#include "contention/warp.h"
#include "nboxd/op/table.h"

/**
 * contention_add - @run goes on from @start, the last of its ranks' starts, for @solo_ns if alone
 * @moved: told of each run whose ends moved, with what-ifs
 * @ret: how it does beside others, until the next call
 *
 * Return: 0; negative errno with the sentence.
 */
int contention_add(struct run *run, bool is_plain, double start, double solo_ns,
		   void (*moved)(struct run *run), const struct warp **ret, struct err *err);
/* When that happens beside others which @start and the time after it say of the op by itself, at a
 * rank of an image too: it is as much later as at the members. */
double contention_at(const struct warp *w, double start, double at);
