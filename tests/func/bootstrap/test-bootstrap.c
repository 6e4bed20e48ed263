/* NCCL's bootstrap served to clients of our own, which speak it from the same tables: what each
 * real rank hears of all ranks, in every size and placement, and the same for what follows an init.
 * That NCCL itself reads the tables so is not shown here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "host.h"
#include "wire.h"

static struct host host;

static const struct nccl_records *const *tables(size_t *ret_n)
{
	return nccl_records_all(ret_n);
}

/* The newest table with all-gathers both ways, or one way. NULL: none. */
static const struct nccl_records *newest(bool is_both_ways)
{
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	while (n--)
		if (all[n]->is_both_ways == is_both_ways)
			return all[n];
	return NULL;
}

/* Tables of which each does something in another way: two frames in a message's head, all-gathers
 * one way, and both. The others differ from one of them in sizes. */
static bool is_form(const struct nccl_records *t)
{
	size_t n;

	return t == tables(&n)[0] || t == newest(false) || t == newest(true);
}

static void check(int r, const char *what)
{
	if (r < 0)
		fail_msg("%s: %s", what, wire_error());
}

/* --- init -------------------------------------------------------------------------- */

static int init(struct host_comm *c, struct client *r, void *ctx)
{
	(void)ctx;
	if (client_init(r, c->ids, c->n_ids) < 0)
		return -1;
	return client_destroy(r);
}

static char *describe(const struct nccl_records *t, const struct host_places *p, char *buf,
		      size_t size)
{
	snprintf(buf, size, "NCCL %s, %u ranks, %u on a node%s, %u real nodes from %u", t->name,
		 p->n_ranks, p->node_size, p->is_dealt ? ", dealt out" : "", p->n_real_nodes,
		 p->real_node[0]);
	return buf;
}

static void init_at(struct host *h, const struct nccl_records *t, const struct host_places *p,
		    uint32_t n_ids)
{
	struct host_comm c;
	char what[256];

	describe(t, p, what, sizeof(what));
	check(host_comm_make(h, t, p, n_ids, p->n_ranks * 7 + p->node_size, &c), what);
	check(host_run(&c, init, NULL), what);
	host_comm_end(&c);
}

/* One and two real nodes, at the begin, in the middle and at the end, ranks together and dealt out.
 */
static void init_in_all_places(const struct nccl_records *t, uint32_t n_ranks, uint32_t node_size)
{
	uint32_t n = n_ranks / node_size;
	const uint32_t pairs[][2] = {{0, n - 1}, {n / 2, n / 3}};

	for (int is_dealt = 0; is_dealt < 2; is_dealt++) {
		for (uint32_t i = 0; i < 3; i++)
			init_at(&host, t,
				&(struct host_places){n_ranks,
						      node_size,
						      is_dealt,
						      1,
						      {i == 0   ? 0
						       : i == 1 ? n / 2
								: n - 1}},
				1);
		for (uint32_t i = 0; i < 2 && node_size <= 2; i++)
			if (pairs[i][0] != pairs[i][1])
				init_at(&host, t,
					&(struct host_places){n_ranks,
							      node_size,
							      is_dealt,
							      2,
							      {pairs[i][0], pairs[i][1]}},
					1);
	}
}

static void each_rank_hears_what_all_ranks_have_to_say(void **state)
{
	static const struct {
		uint32_t n_ranks, node_size;
	} sizes[] = {{2, 1}, {3, 1}, {3, 3}, {8, 1}, {8, 2}, {8, 4}, {16, 2}, {16, 4}};
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	(void)state;
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			if (is_form(all[t]) || i % 4 == 3)
				init_in_all_places(all[t], sizes[i].n_ranks, sizes[i].node_size);
}

static void so_it_does_in_large_worlds(void **state)
{
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	bool is_slow = getenv("NBOX_TEST_SANITIZED") != NULL;

	(void)state;
	for (size_t t = 0; t < n; t++) {
		if (is_slow && !is_form(all[t]))
			continue;
		init_at(&host, all[t], &(struct host_places){512, 2, true, 2, {7, 101}}, 1);
		if (is_form(all[t]))
			init_at(&host, all[t], &(struct host_places){512, 4, false, 1, {64}}, 1);
		init_at(&host, all[t], &(struct host_places){4096, 1, false, 1, {2048}}, 1);
	}
	for (int is_both_ways = 0; is_both_ways < 2; is_both_ways++) {
		const struct nccl_records *t = newest(is_both_ways);

		if (!t || is_slow)
			continue;
		init_at(&host, t, &(struct host_places){4096, 2, true, 2, {11, 2047}}, 1);
		init_at(&host, t, &(struct host_places){16384, 1, false, 1, {5000}}, 1);
	}
}

static void real_ranks_may_be_alone(void **state)
{
	(void)state;
	init_at(&host, newest(true), &(struct host_places){4, 4, false, 1, {0}}, 1);
	init_at(&host, newest(true), &(struct host_places){4, 2, true, 2, {0, 1}}, 1);
}

static void several_roots_share_the_ranks(void **state)
{
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	(void)state;
	for (size_t t = 0; t < n; t++)
		for (uint32_t n_ids = 2; n_ids <= 5 && all[t]->check_in.n_roots.bytes; n_ids++) {
			init_at(&host, all[t], &(struct host_places){16, 4, false, 1, {1}}, n_ids);
			init_at(&host, all[t], &(struct host_places){30, 2, true, 2, {3, 14}},
				n_ids);
		}
}

static void ipv6_serves_as_well(void **state)
{
	struct host h;

	(void)state;
	if (host_start(&h, "::1", NULL) < 0)
		skip();
	init_at(&h, newest(true), &(struct host_places){16, 2, false, 1, {1}}, 1);
	host_stop(&h);
}

#define N_AT_ONCE 6

struct at_once {
	struct host_comm c;
	pthread_t thread;
	int r;
	char sentence[512];
};

static void *run_one(void *ctx)
{
	struct at_once *o = ctx;

	o->r = host_run(&o->c, init, NULL);
	if (o->r < 0)
		snprintf(o->sentence, sizeof(o->sentence), "%s", wire_error());
	return NULL;
}

static void communicators_do_not_mix(void **state)
{
	struct at_once all[N_AT_ONCE];

	(void)state;
	for (uint32_t i = 0; i < N_AT_ONCE; i++)
		check(host_comm_make(&host, newest(i % 2 || !newest(false)),
				     &(struct host_places){64 + 2 * i, 2, i % 3 == 0, 1, {i}}, 1, i,
				     &all[i].c),
		      "make");
	for (uint32_t i = 0; i < N_AT_ONCE; i++)
		assert_int_equal(pthread_create(&all[i].thread, NULL, run_one, &all[i]), 0);
	for (uint32_t i = 0; i < N_AT_ONCE; i++)
		pthread_join(all[i].thread, NULL);
	for (uint32_t i = 0; i < N_AT_ONCE; i++) {
		if (all[i].r < 0)
			fail_msg("%s", all[i].sentence);
		host_comm_end(&all[i].c);
	}
}

/* The first real rank stops behind the first record, with as much under way to it as its socket
 * takes; the others need no more of it. */
static int all_but_one_go_on(struct host_comm *c, struct client *r, void *ctx)
{
	_Atomic bool *is_done = ctx;
	uint8_t next[NCCL_ADDRESS_BYTES];

	if (client_check_in(r, c->ids, c->n_ids) < 0 || client_answer(r, next) < 0 ||
	    client_ring(r, next) < 0 || client_contacts(r) < 0 || client_peers(r) < 0)
		return -1;
	if (r->rank == c->real[0])
		r->held_until = is_done;
	if (client_graph(r) < 0)
		return -1;
	if (r->rank == c->real[1])
		*is_done = true;
	return client_destroy(r);
}

static void a_slow_rank_holds_up_nobody(void **state)
{
	(void)state;
	for (int is_both_ways = 0; is_both_ways < 2; is_both_ways++) {
		struct host_comm c;
		_Atomic bool is_done = false;

		check(host_comm_make(&host, newest(is_both_ways),
				     &(struct host_places){4096, 1, false, 2, {3, 1024}}, 1, 1, &c),
		      "make");
		check(host_run(&c, all_but_one_go_on, &is_done), "with a slow rank");
		host_comm_end(&c);
	}
}

/* --- after it ---------------------------------------------------------------------- */

static int barriers(struct host_comm *c, struct client *r, void *ctx)
{
	(void)ctx;
	if (client_init(r, c->ids, c->n_ids) < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (client_barrier(r, c->w.records->barrier_tags[0]) < 0)
			return -1;
	return client_destroy(r);
}

static void barriers_end_at_all_ranks(void **state)
{
	static const struct host_places places[] = {{2, 1, false, 1, {1}},
						    {3, 1, false, 1, {0}},
						    {16, 4, false, 1, {2}},
						    {30, 2, true, 2, {3, 14}},
						    {512, 4, false, 1, {1}}};
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	(void)state;
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < ARRAY_SIZE(places) && all[t]->barrier_tags[0]; i++) {
			struct host_comm c;
			char what[256];

			describe(all[t], &places[i], what, sizeof(what));
			check(host_comm_make(&host, all[t], &places[i], 1, i, &c), what);
			check(host_run(&c, barriers, NULL), what);
			host_comm_end(&c);
		}
}

enum with { RING_NEIGHBOURS, TREE_NEIGHBOURS, ALL_PEERS, LOPSIDED };

/* How many channels rank @from sends to @to. Both sides must agree. */
static uint8_t n_channels(const struct host_comm *c, enum with with, uint32_t from, uint32_t to)
{
	uint32_t n = c->w.n_ranks, up = (to + n - from) % n;

	switch (with) {
	case RING_NEIGHBOURS:
		return up == 1 ? 2 : 0;
	case TREE_NEIGHBOURS: /* a binary heap */
		return (to && (to - 1) / 2 == from) || (from && (from - 1) / 2 == to) ? 2 : 0;
	case ALL_PEERS:
		return 1;
	case LOPSIDED: /* more one way than the other, and some not at all */
		return (uint8_t)((from * 3 + to * 5) % 4);
	}
	return 0;
}

static int transports(struct host_comm *c, struct client *r, void *ctx)
{
	enum with with = *(enum with *)ctx;
	uint8_t n_send[64] = {0}, n_recv[64] = {0};
	struct client_edges e = {n_send, n_recv,
				 with == RING_NEIGHBOURS   ? 0
				 : with == TREE_NEIGHBOURS ? 1
							   : -1};

	if (client_init(r, c->ids, c->n_ids) < 0)
		return -1;
	for (uint32_t p = 0; p < c->w.n_ranks; p++) {
		n_send[p] = p == r->rank ? 0 : n_channels(c, with, r->rank, p);
		n_recv[p] = p == r->rank ? 0 : n_channels(c, with, p, r->rank);
	}
	for (int i = 0; i < 2; i++)
		if (client_transports(r, &e) < 0)
			return -1;
	for (size_t i = 0; c->w.records->later[i].bytes; i++)
		if (!c->w.records->later[i].refused &&
		    client_gather(r, c->w.records->later[i].bytes) < 0)
			return -1;
	return client_destroy(r);
}

static void transports_are_set_up_with_virtual_and_real_ranks(void **state)
{
	static const struct host_places places[] = {
		{2, 1, false, 1, {0}},  {3, 1, false, 1, {2}},    {4, 2, false, 1, {1}},
		{16, 4, false, 1, {1}}, {16, 2, true, 2, {0, 4}}, {16, 1, false, 4, {0, 5, 8, 13}}};
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	(void)state;
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < ARRAY_SIZE(places); i++)
			for (enum with with = RING_NEIGHBOURS; with <= LOPSIDED; with++) {
				struct host_comm c;
				char what[300];

				if (!is_form(all[t]) && (with != LOPSIDED || i % 2))
					continue;
				describe(all[t], &places[i], what, 256);
				snprintf(what + strlen(what), 32, ", edges %d", (int)with);
				check(host_comm_make(&host, all[t], &places[i], 1, i, &c), what);
				check(host_run(&c, transports, &with), what);
				host_comm_end(&c);
			}
}

/* --- children ---------------------------------------------------------------------- */

#define NOCOLOR (-1)

/* ranks of a world of nodes of 4 */
static int32_t by_half_node(uint32_t r)
{
	return (int32_t)(r % 4 / 2);
}

static int32_t all_but_last_of_node(uint32_t r)
{
	return r % 4 == 3 ? NOCOLOR : 5;
}

static int32_t all_one(uint32_t r)
{
	(void)r;
	return 3;
}

static int32_t by_rank(uint32_t r)
{
	return (int32_t)r;
}

static int32_t backwards(uint32_t r)
{
	return -(int32_t)r;
}

static int32_t all_alike(uint32_t r)
{
	(void)r;
	return 0;
}

/* A split's outcome for one color. */
struct child {
	struct host_comm c;
	uint32_t *ranks; /* owned; of the parent */
	int32_t color;
};

static int32_t (*key_of)(uint32_t);

static int by_key(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int32_t kx = key_of(x), ky = key_of(y);

	if (kx != ky)
		return kx < ky ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void child_make(const struct host_comm *parent, int32_t (*color)(uint32_t),
		       int32_t (*key)(uint32_t), int32_t of, struct child *ret)
{
	uint32_t n = 0;

	ret->color = of;
	ret->ranks = calloc(parent->w.n_ranks, sizeof(*ret->ranks));
	assert_non_null(ret->ranks);
	for (uint32_t r = 0; r < parent->w.n_ranks; r++)
		if (color(r) == of)
			ret->ranks[n++] = r;
	key_of = key;
	qsort(ret->ranks, n, sizeof(*ret->ranks), by_key);
	check(host_comm_child(parent, ret->ranks, n, (uint64_t)of + 77, &ret->c), "child");
}

static void child_free(struct child *c)
{
	host_comm_free(&c->c);
	free(c->ranks);
}

static uint32_t rank_in(const struct child *c, uint32_t parent_rank)
{
	for (uint32_t i = 0; i < c->c.w.n_ranks; i++)
		if (c->ranks[i] == parent_rank)
			return i;
	return UINT32_MAX;
}

struct split {
	int32_t (*color)(uint32_t), (*key)(uint32_t);
	struct child children[2];
	uint32_t n_children;
	bool is_shared;
	const struct split *again; /* of the first child; NULL: no more */
};

static int split_once(struct client *r, const struct split *s, uint64_t number)
{
	uint32_t n = r->w->n_ranks;
	int32_t *color = calloc(n, sizeof(*color)), *key = calloc(n, sizeof(*key));
	const struct child *child = NULL;
	struct client c;
	int ret = color && key ? 0 : wire_fail("no memory");

	for (uint32_t i = 0; i < n && ret == 0; i++) {
		color[i] = s->color(i);
		key[i] = s->key(i);
	}
	if (ret == 0)
		ret = client_vote(r, color, key);
	for (uint32_t i = 0; i < s->n_children && ret == 0; i++)
		if (s->children[i].color == color[r->rank])
			child = &s->children[i];
	free(color);
	free(key);
	if (ret < 0 || !child)
		return ret;
	client_new(&c, &child->c.w, rank_in(child, r->rank), r->at, r->until_ns);
	ret = client_join(r, &c, child->ranks, r->magic * 31 + number * 7 + (uint64_t)child->color,
			  s->is_shared);
	if (ret == 0 && s->again && child == &s->children[0])
		ret = split_once(&c, s->again, number);
	if (ret == 0)
		ret = client_destroy(&c);
	client_free(&c);
	return ret;
}

static int splits(struct host_comm *c, struct client *r, void *ctx)
{
	if (client_init(r, c->ids, c->n_ids) < 0)
		return -1;
	for (uint64_t i = 0; i < 2; i++)
		if (split_once(r, ctx, i) < 0)
			return -1;
	return client_destroy(r);
}

static void split_with(const struct nccl_records *t, const struct host_places *p, struct split *s,
		       const int32_t *colors, uint32_t n_colors)
{
	struct host_comm c;
	char what[256];

	host.color = s->color;
	host.key = s->key;
	describe(t, p, what, sizeof(what));
	check(host_comm_make(&host, t, p, 1, 9, &c), what);
	for (s->n_children = 0; s->n_children < n_colors; s->n_children++)
		child_make(&c, s->color, s->key, colors[s->n_children],
			   &s->children[s->n_children]);
	check(host_run(&c, splits, s), what);
	for (uint32_t i = 0; i < n_colors; i++)
		child_free(&s->children[i]);
	host_comm_end(&c);
}

static void splits_make_communicators_of_the_virtual_size(void **state)
{
	static const struct host_places places[] = {{4, 4, false, 1, {0}},
						    {16, 4, false, 1, {2}},
						    {64, 4, false, 1, {0}}};
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	(void)state;
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < ARRAY_SIZE(places); i++)
			for (int is_shared = 0; is_shared < 2; is_shared++) {
				if (!is_form(all[t]) && (i != 1 || is_shared))
					continue;
				struct split halves = {by_half_node, by_rank,
						       .is_shared = is_shared},
					     some = {all_but_last_of_node, all_alike,
						     .is_shared = is_shared},
					     reversed = {all_one, backwards,
							 .is_shared = is_shared};

				split_with(all[t], &places[i], &halves, (int32_t[]){0, 1}, 2);
				split_with(all[t], &places[i], &some, (int32_t[]){5}, 1);
				split_with(all[t], &places[i], &reversed, (int32_t[]){3}, 1);
			}
}

/* All ranks in the same order, and of that child the same again. */
static void a_child_splits_like_its_parent(void **state)
{
	static const struct host_places place = {16, 4, false, 1, {1}};
	size_t n;
	const struct nccl_records *const *all = tables(&n);

	(void)state;
	for (size_t t = 0; t < n; t++) {
		struct split again = {.color = all_one, .key = by_rank},
			     first = {.color = all_one, .key = by_rank, .again = &again};
		struct host_comm c, same;

		check(host_comm_make(&host, all[t], &place, 1, 9, &c), "make");
		host.color = all_one;
		host.key = by_rank;
		child_make(&c, all_one, by_rank, 3, &first.children[0]);
		same = first.children[0].c;
		child_make(&same, all_one, by_rank, 3, &again.children[0]);
		first.n_children = again.n_children = 1;
		check(host_run(&c, splits, &first), all[t]->name);
		child_free(&again.children[0]);
		child_free(&first.children[0]);
		host_comm_end(&c);
	}
}

/* --- shrink ------------------------------------------------------------------------ */

static int32_t without_node_1(uint32_t r)
{
	return r / 4 == 1 ? NOCOLOR : 0;
}

static void tell_shrink(struct host *h, void *ctx)
{
	static const uint32_t excluded[] = {4, 5, 6, 7};
	struct err err = {""};
	int *r = ctx;

	*r = bootstrap_comm_shrink(h->last_child, excluded, ARRAY_SIZE(excluded), &err);
	if (*r < 0)
		fprintf(stderr, "%s\n", err.text);
}

static pthread_barrier_t before_shrink;

static int shrinks(struct host_comm *c, struct client *r, void *ctx)
{
	struct child *child = ctx;
	struct client k;
	int ret;

	if (client_init(r, c->ids, c->n_ids) < 0)
		return -1;
	if (pthread_barrier_wait(&before_shrink) == PTHREAD_BARRIER_SERIAL_THREAD) {
		int told;

		c->h->last_child = c->comm;
		host_call(c->h, tell_shrink, &told);
		if (told < 0)
			return wire_fail("the shrink was not taken");
	}
	pthread_barrier_wait(&before_shrink);
	client_new(&k, &child->c.w, rank_in(child, r->rank), r->at, r->until_ns);
	ret = client_join(r, &k, child->ranks, r->magic + 1, false);
	if (ret == 0)
		ret = client_destroy(&k);
	client_free(&k);
	return ret == 0 ? client_destroy(r) : ret;
}

static void shrink_leaves_a_node_out(void **state)
{
	static const struct host_places place = {16, 4, false, 1, {2}};
	const struct nccl_records *t = newest(true);
	struct host_comm c;
	struct child child;

	(void)state;
	check(host_comm_make(&host, t, &place, 1, 9, &c), "make");
	child_make(&c, without_node_1, by_rank, 0, &child);
	assert_int_equal(pthread_barrier_init(&before_shrink, NULL, c.n_real), 0);
	check(host_run(&c, shrinks, &child), "shrink");
	pthread_barrier_destroy(&before_shrink);
	child_free(&child);
	host_comm_end(&c);
}

/* ----------------------------------------------------------------------------------- */

static int start(void **state)
{
	(void)state;
	return host_start(&host, NULL, NULL);
}

static int stop(void **state)
{
	(void)state;
	host_stop(&host);
	/* refused may be messages that nobody waited for, which came when their communicator had
	 * ended */
	if (host.n_failed)
		fprintf(stderr, "failed: %s\n", host.failed);
	return host.n_failed ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rank_hears_what_all_ranks_have_to_say),
		cmocka_unit_test(so_it_does_in_large_worlds),
		cmocka_unit_test(real_ranks_may_be_alone),
		cmocka_unit_test(several_roots_share_the_ranks),
		cmocka_unit_test(ipv6_serves_as_well),
		cmocka_unit_test(communicators_do_not_mix),
		cmocka_unit_test(a_slow_rank_holds_up_nobody),
		cmocka_unit_test(barriers_end_at_all_ranks),
		cmocka_unit_test(transports_are_set_up_with_virtual_and_real_ranks),
		cmocka_unit_test(splits_make_communicators_of_the_virtual_size),
		cmocka_unit_test(a_child_splits_like_its_parent),
		cmocka_unit_test(shrink_leaves_a_node_out),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
