/* PyTorch's process groups, as far as the keys of the job's store tell of them: which id is of
 * which group, and so which ranks are the pair of a point-to-point communicator. Keys and ids come
 * from the store, members from communicators that were made, or from the job's own lists. Bounded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nboxd/store/serve/peer.h"

struct cluster;
struct comm;
struct groups;
struct worker;

int groups_new(struct cluster *cluster, struct groups **ret); /* 0 or -ENOMEM */
struct groups *groups_free(struct groups *g);                 /* NULL allowed; returns NULL */

/* What the store asks and says; their ctx is the groups. */
extern const struct store_hooks groups_hooks;

/* A communicator with an id was made. If it is one of a known group, the group's members are known
 * now, if they are sure. */
void groups_on_comm(struct groups *g, const struct comm *c);
/* GROUP frame: the job's own list of a group that has that name. Return: 0. */
int groups_on_list(struct groups *g, struct worker *w, const void *body);

/**
 * groups_pair - the members of the communicator of two with this id, when it is one for
 *               point-to-point calls between two ranks of a group with known members
 *
 * Return: 0; GROUPS_NOT_KNOWN.
 */
enum { GROUPS_NOT_KNOWN = 1 };
int groups_pair(struct groups *g, const uint8_t id[WIRE_ID_BYTES], uint32_t ret_world[2]);
