/* What harms NCCL's bootstrap as nbox serves it: ranks that die, bytes that are none of NCCL's,
 * strangers. One communicator fails with a sentence, or none does; nothing waits for ever, and the
 * others go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmocka-all.h"
#include "host.h"
#include "wire.h"

#define NO_HURRY_NS (60 * NS_PER_S)

static struct host host; /* of the test that runs */
static const struct host_places place = {16, 2, false, 2, {1, 6}};

static const struct nccl_records *newest(void)
{
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	return all[n - 1];
}

static void check(int r, const char *what)
{
	if (r < 0)
		fail_msg("%s: %s", what, wire_error());
}

static uint64_t soon(void)
{
	return clock_now_ns() + NO_HURRY_NS;
}

static int init(struct host_comm *c, struct client *r, void *ctx)
{
	(void)ctx;
	if (client_init(r, c->ids, c->n_ids) < 0 ||
	    client_barrier(r, c->w.records->barrier_tags[0]) < 0)
		return -1;
	return client_destroy(r);
}

/* Another communicator works at @h. */
static void check_well(struct host *h)
{
	struct host_comm c;

	check(host_comm_make(h, newest(), &place, 1, 1, &c), "another communicator");
	check(host_run(&c, init, NULL), "another communicator");
	host_comm_end(&c);
}

static void nothing(struct host *h, void *ctx)
{
	(void)h;
	(void)ctx;
}

/* --- deaths ------------------------------------------------------------------------ */

enum stage {
	AT_CHECK_IN, /* in the middle of it */
	CHECKED_IN,
	AT_RING, /* with one of two neighbours */
	RUNG,
	AT_CONTACTS, /* in the middle of the first record */
	HAS_CONTACTS,
	HAS_PEERS,
	AT_NODE, /* while it talks to another real rank */
	HAS_NODE,
	AT_GRAPH,
	N_STAGES
};

static void die_in_check_in(struct host_comm *c, struct client *r)
{
	const struct nccl_records *t = c->w.records;
	uint64_t magic;
	int32_t n = t->check_in.bytes;
	int fd;

	memcpy(&magic, c->ids + t->id_magic.at, sizeof(magic));
	fd = wire_connect(c->ids + t->id_address.at, magic, r->until_ns);
	if (fd >= 0)
		wire_send(fd, &n, sizeof(n), r->until_ns);
	wire_close(&fd);
}

/* @bytes: of a record that begins and does not end. */
static void die_in_gather(struct client *r, int32_t bytes)
{
	uint8_t part[8] = {0};

	wire_send(r->next, &bytes, sizeof(bytes), r->until_ns);
	wire_send(r->next, part, sizeof(part), r->until_ns);
}

static int live_until(struct host_comm *c, struct client *r, enum stage stage)
{
	uint8_t next[NCCL_ADDRESS_BYTES];
	const struct nccl_records *t = c->w.records;

	if (stage == AT_CHECK_IN) {
		die_in_check_in(c, r);
		return 0;
	}
	if (client_check_in(r, c->ids, c->n_ids) < 0 || stage == CHECKED_IN)
		return 0;
	if (client_answer(r, next) < 0)
		return 0;
	if (stage == AT_RING)
		r->next = wire_connect(next, r->magic, r->until_ns);
	if (stage == AT_RING || client_ring(r, next) < 0 || stage == RUNG)
		return 0;
	if (stage == AT_CONTACTS)
		die_in_gather(r, t->contacts[0].bytes);
	if (stage == AT_CONTACTS || client_contacts(r) < 0 || stage == HAS_CONTACTS)
		return 0;
	if (client_peers(r) < 0 || stage == HAS_PEERS)
		return 0;
	if (stage == AT_NODE) { /* the head of a message, and no more */
		uint32_t other = c->real[r->rank == c->real[0]];
		int fd = wire_connect(r->peers + (size_t)other * NCCL_ADDRESS_BYTES, r->magic,
				      r->until_ns);

		if (fd >= 0)
			wire_send(fd, &(int32_t){4}, sizeof(int32_t), r->until_ns);
		wire_close(&fd);
	}
	if (stage == AT_NODE || client_node(r) < 0 || stage == HAS_NODE)
		return 0;
	die_in_gather(r, t->graph.bytes);
	return 0;
}

static int dies(struct host_comm *c, struct client *r, void *ctx)
{
	if (r->rank == c->real[0])
		return live_until(c, r, *(enum stage *)ctx);
	return init(c, r, NULL);
}

static void a_rank_that_dies_takes_its_communicator_with_it_and_no_other(void **state)
{
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);
	struct host *h = &host;

	(void)state;
	assert_int_equal(host_start(h, NULL, NULL), 0);
	for (size_t t = 0; t < n; t++)
		for (enum stage stage = AT_CHECK_IN; stage < N_STAGES; stage++) {
			struct host_comm c;
			unsigned before = h->n_failed;

			check(host_comm_make(h, all[t], &place, 1, stage, &c), "make");
			if (host_run(&c, dies, &stage) == 0)
				fail_msg(
					"NCCL %s: with a rank dead at stage %d the others have begun",
					all[t]->name, (int)stage);
			if (strstr(wire_error(), "in time"))
				fail_msg(
					"NCCL %s: with a rank dead at stage %d another waits for ever",
					all[t]->name, (int)stage);
			host_call(h, nothing, NULL);
			assert_int_equal(h->n_failed, before + 1);
			assert_string_not_equal(h->failed, "");
			host_comm_end(&c);
		}
	check_well(h);
	host_stop(h);
}

/* --- bytes that are none of NCCL's ---------------------------------------------------- */

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	return *seed ^= *seed << 17;
}

/* Some bytes to a port, behind @magic where that is not 0. */
static void throw(const uint8_t address[NCCL_ADDRESS_BYTES], uint64_t magic, uint64_t seed)
{
	uint64_t state = seed * 2654435761u + 88172645463325252u;
	uint8_t bytes[256];
	size_t n = next_random(&state) % sizeof(bytes);
	int fd =
		magic ? wire_connect(address, magic, soon()) : wire_connect_silent(address, soon());

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)next_random(&state);
	if (seed % 2) /* a size that can be */
		memcpy(bytes, &(uint32_t){(uint32_t)(seed % 300)}, sizeof(uint32_t));
	if (fd >= 0)
		wire_send(fd, bytes, n, soon());
	if (seed % 3 == 0 && fd >= 0) /* reads what comes of it */
		recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	wire_close(&fd);
}

#define N_THROWS 24

static int among_garbage(struct host_comm *c, struct client *r, void *ctx)
{
	const struct nccl_records *t = c->w.records;
	uint8_t next[NCCL_ADDRESS_BYTES];

	(void)ctx;
	for (uint64_t i = 0; i < N_THROWS; i++)
		throw(c->ids + t->id_address.at, 0, i);
	if (client_check_in(r, c->ids, c->n_ids) < 0 || client_answer(r, next) < 0)
		return -1;
	for (uint64_t i = 0; i < N_THROWS; i++)
		throw(next, 0, i);
	for (uint64_t i = 0; i < N_THROWS; i++)
		throw(next, i + 1, i); /* the magic of another */
	if (client_ring(r, next) < 0 || client_contacts(r) < 0)
		return -1;
	for (uint64_t i = 0; i < N_THROWS; i++)
		throw(r->peers + (size_t)(i % c->w.n_ranks) * NCCL_ADDRESS_BYTES, i % 3 ? 0 : i, i);
	if (client_peers(r) < 0 || client_node(r) < 0 || client_graph(r) < 0 ||
	    client_barrier(r, t->barrier_tags[0]) < 0)
		return -1;
	return client_destroy(r);
}

static void without_the_magic_nothing_is_harmed(void **state)
{
	struct host_comm c;
	struct host *h = &host;

	(void)state;
	assert_int_equal(host_start(h, NULL, NULL), 0);
	check(host_comm_make(h, newest(), &place, 1, 1, &c), "make");
	check(host_run(&c, among_garbage, NULL), "among garbage");
	assert_int_equal(h->n_failed, 0);
	assert_true(h->n_refused > 0);
	host_comm_end(&c);
	host_stop(h);
}

enum target { THE_ROOT, A_NEIGHBOUR, A_VIRTUAL_RANK, A_REAL_RANK, N_TARGETS };

struct attack {
	enum target target;
	uint64_t seed;
};

static int attacks(struct host_comm *c, struct client *r, void *ctx)
{
	const struct attack *a = ctx;
	const struct nccl_records *t = c->w.records;
	uint8_t next[NCCL_ADDRESS_BYTES];
	uint64_t magic;
	bool is_mine = r->rank == c->real[0];

	memcpy(&magic, c->ids + t->id_magic.at, sizeof(magic));
	if (is_mine && a->target == THE_ROOT)
		throw(c->ids + t->id_address.at, magic, a->seed);
	if (client_check_in(r, c->ids, c->n_ids) < 0 || client_answer(r, next) < 0)
		return -1;
	if (is_mine && a->target == A_NEIGHBOUR)
		throw(next, magic, a->seed);
	if (client_ring(r, next) < 0 || client_contacts(r) < 0)
		return -1;
	if (is_mine && a->target == A_VIRTUAL_RANK)
		throw(r->peers, magic, a->seed);
	if (is_mine && a->target == A_REAL_RANK)
		throw(r->peers + (size_t)c->real[1] * NCCL_ADDRESS_BYTES, magic, a->seed);
	if (client_peers(r) < 0 || client_node(r) < 0 || client_graph(r) < 0 ||
	    client_barrier(r, t->barrier_tags[0]) < 0)
		return -1;
	return client_destroy(r);
}

/* Who knows the magic can fail that communicator: then all its ranks hear of it, and nobody else.
 */
static void with_the_magic_one_communicator_fails_at_most(void **state)
{
	struct host *h = &host;

	(void)state;
	assert_int_equal(host_start(h, NULL, NULL), 0);
	for (struct attack a = {0}; a.target < N_TARGETS; a.target++)
		for (a.seed = 1; a.seed <= N_THROWS; a.seed++) {
			struct host_comm c;
			unsigned before = h->n_failed;
			int r;

			check(host_comm_make(h, newest(), &place, 1, a.seed, &c), "make");
			r = host_run(&c, attacks, &a);
			if (r < 0 && strstr(wire_error(), "in time"))
				fail_msg("garbage %d at target %d: a rank waits for ever",
					 (int)a.seed, (int)a.target);
			host_call(h, nothing, NULL);
			assert_true(h->n_failed <= before + 1);
			if (r < 0 && h->n_failed == before)
				fail_msg("garbage %d at target %d: %s", (int)a.seed, (int)a.target,
					 wire_error());
			host_comm_end(&c);
		}
	check_well(h);
	host_stop(h);
}

static int init_with(struct host_comm *c, struct client *r, void *ctx)
{
	struct said_world w = c->w; /* the same ranks with NCCL's other records */

	w.records = ctx;
	r->w = &w;
	return client_init(r, c->ids, c->n_ids);
}

static void another_version_is_told_from_its_sizes(void **state)
{
	size_t n, n_pairs = 0;
	const struct nccl_records *const *all = nccl_records_all(&n);
	struct host *h = &host;

	(void)state;
	assert_int_equal(host_start(h, NULL, NULL), 0);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			struct host_comm c;
			unsigned before = h->n_failed;

			if (all[i]->check_in.bytes == all[j]->check_in.bytes)
				continue;
			n_pairs++;
			check(host_comm_make(h, all[i], &place, 1, 3, &c), "make");
			if (host_run(&c, init_with, (void *)(uintptr_t)all[j]) == 0)
				fail_msg("NCCL %s was taken for %s", all[j]->name, all[i]->name);
			if (strstr(wire_error(), "in time"))
				fail_msg("NCCL %s at %s: a rank waits for ever", all[j]->name,
					 all[i]->name);
			host_call(h, nothing, NULL);
			assert_int_equal(h->n_failed, before + 1);
			if (!strstr(h->failed, "version"))
				fail_msg("%s: the sentence does not say that it is another version",
					 h->failed);
			host_comm_end(&c);
		}
	check_well(h);
	host_stop(h);
	if (!n_pairs)
		skip();
}

/* --- strangers ----------------------------------------------------------------------- */

#define N_SILENT 300

static void silent_connections_make_room(void **state)
{
	static const struct bootstrap_serve_limits limits = {40, 3600 * NS_PER_S};
	int fds[N_SILENT];
	struct host_comm c;
	struct host *h = &host;

	(void)state;
	assert_int_equal(host_start(h, NULL, &limits), 0);
	check(host_comm_make(h, newest(), &place, 1, 1, &c), "make");
	for (int i = 0; i < N_SILENT; i++)
		fds[i] = wire_connect_silent(c.ids + c.w.records->id_address.at, soon());
	check(host_run(&c, init, NULL), "beside silent connections");
	assert_int_equal(h->n_failed, 0);
	for (int i = 0; i < N_SILENT; i++)
		wire_close(&fds[i]);
	host_comm_end(&c);
	host_stop(h);
}

/* In a process of its own, whose descriptors are not the host's. @to: tells where; is closed at the
 * end. */
static void crowd(int to)
{
	uint8_t address[NCCL_ADDRESS_BYTES];
	char byte;

	if (read(to, address, sizeof(address)) == sizeof(address)) {
		for (int i = 0; i < 3 * N_SILENT; i++)
			wire_connect_silent(address, soon()); /* ends with the process */
		while (read(to, &byte, 1) > 0)
			;
	}
	_exit(0);
}

static void strangers_leave_descriptors_to_ranks(void **state)
{
	struct rlimit old, few;
	struct host_comm c;
	struct host *h = &host;
	int to[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(to), 0);
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		crowd(to[0]);
	}
	close(to[0]);
	getrlimit(RLIMIT_NOFILE, &old);
	few = old;
	few.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(host_start(h, NULL, NULL), 0);
	check(host_comm_make(h, newest(), &place, 1, 1, &c), "make");
	assert_int_equal(write(to[1], c.ids + c.w.records->id_address.at, NCCL_ADDRESS_BYTES),
			 NCCL_ADDRESS_BYTES);
	for (int i = 0; i < 5; i++)
		check_well(h);
	check(host_run(&c, init, NULL), "in a crowd");
	assert_int_equal(h->n_failed, 0);
	close(to[1]);
	waitpid(pid, NULL, 0);
	host_comm_end(&c);
	host_stop(h);
	setrlimit(RLIMIT_NOFILE, &old);
}

static void silence_has_an_end(void **state)
{
	static const struct bootstrap_serve_limits limits = {40, NS_PER_S / 50};
	struct host_comm c;
	struct host *h = &host;
	int fds[3];

	(void)state;
	assert_int_equal(host_start(h, NULL, &limits), 0);
	check(host_comm_make(h, newest(), &place, 1, 1, &c), "make");
	for (int i = 0; i < 3; i++) {
		fds[i] = wire_connect_silent(c.ids + c.w.records->id_address.at, soon());
		if (i) /* some of its magic */
			wire_send(fds[i], c.ids, 4, soon());
	}
	for (int i = 0; i < 3; i++) {
		check(wire_recv_end(fds[i], soon()), "silent");
		wire_close(&fds[i]);
	}
	host_comm_end(&c);
	host_stop(h);
}

/* Who knows one magic can open connections without end: that communicator fails, the other goes on.
 */
static int floods(struct host_comm *c, struct client *r, void *ctx)
{
	const struct nccl_records *t = c->w.records;
	uint64_t magic;
	unsigned before = c->h->n_failed;
	int fds[2000], n = 0;

	(void)ctx;
	memcpy(&magic, c->ids + t->id_magic.at, sizeof(magic));
	while (n < 2000 && c->h->n_failed == before) {
		fds[n] = wire_connect(c->ids + t->id_address.at, magic, r->until_ns);
		if (fds[n] < 0)
			break;
		n++;
	}
	for (int i = 0; i < n; i++)
		wire_close(&fds[i]);
	return 0;
}

static void a_flood_of_one_communicator_stops_no_other(void **state)
{
	static const struct host_places one = {4, 1, false, 1, {0}};
	struct host_comm c;
	struct host *h = &host;

	(void)state;
	assert_int_equal(host_start(h, NULL, NULL), 0);
	check(host_comm_make(h, newest(), &one, 1, 1, &c), "make");
	check(host_run(&c, floods, NULL), "flood");
	check_well(h);
	assert_int_equal(h->n_failed, 1);
	host_comm_end(&c);
	host_stop(h);
}

struct ended {
	struct host_comm *c;
	char waits[256];
};

static void end_when_it_waits(struct host *h, void *ctx)
{
	struct ended *e = ctx;

	(void)h;
	bootstrap_comm_waits(e->c->comm, e->waits, sizeof(e->waits));
	/* the other has its neighbours, and waits for what this one says of itself */
	if (strstr(e->waits, "the root waits for ranks 2;") && strstr(e->waits, "contact")) {
		bootstrap_comm_end(e->c->comm);
		e->c->comm = NULL;
	}
}

/* The first real rank does not come: the others wait for it, until somebody ends them. */
static int waits_for_another(struct host_comm *c, struct client *r, void *ctx)
{
	if (r->rank == c->real[0]) {
		while (c->comm) {
			host_call(c->h, end_when_it_waits, ctx);
			usleep(1000);
		}
		return 0;
	}
	return init(c, r, NULL);
}

static void a_communicator_that_is_ended_lets_its_ranks_go(void **state)
{
	static const struct host_places one = {16, 2, false, 1, {1}};
	struct host_comm c;
	struct host *h = &host;
	struct ended e = {&c, ""};

	(void)state;
	assert_int_equal(host_start(h, NULL, NULL), 0);
	check(host_comm_make(h, newest(), &one, 1, 1, &c), "make");
	assert_int_equal(host_run(&c, waits_for_another, &e), -1);
	assert_null(strstr(wire_error(), "in time"));
	host_comm_free(&c);
	host_stop(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_that_dies_takes_its_communicator_with_it_and_no_other),
		cmocka_unit_test(without_the_magic_nothing_is_harmed),
		cmocka_unit_test(with_the_magic_one_communicator_fails_at_most),
		cmocka_unit_test(another_version_is_told_from_its_sizes),
		cmocka_unit_test(silent_connections_make_room),
		cmocka_unit_test(strangers_leave_descriptors_to_ranks),
		cmocka_unit_test(silence_has_an_end),
		cmocka_unit_test(a_flood_of_one_communicator_stops_no_other),
		cmocka_unit_test(a_communicator_that_is_ended_lets_its_ranks_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
