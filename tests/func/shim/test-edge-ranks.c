/* Several real ranks in one process, a device each: libnbox.so tells nboxd of each rank's streams
 * and waits as if it were alone. nboxd is this process, the worker another run of this program
 * (daemon.h).
 *
 *   test-edge-ranks             all tests
 *   test-edge-ranks job PART    the worker (below) */
#include "edges.h"

#define RANKS 2
#define ROUNDS 2

/* --- the worker ----------------------------------------------------------------------- */

static struct rank {
	ncclComm_t comm;
	cudaStream_t m, c, blocking;
	cudaEvent_t before, behind;
} ranks[RANKS];

static void bucket(struct rank *r)
{
	compute(r->m);
	follow(r->c, r->m);
	op(r->c);
	follow(r->m, r->c);
}

/* The legacy stream comes after the blocking one of its device. */
static void legacy(struct rank *r)
{
	op(r->blocking);
	follow(r->c, NULL);
	op(r->c);
}

static void own_stream(struct rank *r)
{
	follow(r->c, cudaStreamPerThread);
	op(cudaStreamPerThread);
	follow(r->c, cudaStreamPerThread);
	op(r->c);
}

static void wait_for_stream(struct rank *r)
{
	CUDA(cudaStreamSynchronize(r->c));
}

static void wait_for_device(struct rank *r)
{
	(void)r;
	CUDA(cudaDeviceSynchronize());
}

static void (*const steps[])(struct rank *r) = {bucket, legacy, wait_for_stream, own_stream,
						wait_for_device};

static void take(size_t i, size_t step)
{
	comm = ranks[i].comm;
	CUDA(cudaSetDevice((int)i));
	steps[step](&ranks[i]);
}

static void *run_rank(void *rank)
{
	for (size_t step = 0; step < ROUNDS * ARRAY_SIZE(steps); step++)
		take((size_t)((struct rank *)rank - ranks), step % ARRAY_SIZE(steps));
	return NULL;
}

static void threads(void)
{
	pthread_t thread[RANKS];

	for (size_t i = 0; i < RANKS; i++)
		CHECK(!pthread_create(&thread[i], NULL, run_rank, &ranks[i]), "thread");
	for (size_t i = 0; i < RANKS; i++)
		pthread_join(thread[i], NULL);
}

static void one_thread(void)
{
	for (size_t step = 0; step < ROUNDS * ARRAY_SIZE(steps); step++)
		for (size_t i = 0; i < RANKS; i++)
			take(i, step % ARRAY_SIZE(steps));
}

/* A stream may be used while another device is current, and a new one may get the handle, or
 * whatever else is left, of one that was on another device. */
static void elsewhere(void)
{
	CUDA(cudaSetDevice(RANKS - 1));
	for (struct rank *r = ranks; r < ranks + RANKS; r++) {
		comm = r->comm;
		op(r->c);
		compute(r->m);
		CUDA(cudaEventRecord(r->before, r->m));
		CUDA(cudaStreamWaitEvent(r->c, r->before, 0));
		op(r->c);
		CUDA(cudaEventRecord(r->behind, r->c));
		compute(r->m);
		CUDA(cudaStreamWaitEvent(r->m, r->behind, 0));
		CUDA(cudaEventSynchronize(r->behind));
		op(r->c);
		CUDA(cudaStreamSynchronize(r->c));
		CUDA(cudaStreamSynchronize(r->m));
		CUDA(cudaStreamDestroy(r->m));
		CUDA(cudaStreamDestroy(r->c));
	}
}

static int run_job(const char *part)
{
	n = WORLD;
	for (int i = 0; i < RANKS; i++) {
		struct rank *r = &ranks[i];

		CUDA(cudaSetDevice(i));
		NCCL(ncclCommInitRank(&r->comm, n, id_of(i ? "second" : "first"), 0));
		r->m = stream(cudaStreamNonBlocking);
		r->c = stream(cudaStreamNonBlocking);
		r->blocking = stream(cudaStreamDefault);
		r->before = event();
		r->behind = event();
	}
	if (!strcmp(part, "threads"))
		threads();
	else if (!strcmp(part, "one-thread"))
		one_thread();
	else
		elsewhere();
	for (int i = 0; i < RANKS; i++)
		NCCL(ncclCommDestroy(ranks[i].comm));
	return 0;
}

/* --- tests ------------------------------------------------------------------------------ */

static void play_ranks(const char *part, unsigned int n_ops, const char *want)
{
	start(part, true);
	for (uint32_t i = 0; i < RANKS; i++)
		answer_init_of(i, COMM + i, i);
	play_from(0, RANKS * n_ops);
	end(0);
	for (rows_of = 0; rows_of < RANKS; rows_of++)
		check_rows(want);
	rows_of = -1;
}

#define ALONE                                                                                   \
	"A a BA bB CA.Bb 0C cb DCbc. dD.b EC.d 1BEabd eAa. FE.e fe. GB.Fb gGb.d HF.Gg 2H hd.g " \
	"IHgh. iI.g JH.i 3GJfgi"

static void a_rank_with_a_thread_of_its_own_is_as_if_alone(void **state)
{
	(void)state;
	play_ranks("threads", 10, ALONE);
}

static void ranks_that_share_a_thread_are_as_if_alone(void **state)
{
	(void)state;
	play_ranks("one-thread", 10, ALONE);
}

static void a_stream_is_its_devices_whichever_device_is_current(void **state)
{
	(void)state;
	play_ranks("elsewhere", 3, "A a BA.a ba. 0B CB. 1C 2b");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		T(a_rank_with_a_thread_of_its_own_is_as_if_alone),
		T(ranks_that_share_a_thread_are_as_if_alone),
		T(a_stream_is_its_devices_whichever_device_is_current),
	};

	if (argc == 3 && !strcmp(argv[1], "job"))
		return run_job(argv[2]);
	return RUN(tests);
}
