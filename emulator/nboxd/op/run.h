/* Runs: what the engine plays, from the release of their posts to the end. The engine's messages
 * towards real ranks go out here. */
#pragma once

#include "engine/engine.h"
#include "op/table.h"

/* Plays all of @op, a collective, or the point-to-point calls of @ready and their other ends. Posts
 * with all their calls in runs are released. Return: 0; negative errno with the sentence: the
 * communicator is to be aborted. */
int run_start(struct op *op, struct pair_post *ready, struct err *err);
/* Releases the posts of @op, a collective that waits for members, whose ends depend on none of
 * those. Return: 0; negative errno with the sentence. */
int run_release_early(struct op *op, struct err *err);
/* @run's ends have moved. */
void run_on_moved(struct run *run);
/* The engine's sink; each of its ops has a run as its tag. */
extern const struct engine_sink op_sink;
