/* See connect.h. */
#include "trace/connect.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define FAR_NS \
	1e17 /* three years between two traces of one job: their clocks have nothing in common */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* --- whose events they are ---------------------------------------------------------------------
 */

/* By a number behind "rank" in the file's name, else 0. */
static uint64_t named_rank(const char *file)
{
	const char *at = base_name(file), *found = NULL;

	while ((at = strcasestr(at, "rank")) != NULL) {
		at += 4;
		found = isdigit((unsigned char)at[0])                            ? at
			: at[0] && isdigit((unsigned char)at[1]) && at[0] != '/' ? at + 1
										 : found;
	}
	return found ? strtoul(found, NULL, 10) : 0;
}

/* What its header says, else its name. Return: 0; -EINVAL with the sentence. */
static int file_ranks(const struct chrome *c, uint64_t *ret_rank, uint64_t *ret_world,
		      struct err *err)
{
	uint64_t rank = named_rank(c->file), world = 0;
	int r = chrome_count(c->info.list, "rank", &rank, err);

	if (r == 0)
		r = chrome_count(c->info.list, "world_size", &world, err);
	if (r == 0 && world > TRACE_RANKS_MAX)
		r = err_set(err, EINVAL, "world_size: %.12g: a world has at most %d ranks",
			    (double)world, TRACE_RANKS_MAX);
	if (r < 0)
		return err_prefix(err, r, "%s: distributedInfo", c->file);
	*ret_rank = rank;
	*ret_world = world;
	return 0;
}

/* Return: 0; -ENOMEM. */
static int file_host(struct chrome *c, const char *host, uint32_t *ret)
{
	const char *name = base_name(c->file), *at = strchr(name, '_');
	char text[256];

	for (; !host && at; at = strchr(at + 1, '_')) {
		size_t digits = strspn(at + 1, "0123456789");

		if (digits && at[1 + digits] == '.' && (size_t)(at - name) < sizeof(text)) {
			snprintf(text, sizeof(text), "%.*s", (int)(at - name), name);
			host = text;
		}
	}
	return trace_add_host(c->t, host ? host : name, ret);
}

static bool is_member(const struct trace_comm *c, uint32_t rank)
{
	bool found = !c->members;

	for (uint32_t i = 0; i < c->n && !found; i++)
		found = c->members[i] == rank;
	return found;
}

/* Whoever takes part in a process group's op is one of its ranks. Return: 0; -EINVAL with the
 * sentence; -ENOMEM. */
static int check_members(const struct chrome *c, struct err *err)
{
	const struct trace *t = c->t;
	CLEANUP(freep) uint32_t *known = malloc(((size_t)t->n_comms + 1) * sizeof(*known));

	if (!known)
		return -ENOMEM;
	memset(known, 0xff, t->n_comms * sizeof(*known));
	for (uint32_t i = c->first; i < t->n_ops; i++) {
		const struct trace_op *o = &t->ops[i];
		uint32_t rank = t->ranks[o->rank].rank;

		if (o->comm >= t->n_comms || known[o->comm] == o->rank)
			continue;
		if (!is_member(&t->comms[o->comm], rank))
			return err_set(err, EINVAL,
				       "%s: '%.80s' at %.3f us is of process group '%.80s', which "
				       "does not have rank %u, whose trace this is",
				       c->file, trace_name(t, o->name),
				       o->start_ns / 1e3 + c->zero_us,
				       trace_name(t, t->comms[o->comm].name), rank);
		known[o->comm] = o->rank;
	}
	return 0;
}

/* Ops' ranks, which are slots until now. Return: 0; -EEXIST, -EINVAL, -EFBIG with the sentence;
 * -ENOMEM. */
static int find_ranks(struct chrome *c, const char *host, struct err *err)
{
	CLEANUP(freep) uint32_t *ranks = calloc(c->n_slots + 1, sizeof(*ranks));
	struct trace *t = c->t;
	uint64_t told = 0, world = 0;
	int r = ranks ? file_ranks(c, &told, &world, err) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < c->n_slots; i++) {
		const struct chrome_slot *s = &c->slots[i];
		uint64_t rank = s->rank == TRACE_NONE ? told : s->rank;
		uint32_t of;

		if (!s->is_used)
			continue;
		if (rank >= TRACE_RANKS_MAX)
			return err_set(err, EINVAL,
				       "%s: is of rank %llu, as its distributedInfo or its name "
				       "says: ranks are below %d",
				       c->file, (unsigned long long)rank, TRACE_RANKS_MAX);
		r = s->host == TRACE_NONE ? file_host(c, host, &of)
					  : trace_add_host(t, trace_name(t, s->host), &of);
		if (r == 0 && t->n_ranks == TRACE_TRACED_MAX)
			return err_set(err, EFBIG, "%s: more than %d ranks", c->file,
				       TRACE_TRACED_MAX);
		if (r == 0)
			r = trace_add_rank(t, (uint32_t)rank, of, &ranks[i]);
		if (r == -EEXIST)
			return err_set(err, EEXIST,
				       "%s: is of rank %u, as what was read before it: a trace "
				       "says whose it is in distributedInfo, or by a name such as "
				       "rank-3.json",
				       c->file, (uint32_t)rank);
	}
	for (uint32_t i = c->first; r == 0 && i < t->n_ops; i++)
		t->ops[i].rank = ranks[t->ops[i].rank];
	if (r == 0 && world > t->world)
		t->world = (uint32_t)world;
	return r < 0 ? r : check_members(c, err);
}

/* --- by number ---------------------------------------------------------------------------------
 */

static int by_id(const void *pa, const void *pb)
{
	const struct chrome_id *a = pa, *b = pb;

	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->op < b->op ? -1 : a->op > b->op;
}

static void sort_ids(struct chrome_ids *ids)
{
	if (ids->n)
		qsort(ids->list, ids->n, sizeof(*ids->list), by_id);
}

/* The first one that is not before @id; n: all are. */
static size_t find_id(const struct chrome_ids *ids, uint32_t slot, uint64_t id)
{
	size_t low = 0, high = ids->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct chrome_id *at = &ids->list[middle];

		if (at->slot < slot || (at->slot == slot && at->id < id))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t op_of(const struct chrome_ids *ids, uint32_t slot, uint64_t id)
{
	size_t i = find_id(ids, slot, id);

	return i < ids->n && ids->list[i].slot == slot && ids->list[i].id == id ? ids->list[i].op
										: TRACE_NONE;
}

/* --- launches, steps, waits --------------------------------------------------------------------
 */

static void find_launches(struct chrome *c)
{
	for (size_t i = 0; i < c->gpu.n; i++) {
		const struct chrome_id *gpu = &c->gpu.list[i];

		c->t->ops[gpu->op].launched_by = op_of(&c->calls, gpu->slot, gpu->id);
	}
}

static int by_time(const void *pa, const void *pb)
{
	const struct chrome_step *a = pa, *b = pb;

	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static uint32_t step_at(const struct chrome *c, uint32_t slot, double ns)
{
	size_t low = 0, high = c->n_steps;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct chrome_step *s = &c->steps[middle];

		if (s->slot < slot || (s->slot == slot && s->start_ns <= ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low && c->steps[low - 1].slot == slot && ns < c->steps[low - 1].end_ns
		       ? c->steps[low - 1].number
		       : TRACE_NONE;
}

/* A GPU's op is of the step that launched it. */
static void find_steps(struct chrome *c)
{
	if (!c->n_steps)
		return;
	qsort(c->steps, c->n_steps, sizeof(*c->steps), by_time);
	for (uint32_t i = c->first; i < c->t->n_ops; i++) {
		struct trace_op *op = &c->t->ops[i];
		const struct trace_op *by =
			op->launched_by == TRACE_NONE ? op : &c->t->ops[op->launched_by];

		if (op->step == TRACE_NONE)
			op->step = step_at(c, op->rank, by->start_ns);
	}
}

static int by_stream(const void *pa, const void *pb, void *ctx)
{
	const struct chrome_id *a = pa, *b = pb;
	const struct trace_op *ops = ctx;

	if (a->slot == b->slot && ops[a->op].stream != ops[b->op].stream)
		return ops[a->op].stream < ops[b->op].stream ? -1 : 1;
	return by_id(pa, pb);
}

/* How many ops of the GPU are before the first one on @stream that a call from @id on launched. */
static size_t find_on_stream(const struct chrome *c, uint32_t slot, uint32_t stream, uint64_t id)
{
	size_t low = 0, high = c->gpu.n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct chrome_id *at = &c->gpu.list[middle];
		uint32_t on = c->t->ops[at->op].stream;

		if (at->slot != slot ? at->slot < slot : on != stream ? on < stream : at->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Return: the op; TRACE_NONE: number @i is none of that stream. */
static uint32_t on_stream(const struct chrome *c, uint32_t slot, uint32_t stream, size_t i)
{
	const struct chrome_id *at = &c->gpu.list[i];

	return i < c->gpu.n && at->slot == slot && c->t->ops[at->op].stream == stream ? at->op
										      : TRACE_NONE;
}

/* Return: 0; -ENOMEM. */
static int add_wait(struct chrome *c, const struct chrome_wait *w)
{
	size_t behind = find_on_stream(c, w->slot, w->on_stream, w->record);
	uint32_t on = behind ? on_stream(c, w->slot, w->on_stream, behind - 1) : TRACE_NONE, op;

	if (on == TRACE_NONE)
		return 0;
	op = w->is_host ? op_of(&c->calls, w->slot, w->id)
			: on_stream(c, w->slot, w->stream,
				    find_on_stream(c, w->slot, w->stream, w->id));
	if (op == TRACE_NONE)
		return 0;
	if (w->is_host)
		c->t->ops[op].kind = TRACE_SYNC;
	return trace_add_wait(c->t, op, on);
}

/* Ops that wait for each other. after: by now it has what an op waited for, not the file's number.
 * Return: 0; -EINVAL with the sentence; -ENOMEM. */
static int check_cycles(struct chrome *c, struct err *err)
{
	uint32_t n = c->t->n_ops - c->first, n_over = 0, n_taken = 0;
	CLEANUP(freep) uint32_t *left = calloc((size_t)n + 1, sizeof(*left));
	CLEANUP(freep) uint32_t *over = calloc((size_t)n + 1, sizeof(*over));

	if (!left || !over)
		return -ENOMEM;
	sort_ids(&c->after);
	for (size_t i = 0; i < c->after.n; i++)
		left[c->after.list[i].op - c->first]++;
	for (uint32_t i = 0; i < n; i++)
		if (!left[i])
			over[n_over++] = i;
	while (n_taken < n_over) {
		uint32_t on = c->first + over[n_taken++];

		for (size_t i = find_id(&c->after, 0, on);
		     i < c->after.n && c->after.list[i].id == on; i++)
			if (!--left[c->after.list[i].op - c->first])
				over[n_over++] = c->after.list[i].op - c->first;
	}
	for (uint32_t i = 0; i < n; i++)
		if (left[i])
			return err_set(err, EINVAL,
				       "%s: '%.80s' at %.3f us waits for itself, by way of what it "
				       "waits for",
				       c->file, trace_name(c->t, c->t->ops[c->first + i].name),
				       c->t->ops[c->first + i].start_ns / 1e3 + c->zero_us);
	return 0;
}

/* Return: 0; -EINVAL with the sentence; -ENOMEM. */
static int find_waits(struct chrome *c, struct err *err)
{
	int r = 0;

	if (c->n_waits && c->gpu.n)
		qsort_r(c->gpu.list, c->gpu.n, sizeof(*c->gpu.list), by_stream, c->t->ops);
	for (size_t i = 0; r == 0 && i < c->n_waits; i++)
		r = add_wait(c, &c->waits[i]);
	for (size_t i = 0; r == 0 && i < c->after.n; i++) {
		struct chrome_id *a = &c->after.list[i];
		uint32_t on = op_of(&c->numbers, a->slot, a->id);

		if (on == TRACE_NONE)
			return err_set(err, EINVAL,
				       "%s: an op waits for op %llu, which is not there", c->file,
				       (unsigned long long)a->id);
		r = trace_add_wait(c->t, a->op, on);
		a->id = on;
		a->slot = 0;
	}
	return r == 0 && c->after.n ? check_cycles(c, err) : r;
}

/* --- times -------------------------------------------------------------------------------------
 */

/* Times count from the first file's zero. Return: 0; -EINVAL with the sentence. */
static int shift(struct chrome *c, struct err *err)
{
	struct trace *t = c->t;
	double base_us = c->base_ns / 1000 + c->zero_us, off;
	uint64_t zero;

	if (!(base_us >= 0 && base_us < 0x1p63 / 1000))
		return err_set(err, EINVAL, "%s: its times begin at %g us: that is none", c->file,
			       base_us);
	zero = c->base_ns + (uint64_t)(int64_t)c->zero_us * 1000;
	if (c->first == 0)
		t->origin_ns = zero;
	off = zero >= t->origin_ns ? (double)(zero - t->origin_ns) : -(double)(t->origin_ns - zero);
	if (fabs(off) > FAR_NS)
		return err_set(err, EINVAL,
			       "%s: its times are %.3g years from those of the other traces: are "
			       "they of one job, and of one form?",
			       c->file, off / 3.15576e16);
	for (uint32_t i = c->first; off != 0 && i < t->n_ops; i++) {
		t->ops[i].start_ns += off;
		t->ops[i].end_ns += off;
	}
	return 0;
}

int chrome_connect(struct chrome *c, const char *host, struct err *err)
{
	int r;

	sort_ids(&c->calls);
	sort_ids(&c->numbers);
	find_launches(c);
	find_steps(c);
	r = find_waits(c, err);
	if (r == 0)
		r = shift(c, err);
	return r < 0 ? r : find_ranks(c, host, err);
}
