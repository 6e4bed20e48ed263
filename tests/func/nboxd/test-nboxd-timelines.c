/* Time belongs to ranks: what nboxd makes of the points and edges that workers tell of. The fake
 * workers have lived through everything when they tell it: times lie in the past, so that none
 * depends on how fast this machine is. */
#include <stdlib.h>

#include "base/clock.h"
#include "engine/record-read.h"
#include "engine/timing.h"
#include "fake-world.h"

#define MS NS_PER_MS
#define LIFE (200 * MS) /* that a worker has behind it when it tells */

static uint64_t zero; /* of their times */
static size_t n_fakes;
static uint64_t count = 16; /* of ops */

/* What a point or an op says, beside its name and its deps. */
struct told {
	uint64_t name, at; /* after @zero */
	uint64_t deps[3];  /* names; 0: none. The first one lies on the same stream. */
};

static uint32_t take_deps(const struct told *t, struct wire_dep *ret)
{
	uint32_t n = 0;

	for (int i = 0; i < 3; i++)
		if (t->deps[i])
			ret[n++] = (struct wire_dep){t->deps[i], i == 0, 0};
	return n;
}

static void start_with(struct daemon *d, const char *nodes, size_t n, const char *const *more)
{
	n_fakes = n;
	start_world(d, nodes, n, "shm", "none", more);
	zero = clock_now_ns(); /* they have said HELLO: nothing is told of what was before */
	clock_sleep_until_ns(zero + LIFE);
}

/* 2 nodes of 2; every op takes 1 ms. */
static void start(struct daemon *d, size_t n, const char *const *what_ifs)
{
	const char *more[16] = {"--model", "const:time=1ms", "--settle", "50ms"};

	for (size_t k = 4; *what_ifs; k++)
		more[k] = *what_ifs++;
	start_with(d, "2", n, more);
}

static void stop(struct daemon *d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fake_close(&f[i]);
	daemon_stop(d);
}

static void point(uint32_t rank, struct told t)
{
	struct {
		struct wire_point point;
		struct wire_dep deps[3];
	} m = {.point = {.name = t.name, .time_ns = zero + t.at}};

	m.point.n_deps = take_deps(&t, m.deps);
	fake_send(&f[rank], WIRE_POINT, 0, rank, 0, &m,
		  sizeof(m.point) + m.point.n_deps * sizeof(m.deps[0]));
}

static void arrive(uint32_t rank, unsigned comm, uint64_t seq, uint32_t kind, struct told t)
{
	struct {
		struct wire_arrive arrive;
		struct wire_dep deps[3];
	} m = {.arrive = {.name = t.name,
			  .arrive_ns = zero + t.at,
			  .kind = kind,
			  .dtype = COLL_FLOAT32,
			  .count = count}};

	m.arrive.n_deps = take_deps(&t, m.deps);
	f[rank].has_release = false;
	fake_send(&f[rank], WIRE_ARRIVE, f[rank].ready[comm].comm, f[rank].ready[comm].m.rank, seq,
		  &m, sizeof(m.arrive) + m.arrive.n_deps * sizeof(m.deps[0]));
}

static uint64_t p2p_bytes = 64;

/* The same for one send or receive; @number: of the rank's. */
static void arrive_p2p(uint32_t rank, uint64_t number, bool is_send, uint32_t peer, struct told t)
{
	struct {
		struct wire_arrive arrive;
		struct wire_p2p call;
		struct wire_dep deps[3];
	} m = {.arrive = {.name = t.name,
			  .arrive_ns = zero + t.at,
			  .kind = COLL_SENDRECV,
			  .n_p2p = 1},
	       .call = {.peer = peer, .is_send = is_send, .bytes = p2p_bytes}};

	m.arrive.n_deps = take_deps(&t, m.deps);
	f[rank].has_release = false;
	fake_send(&f[rank], WIRE_ARRIVE, f[rank].ready[0].comm, rank, WIRE_SEQ_P2P | number, &m,
		  sizeof(m.arrive) + sizeof(m.call) + m.arrive.n_deps * sizeof(m.deps[0]));
}

static bool has_release(void *ctx)
{
	return ((struct fake *)ctx)->has_release;
}

/* nboxd has worked through what @rank has sent. */
static void were_read(uint32_t rank)
{
	unsigned n = f[rank].n[WIRE_STATUS] + 1;

	fake_send(&f[rank], WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(&f[rank], 1, WIRE_STATUS, n));
}

/* Return: when the op is over at @rank, after @zero. */
static uint64_t over(uint32_t rank)
{
	if (!fakes_pump(f, n_fakes, has_release, &f[rank]))
		fail_msg("no RELEASE for rank %u: %s", rank, f[rank].abort.text);
	return f[rank].release.end_ns - zero;
}

/* The gate has opened @late after it was due. */
static void done(uint32_t rank, unsigned comm, uint64_t seq, uint64_t late)
{
	struct wire_done m = {.due_ns = f[rank].release.end_ns,
			      .release_ns = f[rank].release.end_ns + late};

	fake_send(&f[rank], WIRE_DONE, f[rank].ready[comm].comm, f[rank].ready[comm].m.rank, seq,
		  &m, sizeof(m));
}

/* Two streams: the gate of op 1 opens 2 ms late. Computation that waits for it is late by as much,
 * and so is the gate that follows that; a gate that waits for other computation is not. */
static void a_late_gate_delays_what_waits_for_it_alone(void **state)
{
	static const char *const what_ifs[] = {NULL};
	struct daemon d;

	(void)state;
	start(&d, 1, what_ifs);
	arrive(0, 0, 0, COLL_ALLREDUCE, (struct told){1, 10 * MS, {0}});
	assert_int_equal(over(0), 11 * MS);
	done(0, 0, 0, 2 * MS);
	/* computation that did not wait: the op is due as if the gate had been in time */
	point(0, (struct told){2, 13 * MS, {0}});
	arrive(0, 0, 1, COLL_ALLREDUCE, (struct told){3, 14 * MS, {1, 2}});
	assert_in_range(over(0), 14 * MS, 15 * MS);
	done(0, 0, 1, 0);
	/* computation that waited for the first op and took 10 ms */
	point(0, (struct told){4, 23 * MS, {2, 1}});
	arrive(0, 0, 2, COLL_ALLREDUCE, (struct told){5, 23 * MS, {3, 4}});
	assert_int_equal(over(0), 24 * MS);
	stop(&d, 1);
}

/* Rank 1 copies rank 0 and computes twice as long: 10 ms, not the 2 ms in which the gate was late.
 */
static void lateness_is_no_computation(void **state)
{
	static const char *const what_ifs[] = {"--what-if", "slow:rank=1,compute=2", NULL};
	struct daemon d;

	(void)state;
	start(&d, 1, what_ifs);
	arrive(0, 0, 0, COLL_ALLREDUCE, (struct told){1, 10 * MS, {0}});
	assert_int_equal(over(0), 11 * MS);
	done(0, 0, 0, 2 * MS);
	point(0, (struct told){2, 23 * MS, {0, 1}});
	arrive(0, 0, 1, COLL_ALLREDUCE, (struct told){3, 23 * MS, {1, 2}});
	assert_int_equal(over(0), (11 + 2 * 10 + 1) * MS + 2 * MS);
	stop(&d, 1);
}

/* Rank 0 is real. Its gates hold it as long as it would compute. */
static void a_slowed_real_rank_is_held_by_its_gates(void **state)
{
	static const char *const what_ifs[] = {"--what-if", "slow:rank=0,compute=3", NULL};
	struct daemon d;

	(void)state;
	start(&d, 1, what_ifs);
	arrive(0, 0, 0, COLL_ALLREDUCE, (struct told){1, 10 * MS, {0}});
	assert_int_equal(over(0), 11 * MS);
	done(0, 0, 0, 0);
	arrive(0, 0, 1, COLL_ALLREDUCE, (struct told){2, 21 * MS, {1}});
	assert_int_equal(over(0), (11 + 3 * 10 + 1) * MS);
	stop(&d, 1);
}

/* A group's calls come together. Each takes the network when the one before is over, at each rank:
 * rank 1 copies rank 0 and is 10 ms late, and so are all. */
static void ops_of_one_communicator_take_turns(void **state)
{
	static const char *const what_ifs[] = {"--what-if", "slow:rank=1,compute=2", NULL};
	struct daemon d;

	(void)state;
	start(&d, 1, what_ifs);
	point(0, (struct told){1, 10 * MS, {0}});
	point(0, (struct told){2, 20 * MS, {1}});
	for (uint64_t i = 0; i < 8; i++) {
		arrive(0, 0, i, COLL_ALLREDUCE, (struct told){3 + i, 20 * MS, {2}});
		assert_int_equal(over(0), (30 + i + 1) * MS);
	}
	for (uint64_t i = 0; i < 8; i++)
		done(0, 0, i, 0);
	/* 12 ms of computation after that, at rank 1 24 */
	arrive(0, 0, 8, COLL_ALLREDUCE, (struct told){20, 50 * MS, {10}});
	assert_int_equal(over(0), (38 + 24 + 1) * MS);
	stop(&d, 1);
}

static const char *const slow_ports[] = {"--model",
					 "alphabeta",
					 "--inter-bandwidth",
					 "1MB/s",
					 "--inter-latency",
					 "0ns",
					 "--intra-bandwidth",
					 "1MB/s",
					 "--intra-latency",
					 "0ns",
					 "--settle",
					 "500ms",
					 NULL};

/* 4 MiB over 4 ranks at 1 MB/s: 2 * 3 / 4 of it go out of each port, 6.29 s. Two communicators
 * share the ports: what both have in flight takes twice as long. The first op, whose gate is not
 * open yet, moves. */
static void ops_of_two_communicators_share_their_ports(void **state)
{
	const uint64_t alone = UINT64_C(6291456000), at = 10 * MS, later = 100 * MS;
	struct daemon d;

	(void)state;
	start_with(&d, "4", 1, slow_ports);
	fake_init(&f[0], 8, 4, 0, 0);
	assert_true(fakes_got(f, 1, WIRE_COMM_READY, 2));
	count = 1 << 20;
	point(0, (struct told){1, at, {0}});
	arrive(0, 0, 0, COLL_ALLREDUCE, (struct told){2, at, {1}});
	assert_int_equal(over(0), at + alone);
	arrive(0, 1, 0, COLL_ALLREDUCE, (struct told){3, later, {1}});
	assert_int_equal(over(0), at + 2 * alone);
	assert_true(fakes_got(f, 1, WIRE_MOVE, 1));
	assert_int_equal(f[0].move.end_ns - zero, later + 2 * (alone - (later - at)));
	assert_int_equal(f[0].last[WIRE_MOVE].comm, f[0].ready[0].comm);
	count = 16;
	stop(&d, 1);
}

/* 4 KiB: 6.144 ms. nboxd hears of the second op when the gate of the first is open, before it knows
 * that or after: what the rank comes to after the first is as much later as that. */
static void an_end_that_moves_behind_an_open_gate_is_a_debt(void **state)
{
	const uint64_t alone = 6144000, at = 10 * MS, later = 12 * MS, debt = at + alone - later;
	struct daemon d;

	(void)state;
	for (int is_known = 0; is_known < 2; is_known++) {
		struct wire_done opened;

		start_with(&d, "4", 1, slow_ports);
		fake_init(&f[0], 8, 4, 0, 0);
		assert_true(fakes_got(f, 1, WIRE_COMM_READY, 2));
		count = 1 << 10;
		point(0, (struct told){1, at, {0}});
		arrive(0, 0, 0, COLL_ALLREDUCE, (struct told){2, at, {1}});
		assert_int_equal(over(0), at + alone);
		opened = (struct wire_done){.due_ns = f[0].release.end_ns,
					    .release_ns = f[0].release.end_ns};
		if (is_known) {
			fake_send(&f[0], WIRE_DONE, f[0].ready[0].comm, 0, 0, &opened,
				  sizeof(opened));
			point(0, (struct told){4, 20 * MS, {2}});
		}
		arrive(0, 1, 0, COLL_ALLREDUCE, (struct told){3, later, {1}});
		assert_int_equal(over(0), later + debt + alone);
		if (!is_known) {
			fake_send(&f[0], WIRE_DONE, f[0].ready[0].comm, 0, 0, &opened,
				  sizeof(opened));
			point(0, (struct told){4, 20 * MS, {2}});
		}
		arrive(0, 0, 1, COLL_ALLREDUCE, (struct told){5, 22 * MS, {4}});
		assert_int_equal(over(0), 22 * MS + debt + alone);
		assert_int_equal(f[0].n[WIRE_MOVE], !is_known);
		count = 16;
		stop(&d, 1);
	}
}

/* 4 KiB over 4 ranks at 1 MB/s: half a NIC's bandwidth from 2 ms after the first point on, for 3
 * ms; then none for 1 ms. */
static void links_are_as_what_ifs_say_at_their_times(void **state)
{
	static const char *const more[] = {"--model",
					   "pinned",
					   "--inter-bandwidth",
					   "1MB/s",
					   "--inter-latency",
					   "0ns",
					   "--settle",
					   "500ms",
					   "--what-if",
					   "link:node=2,slower=2,from=2ms,for=3ms",
					   "--what-if",
					   "link:name=node3.nic0.out,from=5ms,down=1ms",
					   NULL};
	const uint64_t alone = 6144000, at = 10 * MS, more_ns = 1500000 + MS;
	struct daemon d;

	(void)state;
	start_with(&d, "4", 1, more);
	count = 1 << 10;
	point(0, (struct told){1, at, {0}});
	arrive(0, 0, 0, COLL_ALLREDUCE, (struct told){2, at, {1}});
	assert_int_equal(over(0), at + alone + more_ns);
	done(0, 0, 0, 0);
	/* when they are over it takes as long as alone */
	arrive(0, 0, 1, COLL_ALLREDUCE, (struct told){3, at + alone + more_ns, {2}});
	assert_int_equal(over(0), at + 2 * alone + more_ns);
	count = 16;
	stop(&d, 1);
}

/* Rank 1 has not come yet. */
static void a_root_does_not_wait_for_those_that_it_sends_to(void **state)
{
	static const char *const what_ifs[] = {NULL};
	struct daemon d;

	(void)state;
	start(&d, 2, what_ifs);
	arrive(0, 0, 0, COLL_BROADCAST, (struct told){1, 10 * MS, {0}});
	assert_int_equal(over(0), 10 * MS); /* 64 bytes fit the buffers */
	done(0, 0, 0, 0);
	arrive(1, 0, 0, COLL_BROADCAST, (struct told){1, 30 * MS, {0}});
	assert_int_equal(over(1), 31 * MS);
	done(1, 0, 0, 0);
	arrive(1, 0, 1, COLL_REDUCE, (struct told){2, 40 * MS, {1}});
	assert_int_equal(over(1), 40 * MS);
	assert_false(f[0].has_release && f[0].release.end_ns - zero > 10 * MS);
	arrive(0, 0, 1, COLL_REDUCE, (struct told){2, 20 * MS, {1}});
	assert_int_equal(over(0), 41 * MS);
	stop(&d, 2);
}

/* 8 ops fit NCCL's buffers; rank 1 comes to the first of 9 at 40 ms. */
static void a_root_runs_ahead_as_far_as_its_buffers_go(void **state)
{
	static const char *const what_ifs[] = {NULL};
	struct daemon d;

	(void)state;
	start(&d, 2, what_ifs);
	for (uint64_t k = 0; k < 8; k++) {
		arrive(0, 0, k, COLL_BROADCAST, (struct told){k + 1, (10 + k) * MS, {k}});
		assert_int_equal(over(0), (10 + k) * MS);
		done(0, 0, k, 0);
	}
	arrive(0, 0, 8, COLL_BROADCAST, (struct told){9, 18 * MS, {8}});
	were_read(0);
	were_read(1);
	assert_false(f[0].has_release);
	arrive(1, 0, 0, COLL_BROADCAST, (struct told){1, 40 * MS, {0}});
	assert_int_equal(over(1), 41 * MS);
	assert_int_equal(over(0), 40 * MS);
	stop(&d, 2);
}

/* 16 MiB for each: a member that comes later by the wall clock takes its turns at the root's port
 * all the same. */
static void who_comes_late_to_a_scatter_takes_turns_at_its_root(void **state)
{
	static const char *const more[] = {"--model", "alphabeta", "--settle", "50ms", NULL};
	static const uint32_t order[2][3] = {{0, 1, 2}, {2, 0, 1}};
	uint64_t took[2];
	struct daemon d;

	(void)state;
	start_with(&d, "2", 3, more);
	count = 4 << 20;
	for (uint64_t i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++) {
			arrive(order[i][k], 0, i, COLL_SCATTER,
			       (struct told){i + 1, (10 + 90 * i) * MS, {i}});
			were_read(order[i][k]);
			if (order[i][k] == 1)
				took[i] = over(1) - (10 + 90 * i) * MS;
		}
		for (uint32_t k = 0; k < 3; k++) {
			over(k);
			done(k, 0, i, 0);
		}
	}
	count = 16;
	assert_int_equal(took[0], took[1]);
	stop(&d, 3);
}

static struct record_op last_of_record(const char *out)
{
	struct record rec = {0};
	struct err err = {""};
	struct record_op op;
	char path[128];

	snprintf(path, sizeof(path), "%s/record.nbox", out);
	if (record_load(path, &rec, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(rec.n_ops > 0);
	op = rec.ops[rec.n_ops - 1];
	op.of = NULL;
	record_deinit(&rec);
	return op;
}

/* Rank 3 is late by a millionth. 200,000 messages are not simulated; 12 are. */
static void ends_of_ranks_told_apart_are_found_alike_with_what_ifs_and_without(void **state)
{
	static const struct {
		uint64_t count;
		uint32_t kind, how;
	} ops[] = {{48 << 20 >> 2, COLL_ALLTOALL, SOLVE_OP},
		   {1 << 10, COLL_ALLTOALL, SOLVE_SIM},
		   {1 << 20, COLL_ALLREDUCE, SOLVE_SYMMETRY},
		   {1 << 20, COLL_REDUCE, SOLVE_SYMMETRY}};
	char out[96];
	const char *more[] = {"--model",  "alphabeta", "--what-if", "slow:rank=3,compute=1.000001",
			      "--settle", "50ms",      "--chunk",   "3KiB",
			      "--out",    out,         NULL};
	struct record_op op;
	struct daemon d;

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		snprintf(out, sizeof(out), "%s/out-%zu", dir, i);
		start_with(&d, "2", 2, more);
		point(0, (struct told){1, 10 * MS, {0}});
		point(1, (struct told){1, 10 * MS, {0}});
		count = ops[i].count;
		for (uint32_t k = 0; k < 2; k++)
			arrive(k, 0, 0, ops[i].kind, (struct told){2, 20 * MS, {1}});
		for (uint32_t k = 0; k < 2; k++) {
			over(k);
			done(k, 0, 0, 0);
		}
		count = 16;
		stop(&d, 2);
		op = last_of_record(out);
		assert_int_equal(op.how, ops[i].how);
		assert_in_range(op.virtual_end_ns - op.plain_end_ns, 0, 11);
	}
}

/* Pairs inside nodes, and pairs across. Rank 3 is slow: rank 2 waits for it in ops that no real
 * rank posts, and rank 0 for rank 2. */
static void lag_passes_on_by_the_images_of_a_communicator(void **state)
{
	/* 40 times as long the first of a pair waits for the second */
	static const char *const more[] = {"--model",   "const:time=1ms",
					   "--settle",  "500ms",
					   "--layout",  "tp=2,dp=2",
					   "--what-if", "slow:rank=3,compute=2",
					   NULL};
	struct daemon d;

	(void)state;
	start_with(&d, "2", 2, more);
	for (uint32_t i = 0; i < 2; i++)
		fake_init(&f[i], 8, 2, i, i); /* {0, 1}; nodes have images {2, 3} */
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 2));
	for (uint32_t i = 0; i < 2; i++)
		fake_init(&f[i], (uint8_t)(9 + i), 2, 0, i); /* {0, 2} and {1, 3} */
	assert_true(fakes_got(f, 2, WIRE_COMM_READY, 3));
	for (uint32_t i = 0; i < 2; i++)
		arrive(i, 1, 0, COLL_ALLREDUCE, (struct told){1, 10 * MS, {0}});
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(over(i), 11 * MS);
		done(i, 1, 0, 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		arrive(i, 1, 1, COLL_ALLREDUCE, (struct told){2, 21 * MS, {1}});
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(over(i), 22 * MS);
		done(i, 1, 1, 0);
	}
	/* ranks 2 and 3 are over with it at 11 + 2 * 10 + 1 */
	arrive(0, 2, 0, COLL_ALLREDUCE, (struct told){3, 27 * MS, {2}});
	assert_int_equal(over(0), (32 + 5 + 1) * MS);
	stop(&d, 2);
}

/* 4 KiB take 4.096 ms. Rank 0 sends to rank 2 from 10 ms on, to rank 4 from 12 ms on: from there
 * both have half of its port. Rank 2 comes when its message is there. */
static void a_message_shares_its_senders_port_before_its_receiver_comes(void **state)
{
	static const char *const ports[] = {
		"--model", "pinned:algo=ring,chunk=1M", "--inter-latency",
		"0ns",     "--inter-bandwidth",         "1MB/s",
		NULL};
	struct daemon d;

	(void)state;
	start_with(&d, "4", 5, ports);
	p2p_bytes = 4 << 10;
	/* in this order: a run's clock begins with what comes first, and rank 0 is before that */
	arrive_p2p(2, 0, false, 0, (struct told){1, 20 * MS, {0}});
	were_read(2);
	arrive_p2p(0, 0, true, 2, (struct told){1, 10 * MS, {0}});
	assert_int_equal(over(0), 10 * MS);
	assert_int_equal(over(2), 20 * MS);
	done(0, 0, WIRE_SEQ_P2P | 0, 0);
	arrive_p2p(4, 0, false, 0, (struct told){1, 5 * MS, {0}});
	arrive_p2p(0, 1, true, 4, (struct told){2, 12 * MS, {1}});
	assert_int_equal(over(4), 12 * MS + 2 * 2096000 + 2000000);
	p2p_bytes = 64;
	stop(&d, 5);
}

/* Rank 3 copies rank 1, which computes for 10 ms and calls nobody. Rank 0 receives from rank 3, and
 * sends to it what its buffers take. */
static void a_receive_waits_for_a_slow_rank_that_copies_another_than_the_caller(void **state)
{
	static const char *const what_ifs[] = {"--what-if", "slow:rank=3,compute=2", NULL};
	struct daemon d;

	(void)state;
	start(&d, 2, what_ifs);
	point(1, (struct told){1, 10 * MS, {0}});
	point(1, (struct told){2, 20 * MS, {1}});
	were_read(1);
	arrive_p2p(0, 0, false, 3, (struct told){1, 30 * MS, {0}});
	assert_int_equal(over(0), (30 + 10 + 1) * MS);
	done(0, 0, WIRE_SEQ_P2P | 0, 0);
	arrive_p2p(0, 1, true, 3, (struct told){2, 45 * MS, {1}});
	assert_int_equal(over(0), 45 * MS);
	done(0, 0, WIRE_SEQ_P2P | 1, 0);
	stop(&d, 2);
}

/* Rank 6 copies rank 2, which is not in the communicator of ranks 0 and 6. */
static void a_communicator_waits_for_a_slow_member_whose_template_is_elsewhere(void **state)
{
	static const char *const more[] = {"--model",   "const:time=1ms",
					   "--settle",  "50ms",
					   "--layout",  "tp=2,dp=3,pp=2",
					   "--what-if", "slow:rank=6,compute=2",
					   NULL};
	struct daemon d;

	(void)state;
	start_with(&d, "6", 3, more);
	fake_init(&f[0], 8, 2, 0, 0);
	assert_true(fakes_got(f, 1, WIRE_COMM_READY, 2));
	point(2, (struct told){1, 10 * MS, {0}});
	point(2, (struct told){2, 20 * MS, {1}});
	were_read(2);
	arrive(0, 1, 0, COLL_ALLREDUCE, (struct told){1, 30 * MS, {0}});
	assert_int_equal(over(0), (30 + 10 + 1) * MS);
	done(0, 1, 0, 0);
	stop(&d, 3);
}

/* Rank 2 copies rank 0 and computes twice as long, rank 3 copies rank 1: it receives from rank 2
 * when rank 1 receives from rank 0. */
static void lag_passes_on_by_sends_and_receives_of_virtual_ranks(void **state)
{
	static const char *const what_ifs[] = {"--layout", "tp=2,dp=2", "--what-if",
					       "slow:rank=2,compute=2", NULL};
	struct daemon d;

	(void)state;
	start(&d, 2, what_ifs);
	fake_init(&f[1], 9, 2, 0, 1); /* {1, 3} */
	assert_true(fakes_got(&f[1], 1, WIRE_COMM_READY, 2));
	point(0, (struct told){1, 10 * MS, {0}});
	arrive_p2p(0, 0, true, 1, (struct told){2, 20 * MS, {1}});
	arrive_p2p(1, 0, false, 0, (struct told){1, 20 * MS, {0}});
	assert_int_equal(over(0), 20 * MS);
	assert_int_equal(over(1), 21 * MS);
	done(1, 0, WIRE_SEQ_P2P | 0, 0);
	/* rank 3 is over with it at 10 + 2 * 10 + 1 */
	arrive(1, 1, 0, COLL_ALLREDUCE, (struct told){2, 26 * MS, {1}});
	assert_int_equal(over(1), (31 + 5 + 1) * MS);
	stop(&d, 2);
}

/* 65,536 ranks copy rank 0, which calls 9. */
static void calls_that_are_too_many_to_look_at_are_told(void **state)
{
	static const char *const more[] = {"--what-if", "slow:rank=7,compute=2", "--model",
					   "const:time=1ms", NULL};
	struct wire_p2p calls[9];
	struct daemon d;

	(void)state;
	start_with(&d, "65536", 1, more);
	for (uint32_t i = 0; i < 9; i++)
		calls[i] = (struct wire_p2p){.peer = 100 + i, .bytes = 64};
	point(0, (struct told){1, 10 * MS, {0}});
	point(0, (struct told){2, 20 * MS, {1}});
	fake_arrive_p2p(&f[0], &f[0].ready[0], 0, calls, 8);
	assert_true(fakes_ops_over(f, 1));
	assert_false(daemon_said(&d, "too many to look at"));
	fake_arrive_p2p(&f[0], &f[0].ready[0], 1, calls, 9);
	assert_true(fakes_ops_over(f, 1));
	daemon_will_say(&d, "rank 0 and the 65535 ranks that copy it have 9 point-to-point calls");
	stop(&d, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_gate_delays_what_waits_for_it_alone),
		cmocka_unit_test(lateness_is_no_computation),
		cmocka_unit_test(a_slowed_real_rank_is_held_by_its_gates),
		cmocka_unit_test(ops_of_one_communicator_take_turns),
		cmocka_unit_test(ops_of_two_communicators_share_their_ports),
		cmocka_unit_test(an_end_that_moves_behind_an_open_gate_is_a_debt),
		cmocka_unit_test(links_are_as_what_ifs_say_at_their_times),
		cmocka_unit_test(a_root_does_not_wait_for_those_that_it_sends_to),
		cmocka_unit_test(a_root_runs_ahead_as_far_as_its_buffers_go),
		cmocka_unit_test(who_comes_late_to_a_scatter_takes_turns_at_its_root),
		cmocka_unit_test(
			ends_of_ranks_told_apart_are_found_alike_with_what_ifs_and_without),
		cmocka_unit_test(lag_passes_on_by_the_images_of_a_communicator),
		cmocka_unit_test(a_message_shares_its_senders_port_before_its_receiver_comes),
		cmocka_unit_test(
			a_receive_waits_for_a_slow_rank_that_copies_another_than_the_caller),
		cmocka_unit_test(
			a_communicator_waits_for_a_slow_member_whose_template_is_elsewhere),
		cmocka_unit_test(lag_passes_on_by_sends_and_receives_of_virtual_ranks),
		cmocka_unit_test(calls_that_are_too_many_to_look_at_are_told),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
