/* Real ranks without a process: records of other runs of the job (--with) say what they compute and
 * call, on their own timelines, as `nbox retime` plays them (replay/). One machine so runs, for
 * example, one stage of a pipeline live beside the others. A rank that has a process is never
 * played from a record, nor is one that no record has.
 *
 * The wall clock of the records begins with the first row of a rank that has a process. A
 * communicator without such a rank is made then; any other is the record's of the same members, in
 * the order in which they are made. */
#pragma once

#include "base/err.h"
#include "nboxd/op/live.h"

/* Loads what live->ops.config has of records; without any nothing is done, here and below. The
 * ranks are then among the real ones of live->ops.cluster. Return: 0; negative errno with the
 * sentence. */
int recorded_open(struct live *live, struct err *err);
void recorded_close(struct live *live);
/* A row of a rank with a process is on its timeline. */
void recorded_on_row(struct live *live);
/* struct comm_sink has them. */
void recorded_on_comm(struct comm *c);
void recorded_on_end(struct comm *c);
bool recorded_is_played(const struct comm *c);
/* struct ops_sink: the end of a post without a process is known. */
void recorded_on_released(struct post *post);
/* What happens up to now. Return: when the next does; UINT64_MAX: not known. */
uint64_t recorded_advance(struct live *live, uint64_t now_ns);
/* No rank has a process any more: what the others still do without one. */
void recorded_finish(struct live *live);
/* Ops that wait for calls that no record has: their communicators are aborted. */
void recorded_tick(struct live *live);
