/* The post that a frame speaks for. */
#pragma once

#include "nboxd/loop/worker.h"
#include "nboxd/op/live.h"
#include "op/table.h"

/* The live communicator and member that a frame speaks for; NULL: swallow it (the
 * communicator is dead or gone), or the worker was refused. See comm_frame_member(). */
struct comm_member *post_find_member(struct live *live, struct worker *w, const struct wire_hdr *h,
				     struct comm **ret);
/* The post; NULL as above. */
struct post *post_find(struct live *live, struct worker *w, const struct wire_hdr *h);
