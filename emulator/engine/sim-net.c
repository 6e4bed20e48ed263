/* See sim-net.h. Messages of flows with the same links that would leave equally fast alone are of
 * one *kind*: they are equally fast beside others, too. A kind knows how far it is, each of its
 * messages where it has left; so time passes for kinds, however many channels an op has. A part's
 * next event is when its first message has left; an event that was made before the speeds changed
 * is known by its number and passed over. */
#include "engine/sim-net.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NONE UINT32_MAX
#define DONE 4e-15            /* of the time that it is: less is what doubles are wrong by */
#define SPEEDS_MAX (1u << 22) /* more are not kept: all are forgotten */

struct net_flow {
	uint32_t op, first_use, n_uses;
	uint32_t part;       /* NONE: it meets nobody */
	uint32_t path, kind; /* of its last message; NONE: there was none */
	uint32_t head, tail; /* messages that have not left */
	double sent_ns;
};

struct net_use {
	uint32_t link, load;
};

struct net_link {
	double bytes_per_ns;
	uint32_t op;    /* the first that uses it */
	bool is_shared; /* two do */
	uint32_t flow;  /* any of its flows */
	/* in a round */
	uint32_t round, n_ops, row;
};

struct net_load {
	uint32_t round;
	double sum; /* of the op's messages, as if alone */
};

struct net_path {
	uint32_t first_use, n_uses;
};

struct net_wait {
	double ready_ns, work_ns, latency_ns, bytes;
	uint32_t next;
};

struct net_message {
	double done; /* where its kind is when it has left */
	uint32_t flow;
};

struct net_kind {
	uint32_t path;
	double weight;                /* work for each byte */
	uint64_t key;                 /* a random number */
	double done, speed;           /* work since it was idle, and for each ns */
	struct net_message *messages; /* owned; in flight: those from @first on, by done */
	uint32_t first, n, capacity;
};

struct net_part {
	uint32_t *kinds; /* owned; that have messages in flight */
	uint32_t n, capacity;
	uint32_t event; /* the number of the one that counts */
	bool is_changed;
	double at_ns;  /* to which its kinds went on */
	uint64_t hash; /* of its messages */
};

struct net_speed {
	uint32_t kind;
	double speed;
};

struct net_set {
	uint64_t hash; /* 0: empty */
	uint32_t first, n;
};

void sim_net_deinit(struct sim_net *n)
{
	for (uint32_t i = 0; n->parts && i < n->n_parts; i++)
		free(n->parts[i].kinds);
	for (uint32_t i = 0; i < n->n_kinds; i++)
		free(n->kinds[i].messages);
	free(n->flows);
	free(n->uses);
	free(n->links);
	free(n->loads);
	number_table_deinit(&n->of_link);
	number_table_deinit(&n->of_load);
	number_table_deinit(&n->of_path);
	number_table_deinit(&n->of_kind);
	free(n->paths);
	free(n->kinds);
	free(n->parts);
	free(n->waits);
	free(n->changed);
	free(n->finished);
	free(n->sets);
	free(n->speeds);
	share_deinit(&n->share);
	free(n->users);
	free(n->user_uses);
	free(n->solved);
	*n = (struct sim_net){0};
}

/* *list has room for @more than @n of @size bytes. Return: 0; -ENOMEM. */
static int grow(void *list, uint32_t n, uint32_t more, uint32_t *capacity, size_t size)
{
	void **at = list, *grown;
	uint32_t wanted = *capacity ? *capacity : 64;

	if (n + more <= *capacity)
		return 0;
	while (wanted < n + more)
		wanted *= 2;
	grown = realloc(*at, wanted * size);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*capacity = wanted;
	return 0;
}

/* --- which flows meet --------------------------------------------------------- */

int sim_net_add_flow(struct sim_net *n, uint32_t op)
{
	if (grow(&n->flows, n->n_flows, 1, &n->flows_capacity, sizeof(*n->flows)))
		return -ENOMEM;
	n->flows[n->n_flows++] = (struct net_flow){.op = op,
						   .first_use = n->n_uses,
						   .part = NONE,
						   .kind = NONE,
						   .head = NONE,
						   .tail = NONE};
	return 0;
}

static int find_link(struct sim_net *n, uint64_t link, double bytes_per_ns, uint32_t *ret)
{
	uint32_t op = n->flows[n->n_flows - 1].op;
	uint32_t *at = number_table_at(&n->of_link, link + 1);

	if (!at || grow(&n->links, n->n_links, 1, &n->links_capacity, sizeof(*n->links)))
		return -ENOMEM;
	if (!*at) {
		n->links[n->n_links] =
			(struct net_link){.bytes_per_ns = bytes_per_ns, .op = op, .flow = NONE};
		*at = ++n->n_links;
	}
	*ret = *at - 1;
	n->links[*ret].is_shared |= n->links[*ret].op != op;
	return 0;
}

int sim_net_add_use(struct sim_net *n, uint64_t link, double bytes_per_ns)
{
	struct net_flow *f = &n->flows[n->n_flows - 1];
	struct net_use use;
	uint32_t *load;
	int r = find_link(n, link, bytes_per_ns, &use.link);

	if (r)
		return r;
	load = number_table_at(&n->of_load, ((uint64_t)f->op << 32 | use.link) + 1);
	if (!load || grow(&n->loads, n->n_loads, 1, &n->loads_capacity, sizeof(*n->loads)) ||
	    grow(&n->uses, n->n_uses, 1, &n->uses_capacity, sizeof(*n->uses)))
		return -ENOMEM;
	if (!*load) {
		n->loads[n->n_loads] = (struct net_load){0};
		*load = ++n->n_loads;
	}
	use.load = *load - 1;
	n->uses[n->n_uses++] = use;
	f->n_uses++;
	return 0;
}

/* The flow that stands for all that meet @flow; f->part leads there while parts are made. */
static uint32_t find_root(struct net_flow *flows, uint32_t flow)
{
	while (flows[flow].part != flow) {
		flows[flow].part = flows[flows[flow].part].part;
		flow = flows[flow].part;
	}
	return flow;
}

/* Only links that two ops use count from here on. */
static void join_flows(struct sim_net *n)
{
	uint32_t n_kept = 0;

	for (uint32_t i = 0; i < n->n_flows; i++) {
		struct net_flow *f = &n->flows[i];
		uint32_t first = f->first_use, end = first + f->n_uses;

		f->part = i;
		f->first_use = n_kept;
		for (uint32_t k = first; k < end; k++) {
			struct net_link *l = &n->links[n->uses[k].link];

			if (!l->is_shared)
				continue;
			n->uses[n_kept++] = n->uses[k];
			if (l->flow == NONE)
				l->flow = i;
			n->flows[find_root(n->flows, i)].part = find_root(n->flows, l->flow);
		}
		f->n_uses = n_kept - f->first_use;
	}
}

/* From the flows that stand for parts to the parts' numbers. */
static int number_parts(struct sim_net *n)
{
	CLEANUP(freep) uint32_t *number = malloc((n->n_flows + 1) * sizeof(*number));
	uint32_t n_parts = 0;

	if (!number)
		return -ENOMEM;
	for (uint32_t i = 0; i < n->n_flows; i++)
		if (n->flows[i].n_uses && find_root(n->flows, i) == i)
			number[i] = n_parts++;
	for (uint32_t i = 0; i < n->n_flows; i++)
		if (find_root(n->flows, i) != i)
			number[i] = number[find_root(n->flows, i)];
	for (uint32_t i = 0; i < n->n_flows; i++)
		n->flows[i].part = n->flows[i].n_uses ? number[i] : NONE;
	n->n_parts = n_parts;
	n->parts = calloc(n_parts + 1, sizeof(*n->parts));
	n->changed = malloc((n_parts + 1) * sizeof(*n->changed));
	n->finished = malloc((n->n_flows + 1) * sizeof(*n->finished));
	return n->parts && n->changed && n->finished ? 0 : -ENOMEM;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

/* Flows of one op that take the same links have one path. */
static int number_paths(struct sim_net *n)
{
	for (uint32_t i = 0; i < n->n_flows; i++) {
		struct net_flow *f = &n->flows[i];
		uint64_t hash = f->n_uses;
		uint32_t *path;

		if (f->part == NONE)
			continue;
		for (uint32_t k = f->first_use; k < f->first_use + f->n_uses; k++)
			hash = mix(hash, n->uses[k].load);
		path = number_table_at(&n->of_path, hash | 1);
		if (!path || grow(&n->paths, n->n_paths, 1, &n->paths_capacity, sizeof(*n->paths)))
			return -ENOMEM;
		if (!*path) {
			n->paths[n->n_paths] = (struct net_path){f->first_use, f->n_uses};
			*path = ++n->n_paths;
		}
		f->path = *path - 1;
	}
	return 0;
}

int sim_net_make_parts(struct sim_net *n)
{
	int r;

	n->free_wait = NONE;
	join_flows(n);
	r = number_parts(n);
	return r ? r : number_paths(n);
}

bool sim_net_is_shared(const struct sim_net *n, uint32_t flow)
{
	return n->flows[flow].part != NONE;
}

/* --- messages ------------------------------------------------------------------ */

static uint64_t tie_of(unsigned kind, uint32_t who, uint32_t number)
{
	return (uint64_t)kind << 62 | (uint64_t)(who & 0x3fffffff) << 32 | number;
}

/* The part's kinds go on to now. */
static void advance(struct sim_net *n, uint32_t part)
{
	struct net_part *p = &n->parts[part];
	double ns = n->now_ns - p->at_ns;

	for (uint32_t i = 0; i < p->n && ns > 0; i++) {
		struct net_kind *k = &n->kinds[p->kinds[i]];

		k->done += ns * k->speed;
	}
	p->at_ns = n->now_ns;
	if (!p->is_changed)
		n->changed[n->n_changed++] = part;
	p->is_changed = true;
}

static int find_kind(struct sim_net *n, uint32_t path, double weight, uint32_t *ret)
{
	uint64_t bits, key;
	uint32_t *kind;

	memcpy(&bits, &weight, sizeof(bits));
	key = mix(mix(path + UINT64_C(1), bits), path) | 1;
	kind = number_table_at(&n->of_kind, key);
	if (!kind || grow(&n->kinds, n->n_kinds, 1, &n->kinds_capacity, sizeof(*n->kinds)))
		return -ENOMEM;
	if (!*kind) {
		n->kinds[n->n_kinds] =
			(struct net_kind){.path = path, .weight = weight, .key = key};
		*kind = ++n->n_kinds;
	}
	*ret = *kind - 1;
	return 0;
}

/* A message of @work_ns joins those of kind @number. */
static int join_kind(struct sim_net *n, struct net_part *p, uint32_t number, uint32_t flow,
		     double work_ns)
{
	struct net_kind *k = &n->kinds[number];
	uint32_t at;

	if (k->first == k->n) {
		if (grow(&p->kinds, p->n, 1, &p->capacity, sizeof(*p->kinds)))
			return -ENOMEM;
		p->kinds[p->n++] = number;
		k->first = k->n = 0;
		k->done = 0;
	} else if (k->n == k->capacity && k->first) {
		k->n -= k->first;
		memmove(k->messages, k->messages + k->first, k->n * sizeof(*k->messages));
		k->first = 0;
	}
	if (grow(&k->messages, k->n, 1, &k->capacity, sizeof(*k->messages)))
		return -ENOMEM;
	for (at = k->n++; at > k->first && k->messages[at - 1].done > k->done + work_ns; at--)
		k->messages[at] = k->messages[at - 1];
	k->messages[at] = (struct net_message){k->done + work_ns, flow};
	p->hash += k->key;
	return 0;
}

static int begin(struct sim_net *n, uint32_t flow);

/* The message that @flow sends is over: the next one's turn. Return: 0; -ENOMEM; the sink's. */
static int leave(struct sim_net *n, uint32_t flow)
{
	struct net_flow *f = &n->flows[flow];
	uint32_t wait = f->head;
	double latency_ns = n->waits[wait].latency_ns, sent_ns = f->sent_ns;
	int r;

	f->head = n->waits[wait].next;
	n->waits[wait].next = n->free_wait;
	n->free_wait = wait;
	r = f->head == NONE ? 0 : begin(n, flow);
	return r ? r
		 : n->sink.left(n->sink.ctx, flow, sent_ns, latency_ns, n->now_ns, f->head == NONE);
}

/* The first message that waits at @flow begins to leave, at once or when it is ready. */
static int begin(struct sim_net *n, uint32_t flow)
{
	struct net_flow *f = &n->flows[flow];
	const struct net_wait *w = &n->waits[f->head];
	double weight;
	int r = 0;

	/* one without work, too, waits for its event: a row of these is no recursion */
	if (w->ready_ns > n->now_ns || !(w->work_ns > 0 && w->bytes > 0))
		return sim_heap_put(n->heap, fmax(w->ready_ns, n->now_ns),
				    tie_of(SIM_READY, 0, flow));
	weight = w->work_ns / w->bytes;
	if (f->kind == NONE || n->kinds[f->kind].weight != weight)
		r = find_kind(n, f->path, weight, &f->kind);
	if (r)
		return r;
	advance(n, f->part);
	f->sent_ns = n->now_ns;
	return join_kind(n, &n->parts[f->part], f->kind, flow, w->work_ns);
}

int sim_net_send(struct sim_net *n, uint32_t flow, double ready_ns, double bytes,
		 const struct nbox_delay *d)
{
	struct net_flow *f = &n->flows[flow];
	bool is_idle = f->head == NONE;
	uint32_t wait = n->free_wait;

	if (wait == NONE) {
		if (grow(&n->waits, n->n_waits, 1, &n->waits_capacity, sizeof(*n->waits)))
			return -ENOMEM;
		wait = n->n_waits++;
	} else {
		n->free_wait = n->waits[wait].next;
	}
	n->waits[wait] = (struct net_wait){ready_ns, d->occupancy_ns, d->latency_ns, bytes, NONE};
	if (!is_idle)
		n->waits[f->tail].next = wait;
	else
		f->head = wait;
	f->tail = wait;
	return is_idle ? begin(n, flow) : 0;
}

/* Those that are done, or would be at the same time as a double says it. */
static int left(struct sim_net *n, uint32_t part)
{
	struct net_part *p = &n->parts[part];
	uint32_t n_finished = 0;
	int r = 0;

	advance(n, part);
	for (uint32_t i = 0; i < p->n;) {
		struct net_kind *k = &n->kinds[p->kinds[i]];
		double done = k->done + DONE * n->now_ns * k->speed;

		for (; k->first < k->n && k->messages[k->first].done <= done; k->first++) {
			n->finished[n_finished++] = k->messages[k->first].flow;
			p->hash -= k->key;
		}
		if (k->first < k->n)
			i++;
		else
			p->kinds[i] = p->kinds[--p->n];
	}
	for (uint32_t i = 0; i < n_finished && !r; i++)
		r = leave(n, n->finished[i]);
	return r;
}

int sim_net_event(struct sim_net *n, uint64_t tie)
{
	uint32_t part = (uint32_t)(tie >> 32) & 0x3fffffff, flow = (uint32_t)tie;
	const struct net_wait *w;

	if (sim_kind(tie) == SIM_LEFT)
		return n->parts[part].event == (uint32_t)tie ? left(n, part) : 0;
	w = &n->waits[n->flows[flow].head];
	if (w->work_ns > 0 && w->bytes > 0)
		return begin(n, flow);
	n->flows[flow].sent_ns = n->now_ns;
	return leave(n, flow);
}

/* --- speeds ----------------------------------------------------------------------- */

static double load_of(const struct sim_net *n, const struct net_kind *k, const struct net_use *u)
{
	return (k->n - k->first) / (k->weight * n->links[u->link].bytes_per_ns);
}

/* What each op puts on each link, and how many ops are there. Return: how many uses; 0: no two ops
 * meet. */
static uint32_t sum_loads(struct sim_net *n, const struct net_part *p)
{
	uint32_t n_uses = 0;
	bool is_shared = false;

	n->round++;
	for (uint32_t i = 0; i < p->n; i++) {
		const struct net_kind *k = &n->kinds[p->kinds[i]];
		const struct net_path *path = &n->paths[k->path];

		n_uses += path->n_uses;
		for (uint32_t u = path->first_use; u < path->first_use + path->n_uses; u++) {
			struct net_link *l = &n->links[n->uses[u].link];
			struct net_load *load = &n->loads[n->uses[u].load];

			if (l->round != n->round)
				l->n_ops = 0;
			l->round = n->round;
			l->row = NONE;
			if (load->round != n->round) {
				load->sum = 0;
				is_shared |= ++l->n_ops > 1;
			}
			load->round = n->round;
			load->sum += load_of(n, k, &n->uses[u]);
		}
	}
	return is_shared ? n_uses : 0;
}

/* Messages of one op are as fast as alone together: what they take of a link is the link at most.
 */
static void set_user(struct sim_net *n, const struct net_kind *k, struct share_user *user,
		     uint32_t *n_uses, uint32_t *n_rows)
{
	const struct net_path *path = &n->paths[k->path];

	*user = (struct share_user){.uses = &n->user_uses[*n_uses], .weight = k->weight, .cap = 1};
	for (uint32_t u = path->first_use; u < path->first_use + path->n_uses; u++) {
		struct net_link *l = &n->links[n->uses[u].link];
		double sum = n->loads[n->uses[u].load].sum;

		if (l->n_ops < 2)
			continue;
		if (l->row == NONE)
			l->row = (*n_rows)++;
		n->user_uses[(*n_uses)++] = (struct share_use){l->row, load_of(n, k, &n->uses[u]) /
									       (sum > 1 ? sum : 1)};
		user->n_uses++;
	}
}

static int solve(struct sim_net *n, struct net_part *p)
{
	uint32_t n_uses = sum_loads(n, p), n_rows = 0;
	int r;

	n->n_solved++;
	if (grow(&n->users, 0, p->n, &n->users_capacity, sizeof(*n->users)) ||
	    grow(&n->solved, 0, p->n, &n->solved_capacity, sizeof(*n->solved)) ||
	    grow(&n->user_uses, 0, n_uses, &n->user_uses_capacity, sizeof(*n->user_uses)))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n && !n_uses; i++)
		n->kinds[p->kinds[i]].speed = 1;
	if (!n_uses)
		return 0;
	n_uses = 0;
	for (uint32_t i = 0; i < p->n; i++)
		set_user(n, &n->kinds[p->kinds[i]], &n->users[i], &n_uses, &n_rows);
	r = share_solve(&n->share, n->users, p->n, n_rows, NULL, n->solved);
	for (uint32_t i = 0; i < p->n && !r; i++)
		n->kinds[p->kinds[i]].speed = n->solved[i];
	return r;
}

static struct net_set *slot_of(const struct sim_net *n, uint64_t hash)
{
	uint64_t at = hash & (n->n_slots - 1);

	while (n->sets[at].hash && n->sets[at].hash != hash)
		at = (at + 1) & (n->n_slots - 1);
	return &n->sets[at];
}

static int make_slots(struct sim_net *n)
{
	struct net_set *old = n->sets;
	uint32_t n_old = n->n_slots;

	if (n->n_speeds > SPEEDS_MAX) {
		memset(n->sets, 0, n->n_slots * sizeof(*n->sets));
		n->n_sets = n->n_speeds = 0;
	}
	if (2 * n->n_sets < n->n_slots)
		return 0;
	n->sets = calloc(n_old ? 2 * n_old : 256, sizeof(*n->sets));
	if (!n->sets) {
		n->sets = old;
		return -ENOMEM;
	}
	n->n_slots = n_old ? 2 * n_old : 256;
	for (uint32_t i = 0; i < n_old; i++)
		if (old[i].hash)
			*slot_of(n, old[i].hash) = old[i];
	free(old);
	return 0;
}

/* The speeds of the part's messages, as they were worked out for the same before. */
static int find_speeds(struct sim_net *n, struct net_part *p)
{
	struct net_set *set;
	int r = make_slots(n);

	if (r)
		return r;
	set = slot_of(n, p->hash | 1);
	if (set->hash) {
		n->n_found++;
		for (uint32_t i = set->first; i < set->first + set->n; i++)
			n->kinds[n->speeds[i].kind].speed = n->speeds[i].speed;
		return 0;
	}
	r = solve(n, p);
	if (!r)
		r = grow(&n->speeds, n->n_speeds, p->n, &n->speeds_capacity, sizeof(*n->speeds));
	if (r)
		return r;
	*set = (struct net_set){p->hash | 1, n->n_speeds, p->n};
	n->n_sets++;
	for (uint32_t i = 0; i < p->n; i++)
		n->speeds[n->n_speeds++] =
			(struct net_speed){p->kinds[i], n->kinds[p->kinds[i]].speed};
	return 0;
}

int sim_net_settle(struct sim_net *n)
{
	int r = 0;

	for (uint32_t c = 0; c < n->n_changed && !r; c++) {
		struct net_part *p = &n->parts[n->changed[c]];
		double ns = INFINITY;

		p->is_changed = false;
		p->event++;
		if (!p->n)
			continue;
		r = find_speeds(n, p);
		for (uint32_t i = 0; i < p->n; i++) {
			const struct net_kind *k = &n->kinds[p->kinds[i]];
			double left_ns = (k->messages[k->first].done - k->done) / k->speed;

			ns = left_ns < ns ? left_ns : ns;
		}
		if (!r)
			r = sim_heap_push(n->heap, n->now_ns + ns,
					  tie_of(SIM_LEFT, n->changed[c], p->event));
	}
	n->n_changed = 0;
	return r;
}
