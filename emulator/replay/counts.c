/* See counts.h. */
#include "replay/counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "replay/calls.h"

#define HOW_NOT COUNTS_HOWS /* nothing changes */

/* --- shards ----------------------------------------------------------------------------------- */

/* What a reduce-scatter leaves to a rank, in a communicator that changes its size. An all-reduce of
 * as much, in another one, adds up these shards across copies of the model (hsdp). */
struct shard {
	uint64_t count;
	uint32_t world_rank, dtype;
	const struct record_comm *of;
	uint32_t size; /* of that in the new world */
};

struct shards {
	struct shard *list; /* owned; each once */
	size_t n;
};

static void shards_deinit(struct shards *s)
{
	free(s->list);
}

static const struct shard *find_shard(const struct shards *s, const struct record_op *op)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].count == op->count && s->list[i].dtype == op->dtype &&
		    s->list[i].world_rank == op->world_rank)
			return &s->list[i];
	return NULL;
}

static int shards_init(const struct counts_ask *x, struct shards *s, struct err *err)
{
	for (uint64_t i = 0; i < x->rec->n_ops; i++) {
		const struct record_op *op = &x->rec->ops[i];
		uint32_t size = x->maps[op->of - x->rec->comms].n_ranks;
		struct shard *grown;

		if (op->kind != COLL_REDUCESCATTER || size == op->of->n_ranks || find_shard(s, op))
			continue;
		grown = reallocarray(s->list, s->n + 1, sizeof(*grown));
		if (!grown)
			return err_set(err, ENOMEM, "out of memory");
		s->list = grown;
		s->list[s->n++] =
			(struct shard){op->count, op->world_rank, op->dtype, op->of, size};
	}
	return 0;
}

/* --- one count -------------------------------------------------------------------------------- */

/* An op, in this record and in those where it has its like. */
struct seen {
	const struct record_op *op;   /* in the first */
	const struct record_op **ops; /* owned; that and the others */
	const struct world **worlds;  /* owned; of each, borrowed */
	struct law_sample *samples;   /* owned; sizes are filled */
	size_t n;
	uint32_t size;               /* that is asked for */
	const struct membership *to; /* its communicator, borrowed */
	bool is_resized;             /* that has another number of ranks */
	bool is_unseen;            /* an axis of the layout changes that no other record changes */
	const struct shard *shard; /* whose sum over copies of the model it is; NULL: it is none */
};

static void seen_deinit(struct seen *s)
{
	free(s->ops);
	free(s->worlds);
	free(s->samples);
}

static int seen_init(const struct counts_ask *x, struct seen *s, struct err *err)
{
	size_t n = x->sizes ? x->sizes->n : 0;

	s->ops = calloc(n + 1, sizeof(*s->ops));
	s->worlds = calloc(n + 1, sizeof(*s->worlds));
	s->samples = calloc(n + 1, sizeof(*s->samples));
	return s->ops && s->worlds && s->samples ? 0 : err_set(err, ENOMEM, "out of memory");
}

/* Along the axis @k of layout @i no record says anything of the new world. */
static bool is_axis_unseen(const struct counts_ask *x, size_t i, uint32_t k)
{
	uint32_t size = x->from->layouts[i].axis[k].size;
	bool is_seen = x->to->layouts[i].axis[k].size == size;

	for (size_t n = 0; n < x->sizes->n; n++)
		is_seen |= x->sizes->others[n].world.layouts[i].axis[k].size != size;
	return !is_seen;
}

static bool has_unseen_axis(const struct counts_ask *x)
{
	bool has = false;

	for (size_t i = 0; x->sizes && i < x->from->n_layouts; i++)
		for (uint32_t k = 0; k < x->from->layouts[i].n_axes; k++)
			has |= is_axis_unseen(x, i, k);
	return has;
}

static void see(const struct counts_ask *x, const struct shards *shards, uint64_t index,
		struct seen *s)
{
	bool is_of_comm = false;

	s->op = s->ops[0] = &x->rec->ops[index];
	s->worlds[0] = x->from;
	s->n = 1;
	for (size_t i = 0; x->sizes && i < x->sizes->n; i++) {
		const struct sizes_other *o = &x->sizes->others[i];

		if (o->same[index] == SIZES_NONE)
			continue;
		s->worlds[s->n] = &o->world;
		s->ops[s->n++] = &o->rec->ops[o->same[index]];
	}
	for (size_t i = 1; i < s->n; i++)
		is_of_comm |= s->ops[i]->of->n_ranks != s->op->of->n_ranks;
	s->to = &x->maps[s->op->of - x->rec->comms];
	s->is_resized = s->to->n_ranks != s->op->of->n_ranks;
	if (s->is_resized && !is_of_comm)
		s->n = 1; /* of this size alone there is a record */
	/* where the communicator is of one size everywhere, the world around it changes */
	is_of_comm |= s->n == 1;
	for (size_t i = 0; i < s->n; i++)
		s->samples[i].size = is_of_comm ? s->ops[i]->of->n_ranks : s->worlds[i]->size;
	s->size = is_of_comm ? s->to->n_ranks : x->to->size;
	s->shard = s->op->kind == COLL_ALLREDUCE ? find_shard(shards, s->op) : NULL;
	if (s->shard && s->shard->of == s->op->of)
		s->shard = NULL;
}

static int refuse(const struct seen *s, const char *why, struct err *err)
{
	return err_set(err, EINVAL,
		       "communicator %u has %u ranks in the new world instead of %u, and %s in it: "
		       "%s; nbox run plays the job there",
		       s->op->comm, s->to->n_ranks, s->op->of->n_ranks, coll_kind_name(s->op->kind),
		       why);
}

static int refuse_fit(const struct seen *s, struct err *err)
{
	return err_set(
		err, EINVAL,
		"op %llu of communicator %u (%s): no law goes through its counts, which are %llu "
		"with %u ranks and %llu with %u, and gives one with %u",
		(unsigned long long)s->op->seq, s->op->comm, coll_kind_name(s->op->kind),
		(unsigned long long)s->samples[0].count, s->samples[0].size,
		(unsigned long long)s->samples[s->n - 1].count, s->samples[s->n - 1].size, s->size);
}

/* What one record says of @kind. */
static enum law_kind assume(uint32_t kind)
{
	switch ((enum coll_kind)kind) {
	case COLL_ALLREDUCE:
	case COLL_BROADCAST:
	case COLL_REDUCE:
	case COLL_SENDRECV:
		return LAW_KEEP;
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
		return LAW_TOTAL;
	case COLL_ALLTOALL:
	case COLL_GATHER:
	case COLL_SCATTER:
	case COLL_KINDS:
		break;
	}
	return LAW_NONE;
}

/* An all-reduce among copies of the model where these share it with others, whose number changes:
 * nothing in its own communicator says whether its counts are those of shards. */
static bool is_beside(const struct counts_ask *x, const struct seen *s)
{
	uint32_t number = s->op->of->axes >> 8, bits = s->op->of->axes & 0xff;
	const struct layout *was, *is;
	bool changes = false;

	if (!bits || number >= x->from->n_layouts || number >= x->to->n_layouts ||
	    s->op->kind != COLL_ALLREDUCE)
		return false;
	was = &x->from->layouts[number];
	is = &x->to->layouts[number];
	for (uint32_t k = 0; k < was->n_axes; k++) {
		if (bits >> k & 1 && !layout_is_data_parallel(was->axis[k].name))
			return false;
		changes |= was->axis[k].size != is->axis[k].size;
	}
	return changes;
}

/* The count at s->size by s->samples, whose counts are filled. */
static int find_count(const struct counts_ask *x, const struct seen *s, uint32_t kind,
		      struct law *ret_law, enum counts_how *ret_how, uint64_t *ret, struct err *err)
{
	enum law_kind declared = x->declared ? (enum law_kind)x->declared->law[kind] : LAW_NONE;
	const struct law_sample own = {s->op->of->n_ranks, s->samples[0].count};
	uint32_t size = s->size;
	bool is_law;
	char why[256];

	*ret_how = HOW_NOT;
	if (s->is_resized && declared != LAW_NONE) {
		*ret_how = COUNTS_DECLARED;
		is_law = law_make(declared, &own, 1, ret_law);
		size = s->to->n_ranks;
	} else if (s->shard && (s->n == 1 || s->is_unseen)) {
		const struct law_sample whole = {s->shard->of->n_ranks, own.count};

		*ret_how = COUNTS_ASSUMED;
		is_law = law_make(LAW_TOTAL, &whole, 1, ret_law);
		size = s->shard->size;
	} else if (s->n > 1) {
		is_law = law_fit(s->samples, s->n, ret_law);
		*ret_how = is_law && !law_is_beyond(ret_law, size) && !s->is_unseen ? COUNTS_FITTED
										    : COUNTS_BEYOND;
		is_law = is_law || law_fit_nearest(s->samples, s->n, size, ret_law);
	} else if (!s->is_resized) {
		*ret_how = is_beside(x, s) ? COUNTS_ASSUMED : HOW_NOT;
		is_law = law_make(LAW_KEEP, &own, 1, ret_law);
	} else {
		*ret_how = COUNTS_ASSUMED;
		is_law = law_make(assume(kind), &own, 1, ret_law);
		snprintf(why, sizeof(why),
			 "how much each rank has then one record does not say: add one of another "
			 "size (--with RUN2), or declare it (--counts %s=total)",
			 coll_kind_name(kind));
		if (!is_law)
			return refuse(s, why, err);
	}
	return is_law && law_count(ret_law, size, ret) ? 0 : refuse_fit(s, err);
}

static void tell(struct counts_told *told, const struct seen *s, enum counts_how how, uint32_t kind,
		 const struct law *law, bool is_changed)
{
	if (how == COUNTS_ASSUMED ||
	    (how != HOW_NOT && (s->is_resized || is_changed || s->is_unseen)))
		told->n[how][kind][law->kind]++;
}

/* A real root is the same rank of the world. */
static uint32_t find_root(const struct counts_ask *x, const struct seen *s)
{
	for (uint32_t i = 0; i < s->op->of->n_real; i++) {
		const struct record_member *m = &s->op->of->real[i];

		if (m->rank == s->op->root)
			return (uint32_t)membership_rank(s->to,
							 (uint32_t)world_rank(x->from, x->to,
									      m->world_rank));
	}
	return s->op->root;
}

static int change_count(const struct counts_ask *x, struct seen *s, struct record_op *out,
			struct counts_told *told, struct err *err)
{
	enum counts_how how;
	struct law law;
	int r;

	for (size_t i = 0; i < s->n; i++)
		s->samples[i].count = s->ops[i]->count;
	r = find_count(x, s, s->op->kind, &law, &how, &out->count, err);
	if (r < 0)
		return r;
	if (s->is_resized && coll_has_root(s->op->kind))
		out->root = find_root(x, s);
	tell(told, s, how, s->op->kind, &law, out->count != s->op->count);
	return 0;
}

/* --- sends and receives ----------------------------------------------------------------------- */

static struct membership map_of(const struct record_comm *c)
{
	return (struct membership){c->n_ranks, c->base, c->stride,
				   c->n_members ? c->members : NULL};
}

static struct calls calls_of(const struct seen *s, size_t i, const struct membership *map)
{
	return (struct calls){s->ops[i]->calls, s->ops[i]->n_calls, s->ops[i]->rank, map,
			      s->worlds[i]};
}

/* Has the op @shape in all other records, too? Return: 0: no; 1: yes; -ENOMEM. */
static int is_confirmed(const struct seen *s, enum calls_shape shape, const struct calls *from)
{
	int r = 0;

	for (size_t i = 1; i < s->n && r == 0; i++) {
		struct membership map = map_of(s->ops[i]->of);
		const struct calls seen = calls_of(s, i, &map);
		struct calls made = seen;

		r = calls_make(shape, from, NULL, 0, &made);
		if (r < 0)
			break;
		r = calls_have_same_peers(shape, &made, &seen) ? 0 : -EINVAL;
		free((void *)(uintptr_t)made.list);
	}
	return r == -ENOMEM ? r : r == 0;
}

static bool is_declared(const struct counts_ask *x, uint32_t kind)
{
	return x->declared && x->declared->law[kind] != LAW_NONE;
}

/* Has it @shape, as far as is known? Return: as above. */
static int has_shape(const struct counts_ask *x, const struct seen *s, enum calls_shape shape,
		     const struct calls *from)
{
	enum calls_reach reach;
	bool is_sure = false;

	if (shape == CALLS_ALL) {
		int r = calls_find_reach(from, &reach, &is_sure);

		if (r < 0 || reach == CALLS_TO_SOME)
			return r;
		if (reach == CALLS_TO_MOST) /* which ranks get nothing is another in each record */
			return is_declared(x, COLL_ALLTOALL);
	}
	if (s->n > 1)
		return is_confirmed(s, shape, from);
	return shape == CALLS_LAYOUT ? from->world->n_layouts > 0 : is_sure;
}

/* Real ranks of the op's communicator: before, after. Owned by the caller; NULL: no memory. */
static uint32_t (*list_same(const struct counts_ask *x, const struct seen *s))[2]
{
	const struct record_comm *c = s->op->of;
	uint32_t(*same)[2] = calloc((size_t)c->n_real + 1, sizeof(*same));

	for (uint32_t i = 0; same && i < c->n_real; i++) {
		same[i][0] = c->real[i].rank;
		same[i][1] = (uint32_t)membership_rank(s->to,
						       (uint32_t)world_rank(x->from, x->to,
									    c->real[i].world_rank));
	}
	return same;
}

static void drop(struct calls *c)
{
	free((void *)(uintptr_t)c->list);
	c->list = NULL;
}

/* The calls in the new world, with the bytes of this one. @to: as calls_make() has it. Return: 0;
 * -EINVAL with the sentence; -ENOMEM. */
static int find_calls(const struct counts_ask *x, const struct seen *s, const struct calls *from,
		      struct calls *to, enum calls_shape *ret_shape, struct err *err)
{
	CLEANUP(freep) uint32_t(*same)[2] = list_same(x, s);
	bool is_clear = true;
	int r = same ? 0 : -ENOMEM;

	for (int shape = CALLS_ALL; shape < CALLS_SHAPES && r >= 0; shape++) {
		struct calls made = *to;

		made.list = NULL;
		r = has_shape(x, s, (enum calls_shape)shape, from);
		if (r == 1)
			r = calls_make((enum calls_shape)shape, from, (const uint32_t(*)[2])same,
				       s->op->of->n_real, &made);
		r = r == -EINVAL ? 0 : r;
		if (!made.list)
			continue;
		if (to->list) {
			is_clear &= calls_have_same_peers(CALLS_DISTANCE, to, &made);
			drop(&made);
		} else {
			*to = made;
			*ret_shape = (enum calls_shape)shape;
		}
	}
	if (r >= 0 && to->list && is_clear)
		return 0;
	if (r >= 0)
		r = refuse(
			s,
			to->list
				? "whom they go to then the records do not say clearly: the next one, all "
				  "others, those along an axis of the layout?"
			: s->n > 1
				? "whom they go to then neither the records nor a layout say; that it is an "
				  "all-to-all that leaves out ranks, --counts AllToAll=total says"
				: "whom they go to then one record does not say: add one of another size (--with "
				  "RUN2), or declare the layout (--layout), when the run is recorded, too; or, if "
				  "it is an all-to-all that leaves out ranks, --counts AllToAll=total",
			err);
	drop(to);
	return r;
}

/* The bytes of call number @i, which were @from: whole elements. */
static int find_bytes(const struct counts_ask *x, struct seen *s, uint32_t kind, uint64_t from,
		      uint32_t i, uint64_t *ret, struct law *ret_law, enum counts_how *ret_how,
		      struct err *err)
{
	uint64_t unit = coll_dtype_bytes(s->op->dtype);
	int r;

	unit = unit ? unit : 1; /* a group may send others than its first call's, too */

	s->samples[0].count = from;
	for (size_t k = 1; k < s->n; k++)
		s->samples[k].count = s->ops[k]->calls[i].bytes;
	for (size_t k = 0; k < s->n; k++)
		while (s->samples[k].count % unit)
			unit /= 2;
	for (size_t k = 0; k < s->n; k++)
		s->samples[k].count /= unit;
	r = find_count(x, s, kind, ret_law, ret_how, ret, err);
	if (r == 0 && *ret > UINT64_MAX / unit)
		r = refuse_fit(s, err);
	*ret *= unit;
	return r;
}

/* Fills the bytes of @to's calls, of @shape, in place. */
static int size_calls(const struct counts_ask *x, struct seen *s, enum calls_shape shape,
		      const struct calls *from, struct record_call *list, uint32_t n,
		      struct counts_told *told, struct err *err)
{
	uint32_t kind = shape == CALLS_ALL ? COLL_ALLTOALL : COLL_SENDRECV;
	enum counts_how how = HOW_NOT, worst = HOW_NOT;
	bool is_even = calls_are_even(from), is_changed = false;
	struct law law = {.kind = LAW_NONE};
	int r = 0;

	for (size_t i = 1; i < s->n; i++) {
		struct membership map = map_of(s->ops[i]->of);
		const struct calls other = calls_of(s, i, &map);

		is_even &= shape != CALLS_ALL || calls_are_even(&other);
	}
	if (shape == CALLS_ALL && !is_even && !is_declared(x, kind))
		return refuse(
			s,
			"to some ranks goes more than to others, which follows no law; --counts AllToAll=total "
			"declares one",
			err);
	if (shape == CALLS_ALL && is_declared(x, kind))
		s->n = 1; /* of each pair of ranks its own */
	for (uint32_t i = 0; i < n && r == 0; i++) {
		uint64_t bytes = list[i].bytes;

		if (i && shape == CALLS_ALL && is_even) {
			list[i].bytes = list[0].bytes;
			continue;
		}
		r = find_bytes(x, s, kind, bytes, shape == CALLS_ALL ? 0 : i, &list[i].bytes, &law,
			       &how, err);
		is_changed |= list[i].bytes != bytes;
		worst = worst == HOW_NOT || how > worst ? how : worst;
	}
	if (r == 0)
		tell(told, s, worst, kind, &law, is_changed);
	return r;
}

/* The same peers: the communicator has the ranks that it had. Return: as calls_make(). */
static int copy_calls(const struct calls *from, struct calls *to)
{
	struct record_call *list = malloc(((size_t)from->n + 1) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	memcpy(list, from->list, from->n * sizeof(*list));
	to->list = list;
	to->n = from->n;
	return 0;
}

static bool have_equal_calls(const struct seen *s)
{
	struct membership map = map_of(s->op->of);
	const struct calls first = calls_of(s, 0, &map);

	for (size_t i = 1; i < s->n; i++) {
		const struct calls other = calls_of(s, i, &map);

		if (s->ops[i]->of->n_ranks != s->op->of->n_ranks ||
		    !calls_have_same_peers(CALLS_DISTANCE, &first, &other))
			return false;
	}
	return s->n > 1;
}

static int change_calls(const struct counts_ask *x, struct seen *s, struct record *rec,
			struct record_op *out, struct counts_told *told, struct err *err)
{
	const struct membership map = map_of(s->op->of);
	const struct calls from = calls_of(s, 0, &map);
	struct calls to = {.map = s->to, .world = x->to};
	enum calls_shape shape = CALLS_DISTANCE;
	struct record_call *kept;
	int64_t rank = world_rank(x->from, x->to, s->op->world_rank);
	int r;

	rank = rank < 0 ? rank : membership_rank(s->to, (uint32_t)rank);
	if (s->op->n_calls == 0 || rank < 0 || (!s->is_resized && !have_equal_calls(s)))
		return 0; /* no such rank: the replay says so */
	to.rank = (uint32_t)rank;
	r = s->is_resized ? find_calls(x, s, &from, &to, &shape, err) : copy_calls(&from, &to);
	if (r == 0) {
		kept = record_keep(rec, ((size_t)to.n + 1) * sizeof(*kept));
		r = kept ? 0 : -ENOMEM;
	}
	if (r == 0) {
		memcpy(kept, to.list, to.n * sizeof(*kept));
		out->calls = kept;
		out->n_calls = to.n;
		r = size_calls(x, s, shape, &from, kept, to.n, told, err);
	}
	drop(&to);
	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}

int counts_change(const struct counts_ask *x, struct record *out, struct counts_told *told,
		  struct err *err)
{
	CLEANUP(seen_deinit) struct seen s = {.n = 0};
	CLEANUP(shards_deinit) struct shards shards = {.n = 0};
	int r = seen_init(x, &s, err);

	r = r == 0 ? shards_init(x, &shards, err) : r;
	s.is_unseen = has_unseen_axis(x);
	*told = (struct counts_told){.n = {{{0}}}};
	for (uint64_t i = 0; i < x->rec->n_ops && r == 0; i++) {
		see(x, &shards, i, &s);
		r = s.op->kind == COLL_SENDRECV ? change_calls(x, &s, out, &out->ops[i], told, err)
						: change_count(x, &s, &out->ops[i], told, err);
	}
	return r;
}
