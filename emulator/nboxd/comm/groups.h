/* PyTorch's process groups, as far as the keys of the job's store tell of them: which id is
 * of which group, and so who is in the pair of a point-to-point communicator.
 *
 * Keys and ids come from the store server (store-server.h), members from communicators that
 * were made (comm.h). Bounded; on nboxd's loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nboxd/store/server.h"

struct comm;
struct groups;
struct server;
struct wire_hdr;
struct worker;

int groups_new(struct groups **ret);          /* 0 or -ENOMEM */
struct groups *groups_free(struct groups *g); /* NULL allowed; returns NULL */

/* What the store asks and tells; server->groups must be there. */
extern const struct store_hooks groups_hooks;

/* A communicator with an id was made: is it one of a known group, then the group's members
 * are known, if they are sure. */
void groups_on_comm(struct server *s, const struct comm *c);

/* Whether members of groups help to answer for the store: a virtual rank may be below a real one.
 */
bool groups_are_wanted(const struct server *s);
/* GROUP frame: the job's own list of a group that has that name. Return: 0. */
int groups_on_told(struct worker *w, const struct wire_hdr *h, const void *body);

/* The members of the group with this name; NULL: not known. Borrowed until the next frame. */
const struct membership *groups_members(const struct server *s, struct store_bytes name);

/**
 * groups_pair - who is in the communicator of two with this id, when it is one for
 *               point-to-point calls between two ranks of a group with known members
 *
 * Return: 0; GROUPS_NOT_KNOWN.
 */
enum { GROUPS_NOT_KNOWN = 1 };
int groups_pair(struct server *s, const uint8_t id[WIRE_ID_BYTES], uint32_t ret_world[2]);
