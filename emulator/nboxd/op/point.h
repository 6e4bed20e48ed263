/* Points of real ranks' timelines, as workers tell of them: those of streams and hosts (POINT), and
 * those of ops (ARRIVE). */
#pragma once

#include "nboxd/op/table.h"

/* Rank h->rank is @w's. */
int op_on_point(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
/* @post arrives, as post->arrive says; @deps: of the frame. Return: 0; negative errno with the
 * sentence. */
int point_arrive(struct post *post, const char *deps, struct err *err);
/* Computation takes longer where what-ifs say so. */
struct timeline_what_if;
void point_what_if(const struct ops *ops, struct timeline_what_if *ret);
