/* Full mode from the worker's side: nboxd is this process, the worker another run of this program
 * (daemon.h), its NCCL one that only says what it is called (noting-nccl.c).
 *
 *   test-full             all tests
 *   test-full job PART    the worker */
#include "daemon.h"

/* --- the worker ----------------------------------------------------------------------- */

static void refused(const char *why, ncclResult_t result)
{
	CHECK(result == ncclInvalidUsage, "%d", (int)result);
	CHECK(strstr(ncclGetLastError(NULL), why), "%s", ncclGetLastError(NULL));
}

static void is_refused(ncclComm_t comm, float *buf)
{
	ncclWindow_t win;
	cudaStream_t s;
	cudaGraph_t graph;

	CUDA(cudaStreamCreate(&s));
	CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	refused("CUDA graph", ncclAllReduce(buf, buf, 1, ncclFloat, ncclSum, comm, s));
	CUDA(cudaStreamEndCapture(s, &graph));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(s));
	refused("windows", ncclCommWindowRegister(comm, buf, 64, &win, 0));
	refused("windows", ncclSignal(1, 0, 0, 0, comm, NULL));
}

static int run_job(const char *part)
{
	ncclComm_t comm = NULL;
	ncclUniqueId id = id_of("full");
	float *buf;

	n = WORLD;
	if (!strcmp(part, "other-mode")) {
		refused("NBOX_NCCL_MODE=full", ncclCommInitRank(&comm, n, id, 0));
		return 0;
	}
	if (!strcmp(part, "old") || !strcmp(part, "no-id")) {
		CHECK(ncclCommInitRank(&comm, n, id, 0) != ncclSuccess, "init");
		say(ncclGetLastError(NULL));
		return 0;
	}
	NCCL(ncclCommInitRank(&comm, n, id, 0));
	CUDA(cudaMalloc((void **)&buf, 64));
	is_refused(comm, buf);
	NCCL(ncclAllReduce(buf, buf, 4, ncclFloat, ncclSum, comm, NULL));
	NCCL(ncclGroupStart());
	NCCL(ncclSend(buf, 1, ncclFloat, 3, comm, NULL));
	NCCL(ncclRecv(buf, 1, ncclFloat, 2, comm, NULL));
	NCCL(ncclGroupEnd());
	NCCL(ncclAlltoAll(buf, buf, 1, ncclFloat, comm, NULL));
	if (!strcmp(part, "abort")) {
		wait_for_go();
		NCCL(ncclCommAbort(comm));
	}
	CUDA(cudaStreamSynchronize(NULL));
	if (!strcmp(part, "ops"))
		NCCL(ncclCommDestroy(comm));
	return 0;
}

/* --- tests ------------------------------------------------------------------------------ */

static void start_full(const char *part)
{
	welcome_nccl = NCCL_FULL;
	start(part, true);
	answer_init();
}

static void meet(void)
{
	char id[WIRE_ID_BYTES] = "nboxd's own";

	frame(WIRE_MEET, 0);
	reply(WIRE_MEET, 0, NULL, 0);
	reply(WIRE_LOCAL_ID, 0, id, sizeof(id));
}

/* A lone real member makes the communicator of all ranks, by nboxd's id, and each call reaches NCCL
 * as the job made it, also under policy none. */
static void nccl_gets_all_ranks_and_calls(void **state)
{
	static const char *const words[] = {
		"init 4 rank 0 id nboxd's \n",
		"plugin self profiler self net nbox host nbox-0 pxn 1\n",
		"(sum 4 op 0)\n",
		"(to 3 from 2 )\n",
		"(to 0 from 0 to 1 from 1 to 2 from 2 to 3 from 3 )\n",
		"destroy\n"};

	(void)state;
	start_full("ops");
	meet();
	for (unsigned int i = 0; i < 3; i++)
		answer_op(i, 0);
	assert_int_equal(g.frames[frame(WIRE_ARRIVE, 0)].hdr.seq, 0);
	assert_int_equal(g.frames[frame(WIRE_ARRIVE, 1)].hdr.seq, WIRE_SEQ_P2P);
	assert_int_equal(g.frames[frame(WIRE_ARRIVE, 2)].hdr.seq, 1);
	frame(WIRE_COMM_FREE, 0);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		wait_for_word(words[i]);
	end(0);
	assert_int_equal(count(WIRE_MESSAGE), 0); /* no player of nbox's */
	assert_int_equal(count(WIRE_LOCAL_ID), 0);
	assert_int_equal(count(WIRE_ABORT), 0);
}

static void an_abort_opens_all(void **state)
{
	(void)state;
	start_full("abort");
	meet();
	frame(WIRE_ARRIVE, 0);
	let_go();
	frame(WIRE_COMM_FREE, 0);
	wait_for_word("abort\n");
	end(0);
	assert_int_equal(count(WIRE_ABORT), 1);
}

/* Nobody goes into an init that its NCCL cannot do. */
static void an_old_nccl_is_refused(void **state)
{
	(void)state;
	setenv("NBOX_TEST_VERSION", "22105", 1);
	start_full("old");
	unsetenv("NBOX_TEST_VERSION");
	frame(WIRE_ABORT, 0);
	wait_for_word("2.21.5: --nccl full needs 2.23");
	end(0);
	assert_int_equal(count(WIRE_MEET), 0);
}

static void nboxd_may_have_no_id(void **state)
{
	struct wire_text text = {.code = ECANCELED, .text = "node 0 is real in part"};

	(void)state;
	start_full("no-id");
	frame(WIRE_MEET, 0);
	reply(WIRE_MEET, 0, NULL, 0);
	reply(WIRE_ABORT, 0, &text, sizeof(text));
	wait_for_word(text.text);
	end(0);
}

static void both_must_mean_it(void **state)
{
	(void)state;
	welcome_nccl = NCCL_GATE;
	setenv("NBOX_NCCL_MODE", "full", 1);
	start("other-mode", true);
	unsetenv("NBOX_NCCL_MODE");
	end(0);
	assert_int_equal(count(WIRE_COMM_INIT), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {T(nccl_gets_all_ranks_and_calls),
						  T(an_abort_opens_all), T(an_old_nccl_is_refused),
						  T(nboxd_may_have_no_id), T(both_must_mean_it)};

	if (argc > 2 && !strcmp(argv[1], "job"))
		return run_job(argv[2]);
	return RUN(tests);
}
