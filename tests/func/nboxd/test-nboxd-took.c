/* Full mode: an op is timed as NCCL took it, which it may tell only after the op has arrived. */
#include "full-world.h"

#include "../../rng.h"
#include "base/cleanup.h"
#include "nccl-plugin/plugin.h"
#include "schedule/coll.h"

/* The ranks have come, and NCCL has not decided. */
static void arrive_undecided(void)
{
	for (uint32_t i = 0; i < N_REAL; i++) {
		f[i].is_undecided = true;
		fake_arrive(&f[i], &f[i].ready[0], 0, COLL_ALLREDUCE, COUNT, 0);
	}
	settle(0);
	settle(1);
}

static void send_took(uint32_t rank, uint32_t algorithm, uint32_t protocol, uint32_t n_channels)
{
	struct wire_took m = {algorithm, protocol, n_channels, 0};

	fake_send(&f[rank], WIRE_TOOK, f[0].ready[0].comm, rank, 0, &m, sizeof(m));
	settle(rank);
}

/* --- the order of a group's ops ------------------------------------------------------------- */

#define CALLS_MAX 640

/* What each of both ranks has called in one group, on one communicator. */
struct group {
	unsigned comm; /* of f->ready */
	size_t n;
	uint64_t seq[CALLS_MAX];
	bool is_told[N_REAL][CALLS_MAX]; /* NCCL's decision, or that of a call that needs none */
	unsigned n_before;               /* RELEASEs */
};

static uint64_t n_called[2], n_sent[2]; /* on both communicators */

/* @calls: c, a collective of which NCCL will tell; d, one of which it has told; p, a send and a
 * receive between both ranks. */
static struct group call_group(unsigned comm, const char *calls)
{
	struct group g = {.comm = comm, .n = strlen(calls), .n_before = f[0].n[WIRE_RELEASE]};

	for (size_t k = 0; k < g.n; k++) {
		bool is_p2p = calls[k] == 'p';

		g.seq[k] = is_p2p ? WIRE_SEQ_P2P | n_sent[comm]++ : n_called[comm]++;
		for (uint32_t i = 0; i < N_REAL; i++) {
			const struct wire_p2p both[] = {{.peer = 1 - i, .is_send = 1, .bytes = 64},
							{.peer = 1 - i, .bytes = 64}};

			g.is_told[i][k] = calls[k] != 'c';
			f[i].is_undecided = calls[k] == 'c';
			if (is_p2p)
				fake_arrive_p2p(&f[i], &f[i].ready[comm], wire_seq_number(g.seq[k]),
						both, 2);
			else
				fake_arrive(&f[i], &f[i].ready[comm], g.seq[k], COLL_ALLREDUCE,
					    COUNT, 0);
		}
	}
	settle(0);
	settle(1);
	settle(0); /* what rank 1's arrivals have begun */
	return g;
}

/* @n_channels 0: NCCL tells nothing of it, or its call has failed. */
static void tell(struct group *g, uint32_t rank, size_t k, uint32_t n_channels)
{
	struct wire_took m = {PLUGIN_RING, PLUGIN_LL, n_channels, 0};

	fake_send(&f[rank], WIRE_TOOK, f[rank].ready[g->comm].comm, rank, g->seq[k], &m, sizeof(m));
	g->is_told[rank][k] = true;
	settle(rank);
	settle(1 - rank);
}

/* Of the group's calls the first ones have begun, in their order, that are told in both ranks. */
static void begun_in_order(const struct group *g)
{
	unsigned n = 0;

	while (n < g->n && g->is_told[0][n] && g->is_told[1][n])
		n++;
	for (uint32_t i = 0; i < N_REAL; i++) {
		assert_int_equal(f[i].n[WIRE_RELEASE], g->n_before + n);
		for (unsigned k = 0; k < n; k++)
			assert_int_equal(f[i].released[(g->n_before + k) % FAKE_RELEASED_MAX],
					 g->seq[k]);
	}
}

/* One that was not told, of any rank. Return: whether there was one. */
static bool tell_any(struct group *g, struct rng *rng)
{
	size_t left[N_REAL * CALLS_MAX], n = 0, which;

	for (size_t k = 0; k < N_REAL * g->n; k++)
		if (!g->is_told[k % N_REAL][k / N_REAL])
			left[n++] = k;
	if (!n)
		return false;
	which = left[rng_u64(rng) % n];
	tell(g, which % N_REAL, which / N_REAL, rng_u64(rng) % 3);
	return true;
}

/* The ops have no messages of NCCL's, and stay open. */
static void start_groups(const char *more)
{
	memset(n_called, 0, sizeof(n_called));
	memset(n_sent, 0, sizeof(n_sent));
	start_comm("shm", "messages", more);
	for (uint32_t i = 0; i < N_REAL; i++)
		fake_init(&f[i], 8, N_RANKS, i, i);
	assert_true(fakes_got(f, N_REAL, WIRE_COMM_READY, 2));
}

/* NCCL launches the largest collectives of a group first, and sends last: it may tell of them in
 * any order, and each rank's words come when they come. */
static void ops_begin_in_their_order(void **state)
{
	static const char *const calls[] = {"cc", "ccc", "cpc", "pcc", "pcpcp", "ccpcdcpc", "dcdp"};
	struct rng rng = {0};

	(void)state;
	start_groups("");
	rng_seed(&rng, 1, 0);
	for (unsigned round = 0; round < 8 * ARRAY_SIZE(calls); round++) {
		struct group g = call_group(0, calls[round % ARRAY_SIZE(calls)]);

		begun_in_order(&g);
		while (tell_any(&g, &rng))
			begun_in_order(&g);
		assert_int_equal(f[0].n[WIRE_RELEASE], g.n_before + g.n);
	}
	assert_int_equal(f[0].n[WIRE_ABORT] + f[1].n[WIRE_ABORT], 0);
	stop();
}

/* Ops of another communicator begin while one waits for NCCL, also if it stands behind them in
 * NCCL's group. */
static void each_communicator_has_its_order(void **state)
{
	struct group g[2];

	(void)state;
	start_groups("");
	g[0] = call_group(0, "cpc");
	g[1] = call_group(1, "pcc");
	assert_int_equal(f[0].n[WIRE_RELEASE], 1); /* the second one's sends */
	for (uint32_t i = 0; i < N_REAL; i++) {
		tell(&g[0], i, 2, 1);
		tell(&g[1], i, 1, 1);
	}
	g[1].n_before = 0;
	begun_in_order(&g[1]);
	for (uint32_t i = 0; i < N_REAL; i++)
		tell(&g[0], i, 0, 1);
	g[0].n_before = 2;
	begun_in_order(&g[0]);
	stop();
}

/* Where NCCL's queue is full, it launches the rest of a group after ops that may be called last. */
static void a_very_long_group_has_no_order(void **state)
{
	char calls[CALLS_MAX + 1] = "";
	struct group g;

	(void)state;
	start_groups("");
	memset(calls, 'c', 600);
	g = call_group(0, calls);
	for (unsigned n = 1; n <= g.n; n++) {
		for (uint32_t i = 0; i < N_REAL; i++)
			tell(&g, i, g.n - n, 1);
		assert_int_equal(f[0].n[WIRE_RELEASE], n);
		assert_int_equal(f[0].last[WIRE_RELEASE].seq, g.seq[g.n - n]);
	}
	/* as long as there is no more room to wait in */
	memset(calls + 1, 'd', 511);
	calls[512] = '\0';
	g = call_group(0, calls);
	begun_in_order(&g);
	assert_int_equal(f[0].n[WIRE_RELEASE], 600);
	call_group(0, "d");
	assert_int_equal(f[0].n[WIRE_RELEASE], 600 + 512);
	tell(&g, 0, 0, 1);
	tell(&g, 1, 0, 1);
	assert_int_equal(f[0].n[WIRE_RELEASE], 600 + 513);
	g = call_group(0, "cc");
	for (unsigned n = 2; n; n--)
		for (uint32_t i = 0; i < N_REAL; i++) {
			tell(&g, i, n - 1, 1);
			begun_in_order(&g);
		}
	stop();
}

/* A rank goes while its peer's ops wait for NCCL's word of the first one. */
static void who_waits_hears_of_an_abort(void **state)
{
	struct group g;

	(void)state;
	start_groups("");
	g = call_group(0, "cdpd");
	tell(&g, 1, 0, 1);
	fake_close(&f[1]);
	aborted(1, "rank 1");
	f[0].is_undecided = false;
	fake_send(&f[0], WIRE_TOOK, f[0].ready[0].comm, 0, g.seq[0], &(struct wire_took){0},
		  sizeof(struct wire_took)); /* too late, and no error */
	settle(0);
	assert_int_equal(f[0].n[WIRE_ERROR] + f[0].n[WIRE_RELEASE], 0);
	fake_close(&f[0]);
	daemon_stop(&d);
}

/* --- what NCCL took -------------------------------------------------------------------------- */

/* An op begins when NCCL has decided in all real ranks, and is timed by that. Returns how long it
 * takes by the model. */
static double an_op_of(uint32_t algorithm, uint32_t protocol, uint32_t n_channels,
		       const char *decided, const char *other)
{
	static int n;
	char out[128], more[256];
	double ns;

	snprintf(out, sizeof(out), "%s/out-took-%d", dir, n++);
	snprintf(more, sizeof(more), "--preset dgx-h100 --model nccl --out %s", out);
	start_on("--gpus-per-node 2 --real 0-1", "shm", "messages", more);
	for (uint32_t i = 0; i < N_REAL; i++)
		tell_job(&f[i], NCCL);
	check_in();
	promise();
	assert_true(fakes_got(f, N_REAL, WIRE_LOCAL_ID, 1));
	arrive_undecided();
	assert_int_equal(f[0].n[WIRE_RELEASE] + f[1].n[WIRE_RELEASE], 0);
	if (!is_said((void *)(uintptr_t) "for NCCL to return from the call at rank 0 (pid"))
		fail_msg("%s", f[0].status);
	send_took(0, algorithm, protocol, n_channels);
	assert_int_equal(f[0].n[WIRE_RELEASE] + f[1].n[WIRE_RELEASE], 0);
	send_took(1, algorithm, protocol, n_channels + (other != NULL));
	finish();
	assert_int_equal(f[0].n[WIRE_ABORT] + f[1].n[WIRE_ABORT], 0);
	ns = (double)(f[0].release.end_ns - f[0].release.start_ns);
	if (other)
		daemon_will_say(&d, other);
	stop();
	is_noted(out, decided);
	return ns;
}

static void an_op_is_timed_as_nccl_took_it(void **state)
{
	static const char all[] = "decided by: NCCL itself (1 of 1 collectives)\n";
	double tree, ring, simple;

	(void)state;
	tree = an_op_of(PLUGIN_TREE, PLUGIN_LL, 1, all, NULL);
	ring = an_op_of(PLUGIN_RING, PLUGIN_LL, 1, all, NULL);
	simple = an_op_of(PLUGIN_RING, PLUGIN_SIMPLE, 1, all, NULL);
	assert_true(tree < ring && ring < simple);
	/* the first word counts */
	assert_true(
		an_op_of(PLUGIN_RING, PLUGIN_SIMPLE, 1, all,
			 "NCCL takes another algorithm, protocol or number of channels in rank 1 "
			 "than in rank 0") == simple);
	/* NCCL does not tell: the rules decide */
	an_op_of(0, 0, 0, "decided by: NCCL 2.28.9, the job's\n", NULL);
}

static void a_second_word_is_refused(void **state)
{
	(void)state;
	start_comm("shm", "messages", "");
	arrive_undecided();
	send_took(0, PLUGIN_RING, PLUGIN_LL, 1);
	fake_send(&f[0], WIRE_TOOK, f[0].ready[0].comm, 0, 0, &(struct wire_took){.n_channels = 0},
		  sizeof(struct wire_took));
	assert_true(fakes_got(f, 1, WIRE_ERROR, 1));
	assert_non_null(strstr(f[0].error.text, "which rank 0 has not left undecided"));
	stop();
}

/* NCCL hangs in its call. */
static void an_op_that_nccl_never_decides_is_given_up(void **state)
{
	(void)state;
	start_groups("--timeout 2s");
	call_group(0, "cdp");
	send_took(1, PLUGIN_RING, PLUGIN_LL, 1);
	aborted(N_REAL, "for NCCL to return from the call at rank 0 (pid");
	send_took(0, PLUGIN_RING, PLUGIN_LL, 1); /* too late, and no error */
	assert_int_equal(f[0].n[WIRE_ERROR], 0);
	stop();
}

/* --- what NCCL is to take -------------------------------------------------------------------- */

/* Of ranks that the first worker plays all. */
static void make_comm_of(uint8_t id, const uint32_t *world_ranks, uint32_t n)
{
	unsigned n_ready = f[0].n[WIRE_COMM_READY], n_ids = f[0].n[WIRE_LOCAL_ID];

	for (uint32_t r = 0; r < n; r++)
		fake_init(&f[0], id, n, r, world_ranks[r]);
	assert_true(fakes_got(f, 1, WIRE_COMM_READY, n_ready + n));
	for (uint32_t r = 0; r < n; r++)
		fake_send(&f[0], WIRE_MEET, f[0].ready[n_ready].comm, r, 0, NULL, 0);
	assert_true(fakes_got(f, 1, WIRE_LOCAL_ID, n_ids + n));
}

static const struct wire_tune *told_of(uint32_t n_ranks, uint32_t n_nodes)
{
	struct wire_tune m = {.n_ranks = n_ranks, .n_nodes = n_nodes, .bytes = 8};
	unsigned n = f[0].n[WIRE_TUNE];

	fake_send(&f[0], WIRE_TUNE, 0, 0, 0, &m, sizeof(m));
	assert_true(fakes_got(f, 1, WIRE_TUNE, n + 1));
	return &f[0].tune;
}

static void write_decisions(const char *path)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs("format = 1\nnccl = 2.28.9\ndate = 2026-11-29\ngpus = 4 x a GPU of tests\n"
	      "made = by hand, for tests\n[comm]\nranks = 4\nnodes = 2\nchannels = 4\n"
	      "nvls_channels = 0\np2p_channels = 2\np2p_channels_per_peer = 2\n"
	      "[cost allreduce]\nat 8 = ring/ll 1 of tree/ll 30 ring/ll 20\n"
	      "at 1024 = ring/ll 1 of tree/ll 30 ring/ll 20\n",
	      file);
	assert_int_equal(fclose(file), 0);
}

/* A decision file is of communicators with as many ranks on each node. One that is not may have as
 * many ranks and nodes, and be older. */
static void a_file_says_of_even_communicators_what_it_says(void **state)
{
	static const uint32_t uneven[] = {0, 1, 2, 4}, even[] = {0, 1, 4, 5};
	char path[96], more[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/even.txt", dir);
	write_decisions(path);
	snprintf(more, sizeof(more), "--preset dgx-h100 --model nccl:decisions=%s", path);
	start_on("--gpus-per-node 4 --real 0-7", "shm", "messages", more);
	assert_int_equal(f[0].welcome.tunes, 1);
	tell_job(&f[0], NCCL);
	make_comm_of(7, uneven, 4);
	assert_int_equal(told_of(4, 2)->took.n_channels, 0);
	make_comm_of(8, even, 4);
	assert_int_equal(told_of(4, 2)->took.n_channels, 1);
	assert_int_equal(f[0].tune.took.algorithm, PLUGIN_RING);
	assert_int_equal(f[0].tune.took.protocol, PLUGIN_LL);
	assert_int_equal(f[0].tune.n_of_comm, 4);
	assert_int_equal(told_of(8, 2)->took.n_channels, 0);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ops_begin_in_their_order),
		cmocka_unit_test(each_communicator_has_its_order),
		cmocka_unit_test(a_very_long_group_has_no_order),
		cmocka_unit_test(who_waits_hears_of_an_abort),
		cmocka_unit_test(an_op_is_timed_as_nccl_took_it),
		cmocka_unit_test(a_second_word_is_refused),
		cmocka_unit_test(a_file_says_of_even_communicators_what_it_says),
		cmocka_unit_test(an_op_that_nccl_never_decides_is_given_up),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
