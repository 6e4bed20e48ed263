/* What a key of torch's process groups means, from its spelling. TCPStore puts "/" in
 * front of a key, each PrefixStore its prefix and "/":
 *
 *   init/                                     workers that connected
 *   /default_pg/0//cuda//0                    unique id of the default group's first
 *                                             communicator on a device
 *   /default_pg/0//cuda//0/nccl_storekey_0    the same with torch 2.15
 *   /default_pg/0//7//cuda//0                 the same of group "7"
 *   /default_pg/0//7//cuda//0:1               id of the pair of group ranks 0 and 1
 *   /default_pg/0//cuda//UniqueNCCLID:2       id of root 2 (scalable init)
 *   /default_pg/0//7//0                       group made by a split: no device
 *   /default_pg/0//cpu//0/13                  gloo address of rank 13
 *   /default_pg/store_based_barrier_key:0     check-ins; and ...:last_worker
 *
 * In front of default_pg there may be more (torch 2.4: /worker/attempt_0). A job that brings
 * a store of its own to init_process_group has its prefix there, or nothing: /mine/0//cuda//0,
 * /0//7//cuda//0. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nboxd/store/protocol.h"

enum torch_key_kind {
	TORCH_OTHER,        /* of what follows only the group is set, if it is below one's prefix */
	TORCH_WORKERS,      /* init/ */
	TORCH_ID,           /* rank: which communicator of the group, counted from 0 */
	TORCH_ID_PAIR,      /* rank, other: group ranks, rank < other */
	TORCH_ID_ROOT,      /* rank: number of the root */
	TORCH_GLOO,         /* rank: group rank whose address it is */
	TORCH_BARRIER,      /* counter of a store barrier */
	TORCH_BARRIER_LAST, /* set by the last client that checks in */
	TORCH_KEY_KINDS
};

struct torch_key {
	enum torch_key_kind kind;
	bool is_default;           /* the default group: group rank = world rank */
	bool is_local;             /* barrier of the group's members, not of the world */
	struct store_bytes group;  /* its name; borrowed from the key */
	struct store_bytes device; /* "cuda"; empty: none */
	uint32_t rank, other;
};

struct torch_key torch_key_parse(struct store_bytes key);
