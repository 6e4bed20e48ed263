/* See trace.h. */
#include "trace/trace.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/plain.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* of uthash's macros */

#define YEARS_NS 1e18 /* some thirty: a time beyond is none */

/* A name and its number. */
struct word {
	UT_hash_handle hh;
	uint32_t number;
	char text[];
};

struct trace_build {
	struct word *by_name;
	struct word **names; /* by number */
	uint32_t n_names;
	size_t names_size, ops_size, waits_size, calls_size, comms_size, ranks_size, hosts_size;
};

/* Room for one more behind @n. Return: the array, moved perhaps; NULL: no memory. */
static void *room(void *array, size_t n, size_t *size, size_t each)
{
	size_t more = *size ? 2 * *size : 64;
	void *moved;

	if (n < *size)
		return array;
	moved = realloc(array, more * each);
	if (moved)
		*size = more;
	return moved;
}

/* GROW(t->ops, t->n_ops, b->ops_size): false: no memory. */
#define GROW(array, n, size)                                            \
	({                                                              \
		void *moved_ = room(array, n, &(size), sizeof(*array)); \
		if (moved_)                                             \
			(array) = moved_;                               \
		moved_ != NULL;                                         \
	})

static struct trace_build *build_of(struct trace *t)
{
	if (!t->build)
		t->build = calloc(1, sizeof(*t->build));
	return t->build;
}

static struct word *find_word(struct word *words, const char *text)
{
	struct word *w;

	HASH_FIND_STR(words, text, w);
	return w;
}

/* Return: NULL: no memory. */
static struct word *add_word(struct word **words, const char *text, uint32_t number)
{
	size_t n = strlen(text) + 1;
	struct word *w = malloc(sizeof(*w) + n);

	if (!w)
		return NULL;
	memcpy(w->text, text, n);
	w->number = number;
	HASH_ADD_STR(*words, text, w);
	if (!w->hh.tbl) {
		free(w);
		return NULL;
	}
	return w;
}

static void free_words(struct word **words)
{
	struct word *w, *next;

	HASH_ITER(hh, *words, w, next) {
		HASH_DEL(*words, w);
		free(w);
	}
}

const char *trace_name(const struct trace *t, uint32_t name)
{
	return t->build->names[name]->text;
}

const char *trace_kind_name(uint32_t kind)
{
	static const char *const names[TRACE_KINDS] = {"host", "call",       "sync", "compute",
						       "copy", "collective", "send", "recv"};

	return kind < TRACE_KINDS ? names[kind] : "?";
}

uint32_t trace_rank(const struct trace *t, uint32_t rank)
{
	uint32_t low = 0, high = t->n_ranks;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (t->ranks[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->n_ranks && t->ranks[low].rank == rank ? low : TRACE_NONE;
}

void trace_deinit(struct trace *t)
{
	if (t->build) {
		free_words(&t->build->by_name);
		free(t->build->names);
		free(t->build);
	}
	for (uint32_t i = 0; i < t->n_comms; i++)
		free(t->comms[i].members);
	free(t->ops);
	free(t->ranks);
	free(t->hosts);
	free(t->comms);
	free(t->waits);
	free(t->calls);
	free(t->joined);
	free(t->first_joined);
	*t = (struct trace){0};
}

/* --- what it is made of ------------------------------------------------------------------------
 */

static bool is_ascii(const char *text)
{
	while (*text >= ' ' && *text < 0x7f)
		text++;
	return !*text;
}

int trace_add_name(struct trace *t, const char *name, uint32_t *ret)
{
	struct trace_build *b = build_of(t);
	struct word *w = b ? find_word(b->by_name, name) : NULL;
	CLEANUP(freep) char *plain = w || is_ascii(name) ? NULL : strdup(name);

	if (plain && strcmp(plain_text(plain), name) != 0)
		return trace_add_name(t, plain, ret);
	if (!w) {
		if (!b || !GROW(b->names, b->n_names, b->names_size))
			return -ENOMEM;
		w = add_word(&b->by_name, name, b->n_names);
		if (!w)
			return -ENOMEM;
		b->names[b->n_names++] = w;
	}
	*ret = w->number;
	return 0;
}

int trace_add_host(struct trace *t, const char *name, uint32_t *ret)
{
	uint32_t id, i = 0;
	int r = trace_add_name(t, name, &id);

	if (r < 0)
		return r;
	while (i < t->n_hosts && t->hosts[i] != id)
		i++;
	if (i == t->n_hosts) {
		if (!GROW(t->hosts, t->n_hosts, t->build->hosts_size))
			return -ENOMEM;
		t->hosts[t->n_hosts++] = id;
	}
	*ret = i;
	return 0;
}

int trace_add_rank(struct trace *t, uint32_t rank, uint32_t host, uint32_t *ret)
{
	struct trace_build *b = build_of(t);
	uint32_t i = 0;

	while (i < t->n_ranks && t->ranks[i].rank != rank)
		i++;
	*ret = i;
	if (i < t->n_ranks)
		return -EEXIST;
	if (!b || !GROW(t->ranks, t->n_ranks, b->ranks_size))
		return -ENOMEM;
	t->ranks[t->n_ranks++] = (struct trace_rank){.rank = rank, .host = host};
	t->world = rank >= t->world ? rank + 1 : t->world;
	return 0;
}

static bool same_members(const struct trace_comm *c, uint32_t n, const uint32_t *members)
{
	return c->n == n && !c->members == !members &&
	       (!members || memcmp(c->members, members, n * sizeof(*members)) == 0);
}

int trace_add_comm(struct trace *t, const char *name, uint32_t n, const uint32_t *members,
		   uint32_t *ret)
{
	uint32_t id, i = 0;
	uint32_t *copy = NULL;
	int r = trace_add_name(t, name, &id);

	if (r < 0)
		return r;
	while (i < t->n_comms &&
	       !(t->comms[i].name == id && same_members(&t->comms[i], n, members)))
		i++;
	*ret = i;
	if (i < t->n_comms)
		return 0;
	if (!GROW(t->comms, t->n_comms, t->build->comms_size))
		return -ENOMEM;
	if (members) {
		copy = malloc((n + 1) * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, members, n * sizeof(*copy));
	}
	t->comms[t->n_comms++] = (struct trace_comm){.name = id, .n = n, .members = copy};
	return 0;
}

int trace_add_op(struct trace *t, const struct trace_op *op, uint32_t *ret, struct err *err)
{
	struct trace_build *b = build_of(t);

	if (!(fabs(op->start_ns) < YEARS_NS && fabs(op->end_ns) < YEARS_NS))
		return err_set(err, EINVAL, "its time is none");
	if (op->end_ns < op->start_ns)
		return err_set(err, EINVAL, "it ends %g us before it begins",
			       (op->start_ns - op->end_ns) / 1e3);
	if (t->n_ops == TRACE_OPS_MAX)
		return err_set(err, EFBIG,
			       "more than %d ops: profile fewer steps, or merge fewer ranks",
			       TRACE_OPS_MAX);
	if (!b || !GROW(t->ops, t->n_ops, b->ops_size))
		return -ENOMEM;
	t->ops[t->n_ops] = *op;
	t->ops[t->n_ops].parent = t->ops[t->n_ops].join = TRACE_NONE;
	t->ops[t->n_ops].first_wait = t->ops[t->n_ops].n_waits = 0;
	if (ret)
		*ret = t->n_ops;
	t->n_ops++;
	return 0;
}

int trace_add_wait(struct trace *t, uint32_t op, uint32_t on)
{
	struct trace_build *b = build_of(t);

	if (!b || !GROW(t->waits, t->n_waits, b->waits_size))
		return -ENOMEM;
	t->waits[t->n_waits++] = (struct trace_wait){op, on};
	return 0;
}

int trace_add_call(struct trace *t, const struct trace_call *call)
{
	struct trace_build *b = build_of(t);

	if (!b || !GROW(t->calls, t->n_calls, b->calls_size))
		return -ENOMEM;
	t->calls[t->n_calls++] = *call;
	return 0;
}
