/* What nboxd does in the store for ranks that do not exist: applies nboxd/store/policy.h to
 * keys that are missing, now and after a while, and says what is waited for. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "nboxd/job/exited.h"
#include "nboxd/job/proc-env.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/store/gloo/server.h"
#include "nboxd/store/policy.h"
#include "nboxd/store/server-private.h"

#define LOOK_NS NS_PER_S
#define UNKNOWN_SETTLES 4 /* of settle, before an id is invented whose maker is not known */
#define KEY_SHOWN 200
#define DESCRIBE_NS NS_PER_S
#define ENDED_NS (2 * NS_PER_S) /* of waiting for a rank whose process has ended */
#define TOLD_MAX 8              /* log lines about waits in... */
#define TOLD_NS (10 * NS_PER_S)

static struct policy_world world_of(const struct store_server *ss)
{
	const struct config *c = ss->daemon->config;

	return (struct policy_world){c->world, c->real, c->n_real};
}

static int64_t lookup(void *ctx, const struct torch_key *k, uint32_t group_rank)
{
	const struct store_server *ss = ctx;
	const struct store_hooks *hooks = ss->daemon->store_hooks;

	return hooks && hooks->world_rank ? hooks->world_rank(ss->daemon, k, group_rank) : -1;
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

/* --- who is it --------------------------------------------------------------------------- */

/* LOCAL_RANK of a process of ours on this host, as it was started. Return: -1: not known. */
static int64_t local_rank_of(uint32_t pid)
{
	struct proc_env e;
	const char *text =
		proc_env_read((pid_t)pid, &e) < 0 ? NULL : proc_env_get(&e, "LOCAL_RANK");

	return text && isdigit((unsigned char)text[0]) ? strtol(text, NULL, 10) : -1;
}

static bool is_of_this_host(const struct store_peer *p)
{
	return strncmp(p->name, "127.", 4) == 0 || strncmp(p->name, "[::1]", 5) == 0;
}

/* The world rank behind a connection; -1: not known. From the worker with the same pid if
 * it has come already, else from how it was started. */
static int64_t peer_rank(struct store_peer *p)
{
	const struct server *s = p->server->daemon;
	const struct config *c = s->config;
	int64_t local;

	if (p->has_rank || p->pid == 0)
		return p->has_rank ? p->rank : -1;
	p->rank = -1;
	for (size_t i = 0; i < c->n_real; i++)
		if (s->players[i] && s->players[i]->pid == p->pid)
			p->rank = c->real[i];
	if (p->rank < 0 && is_of_this_host(p)) {
		local = local_rank_of(p->pid);
		/* a rank of one node, as torchrun starts them */
		if (local >= 0 && (size_t)local < c->n_real &&
		    c->n_real <= c->topology.gpus_per_node)
			p->rank = c->real[local];
	}
	p->has_rank = p->rank >= 0;
	return p->rank;
}

static char *peer_text(struct store_peer *p, char *buf, size_t size)
{
	int64_t rank = peer_rank(p);

	if (rank >= 0)
		snprintf(buf, size, "rank %lld (pid %u)", (long long)rank, p->pid);
	else if (p->pid)
		snprintf(buf, size, "the process with pid %u (%s)", p->pid, p->name);
	else
		snprintf(buf, size, "the client at %s", p->name);
	return buf;
}

/* Ids whose maker stands below all others that wait for it: torch sorts the ranks of a
 * group. (Of a scalable init each root makes one.) */
static bool is_lowest_maker(const struct torch_key *k)
{
	return k->kind == TORCH_ID || k->kind == TORCH_ID_PAIR ||
	       (k->kind == TORCH_ID_ROOT && k->rank == 0);
}

/* Whether nobody real stands below who asks. */
static bool is_surely_virtual(struct store_peer *p)
{
	return peer_rank(p) == (int64_t)p->server->daemon->config->real[0];
}

/* --- ids ------------------------------------------------------------------------------------- */

static void make_id(struct store_server *ss, const struct torch_key *k, uint8_t id[WIRE_ID_BYTES])
{
	const struct store_hooks *hooks = ss->daemon->store_hooks;
	uint64_t words[3] = {0};

	if (hooks && hooks->make_id && hooks->make_id(ss->daemon, k, id))
		return;
	memset(id, 0, WIRE_ID_BYTES);
	/* an id is only a name; never 0 is all that matters if there is no chance */
	if (getrandom(words, 2 * sizeof(words[0]), GRND_NONBLOCK) < 0)
		words[0] = clock_now_ns();
	words[2] = ss->n_invented;
	memcpy(id, "nbox-id", 8);
	memcpy(id + 8, words, sizeof(words));
}

/* What a virtual rank would have set. Return: 0; -ENOMEM, -ENOBUFS. */
static int invent(struct store_server *ss, const struct torch_key *k, struct store_bytes key)
{
	struct invented *inv;
	char shown[KEY_SHOWN + 8];
	int r;

	if (k->kind == TORCH_GLOO)
		return gloo_play(ss, key, k) ? 0 : -EADDRNOTAVAIL;
	if (k->kind == TORCH_BARRIER_LAST)
		return store_set(ss->store, key, (struct store_bytes){(const uint8_t *)"1", 1});
	HASH_FIND(hh, ss->invented, key.p, key.n, inv);
	if (!inv) { /* else somebody deleted the key: it is the same id again */
		inv = calloc(1, sizeof(*inv) + key.n);
		if (!inv)
			return -ENOMEM;
		inv->n_key = key.n;
		memcpy(inv->key, key.p,
		       key.n); /* setting it may end the wait that @key belongs to */
		make_id(ss, k, inv->id);
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

/* How long it is looked whether a real rank sets a key whose owner is not known. An id that
 * was wrongly made up does no harm (see take_real_id()), an address does. */
static uint64_t unknown_ns(const struct store_server *ss, enum torch_key_kind kind)
{
	return kind == TORCH_GLOO ? WARN_NS : UNKNOWN_SETTLES * ss->daemon->config->settle_ns;
}

/* Whether a rank whose gloo address is asked for would have set it by now, were it real. */
static bool is_quiet(const struct store_server *ss, struct store_bytes key, uint64_t now_ns)
{
	uint64_t since_ns = gloo_quiet_since_ns(ss, key);

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
		(double)ss->daemon->config->settle_ns / 1e6);
}

void virtual_on_set(void *owner, void *client_owner, struct store_bytes key,
		    struct store_bytes value)
{
	struct store_server *ss = owner;
	const struct store_hooks *hooks = ss->daemon->store_hooks;
	struct torch_key k = torch_key_parse(key);
	struct invented *inv;

	if (k.kind == TORCH_GLOO)
		gloo_on_address(ss, key, &k, value, peer_rank(client_owner));
	HASH_FIND(hh, ss->invented, key.p, key.n, inv);
	if (inv)
		take_real_id(ss, inv, value);
	if (value.n == WIRE_ID_BYTES)
		ss->id_ns = clock_now_ns();
	if (hooks && hooks->on_set)
		hooks->on_set(ss->daemon, key, value);
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

void virtual_clear(struct store_server *ss)
{
	struct invented *inv, *next;

	ss->gloo = gloo_free(ss->gloo);
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
		 peer_text(p, who, sizeof(who)), (double)(now_ns - p->wait_ns) / 1e9,
		 show_key(key, shown), others, policy_advice(&w, &k, &v, advice, sizeof(advice)));
	return buf;
}

/* Who waits for a key that only a rank sets whose process has ended: its client gets an error now.
 */
static bool cut_ended(struct store_peer *p, uint64_t now_ns, int64_t rank)
{
	const struct server *s = p->server->daemon;
	char text[ENDED_TEXT_MAX], who[160], shown[KEY_SHOWN + 8];

	if (rank < 0 || !ended_is(s, rank, p->wait_ns))
		return false;
	if (now_ns < p->wait_ns + ENDED_NS) {
		p->look_ns = p->wait_ns + ENDED_NS;
		return true;
	}
	warn_run("store: %s is cut off: it waits for key \"%s\", and the process of rank "
		 "%lld, which sets it, %s; see why that one ended before",
		 peer_text(p, who, sizeof(who)),
		 show_key(store_client_awaited(p->client, 0), shown), (long long)rank,
		 ended_text(s, rank, text, sizeof(text)));
	store_peer_end(p);
	return true;
}

/* Sets what nobody will set. Return: whether that ended the wait (or another's). */
static bool look(struct store_peer *p, uint64_t now_ns)
{
	struct store_server *ss = p->server;
	uint64_t settle_ns = ss->daemon->config->settle_ns, since_ns = p->wait_ns;
	struct store_bytes key = store_client_awaited(p->client, 0);
	struct torch_key k = torch_key_parse(key);
	struct policy_verdict v = judge(ss, &k);

	if (v.answer == POLICY_SETTLE && k.kind == TORCH_GLOO) {
		since_ns = gloo_quiet_since_ns(ss, key);
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
	if (p->pid && is_of_this_host(p))
		return p->pid;
	return 0;
}

/* One line for all who wait for that key. */
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

	gloo_tick(ss, now_ns);
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
	gloo_describe(ss, now_ns, say, ctx);
}
