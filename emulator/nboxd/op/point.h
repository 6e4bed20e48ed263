/* POINT frames: places in streams, and returns to the host, of real ranks' timelines. */
#pragma once

#include "nboxd/loop/worker.h"
#include "nboxd/op/live.h"

/* Those of a frame. @list: of struct wire_dep, need not be aligned. */
void point_deps(const char *list, uint32_t n, struct timeline_dep *ret);
/* Rank h->rank is @w's. */
int op_on_point(struct live *live, struct worker *w, const struct wire_hdr *h, const void *body);
