/* The calls of a group of sends and receives in a communicator of another size: whom they go to. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/record.h"
#include "replay/world.h"

/* How the peers of a group's calls follow from the rank that calls. */
enum calls_shape {
	CALLS_ALL,      /* all of the communicator: an all-to-all, one rank to all, all to one */
	CALLS_LAYOUT,   /* its coordinates in the layout, but for axes whose sizes stay */
	CALLS_DISTANCE, /* so many ranks away, around the end */
	CALLS_SHAPES
};

/* Calls of a rank, in a communicator of some world. */
struct calls {
	const struct record_call *list; /* borrowed, as all here */
	uint32_t n;
	uint32_t rank; /* that calls, in the communicator */
	const struct membership *map;
	const struct world *world;
};

/* How many of the communicator they go to, and how many they come from: none counts as all. Most:
 * more than half, each once, such as an all-to-all that leaves out ranks of zero bytes. */
enum calls_reach { CALLS_TO_ALL, CALLS_TO_MOST, CALLS_TO_SOME };
/* @ret_sure: to all, and not just to one or two that happen to be all others. Return: -ENOMEM. */
int calls_find_reach(const struct calls *c, enum calls_reach *ret, bool *ret_sure);
/* All have equally many bytes. */
bool calls_are_even(const struct calls *c);
/**
 * calls_make - the same calls elsewhere, with the bytes that they have here
 * @from: if @shape is CALLS_ALL, they go to all, or to most: then those left out come again, too
 * @to: in: rank, map, world; out: list, which is the caller's to free(), and n
 * @same: ranks of the communicator here that are real, and so the same in both, and there, in turn.
 *        In an all-to-all whose sizes differ they keep their own, and those of all come again for
 *        further ranks
 *
 * Return: 0; -EINVAL: a peer has no place there; -ENOMEM.
 */
int calls_make(enum calls_shape shape, const struct calls *from, const uint32_t (*same)[2],
	       uint32_t n_same, struct calls *to);
/* @a and @b are of one communicator: the same peers, in CALLS_ALL in any order. */
bool calls_have_same_peers(enum calls_shape shape, const struct calls *a, const struct calls *b);
