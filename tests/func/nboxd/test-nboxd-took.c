/* Full mode: an op is timed as NCCL took it, which it may tell only after the op has arrived. */
#include "full-world.h"

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
	start_comm("shm", "messages", "--timeout 2s");
	arrive_undecided();
	send_took(1, PLUGIN_RING, PLUGIN_LL, 1);
	aborted(N_REAL, "for NCCL to return from the call at rank 0 (pid");
	send_took(0, PLUGIN_RING, PLUGIN_LL, 1); /* too late, and no error */
	assert_int_equal(f[0].n[WIRE_ERROR], 0);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_op_is_timed_as_nccl_took_it),
		cmocka_unit_test(a_second_word_is_refused),
		cmocka_unit_test(an_op_that_nccl_never_decides_is_given_up),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
