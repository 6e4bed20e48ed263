/* See solver.h. The raw times of the last 64 ops are kept, found by communicator, schedule and
 * border. The op that was not used for longest goes first, also when the kept border times exceed a
 * limit. */
#include "engine/solver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number-table.h"
#include "engine/solve-p2p.h"
#include "engine/solve-parts.h"
#include "engine/solve.h"

#define N_KEPT 64
#define MAX_KEPT_TIMES (UINT64_C(1) << 22) /* 32 MiB of doubles */
#define MAX_KEPT_LINKS (UINT64_C(1) << 22) /* of usages: 160 MiB; then all are forgotten */
#define OF_KEY 5                           /* links as large as what is kept besides */

struct key {
	uint32_t comm, kind, algo, n_ranks, root, ranks_per_node, n_channels, elem_bytes, slices;
	struct sched_took took;
	uint32_t has_border, zero;
	uint64_t bytes, chunk_bytes;
	uint64_t n_in, n_in_messages, border_hash;
	uint64_t phase; /* delay_phase() */
};

struct kept {
	struct key key;
	struct timing raw;    /* owned */
	struct ends *ends[2]; /* references, or NULL; [1]: plain ones */
	uint64_t used;        /* 0: empty; else when, in look-ups */
};

struct kept_usage {
	struct key key;      /* without a border */
	struct usage *usage; /* a reference; NULL: forgotten */
	uint32_t before;     /* place + 1 of the one before of its communicator; 0: none */
};

struct solver {
	const struct topology *topology;
	struct delay_chain *delay;
	struct kept kept[N_KEPT];
	struct kept_usage *usages;   /* owned */
	struct number_table of_hash; /* of a key: its place among @usages + 1 */
	struct number_table of_comm; /* of a number + 1: the place of its last one + 1 */
	uint32_t n_usages, n_room, n_forgotten;
	uint64_t n_links;
	uint64_t n_lookups, n_times;
};

int solver_new(const struct topology *t, struct delay_chain *d, struct solver **ret)
{
	struct solver *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->topology = t;
	s->delay = d;
	*ret = s;
	return 0;
}

static uint64_t n_times(const struct timing *t)
{
	return t->at ? t->offset[t->n_in] : 0;
}

static void drop(struct solver *s, struct kept *k)
{
	s->n_times -= n_times(&k->raw);
	timing_deinit(&k->raw);
	for (int i = 0; i < 2; i++)
		k->ends[i] = ends_unref(k->ends[i]);
	k->used = 0;
}

static void drop_usages(struct solver *s)
{
	for (uint32_t i = 0; i < s->n_usages; i++)
		usage_unref(s->usages[i].usage);
	number_table_deinit(&s->of_hash);
	number_table_deinit(&s->of_comm);
	s->n_usages = s->n_forgotten = 0;
	s->n_links = 0;
}

struct solver *solver_free(struct solver *s)
{
	if (s) {
		for (int i = 0; i < N_KEPT; i++)
			drop(s, &s->kept[i]);
		drop_usages(s);
		free(s->usages);
		free(s);
	}
	return NULL;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

/* All fields are set by assignment to zeroed memory, so that keys compare as bytes. */
static void key_make(struct key *k, const struct solver *of, uint32_t comm, const struct sched *s,
		     const struct border *b)
{
	uint32_t i;

	memset(k, 0, sizeof(*k));
	k->comm = comm;
	k->kind = s->kind;
	k->algo = s->algo;
	k->n_ranks = s->n_ranks;
	k->root = s->root;
	k->ranks_per_node = s->ranks_per_node;
	k->n_channels = s->n_channels;
	k->elem_bytes = s->elem_bytes;
	k->slices = s->slices;
	k->took = s->took;
	k->bytes = s->bytes;
	k->chunk_bytes = s->chunk_bytes;
	k->has_border = b != NULL;
	k->phase = delay_phase(of->delay);
	k->n_in = b ? b->n_in : 0;
	k->n_in_messages = b ? b->n_in_messages : 0;
	for (i = 0; b && i < b->n_in; i++) {
		k->border_hash = mix(k->border_hash, (uint64_t)b->in[i].src << 32 | b->in[i].dst);
		k->border_hash = mix(k->border_hash, b->in[i].lane);
		k->border_hash = mix(k->border_hash, b->in[i].n_messages);
	}
}

static struct kept *find(struct solver *s, const struct key *key)
{
	s->n_lookups++;
	for (int i = 0; i < N_KEPT; i++) {
		if (s->kept[i].used && memcmp(&s->kept[i].key, key, sizeof(*key)) == 0) {
			s->kept[i].used = s->n_lookups;
			return &s->kept[i];
		}
	}
	return NULL;
}

/* Room for one more, with @more times. */
static struct kept *make_room(struct solver *s, uint64_t more)
{
	for (;;) {
		struct kept *oldest = &s->kept[0];

		for (int i = 1; i < N_KEPT; i++)
			if (s->kept[i].used < oldest->used)
				oldest = &s->kept[i];
		if (!oldest->used && s->n_times + more <= MAX_KEPT_TIMES)
			return oldest;
		while (!oldest->used) { /* there is room, but too many times: the oldest in use */
			for (int i = 0; i < N_KEPT; i++)
				if (s->kept[i].used &&
				    (!oldest->used || s->kept[i].used < oldest->used))
					oldest = &s->kept[i];
			if (!oldest->used)
				return NULL;
		}
		drop(s, oldest);
	}
}

static int copy(const struct timing *from, struct timing *ret)
{
	struct timing t = *from;

	t.at = NULL;
	t.offset = NULL;
	if (from->at) {
		t.at = malloc((n_times(from) + 1) * sizeof(*t.at));
		t.offset = malloc(((size_t)from->n_in + 1) * sizeof(*t.offset));
		if (!t.at || !t.offset) {
			timing_deinit(&t);
			return -ENOMEM;
		}
		memcpy(t.at, from->at, n_times(from) * sizeof(*t.at));
		memcpy(t.offset, from->offset, ((size_t)from->n_in + 1) * sizeof(*t.offset));
	}
	*ret = t;
	return 0;
}

/* Keeps a copy; without memory for it nothing is kept. */
static void keep(struct solver *s, const struct key *key, const struct timing *raw)
{
	struct kept *k;

	if (n_times(raw) > MAX_KEPT_TIMES / 4)
		return;
	k = make_room(s, n_times(raw));
	if (!k || copy(raw, &k->raw))
		return;
	k->key = *key;
	k->used = s->n_lookups;
	s->n_times += n_times(raw);
}

int solver_solve(struct solver *s, uint32_t comm, const struct sched *sched,
		 const struct membership *m, const struct border *border, uint64_t op_number,
		 struct timing *ret, struct err *err)
{
	struct timing t = {0};
	struct kept *known;
	struct price p;
	struct key key;
	int r;

	if (!delay_is_steady(s->delay))
		return solve(sched, s->topology, m, s->delay, border, op_number, 0, ret, err);

	price_init(&p, sched, s->topology, m, s->delay, op_number, err);
	key_make(&key, s, comm, sched, border);
	known = find(s, &key);
	if (known) {
		r = copy(&known->raw, &t);
		if (r)
			return err_set(err, ENOMEM, "no memory for the times of an op");
	} else {
		r = solve_raw(sched, &p, border, 0, &t, err);
		if (!r)
			keep(s, &key, &t);
	}
	if (!r)
		r = solve_finish(&p, border, &t, err);
	if (r)
		timing_deinit(&t);
	else
		*ret = t;
	return r;
}

int solver_ends(struct solver *s, uint32_t comm, const struct sched *sched,
		const struct membership *m, const struct border *border, uint64_t op_number,
		const struct timing *timing, bool is_plain, struct ends **ret, struct err *err)
{
	struct kept *known = NULL;
	struct ends *e;
	struct key key;
	int r;

	if (delay_is_steady(s->delay)) {
		key_make(&key, s, comm, sched, border);
		known = find(s, &key);
	}
	if (known && known->ends[is_plain]) {
		*ret = ends_ref(known->ends[is_plain]);
		return 0;
	}
	r = ends_new(sched, s->topology, m, s->delay, op_number, timing, is_plain, &e, err);
	if (r)
		return r;
	if (known)
		known->ends[is_plain] = ends_ref(e);
	*ret = e;
	return 0;
}

static uint64_t hash_of(const struct key *k)
{
	uint64_t words[sizeof(*k) / sizeof(uint64_t)], h = 0;

	memcpy(words, k, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		h = mix(h, words[i]);
	return h | 1;
}

_Static_assert(sizeof(struct key) % sizeof(uint64_t) == 0, "hash_of() reads words");

/* At the end of @usages, where there is room. Takes the reference. Of keys with one hash the last
 * one is found. */
static int file(struct solver *s, const struct key *key, struct usage *usage)
{
	uint32_t *of_hash = number_table_at(&s->of_hash, hash_of(key));
	uint32_t *of_comm = number_table_at(&s->of_comm, (uint64_t)key->comm + 1);

	if (!of_hash || !of_comm)
		return -ENOMEM;
	s->usages[s->n_usages++] = (struct kept_usage){*key, usage, *of_comm};
	s->n_links += usage->n + OF_KEY;
	*of_hash = *of_comm = s->n_usages;
	return 0;
}

/* Takes the reference. */
static int keep_usage(struct solver *s, const struct key *key, struct usage *usage)
{
	if (s->n_links + usage->n + OF_KEY > MAX_KEPT_LINKS)
		drop_usages(s);
	if (s->n_usages == s->n_room) {
		uint32_t more = s->n_room ? 2 * s->n_room : 16;
		struct kept_usage *usages = realloc(s->usages, more * sizeof(*usages));

		if (!usages)
			return -ENOMEM;
		s->usages = usages;
		s->n_room = more;
	}
	return file(s, key, usage);
}

/* Without those that are forgotten. */
static void file_anew(struct solver *s)
{
	uint32_t n = s->n_usages;

	number_table_deinit(&s->of_hash);
	number_table_deinit(&s->of_comm);
	s->n_usages = s->n_forgotten = 0;
	s->n_links = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct kept_usage u = s->usages[i];

		if (u.usage && file(s, &u.key, u.usage) < 0)
			usage_unref(u.usage);
	}
}

void solver_forget(struct solver *s, uint32_t comm)
{
	uint32_t place = number_table_get(&s->of_comm, (uint64_t)comm + 1);

	while (place) {
		struct kept_usage *u = &s->usages[place - 1];

		s->n_links -= u->usage->n;
		u->usage = usage_unref(u->usage);
		s->n_forgotten++;
		place = u->before;
	}
	if (2 * s->n_forgotten > s->n_usages)
		file_anew(s);
	else if (number_table_get(&s->of_comm, (uint64_t)comm + 1))
		*number_table_at(&s->of_comm, (uint64_t)comm + 1) = 0;
}

static struct usage *find_usage(const struct solver *s, const struct key *key)
{
	uint32_t place = number_table_get(&s->of_hash, hash_of(key));

	return place && memcmp(&s->usages[place - 1].key, key, sizeof(*key)) == 0
		       ? s->usages[place - 1].usage
		       : NULL;
}

static int keep_or_drop(struct solver *s, const struct key *key, struct usage **ret,
			struct err *err)
{
	if (keep_usage(s, key, *ret) == 0)
		return 0;
	*ret = usage_unref(*ret);
	return err_set(err, ENOMEM, "no memory for what an op puts on its links");
}

int solver_usage(struct solver *s, uint32_t comm, const struct sched *sched,
		 const struct membership *m, uint64_t op_number, const struct usage_images *images,
		 struct usage **ret, struct err *err)
{
	struct key key;
	int r;

	key_make(&key, s, comm, sched, NULL);
	*ret = find_usage(s, &key);
	if (*ret)
		return 0;
	r = usage_of_op(sched, s->topology, m, s->delay, op_number, images, ret, err);
	return r ? r : keep_or_drop(s, &key, ret, err);
}

int solver_p2p_usage(struct solver *s, uint32_t comm, const struct p2p_calls *c,
		     const struct membership *m, uint64_t op_number,
		     const struct usage_images *images, const struct usage_copies *copies,
		     struct usage **ret, struct err *err)
{
	struct key key;
	int r;

	memset(&key, 0, sizeof(key));
	key.comm = comm;
	key.phase = delay_phase(s->delay);
	key.kind = COLL_SENDRECV;
	key.n_ranks = c->n_ranks;
	key.chunk_bytes = c->chunk_bytes;
	key.border_hash = mix(key.border_hash, c->is_received);
	for (uint32_t i = 0; i < c->n_ranks; i++) {
		key.border_hash = mix(key.border_hash, (uint64_t)c->ranks[i] << 32 | c->n_calls[i]);
		key.n_in += c->n_calls[i];
		for (uint32_t k = 0; k < c->n_calls[i]; k++) {
			const struct sched_p2p *call = &c->calls[i][k];

			key.border_hash =
				mix(key.border_hash, (uint64_t)call->peer << 1 | call->is_send);
			key.border_hash = mix(key.border_hash, call->bytes);
		}
	}
	*ret = find_usage(s, &key);
	if (*ret)
		return 0;
	r = solve_p2p_usage(c->ranks, c->n_ranks, c->calls, c->n_calls, c->chunk_bytes, s->topology,
			    m, s->delay, op_number, images, copies, c->is_received, ret, err);
	return r ? r : keep_or_drop(s, &key, ret, err);
}
