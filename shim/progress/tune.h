/* What NCCL is to take for a collective: NCCL's tuner (shim/plugin/tuner.c) asks nboxd, where a
 * decision file says that. */
#pragma once

#include "base/err.h"
#include "wire/wire.h"

/* Any thread but the progress thread: waits for the answer, within NBOX_INIT_TIMEOUT. @m: the
 * question; on success it has the answers. Return: 0; negative errno with the sentence. */
int tune_ask(struct wire_tune *m, struct err *err);

/* --- the progress thread -------------------------------------------------------------- */

void tune_on_answer(const struct wire_tune *m);
/* nboxd is gone, or the process ends: whoever waits, or asks from now on, fails. */
void tune_lost(void);
