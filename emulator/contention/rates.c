/* See rates.h. */
#include "contention/rates.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SETS_MAX 4096 /* more are not kept: all are forgotten */
#define USERS_MAX 512 /* as many ops, of all sets */
#define NOBODY UINT32_MAX

struct rate_key {
	uint64_t usage;
	double solo_ns;
	enum rate_kind kind;
};

/* A set and its answer, in one piece. */
struct rate_set {
	struct rate_key *keys; /* owned, @n of them, and then as many speeds; NULL: empty */
	uint32_t n;
	uint64_t hash;
	struct rate_peak peak;
};

/* Of a class: its number among the constraints of the set that was solved last. */
struct rate_row {
	uint64_t set;
	uint32_t number;
};

static void forget_sets(struct rates *r)
{
	for (uint32_t i = 0; i < r->n_slots; i++)
		free(r->sets[i].keys);
	free(r->sets);
	r->sets = NULL;
	r->n_sets = r->n_slots = 0;
}

void rates_deinit(struct rates *r)
{
	forget_sets(r);
	link_classes_deinit(&r->classes);
	share_deinit(&r->share);
	free(r->users);
	free(r->uses);
	free(r->user_speeds);
	free(r->places);
	free(r->rows);
	free(r->left);
	free(r->full);
	*r = (struct rates){0};
}

static struct rate_key key_of(const struct rate_op *op)
{
	return (struct rate_key){op->usage ? op->usage->number : 0, op->solo_ns, op->kind};
}

static uint64_t hash_of(const struct rate_op *ops, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++) {
		struct rate_key k = key_of(&ops[i]);
		uint64_t bits;

		memcpy(&bits, &k.solo_ns, sizeof(bits));
		h = (h ^ k.usage) * UINT64_C(0x9e3779b97f4a7c15);
		h = (h ^ h >> 29 ^ bits) * UINT64_C(0xbf58476d1ce4e5b9);
		h ^= h >> 32;
	}
	return h;
}

static bool is_set(const struct rate_set *s, const struct rate_op *ops, uint32_t n)
{
	if (s->n != n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct rate_key k = key_of(&ops[i]);

		if (s->keys[i].usage != k.usage || s->keys[i].solo_ns != k.solo_ns ||
		    s->keys[i].kind != k.kind)
			return false;
	}
	return true;
}

/* The slot of the set, or the empty one where it belongs. */
static struct rate_set *slot_of(const struct rates *r, const struct rate_op *ops, uint32_t n,
				uint64_t hash)
{
	uint64_t at = hash & (r->n_slots - 1);

	while (r->sets[at].keys && !is_set(&r->sets[at], ops, n))
		at = (at + 1) & (r->n_slots - 1);
	return &r->sets[at];
}

static int make_room(void *list, uint32_t *capacity, uint32_t n, size_t size)
{
	void **at = list, *grown;

	if (n <= *capacity)
		return 0;
	grown = realloc(*at, n * size);
	if (!grown)
		return -ENOMEM;
	memset((char *)grown + *capacity * size, 0, (n - *capacity) * size);
	*at = grown;
	*capacity = n;
	return 0;
}

/* The places of the ops among those that the classes know. Return: 0; -ENOMEM. */
static int tell_classes(struct rates *r, const struct rate_op *ops, uint32_t n)
{
	int e = 0;

	if (r->classes.n_users + n > USERS_MAX)
		link_classes_deinit(&r->classes);
	for (uint32_t i = 0; i < n && !e; i++) {
		r->places[i] = NOBODY;
		if (ops[i].usage)
			e = link_classes_add(&r->classes, ops[i].usage, &r->places[i]);
	}
	return e;
}

/* What an op by itself takes of a link is the link at most: a model that has it faster knows of
 * another link. What its images take comes on top. */
static double load_of(const struct usage_in_class *c, double capacity, double solo_ns)
{
	double own = c->own_bytes / (capacity * solo_ns);

	return fmin(own, 1) + (c->bytes - c->own_bytes) / (capacity * solo_ns);
}

/* The number of a class among the constraints of the set. */
static uint32_t row_of(struct rates *r, uint32_t class, uint32_t *n_rows)
{
	struct rate_row *row = &r->rows[class];

	if (row->set != r->n_solved) {
		r->left[*n_rows] = 1;
		*row = (struct rate_row){r->n_solved, (*n_rows)++};
	}
	return row->number;
}

static struct share_use use_of(struct rates *r, const struct usage_in_class *c, double solo_ns,
			       uint32_t *n_rows)
{
	return (struct share_use){row_of(r, c->class, n_rows),
				  load_of(c, r->classes.classes[c->class].capacity, solo_ns)};
}

static const struct class_user *class_user_of(const struct rates *r, uint32_t i)
{
	return r->places[i] == NOBODY ? NULL : &r->classes.users[r->places[i]];
}

/* The constraint of each class that the op uses. */
static void set_user(struct rates *r, const struct rate_op *op, uint32_t i, uint32_t *n_uses,
		     uint32_t *n_rows)
{
	const struct class_user *user = class_user_of(r, i);
	struct share_user *u = &r->users[i];

	*u = (struct share_user){.uses = &r->uses[*n_uses], .weight = 1, .cap = 1};
	if (!user || !(user->most_per_connection > 0))
		return;
	u->weight = op->solo_ns / user->most_per_connection;
	for (uint32_t k = 0; k < user->n; k++)
		r->uses[(*n_uses)++] = use_of(r, &user->classes[k], op->solo_ns, n_rows);
	u->n_uses = (uint32_t)(&r->uses[*n_uses] - u->uses);
}

/* A load is on each link by itself: a user for each class. A loss leaves less of them. Return:
 * whether one of the first @n_op_rows classes is among them. */
static bool set_condition(struct rates *r, const struct rate_op *op, uint32_t i, uint32_t n_op_rows,
			  uint32_t *n_users, uint32_t *n_uses, uint32_t *n_rows)
{
	const struct class_user *user = class_user_of(r, i);
	bool is_met = false;

	for (uint32_t k = 0; k < user->n; k++) {
		struct share_use use = use_of(r, &user->classes[k], op->solo_ns, n_rows);

		is_met |= use.link < n_op_rows;
		if (op->kind == RATE_LOSS) {
			r->left[use.link] *= 1 - use.load;
			continue;
		}
		r->uses[*n_uses] = use;
		r->users[(*n_users)++] =
			(struct share_user){.uses = &r->uses[(*n_uses)++],
					    .n_uses = 1,
					    .weight = op->solo_ns / user->most_per_connection,
					    .cap = 1};
	}
	return is_met;
}

static int make_rooms(struct rates *r, const struct rate_op *ops, uint32_t n)
{
	uint32_t n_uses = 0;
	int e = make_room(&r->places, &r->n_places, n, sizeof(*r->places));

	if (!e)
		e = tell_classes(r, ops, n);
	for (uint32_t i = 0; i < n && !e; i++)
		n_uses += r->places[i] == NOBODY ? 0 : class_user_of(r, i)->n;
	if (!e)
		e = make_room(&r->uses, &r->n_uses, n_uses + 1, sizeof(*r->uses));
	if (!e)
		e = make_room(&r->users, &r->n_users, n + n_uses, sizeof(*r->users));
	if (!e)
		e = make_room(&r->user_speeds, &r->n_speeds, n + n_uses, sizeof(*r->user_speeds));
	if (!e)
		e = make_room(&r->rows, &r->n_rows, r->classes.n + 1, sizeof(*r->rows));
	if (!e)
		e = make_room(&r->left, &r->n_left, r->classes.n + 1, sizeof(*r->left));
	return e ? e : make_room(&r->full, &r->n_full, r->classes.n + 1, sizeof(*r->full));
}

/* The bound of a set: bytes through its busiest link. */
static struct rate_peak peak_of(struct rates *r, const struct rate_op *ops, uint32_t n,
				uint32_t n_rows)
{
	struct rate_peak peak = {0};

	memset(r->full, 0, n_rows * sizeof(*r->full));
	for (uint32_t i = 0; i < n && n > 1; i++) {
		const struct class_user *user = class_user_of(r, i);

		if (!user || !(user->most_per_connection > 0))
			continue;
		for (uint32_t k = 0; k < user->n; k++) {
			const struct link_class *class =
				&r->classes.classes[user->classes[k].class];
			double *full = &r->full[r->rows[user->classes[k].class].number];

			*full += user->classes[k].bytes / ops[i].solo_ns * r->user_speeds[i] /
				 class->capacity;
			if (*full > peak.load)
				peak = (struct rate_peak){*full, class->link};
		}
	}
	return peak;
}

/* The part of an op's time in which its messages cross its busiest link; the rest is latency. */
static double duty_of(const struct rates *r, const struct rate_op *op, uint32_t i)
{
	const struct class_user *user = class_user_of(r, i);
	double most = 0;

	for (uint32_t k = 0; user && k < user->n; k++) {
		const struct usage_in_class *c = &user->classes[k];

		most = fmax(most, c->own_bytes / r->classes.classes[c->class].capacity);
	}
	return most > 0 ? fmin(1, most / op->solo_ns) : 1;
}

/* The loads of an op, and how fast it rises, as if it were @times as fast. */
static void speed_up(struct rates *r, struct share_user *u, double times)
{
	u->weight /= times;
	for (uint32_t k = 0; k < u->n_uses; k++)
		r->uses[u->uses - r->uses + k].load *= times;
}

static double absent(double load)
{
	return fmax(1 - load, 1e-30);
}

/* How often one of the others is on a link of user @i; r->full: that none at all is, by row. */
static double met_by_others(const struct rates *r, const struct share_user *u)
{
	double none = 1;

	for (uint32_t k = 0; k < u->n_uses; k++)
		none = fmin(none, r->full[u->uses[k].link] / absent(u->uses[k].load));
	return 1 - none;
}

/* Messages meet, not averages: an op that waits for latency half of its time leaves half of its
 * links to others, but its messages have to share when they cross them. No op is faster than its
 * latency and its messages allow, at their fair share while others are there, at once otherwise.
 * Return: 0; -ENOMEM. */
static int set_caps(struct rates *r, const struct rate_op *ops, uint32_t n_ops, uint32_t n_users,
		    uint32_t n_rows)
{
	int e;

	for (uint32_t row = 0; row < n_rows; row++)
		r->full[row] = 1;
	for (uint32_t i = 0; i < n_users; i++)
		for (uint32_t k = 0; k < r->users[i].n_uses; k++)
			r->full[r->users[i].uses[k].link] *= absent(r->users[i].uses[k].load);
	for (uint32_t i = 0; i < n_ops; i++)
		speed_up(r, &r->users[i], 1 / duty_of(r, &ops[i], i));
	e = share_solve(&r->share, r->users, n_users, n_rows, r->left, r->user_speeds);
	for (uint32_t i = 0; i < n_ops; i++)
		speed_up(r, &r->users[i], duty_of(r, &ops[i], i));
	for (uint32_t i = 0; i < n_ops && !e; i++) {
		struct share_user *u = &r->users[i];
		double duty = duty_of(r, &ops[i], i);
		double speed = 1 - met_by_others(r, u) * (1 - r->user_speeds[i]);

		u->cap = speed > 0 ? 1 / (1 - duty + duty / speed) : 1;
	}
	return e;
}

static int solve(struct rates *r, const struct rate_op *ops, uint32_t n, double *ret_speed)
{
	uint32_t n_ops = 0, n_users, n_uses = 0, n_rows = 0, n_op_rows;
	int e = make_rooms(r, ops, n);

	if (e)
		return e;
	r->n_solved++;
	for (; n_ops < n && ops[n_ops].kind == RATE_OP; n_ops++)
		set_user(r, &ops[n_ops], n_ops, &n_uses, &n_rows);
	n_users = n_ops;
	n_op_rows = n_rows;
	for (uint32_t i = n_ops; i < n; i++)
		ret_speed[i] = set_condition(r, &ops[i], i, n_op_rows, &n_users, &n_uses, &n_rows);
	e = n_ops > 1 ? set_caps(r, ops, n_ops, n_users, n_rows) : 0;
	if (!e)
		e = share_solve(&r->share, r->users, n_users, n_rows, r->left, r->user_speeds);
	if (e)
		return e;
	memcpy(ret_speed, r->user_speeds, n_ops * sizeof(*ret_speed));
	r->peak = peak_of(r, ops, n_ops, n_op_rows);
	return 0;
}

static int double_slots(struct rates *r)
{
	struct rates old = *r;

	r->n_slots = old.n_slots ? 2 * old.n_slots : 64;
	r->sets = calloc(r->n_slots, sizeof(*r->sets));
	if (!r->sets) {
		*r = old;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < old.n_slots; i++) {
		const struct rate_set *s = &old.sets[i];
		uint64_t at;

		if (!s->keys)
			continue;
		at = s->hash & (r->n_slots - 1);
		while (r->sets[at].keys)
			at = (at + 1) & (r->n_slots - 1);
		r->sets[at] = *s;
	}
	free(old.sets);
	return 0;
}

static double *speeds_of(const struct rate_set *s)
{
	return (double *)(void *)(s->keys + s->n);
}

/* Without memory for it nothing is kept. */
static void keep(struct rates *r, const struct rate_op *ops, uint32_t n, uint64_t hash,
		 const double *speed)
{
	struct rate_set s = {.n = n, .hash = hash, .peak = r->peak};

	if (r->n_sets == SETS_MAX)
		forget_sets(r);
	if (2 * r->n_sets >= r->n_slots && double_slots(r))
		return;
	s.keys = malloc(n * (sizeof(*s.keys) + sizeof(*speed)));
	if (!s.keys)
		return;
	for (uint32_t i = 0; i < n; i++)
		s.keys[i] = key_of(&ops[i]);
	memcpy(speeds_of(&s), speed, n * sizeof(*speed));
	*slot_of(r, ops, n, hash) = s;
	r->n_sets++;
}

int rates_find(struct rates *r, const struct rate_op *ops, uint32_t n, double *ret_speed)
{
	uint64_t hash = hash_of(ops, n);
	const struct rate_set *s = r->n_slots ? slot_of(r, ops, n, hash) : NULL;
	int e;

	if (s && s->keys) {
		memcpy(ret_speed, speeds_of(s), n * sizeof(*ret_speed));
		r->peak = s->peak;
		return 0;
	}
	e = solve(r, ops, n, ret_speed);
	if (!e)
		keep(r, ops, n, hash, ret_speed);
	return e;
}
