/* See virtual.h. */
#include "nboxd/store/serve/virtual.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "nboxd/job/processes.h"
#include "nboxd/loop/warn.h"
#include "nboxd/store/gloo/groups.h"
#include "nboxd/store/policy.h"

#define LOOK_NS NS_PER_S
#define UNKNOWN_SETTLES 4 /* of settle, before an id is invented whose maker is not known */
#define KEY_SHOWN 200
#define DESCRIBE_NS NS_PER_S
#define ENDED_NS (2 * NS_PER_S) /* of waiting for a rank whose process has ended */
#define TOLD_MAX 8              /* log lines about waits in... */
#define TOLD_NS (10 * NS_PER_S)

static struct policy_world world_of(const struct store_server *ss)
{
	const struct config *c = ss->env.config;

	return (struct policy_world){c->world, c->real, c->n_real};
}

static int64_t lookup(void *ctx, const struct torch_key *k, uint32_t group_rank)
{
	const struct store_env *env = &((const struct store_server *)ctx)->env;

	return env->hooks->world_rank(env->hooks_ctx, k, group_rank);
}

static struct policy_verdict judge(struct store_server *ss, const struct torch_key *k)
{
	struct policy_world w = world_of(ss);

	return policy_on_missing(&w, k, lookup, ss);
}

/* For the log: printable, and cut in the middle when it is long. Return: @buf. */
static char *show_key(struct store_bytes key, char buf[KEY_SHOWN + 8])
{
	size_t n = 0;

	for (size_t i = 0; i < key.n && n < KEY_SHOWN; i++)
		buf[n++] = isprint(key.p[i]) && key.p[i] != '"' ? (char)key.p[i] : '?';
	snprintf(buf + n, 8, "%s", key.n > n ? "..." : "");
	return buf;
}

/* Is it an id whose maker stands below all others that wait for it? Torch sorts the ranks of a
 * group. (Of a scalable init each root makes one.) */
static bool is_lowest_maker(const struct torch_key *k)
{
	return k->kind == TORCH_ID || k->kind == TORCH_ID_PAIR ||
	       (k->kind == TORCH_ID_ROOT && k->rank == 0);
}

/* Is every rank below the one that asks virtual? */
static bool is_surely_virtual(struct store_peer *p)
{
	return store_peer_rank(p) == (int64_t)p->server->env.config->real[0];
}

/* --- ids ------------------------------------------------------------------------------------- */

/* What a virtual rank would have set. Return: 0; -ENOMEM, -ENOBUFS. */
static int invent(struct store_server *ss, const struct torch_key *k, struct store_bytes key)
{
	struct invented *inv;
	char shown[KEY_SHOWN + 8];
	int r;

	if (k->kind == TORCH_GLOO)
		return gloo_play(ss->gloo, key, k) ? 0 : -EADDRNOTAVAIL;
	if (k->kind == TORCH_BARRIER_LAST)
		return store_set(ss->store, key, (struct store_bytes){(const uint8_t *)"1", 1});
	HASH_FIND(hh, ss->invented, key.p, key.n, inv);
	if (!inv) { /* else a client deleted the key: it is the same id again */
		inv = calloc(1, sizeof(*inv) + key.n);
		if (!inv)
			return -ENOMEM;
		inv->n_key = key.n;
		memcpy(inv->key, key.p,
		       key.n); /* setting it may end the wait that @key belongs to */
		ss->env.hooks->make_id(ss->env.hooks_ctx, k, inv->id);
		HASH_ADD_KEYPTR(hh, ss->invented, inv->key, inv->n_key, inv);
		ss->n_invented++;
		log_info("store: made the id of \"%s\", its first rank is virtual",
			 show_key(key, shown));
	}
	r = store_set(ss->store, (struct store_bytes){inv->key, inv->n_key},
		      (struct store_bytes){inv->id, sizeof(inv->id)});
	ss->id_ns = clock_now_ns();
	return r;
}

/* How long nboxd waits for a real rank to set a key of which the maker is not known. An id that
 * was wrongly made up does no harm (see take_real_id()), an address does. */
static uint64_t unknown_ns(const struct store_server *ss, enum torch_key_kind kind)
{
	return kind == TORCH_GLOO ? WARN_NS : UNKNOWN_SETTLES * ss->env.config->settle_ns;
}

/* Whether a rank whose gloo address is asked for would have set it by now, were it real. */
static bool is_quiet(const struct store_server *ss, struct store_bytes key, uint64_t now_ns)
{
	uint64_t since_ns = gloo_quiet_since_ns(ss->gloo, key);

	return since_ns != UINT64_MAX &&
	       now_ns >= since_ns + (since_ns ? unknown_ns(ss, TORCH_GLOO) : 0);
}

void virtual_on_missing(void *owner, void *client_owner, struct store_bytes key)
{
	struct torch_key k = torch_key_parse(key);
	struct store_server *ss = owner;
	enum policy_answer answer = k.kind == TORCH_OTHER ? POLICY_WAIT : judge(ss, &k).answer;

	if (answer == POLICY_SETTLE && is_lowest_maker(&k) && is_surely_virtual(client_owner))
		answer = POLICY_INVENT;
	if (answer == POLICY_SETTLE && k.kind == TORCH_GLOO && is_quiet(ss, key, clock_now_ns()))
		answer = POLICY_INVENT;
	if (answer != POLICY_INVENT)
		return;
	if (invent(ss, &k, key) < 0 && k.kind != TORCH_GLOO)
		warn_run("store: no memory for the id of a communicator");
}

/* A real rank sets an id that was invented for a virtual one. */
static void take_real_id(struct store_server *ss, struct invented *inv, struct store_bytes value)
{
	struct invented *other;
	char shown[KEY_SHOWN + 8];

	if (value.n != sizeof(inv->real_id) || memcmp(value.p, inv->id, value.n) == 0 ||
	    inv->has_real)
		return;
	HASH_FIND(hh_real, ss->by_real, value.p, value.n, other);
	if (other)
		return;
	memcpy(inv->real_id, value.p, value.n);
	inv->has_real = true;
	HASH_ADD(hh_real, ss->by_real, real_id, sizeof(inv->real_id), inv);
	warn_run(
		"store: a real rank made the id \"%s\" later than nboxd did for it; both are "
		"taken for the same. Raise settle (now %.0f ms) of nboxd if the communicator fails",
		show_key((struct store_bytes){inv->key, inv->n_key}, shown),
		(double)ss->env.config->settle_ns / 1e6);
}

void virtual_on_set(void *owner, void *client_owner, struct store_bytes key,
		    struct store_bytes value)
{
	struct store_server *ss = owner;
	struct torch_key k = torch_key_parse(key);
	struct invented *inv;

	if (k.kind == TORCH_GLOO)
		gloo_on_address(ss->gloo, key, &k, value, store_peer_rank(client_owner));
	HASH_FIND(hh, ss->invented, key.p, key.n, inv);
	if (inv)
		take_real_id(ss, inv, value);
	if (value.n == WIRE_ID_BYTES)
		ss->id_ns = clock_now_ns();
	ss->env.hooks->on_set(ss->env.hooks_ctx, key, value);
}

void store_server_canonical_id(const struct store_server *ss, uint8_t id[WIRE_ID_BYTES])
{
	struct invented *inv = NULL;

	if (ss)
		HASH_FIND(hh_real, ss->by_real, id, WIRE_ID_BYTES, inv);
	if (inv)
		memcpy(id, inv->id, WIRE_ID_BYTES);
}

int64_t virtual_initial_count(void *owner, struct store_bytes key, int64_t world)
{
	struct policy_world w = world_of(owner);
	struct torch_key k = torch_key_parse(key);

	return policy_initial_count(&w, &k, world);
}

/* A virtual rank's address, or none. */
static int set_address(void *ctx, struct store_bytes key, struct store_bytes value)
{
	return store_set(((struct store_server *)ctx)->store, key, value);
}

static const struct membership *group_members(void *ctx, struct store_bytes name)
{
	const struct store_env *env = &((const struct store_server *)ctx)->env;

	return env->hooks->group_members(env->hooks_ctx, name);
}

int virtual_open(struct store_server *ss, void (*refuse_one)(void *ctx, int listen_fd))
{
	const struct gloo_env env = {.config = ss->env.config,
				     .loop = ss->env.loop,
				     .set_address = set_address,
				     .group_members = group_members,
				     .refuse_one = refuse_one,
				     .ctx = ss};

	return gloo_new(&env, &ss->gloo);
}

void virtual_close(struct store_server *ss)
{
	virtual_clear(ss);
	ss->gloo = gloo_free(ss->gloo);
}

void virtual_clear(struct store_server *ss)
{
	struct invented *inv, *next;

	gloo_clear(ss->gloo);
	HASH_CLEAR(hh_real, ss->by_real);
	HASH_ITER(hh, ss->invented, inv, next) {
		HASH_DELETE(hh, ss->invented, inv);
		free(inv);
	}
}

/* --- waits ------------------------------------------------------------------------------------ */

static char *describe(struct store_peer *p, uint64_t now_ns, char *buf, size_t size)
{
	struct store_bytes key = store_client_awaited(p->client, 0);
	struct torch_key k = torch_key_parse(key);
	struct policy_world w = world_of(p->server);
	struct policy_verdict v = judge(p->server, &k);
	size_t n = store_client_n_awaited(p->client);
	char who[160], shown[KEY_SHOWN + 8], others[32] = "", advice[600];

	if (n > 1)
		snprintf(others, sizeof(others), " and %zu more", n - 1);
	snprintf(buf, size, "store: %s has waited %.1f s for key \"%s\"%s; %s",
		 store_peer_text(p, who, sizeof(who)), (double)(now_ns - p->wait_ns) / 1e9,
		 show_key(key, shown), others, policy_advice(&w, &k, &v, advice, sizeof(advice)));
	return buf;
}

/* A client that waits for a key of a rank whose process has ended is cut off: it gets an error now.
 */
static bool cut_ended(struct store_peer *p, uint64_t now_ns, int64_t rank)
{
	const struct processes *processes = p->server->env.processes;
	char text[PROCESSES_TEXT_MAX], who[160], shown[KEY_SHOWN + 8];

	if (rank < 0 || !processes_ended(processes, rank, p->wait_ns))
		return false;
	if (now_ns < p->wait_ns + ENDED_NS) {
		p->look_ns = p->wait_ns + ENDED_NS;
		return true;
	}
	warn_run("store: %s is cut off: it waits for key \"%s\", and the process of rank "
		 "%lld, which sets it, %s; see why that one ended before",
		 store_peer_text(p, who, sizeof(who)),
		 show_key(store_client_awaited(p->client, 0), shown), (long long)rank,
		 processes_ended_text(processes, rank, text, sizeof(text)));
	store_peer_end(p);
	return true;
}

/* Sets what no real rank will set. Return: whether that ended the wait (or another's). */
static bool look(struct store_peer *p, uint64_t now_ns)
{
	struct store_server *ss = p->server;
	uint64_t settle_ns = ss->env.config->settle_ns, since_ns = p->wait_ns;
	struct store_bytes key = store_client_awaited(p->client, 0);
	struct torch_key k = torch_key_parse(key);
	struct policy_verdict v = judge(ss, &k);

	if (v.answer == POLICY_SETTLE && k.kind == TORCH_GLOO) {
		since_ns = gloo_quiet_since_ns(ss->gloo, key);
		if (since_ns == UINT64_MAX)
			since_ns = p->wait_ns;
	} else if (v.answer == POLICY_SETTLE && k.kind != TORCH_BARRIER_LAST &&
		   ss->id_ns > since_ns) {
		since_ns = ss->id_ns; /* ranks still go on making communicators */
	}
	if (v.answer == POLICY_SETTLE && k.kind != TORCH_BARRIER_LAST)
		settle_ns = unknown_ns(ss, k.kind);
	p->look_ns = now_ns + LOOK_NS;
	if (v.answer == POLICY_SETTLE && now_ns < since_ns + settle_ns) {
		p->look_ns = since_ns + settle_ns;
		return false;
	}
	if (v.answer == POLICY_WAIT && cut_ended(p, now_ns, v.rank))
		return false;
	if (v.answer != POLICY_SETTLE && v.answer != POLICY_INVENT)
		return false;
	if (invent(ss, &k, key) < 0)
		return false;
	p->look_ns = now_ns; /* what else it waits for is looked at in this same tick */
	return true;
}

uint64_t store_server_waits_since_ns(const struct store_server *ss)
{
	return ss->waiting ? ss->waiting->wait_ns : UINT64_MAX; /* the oldest stands in front */
}

uint32_t store_server_waiting_pid(const struct store_server *ss)
{
	const struct store_peer *p;

	DL_FOREACH2(ss->waiting, p, next_waiting)
	if (p->pid && store_peer_is_here(p))
		return p->pid;
	return 0;
}

/* One line for all clients that wait for that key. */
static void tell(struct store_peer *p, uint64_t now_ns)
{
	struct store_server *ss = p->server;
	struct store_bytes key = store_client_awaited(p->client, 0), other;
	char text[1200], more[64] = "";
	uint64_t n_same = 0;
	struct store_peer *q;

	p->is_told = true;
	if (ss->n_told >= TOLD_MAX) {
		ss->n_untold++;
		return;
	}
	DL_FOREACH2(ss->waiting, q, next_waiting)
	{
		other = store_client_awaited(q->client, 0);
		if (q->is_told || other.n != key.n || memcmp(other.p, key.p, key.n) != 0)
			continue;
		q->is_told = true;
		n_same++;
	}
	if (n_same)
		snprintf(more, sizeof(more), " (so do %llu others)", (unsigned long long)n_same);
	if (ss->n_told++ == 0)
		ss->told_ns = now_ns;
	warn_run("%s%s", describe(p, now_ns, text, sizeof(text)), more);
}

void virtual_tick(struct store_server *ss, uint64_t now_ns)
{
	struct store_peer *p = ss->waiting;

	if (ss->n_told && now_ns >= ss->told_ns + TOLD_NS) {
		if (ss->n_untold)
			warn_run("store: %llu more clients have waited 5 s; nbox status "
				 "lists what for",
				 (unsigned long long)ss->n_untold);
		ss->n_told = ss->n_untold = 0;
	}

	gloo_tick(ss->gloo, now_ns);
	while (p) {
		if (now_ns < p->look_ns) {
			p = p->next_waiting;
			continue;
		}
		if (look(p, now_ns)) { /* the list is another now */
			p = ss->waiting;
			continue;
		}
		if (!p->is_told && now_ns >= p->wait_ns + WARN_NS)
			tell(p, now_ns);
		if (!p->is_told && p->look_ns > p->wait_ns + WARN_NS)
			p->look_ns = p->wait_ns + WARN_NS;
		p = p->next_waiting;
	}
}

void store_server_describe(const struct store_server *ss, uint64_t now_ns,
			   void (*say)(void *ctx, const char *sentence), void *ctx)
{
	struct store_peer *p;
	char text[1200];

	if (!ss)
		return;
	DL_FOREACH2(ss->waiting, p, next_waiting)
	if (now_ns >= p->wait_ns + DESCRIBE_NS)
		say(ctx, describe(p, now_ns, text, sizeof(text)));
	gloo_describe(ss->gloo, now_ns, say, ctx);
}
