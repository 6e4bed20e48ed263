/* Runs: what the engine plays, from the release of their posts to the end. The engine's messages
 * towards real ranks go out here. */
#pragma once

#include "engine/engine.h"
#include "op/table.h"

/* What struct ops_sink says: the engine plays @run. */
int run_play(struct run *run, struct err *err);
/* Its worker gets RELEASE. */
void run_on_released(struct post *post);
/* Gates that are not open yet open later: MOVE. */
void run_on_moved(struct run *run);
/* The engine's sink; each of its ops has a run as its tag. */
extern const struct engine_sink op_sink;
