/* Check-ins of one communicator to be: same 128-byte id (init), same parent and count (split), or
 * same parent and excluded ranks (shrink). See comm.h; the rules are in ../README.md. What they
 * complete: gather-complete.c. Who has not come: gather-missing.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/plain.h"
#include "nboxd/comm/comm.h"
#include "nboxd/comm/gather-private.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/server.h"
#include "nboxd/store/server.h"
#include "wire/unique-id.h"

const char *const gather_kind_names[] = {"init", "split", "shrink"};

static void leave_list(struct gather *g)
{
	struct server *s = g->server;

	if (g->code) {
		DL_DELETE(s->failed, g);
		s->n_failed--;
	} else {
		DL_DELETE(s->gathers, g);
		s->n_gathers--;
	}
}

void gather_free(struct gather *g)
{
	leave_list(g);
	told_free(g->told);
	free(g->excluded);
	free(g->entries);
	free(g);
}

void gather_free_all(struct server *s)
{
	struct gather *g, *next;

	DL_FOREACH_SAFE(s->gathers, g, next)
		gather_free(g);
	while (s->failed)
		gather_free(s->failed);
}

void gather_tell_failed(struct worker *w, uint32_t cookie, int code, const char *why)
{
	struct wire_text text = {.code = code};
	struct wire_hdr h;

	snprintf(text.text, sizeof(text.text), "%s", why);
	wire_hdr_init(&h, WIRE_ABORT, sizeof(text));
	h.comm = WIRE_NO_COMM;
	h.seq = cookie;
	if (w)
		worker_send(w, &h, &text);
}

bool gather_has(const struct gather *g, uint32_t world_rank)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->entries[i].world_rank == world_rank)
			return true;
	return false;
}

void gather_fail(struct gather *g, int code, const char *fmt, ...)
{
	struct server *s = g->server;
	char why[WIRE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	plain_text(why);
	warn_run("no communicator by %s: %s", gather_kind_names[g->kind], why);
	for (uint32_t i = 0; i < g->n; i++)
		gather_tell_failed(g->entries[i].worker, g->entries[i].cookie, code, why);
	if (g->n >= g->n_wanted) {
		gather_free(g);
		return;
	}
	leave_list(g);
	told_free(g->told); /* as large as the world, and later members need only the reason */
	g->told = NULL;
	g->code = code;
	memcpy(g->why, why, sizeof(g->why));
	g->last_ns = clock_now_ns();
	if (s->n_failed == SERVER_GATHERS_MAX)
		gather_free(s->failed);
	DL_APPEND(s->failed, g);
	s->n_failed++;
}

/* What a check-in is for. */
struct wanted {
	enum gather_kind kind;
	const uint8_t *id;      /* init */
	uint32_t n_ranks, rank; /* init */
	uint32_t parent;        /* split, shrink */
	uint32_t count;         /* split */
	uint32_t n_excluded;    /* shrink */
	const void *excluded;   /* shrink: ranks of the parent, perhaps unaligned */
	uint32_t world_rank;
};

static bool excludes_same(const struct gather *g, const struct wanted *w)
{
	return g->n_excluded == w->n_excluded &&
	       memcmp(g->excluded, w->excluded, w->n_excluded * sizeof(*g->excluded)) == 0;
}

/* With a common id (NCCL_COMM_ID) a rank's check-ins are to one communicator after the other: each
 * is for the first of the right size that lacks it. Any other id has one communicator. */
static bool is_for(const struct gather *g, const struct wanted *w)
{
	if (g->kind != w->kind)
		return false;
	if (w->kind == GATHER_SPLIT)
		return g->parent == w->parent && g->count == w->count;
	if (w->kind == GATHER_SHRINK) /* no count: who is left out of one does not call it */
		return g->parent == w->parent && excludes_same(g, w) &&
		       !gather_has(g, w->world_rank);
	if (memcmp(g->id, w->id, sizeof(g->id)) != 0)
		return false;
	if (!wire_unique_id_is_common(w->id))
		return true;
	for (uint32_t i = 0; i < g->n; i++)
		if (g->entries[i].rank == w->rank)
			return false;
	return g->n_ranks == w->n_ranks && !gather_has(g, w->world_rank);
}

static struct gather *gather_find(struct server *s, const struct wanted *w)
{
	struct gather *g;

	DL_FOREACH(s->gathers, g)
		if (is_for(g, w))
			return g;
	return NULL;
}

static struct gather *gather_new(struct server *s, enum gather_kind kind)
{
	struct gather *g;

	if (s->n_gathers >= SERVER_GATHERS_MAX)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->server = s;
	g->kind = kind;
	g->first_ns = g->last_ns = clock_now_ns();
	g->warn_ns = g->first_ns + WARN_NS;
	DL_APPEND(s->gathers, g);
	s->n_gathers++;
	s->tick_ns = 0; /* else an idle nboxd looks once a second, and settles late */
	return g;
}

/* Keeps the order by rank. Return: 0; -EEXIST this rank was here; -ENOMEM. */
static int gather_add(struct gather *g, const struct comm_entry *entry)
{
	struct comm_entry *entries;
	uint32_t at = 0;

	while (at < g->n && g->entries[at].rank < entry->rank)
		at++;
	if (at < g->n && g->entries[at].rank == entry->rank)
		return -EEXIST;
	entries = realloc(g->entries, (g->n + 1) * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	g->entries = entries;
	memmove(&entries[at + 1], &entries[at], (g->n - at) * sizeof(*entries));
	entries[at] = *entry;
	g->n++;
	g->last_ns = clock_now_ns();
	return 0;
}

/* The others have failed already. Return: whether it was so, and @entry is told. */
static bool has_failed(struct server *s, const struct wanted *w, const struct comm_entry *entry)
{
	struct gather *g;

	DL_FOREACH(s->failed, g) {
		if (!is_for(g, w) || gather_has(g, w->world_rank))
			continue;
		gather_tell_failed(entry->worker, entry->cookie, g->code, g->why);
		if (gather_add(g, entry) == 0 && g->n >= g->n_wanted)
			gather_free(g);
		return true;
	}
	return false;
}

void gather_on_abort(struct worker *w, uint32_t cookie, const char *why)
{
	char name[WORKER_NAME_MAX];
	struct gather *g;

	DL_FOREACH(w->server->gathers, g) {
		for (uint32_t i = 0; i < g->n; i++) {
			if (g->entries[i].worker != w || g->entries[i].cookie != cookie)
				continue;
			gather_fail(g, ECONNABORTED, "rank %u, %s: %.300s", g->entries[i].rank,
				    worker_name(w, name, sizeof(name)), why);
			return;
		}
	}
	/* else the answer is on its way, and the worker gives its communicator back */
}

/* --- frames ------------------------------------------------------------------------ */

static int player_index(const struct server *s, uint32_t world_rank)
{
	for (size_t i = 0; i < s->cluster.n_real; i++)
		if (s->cluster.real[i] == world_rank)
			return (int)i;
	return -1;
}

/* The process that plays real rank number @i, but for @w. A launcher that starts a rank again has
 * seen the old process end; nboxd may not have yet. */
static const struct worker *other_player(const struct worker *w, int i)
{
	struct worker *other = w->server->players[i];

	return other && other != w && !worker_has_gone(other) ? other : NULL;
}

/* A world rank is played by one process. Return: false, and the worker was told. */
static bool claim_rank(struct worker *w, const struct wire_comm_init *m)
{
	int i = player_index(w->server, m->world_rank);
	const struct worker *other = i < 0 ? NULL : other_player(w, i);
	char name[WORKER_NAME_MAX], why[WIRE_TEXT_MAX];

	if (i < 0) {
		const struct config *c = w->server->config;

		snprintf(
			why, sizeof(why),
			"world rank %u is not one of the %zu real ranks (%u to %u) of a world of %u: "
			"set real of nboxd, or RANK of the worker",
			m->world_rank, c->n_real, c->real[0], c->real[c->n_real - 1], c->world);
	} else if (other) {
		snprintf(
			why, sizeof(why),
			"world rank %u is played by %s already: a command that starts its ranks "
			"itself wants 'nbox run --launcher' (a script around torchrun) or '--procs 1' (mp.spawn)",
			m->world_rank, worker_name(other, name, sizeof(name)));
	} else {
		w->server->players[i] = w;
		return true;
	}
	warn_run("%s: %s", worker_name(w, name, sizeof(name)), why);
	gather_tell_failed(w, m->cookie, EINVAL, why);
	return false;
}

/* Was a communicator with this id made without this rank? */
static bool is_late(struct worker *w, const struct wire_comm_init *m)
{
	char why[WIRE_TEXT_MAX], name[WORKER_NAME_MAX];
	struct comm *c, *next;

	HASH_ITER(hh, w->server->comms.by_number, c, next) {
		if (c->parent || memcmp(c->id, m->id, sizeof(c->id)) != 0)
			continue;
		if (wire_unique_id_is_common(m->id) &&
		    (c->n_ranks != m->n_ranks || bitmap_test(&c->is_real, m->rank) ||
		     membership_world(&c->members.map, m->rank) != m->world_rank))
			continue; /* another one with this id */
		snprintf(why, sizeof(why),
			 "rank %u came after communicator %u was complete without it; raise settle "
			 "(now %.0f ms) of nboxd",
			 m->rank, c->number, (double)w->server->config->settle_ns / 1e6);
		warn_run("%s: %s", worker_name(w, name, sizeof(name)), why);
		gather_tell_failed(w, m->cookie, ETIMEDOUT, why);
		return true;
	}
	return false;
}

int gather_on_init(struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct server *s = w->server;
	struct comm_entry entry;
	struct wire_comm_init m;
	struct wanted wanted;
	struct gather *g;
	int r;

	memcpy(&m, body, sizeof(m));
	store_server_canonical_id(s->store, m.id);
	if (!claim_rank(w, &m))
		return 0;
	entry = (struct comm_entry){.worker = w,
				    .rank = m.rank,
				    .world_rank = m.world_rank,
				    .cookie = m.cookie};
	wanted = (struct wanted){.kind = GATHER_INIT,
				 .id = m.id,
				 .n_ranks = m.n_ranks,
				 .rank = m.rank,
				 .world_rank = m.world_rank};
	if (has_failed(s, &wanted, &entry))
		return 0;
	g = gather_find(s, &wanted);
	if (!g) {
		if (is_late(w, &m))
			return 0;
		g = gather_new(s, GATHER_INIT);
		if (!g) {
			gather_tell_failed(w, m.cookie, ENOMEM,
					   "too many communicators are being made");
			return 0;
		}
		memcpy(g->id, m.id, sizeof(g->id));
		g->n_ranks = m.n_ranks;
		g->n_wanted =
			m.n_ranks < s->cluster.n_real ? m.n_ranks : (uint32_t)s->cluster.n_real;
	}
	r = gather_add(g, &entry);
	if (r == 0)
		r = told_add(g, 0, m.rank, (const char *)body + sizeof(m),
			     h->body_bytes - sizeof(m));
	if (r < 0)
		gather_tell_failed(w, m.cookie, -r,
				   r == -EEXIST ? "this rank checked in a second time"
						: "nboxd is out of memory");
	if (r == -ENOMEM)
		gather_fail(g, ENOMEM, "out of memory");
	else if (m.n_ranks != g->n_ranks)
		gather_fail(g, EINVAL, "rank %u says %u ranks, rank %u says %u", g->entries[0].rank,
			    g->n_ranks, m.rank, m.n_ranks);
	else if (g->n_ranks > s->config->world)
		gather_fail(
			g, EINVAL,
			"a communicator of %u ranks in a world of %u; set nodes and gpus-per-node "
			"of nboxd to what the job believes",
			g->n_ranks, s->config->world);
	else if (r == 0 && g->n == g->n_wanted)
		gather_init_complete(g, MEMBERS_ALL_CAME);
	else if (r == 0 && g->n_ranks < s->config->world)
		gather_init_complete(g, MEMBERS_AT_ONCE);
	return 0;
}

/* The parent of a split or shrink, when @w plays @rank in it. A dead one can be shrunk:
 * that is how a job goes on without the rank that killed it. */
static struct comm *find_parent(struct worker *w, const struct wire_hdr *h, uint32_t rank,
				uint32_t cookie, enum gather_kind kind)
{
	struct comm *c = comm_find(&w->server->comms, h->comm);
	struct comm_member *m = c ? comm_member(c, rank) : NULL;

	if (c && (!m || m->worker != w)) {
		worker_refuse(w, EPROTO,
			      "%s for rank %u of communicator %u, which it does not play",
			      wire_type_name(h->type), rank, h->comm);
		return NULL;
	}
	if (!c || (c->is_dead && kind != GATHER_SHRINK)) {
		gather_tell_failed(w, cookie, ECANCELED,
				   "the parent communicator was aborted or freed");
		return NULL;
	}
	return c;
}

int gather_on_split(struct worker *w, const struct wire_hdr *h, const void *body)
{
	struct wire_comm_split m;
	struct comm_entry entry;
	struct wanted wanted;
	struct comm *parent;
	struct gather *g;
	int r;

	memcpy(&m, body, sizeof(m));
	parent = find_parent(w, h, m.rank, m.cookie, GATHER_SPLIT);
	if (!parent)
		return 0;
	entry = (struct comm_entry){.worker = w,
				    .rank = m.rank,
				    .world_rank = comm_member(parent, m.rank)->world_rank,
				    .cookie = m.cookie,
				    .color = m.color,
				    .key = m.key};
	wanted = (struct wanted){.kind = GATHER_SPLIT,
				 .parent = m.parent,
				 .count = m.count,
				 .world_rank = entry.world_rank};
	if (has_failed(w->server, &wanted, &entry))
		return 0;
	g = gather_find(w->server, &wanted);
	if (!g)
		g = gather_new(w->server, GATHER_SPLIT);
	if (!g) {
		gather_tell_failed(w, m.cookie, ENOMEM, "too many communicators are being made");
		return 0;
	}
	g->parent = m.parent;
	g->count = m.count;
	g->n_ranks = parent->n_ranks;
	g->n_wanted = parent->n_real;
	r = gather_add(g, &entry);
	if (r == 0)
		r = told_add(g, m.color, m.rank, (const char *)body + sizeof(m),
			     h->body_bytes - sizeof(m));
	if (r < 0)
		gather_tell_failed(w, m.cookie, -r,
				   r == -EEXIST ? "this rank split a second time"
						: "nboxd is out of memory");
	if (r == -ENOMEM)
		gather_fail(g, ENOMEM, "out of memory");
	else if (gather_awaited_member(g, parent, NULL))
		gather_fail(g, ECONNRESET, "rank %u of communicator %u has left",
			    gather_awaited_member(g, parent, NULL)->rank, parent->number);
	else if (r == 0 && g->n == g->n_wanted)
		gather_split_complete(g, parent);
	return 0;
}

static bool is_in_list(const struct wanted *w, uint32_t rank)
{
	uint32_t one;

	for (uint32_t i = 0; i < w->n_excluded; i++) {
		memcpy(&one, (const char *)w->excluded + i * sizeof(one), sizeof(one));
		if (one == rank)
			return true;
	}
	return false;
}

/* Calls on one communicator come in the same order everywhere: a shrink that waits for this rank,
 * and one that this rank begins with those who wait. @own: the gather that it would join, or NULL.
 * Return: the other gather, or NULL. */
static struct gather *shrink_against(struct server *s, const struct wanted *w, uint32_t rank,
				     const struct gather *own, uint32_t *ret_who)
{
	struct gather *g;

	DL_FOREACH(s->gathers, g) {
		if (g->kind != GATHER_SHRINK || g->parent != w->parent || excludes_same(g, w) ||
		    gather_has(g, w->world_rank) ||
		    gather_is_excluded(g->excluded, g->n_excluded, rank))
			continue;
		for (uint32_t i = 0; i < g->n; i++) {
			if (is_in_list(w, g->entries[i].rank) ||
			    (own && gather_has(own, g->entries[i].world_rank)))
				continue;
			*ret_who = g->entries[i].rank;
			return g;
		}
	}
	return NULL;
}

/* Return: 0; -ENOMEM. */
static int shrink_start(struct gather *g, const struct comm *parent,
			const struct wire_comm_shrink *m, const void *list)
{
	g->parent = m->parent;
	g->n_ranks = parent->n_ranks;
	g->excluded = calloc((size_t)m->n_excluded + 1, sizeof(*g->excluded));
	if (!g->excluded)
		return -ENOMEM;
	memcpy(g->excluded, list, m->n_excluded * sizeof(*g->excluded));
	g->n_excluded = m->n_excluded;
	for (uint32_t i = 0; i < parent->n_real; i++)
		g->n_wanted +=
			!gather_is_excluded(g->excluded, g->n_excluded, parent->real[i].rank);
	return 0;
}

int gather_on_shrink(struct worker *w, const struct wire_hdr *h, const void *body)
{
	const void *list = (const char *)body + sizeof(struct wire_comm_shrink);
	struct wire_comm_shrink m;
	struct comm_entry entry;
	struct wanted wanted;
	struct gather *g, *against;
	struct comm *parent;
	uint32_t who = 0;
	int r = 0;

	memcpy(&m, body, sizeof(m));
	if (m.parent != h->comm || m.n_excluded > w->server->config->world)
		return worker_refuse(w, EPROTO, "COMM_SHRINK frame: parent or count is wrong");
	parent = find_parent(w, h, m.rank, m.cookie, GATHER_SHRINK);
	if (!parent)
		return 0;
	entry = (struct comm_entry){.worker = w,
				    .rank = m.rank,
				    .world_rank = comm_member(parent, m.rank)->world_rank,
				    .cookie = m.cookie};
	wanted = (struct wanted){.kind = GATHER_SHRINK,
				 .parent = m.parent,
				 .n_excluded = m.n_excluded,
				 .excluded = list,
				 .world_rank = entry.world_rank};
	if (has_failed(w->server, &wanted, &entry))
		return 0;
	g = gather_find(w->server, &wanted);
	against = shrink_against(w->server, &wanted, m.rank, g, &who);
	if (against) {
		if (gather_add(against, &entry) < 0)
			gather_tell_failed(w, m.cookie, ENOMEM, "nboxd is out of memory");
		gather_fail(against, EINVAL, "rank %u excludes other ranks than rank %u", m.rank,
			    who);
		return 0;
	}
	if (!g) {
		g = gather_new(w->server, GATHER_SHRINK);
		if (g)
			r = shrink_start(g, parent, &m, list);
	}
	if (!g || r < 0) {
		gather_tell_failed(w, m.cookie, ENOMEM, "too many communicators are being made");
		if (g)
			gather_free(g);
		return 0;
	}
	r = gather_add(g, &entry);
	if (r < 0)
		gather_tell_failed(w, m.cookie, -r, "nboxd is out of memory");
	if (r < 0)
		gather_fail(g, ENOMEM, "out of memory");
	else if (gather_is_excluded(g->excluded, g->n_excluded, m.rank))
		gather_fail(g, EINVAL, "rank %u excludes itself", m.rank);
	else if (gather_awaited_member(g, parent, NULL))
		gather_fail(g, ECONNRESET, "rank %u is gone and is not excluded",
			    gather_awaited_member(g, parent, NULL)->rank);
	else if (g->n == g->n_wanted)
		gather_shrink_complete(g, parent);
	return 0;
}
