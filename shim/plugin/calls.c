/* See calls.h. An expected call lies in two lists: of its bucket, oldest first, and of all. NCCL
 * runs the calls of a group in an order of its own, so a match may be anywhere. */
#include "shim/plugin/calls.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"
#include "shim/progress/play.h"

#define NAME "nbox-"
#define BEGUN_KEPT 1024
/* Calls that NCCL never tells of are forgotten when so many newer ones are expected. */
#define EXPECTED_MOST (1u << 20)

static struct {
	pthread_mutex_t lock;
	struct bound *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- communicators -------------------------------------------------------------------- */

static void free_list(struct call *c)
{
	while (c) {
		struct call *next = c->next;

		free(c);
		c = next;
	}
}

struct kept {
	struct kept *next;
	max_align_t memory[];
};

void *bound_alloc(struct bound *b, size_t bytes)
{
	struct kept *k = malloc(sizeof(*k) + bytes);

	if (!k)
		return NULL;
	k->next = b->kept;
	b->kept = k;
	return k->memory;
}

static void bound_free(struct bound *b)
{
	for (size_t i = 0; i < CALL_BUCKETS; i++)
		free_list(b->expected[i].first);
	free_list(b->begun.first);
	free_list(b->free_calls);
	while (b->kept) {
		struct kept *next = b->kept->next;

		free(b->kept);
		b->kept = next;
	}
	comm_unref(b->comm);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

int plugin_bind(struct comm *c, const char **ret_name, struct err *err)
{
	struct bound *b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(err, ENOMEM, "no memory for a communicator of NCCL");
	b->users = 1;
	b->comm = comm_ref(c);
	snprintf(b->name, sizeof(b->name), NAME "%u", c->number);
	*ret_name = b->name;
	pthread_mutex_init(&b->lock, NULL);
	for (size_t i = 0; i < CALL_BUCKETS; i++)
		b->expected[i].last = &b->expected[i].first;
	b->newest = &b->oldest;
	b->begun.last = &b->begun.first;
	pthread_mutex_lock(&all.lock);
	b->next = all.first;
	all.first = b;
	pthread_mutex_unlock(&all.lock);
	return 0;
}

/* Under the lock. */
static struct bound **slot_of(const struct comm *c)
{
	struct bound **p = &all.first;

	while (*p && (*p)->comm != c)
		p = &(*p)->next;
	return p;
}

void bound_drop(struct bound *b)
{
	bool is_last;

	if (!b)
		return;
	pthread_mutex_lock(&all.lock);
	is_last = --b->users == 0;
	pthread_mutex_unlock(&all.lock);
	if (is_last)
		bound_free(b);
}

void plugin_unbind(struct comm *c)
{
	struct bound **slot, *b;

	pthread_mutex_lock(&all.lock);
	slot = slot_of(c);
	b = *slot;
	if (b)
		*slot = b->next;
	pthread_mutex_unlock(&all.lock);
	bound_drop(b);
}

static unsigned int is_p2p(uint64_t seq)
{
	return (seq & WIRE_SEQ_P2P) != 0;
}

void calls_passed(struct comm *c, uint64_t seq)
{
	struct bound *b;

	pthread_mutex_lock(&all.lock);
	b = *slot_of(c);
	/* relaxed: a late look keeps a call for longer */
	if (b)
		atomic_store_explicit(&b->passed[is_p2p(seq)], seq + 1, memory_order_relaxed);
	pthread_mutex_unlock(&all.lock);
}

static bool has_passed(struct bound *b, uint64_t seq)
{
	return atomic_load_explicit(&b->passed[is_p2p(seq)], memory_order_relaxed) > seq;
}

/* --- expected calls ------------------------------------------------------------------ */

static struct call_list *bucket(struct bound *b, uint32_t kind, bool is_send, uint64_t bytes,
				uint32_t root)
{
	uint64_t key = bytes * 2 + is_send;

	if (kind == COLL_SENDRECV || coll_has_root(kind))
		key += (uint64_t)root << 40;
	return &b->expected[((key + kind) * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

static struct call *new_call(struct bound *b)
{
	struct call *c = b->free_calls;

	if (!c)
		return malloc(sizeof(*c));
	b->free_calls = c->next;
	return c;
}

static void free_call(struct bound *b, struct call *c)
{
	c->kind = HANDLE_NONE;
	c->next = b->free_calls;
	b->free_calls = c;
}

/* Out of both lists; @p: where its bucket's list has it. */
static struct call *take(struct bound *b, struct call_list *l, struct call **p)
{
	struct call *c = *p;

	*p = c->next;
	if (l->last == &c->next)
		l->last = p;
	*c->to_self = c->newer;
	if (c->newer)
		c->newer->to_self = c->to_self;
	else
		b->newest = c->to_self;
	b->n_expected--;
	return c;
}

static struct call_list *bucket_of(struct bound *b, const struct call *c)
{
	return bucket(b, c->is.kind, c->is.is_send, c->bytes, c->is.root);
}

static void forget_oldest(struct bound *b)
{
	struct call_list *l = bucket_of(b, b->oldest);
	struct call **p = &l->first;

	while (*p != b->oldest)
		p = &(*p)->next;
	free_call(b, take(b, l, p));
}

/* Under the lock. */
static int expect(struct bound *b, const struct plugin_call *is)
{
	struct call_list *l;
	struct call *c;

	if (b->n_expected == EXPECTED_MOST)
		forget_oldest(b);
	c = new_call(b);
	if (!c)
		return -ENOMEM;
	*c = (struct call){.kind = HANDLE_CALL,
			   .of = b,
			   .is = *is,
			   .bytes = is->count * coll_dtype_bytes((uint32_t)is->dtype),
			   .to_self = b->newest};
	*b->newest = c;
	b->newest = &c->newer;
	l = bucket_of(b, c);
	*l->last = c;
	l->last = &c->next;
	b->n_expected++;
	return 0;
}

int plugin_expect(struct comm *c, const struct plugin_call *call, struct err *err)
{
	struct bound *b;
	int r;

	pthread_mutex_lock(&all.lock);
	b = *slot_of(c);
	pthread_mutex_unlock(&all.lock);
	if (!b)
		return 0; /* NCCL has no such communicator, and tells nothing of it */
	pthread_mutex_lock(&b->lock);
	r = expect(b, call);
	pthread_mutex_unlock(&b->lock);
	return r ? err_set(err, ENOMEM, "no memory for a call of NCCL") : 0;
}

/* --- calls that have begun --------------------------------------------------------------- */

static const char *const dtype_names[COLL_DTYPES] = {
	[COLL_INT8] = "ncclInt8",
	[COLL_INT32] = "ncclInt32",
	[COLL_UINT32] = "ncclUint32",
	[COLL_INT64] = "ncclInt64",
	[COLL_UINT64] = "ncclUint64",
	[COLL_FLOAT16] = "ncclFloat16",
	[COLL_FLOAT32] = "ncclFloat32",
	[COLL_FLOAT64] = "ncclFloat64",
	[COLL_BFLOAT16] = "ncclBfloat16",
	[COLL_FLOAT8E4M3] = "ncclFloat8e4m3",
	[COLL_FLOAT8E5M2] = "ncclFloat8e5m2",
};

const char *call_dtype_name(uint32_t dtype)
{
	return dtype < COLL_DTYPES ? dtype_names[dtype] : NULL;
}

/* -1: not known. */
static int dtype_of(const char *name)
{
	for (int i = 0; i < COLL_DTYPES; i++)
		if (dtype_names[i] && name && !strcmp(name, dtype_names[i]))
			return i;
	return -1;
}

static bool fits(const struct call *c, const struct call_event *e, uint64_t bytes, int dtype)
{
	const struct plugin_call *is = &c->is;

	if (is->kind != e->kind || is->is_send != e->is_send || c->bytes != bytes)
		return false;
	if (dtype >= 0 && coll_reduces(is->kind) && (int)is->dtype != dtype)
		return false;
	if ((is->kind == COLL_SENDRECV || coll_has_root(is->kind)) && is->root != e->root)
		return false;
	return (!is->send || is->send == e->send) && (!is->recv || is->recv == e->recv);
}

/* Where the first expected call is that @e fits; NULL there: none. Under the lock of @b. */
static struct call **look_up(struct bound *b, const struct call_event *e, struct call_list **ret)
{
	int dtype = dtype_of(e->dtype);
	uint64_t bytes = e->count * (dtype < 0 ? 1 : coll_dtype_bytes((uint32_t)dtype));
	struct call_list *l = bucket(b, e->kind, e->is_send, bytes, e->root);
	struct call **p = &l->first;

	while (*p && !fits(*p, e, bytes, dtype))
		p = &(*p)->next;
	*ret = l;
	return p;
}

static bool expects(struct bound *b, const struct call_event *e)
{
	struct call_list *l;
	bool is_found;

	pthread_mutex_lock(&b->lock);
	is_found = *look_up(b, e, &l) != NULL;
	pthread_mutex_unlock(&b->lock);
	return is_found;
}

uint32_t plugin_number(const char *name)
{
	bool is_ours = name && !strncmp(name, NAME, sizeof(NAME) - 1);

	return is_ours ? (uint32_t)strtoul(name + sizeof(NAME) - 1, NULL, 10) : 0;
}

static bool may_be(const struct bound *b, const struct named *n)
{
	return !b->has_number && b->comm->rank == n->rank &&
	       (!n->ours || b->comm->number == n->ours) &&
	       (!n->n_ranks || b->comm->n_ranks == n->n_ranks);
}

/* Under the lock of all. */
static struct bound *learn(const struct named *n, const struct call_event *e)
{
	struct bound *found = NULL;

	for (struct bound *b = all.first; b; b = b->next)
		if (b->has_number && b->number == n->number && b->comm->rank == n->rank)
			return b;
	for (struct bound *b = all.first; b; b = b->next) {
		if (!may_be(b, n) || (e && (found || !expects(b, e))))
			continue;
		if (found)
			return NULL; /* which of them shows with a call */
		found = b;
	}
	if (found) {
		found->has_number = true;
		found->number = n->number;
	}
	return found;
}

struct bound *bound_use(const struct named *n, const struct call_event *e)
{
	struct bound *b;

	pthread_mutex_lock(&all.lock);
	b = learn(n, e);
	if (b)
		b->users++;
	pthread_mutex_unlock(&all.lock);
	return b;
}

bool bound_may_be(const struct named *n)
{
	struct bound *b;

	pthread_mutex_lock(&all.lock);
	for (b = all.first; b && !may_be(b, n); b = b->next)
		;
	pthread_mutex_unlock(&all.lock);
	return b;
}

/* Under the lock: of the oldest, those are free that are over. */
static void add_begun(struct bound *b, struct call *c)
{
	c->next = NULL;
	*b->begun.last = c;
	b->begun.last = &c->next;
	b->n_begun++;
	while (b->n_begun > BEGUN_KEPT && has_passed(b, b->begun.first->is.seq)) {
		struct call *over = b->begun.first;

		b->begun.first = over->next;
		b->n_begun--;
		free_call(b, over);
	}
}

struct call *call_match(struct bound *b, const struct call_event *e)
{
	struct call *c = NULL, **p;
	struct call_list *l;

	pthread_mutex_lock(&b->lock);
	p = look_up(b, e, &l);
	if (*p) {
		c = take(b, l, p);
		add_begun(b, c);
	}
	pthread_mutex_unlock(&b->lock);
	return c;
}

void call_told(struct call *c)
{
	bool is_known = c->algorithm < PLUGIN_N_ALGORITHMS && c->protocol < PLUGIN_N_PROTOCOLS;
	struct wire_took took = {c->algorithm, c->protocol, c->n_channels, 0};

	/* one that NCCL tells too late of may be another op by now */
	if (c->is.op && c->is.op->called_seq == c->is.seq)
		play_decided(c->is.op, is_known ? &took : NULL);
}

struct call *call_stray(struct bound *b, const struct call_event *e)
{
	struct call *c;

	pthread_mutex_lock(&b->lock);
	c = new_call(b);
	if (c) {
		*c = (struct call){.kind = HANDLE_CALL, .of = b, .is = {.kind = e->kind}};
		add_begun(b, c);
	}
	pthread_mutex_unlock(&b->lock);
	return c;
}
