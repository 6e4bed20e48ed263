/* See groups.h. */
#include "nboxd/comm/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <uthash.h>

#include "base/clock.h"
#include "base/log.h"
#include "nboxd/comm/comm.h"
#include "nboxd/loop/worker.h"
#include "wire/unique-id.h"

#define IDS_MAX 65536
#define GROUPS_MAX 65536

/* A group that has a name in the store. */
struct group {
	struct members members; /* map.n_ranks 0: not known */
	UT_hash_handle hh;
	size_t n_name;
	uint8_t name[];
};

/* An id that a key of the store held. */
struct group_id {
	uint8_t id[WIRE_ID_BYTES];
	enum torch_key_kind kind;
	bool is_default;
	uint32_t rank, other; /* as in struct torch_key */
	struct group *group;  /* borrowed */
	UT_hash_handle hh;
};

struct groups {
	struct cluster *cluster; /* borrowed */
	struct group *by_name;   /* owned */
	struct group_id *by_id;  /* owned */
	uint32_t serial;         /* of the ids that were made here */
};

int groups_new(struct cluster *cluster, struct groups **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->cluster = cluster;
	return 0;
}

struct groups *groups_free(struct groups *g)
{
	struct group_id *id, *next_id;
	struct group *group, *next;

	if (!g)
		return NULL;
	HASH_ITER(hh, g->by_id, id, next_id) {
		HASH_DELETE(hh, g->by_id, id);
		free(id);
	}
	HASH_ITER(hh, g->by_name, group, next) {
		HASH_DELETE(hh, g->by_name, group);
		members_deinit(&group->members);
		free(group);
	}
	free(g);
	return NULL;
}

static struct group *group_find(const struct groups *g, struct store_bytes name)
{
	struct group *group;

	HASH_FIND(hh, g->by_name, name.p, name.n, group);
	return group;
}

/* Finds or makes. NULL: no memory, or too many. */
static struct group *group_get(struct groups *g, struct store_bytes name)
{
	struct group *group = group_find(g, name);

	if (group || HASH_COUNT(g->by_name) >= GROUPS_MAX)
		return group;
	group = calloc(1, sizeof(*group) + name.n);
	if (!group)
		return NULL;
	group->n_name = name.n;
	memcpy(group->name, name.p, name.n);
	HASH_ADD_KEYPTR(hh, g->by_name, group->name, group->n_name, group);
	return group;
}

/* What is not kept for want of memory is only not known. */
static void id_add(struct groups *g, const struct torch_key *k, const uint8_t *id)
{
	struct group *group = group_get(g, k->group);
	struct group_id *known;

	HASH_FIND(hh, g->by_id, id, WIRE_ID_BYTES, known);
	if (known || !group || HASH_COUNT(g->by_id) >= IDS_MAX)
		return;
	known = calloc(1, sizeof(*known));
	if (!known)
		return;
	memcpy(known->id, id, sizeof(known->id));
	known->kind = k->kind;
	known->is_default = k->is_default;
	known->rank = k->rank;
	known->other = k->other;
	known->group = group;
	HASH_ADD(hh, g->by_id, id, sizeof(known->id), known);
}

/* --- the store's side ------------------------------------------------------------------- */

static bool is_id(enum torch_key_kind kind)
{
	return kind == TORCH_ID || kind == TORCH_ID_PAIR || kind == TORCH_ID_ROOT;
}

static void on_set(void *ctx, struct store_bytes key, struct store_bytes value)
{
	struct torch_key k = torch_key_parse(key);
	struct groups *g = ctx;

	if (k.kind == TORCH_OTHER)
		return;
	g->cluster->is_torch = true;
	if (is_id(k.kind) && value.n == WIRE_ID_BYTES)
		id_add(g, &k, value.p);
}

static int64_t rank_of(const struct groups *g, const struct group *group, bool is_default,
		       uint32_t group_rank)
{
	if (is_default)
		return group_rank < topology_world(g->cluster->topology) ? (int64_t)group_rank : -1;
	if (!group || group_rank >= group->members.map.n_ranks)
		return -1;
	return membership_world(&group->members.map, group_rank);
}

static int64_t on_world_rank(void *ctx, const struct torch_key *k, uint32_t group_rank)
{
	return rank_of(ctx, group_find(ctx, k->group), k->is_default, group_rank);
}

static void on_make_id(void *ctx, const struct torch_key *k, uint8_t ret[WIRE_ID_BYTES])
{
	struct groups *g = ctx;
	struct wire_unique_id u = {.magic = WIRE_UNIQUE_ID_MAGIC,
				   .version = 1,
				   .creator = WIRE_CREATOR_UNKNOWN,
				   .pid = (uint32_t)getpid(),
				   .serial = g->serial++};

	/* a name that no other id has; it need not be hard to guess */
	if (getrandom(u.random, sizeof(u.random), GRND_NONBLOCK) < 0)
		u.random[0] = clock_now_ns();
	memcpy(ret, &u, sizeof(u));
	id_add(g, k, ret);
}

static const struct membership *on_group_members(void *ctx, struct store_bytes name)
{
	const struct group *group = group_find(ctx, name);

	return group && group->members.map.n_ranks ? &group->members.map : NULL;
}

const struct store_hooks groups_hooks = {
	.on_set = on_set,
	.world_rank = on_world_rank,
	.make_id = on_make_id,
	.group_members = on_group_members,
};

/* --- the communicators' side ------------------------------------------------------------ */

void groups_on_comm(struct groups *g, const struct comm *c)
{
	const struct membership *m = &c->members.map;
	struct members copy = {0};
	struct group_id *known;

	HASH_FIND(hh, g->by_id, c->id, WIRE_ID_BYTES, known);
	if (!known || known->kind == TORCH_ID_PAIR || c->members.sure != MEMBERS_EXACT)
		return;
	if (m->table ? members_from_list(m->table, m->n_ranks, &copy) < 0 : 0)
		return;
	if (!m->table)
		copy.map = *m;
	members_deinit(&known->group->members);
	known->group->members = copy;
	log_debug("communicator %u: is of group \"%.*s\"", c->number, (int)known->group->n_name,
		  (const char *)known->group->name);
}

int groups_on_list(struct groups *g, struct worker *w, const void *body)
{
	const char *list = (const char *)body + sizeof(struct wire_group);
	uint32_t world = topology_world(g->cluster->topology);
	struct members members = {0};
	struct wire_group m;
	struct group *group;

	memcpy(&m, body, sizeof(m));
	if (m.n_ranks > world)
		return worker_refuse(w, EPROTO, "GROUP frame: %u ranks in a world of %u", m.n_ranks,
				     world);
	for (uint32_t i = 0; i < m.n_ranks; i++) {
		uint32_t rank;

		memcpy(&rank, list + i * sizeof(rank), sizeof(rank));
		if (rank >= world)
			return worker_refuse(w, EPROTO, "GROUP frame: rank %u in a world of %u",
					     rank, world);
	}
	group = group_get(g, (struct store_bytes){(const uint8_t *)m.name, strlen(m.name)});
	if (!group || members_from_list((const void *)list, m.n_ranks, &members) < 0)
		return 0;
	members_deinit(&group->members); /* the last counts: an elastic launcher may have started
					    all anew */
	group->members = members;
	log_debug("group \"%s\" has %u ranks, by the job's own list", m.name, m.n_ranks);
	return 0;
}

int groups_pair(struct groups *g, const uint8_t id[WIRE_ID_BYTES], uint32_t ret_world[2])
{
	struct group_id *known;
	int64_t low, high;

	HASH_FIND(hh, g->by_id, id, WIRE_ID_BYTES, known);
	if (!known || known->kind != TORCH_ID_PAIR)
		return GROUPS_NOT_KNOWN;
	low = rank_of(g, known->group, known->is_default, known->rank);
	high = rank_of(g, known->group, known->is_default, known->other);
	if (low < 0 || high < 0 || low == high)
		return GROUPS_NOT_KNOWN;
	ret_world[0] = (uint32_t)low;
	ret_world[1] = (uint32_t)high;
	return 0;
}
