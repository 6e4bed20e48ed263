/* The what-ifs `link` and `load`: links of the fabric that are slower than planned, lose packets,
 * are down or carry other jobs' traffic. They are no delays, so no plug-in does them: they act on
 * the links that ops share (contention/overlap.h), behind the back of NCCL's decisions.
 *
 *   link:name=node3.nic2,slower=2       half of its bandwidth, both ways; names as --cable has them
 *   link:rack=1,bandwidth=100Gbps      each cable of leaf 1 runs at that rate
 *   link:node=3,loss=1%                 all NICs of node 3; each lost packet is sent once more
 *   link:rail=2,slower=1.5              NIC 2 of all nodes, and the cables of the rail's leaves
 *   link:rack=1,from=10s,down=2s        the cables up and down of leaf 1, for 2 s
 *   load:link=node3.nic2.out,bandwidth=50Gbps,connections=4
 *                                       another job sends as much, if 4 fair shares are as much
 *
 * Of several on one link each takes its part of what the others leave. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "contention/overlap.h"
#include "fabric/fabric.h"
#include "scenario/step-count.h"
#include "scenario/when.h"

struct link_change {
	const char *text; /* borrowed, as typed */
	uint64_t *links;  /* owned; sorted, each once */
	size_t n_links;
	bool is_load;
	double lost;         /* of each link's bandwidth: 1: it is down */
	double bytes_per_ns; /* of a load; or what each cable has left, 0: by @lost */
	double connections;  /* of a load */
	struct when when;
};

/* For `nbox models`. */
extern const char link_change_help[], link_change_load_help[];

/* Is it "link", "load", or one of them with ":..."? */
bool link_change_is_one(const char *text);
/* @f: NULL: there is none, which is an error. Return: 0; negative errno with the sentence. */
int link_change_parse(const char *text, const struct fabric *f, struct link_change *ret,
		      struct err *err);
void link_changes_free(struct link_change *list, size_t n);
/* Tells @o of each. Its i-th condition is the i-th of the list. Return: 0; -ENOMEM. */
int link_changes_tell(const struct link_change *list, size_t n, const struct fabric *f,
		      struct overlap *o);
/* A step has begun at @at, for the first rank. Return: 0; -ENOMEM. */
int link_changes_step(const struct link_change *list, size_t n, const struct moment *at,
		      struct overlap *o);
