/* See run.h.
 *
 * Computation sleeps: a host function on the compute stream, which returns when its time is over.
 * It takes no core, so that many ranks share a machine and none is late for that. Its time begins
 * when it is called, as a kernel's does. Each stream has a buffer as large as its largest op, since
 * its ops take turns.
 *
 * Before and after the compute stream waits there is an event; the time between them is exposed.
 * A pipeline's bubbles are among it, since they are waits for a message. */
#include "stepper/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "nbox-perf/rendezvous.h"

struct segment {
	const struct step *step;
	uint64_t ns; /* of this iteration; written while the compute stream is idle */
};

struct wait { /* of the compute stream */
	cudaEvent_t from, to;
};

struct run {
	const struct place *place;
	const struct plan *plan;
	const struct pace *pace;
	ncclComm_t world, comms[GROUPS]; /* NULL: not used */
	cudaStream_t streams[STREAMS];
	char *buffers[STREAMS]; /* two halves, of half_bytes: sent and received */
	uint64_t half_bytes[STREAMS];
	cudaEvent_t *events; /* by step.event */
	struct segment *segments;
	struct wait *waits;
	size_t n_segments, n_waits;
	bool is_graph;
	cudaGraphExec_t graph; /* an iteration; NULL: not captured, or not yet */
	struct timespec last;  /* end of the iteration before */
	pthread_t watchdog;
	_Atomic int is_over; /* tells the watchdog */
};

/* --- errors ---------------------------------------------------------------------------------- */

static uint32_t rank_for_messages;
/* The main thread and the watchdog may both learn of an error: the first one says it. */
static atomic_flag is_said = ATOMIC_FLAG_INIT;

__attribute__((noreturn)) static void die(const char *what, const char *why)
{
	while (atomic_flag_test_and_set(&is_said))
		pause(); /* for the end: the other one may not have said it yet */
	fprintf(stderr, "stepper: rank %u: %s: %s\n", rank_for_messages, what, why);
	rendezvous_end();
	_exit(1); /* the streams still work: nothing is torn down below them */
}

#define MAX_SEGMENT_NS 1e18

#define CUDA(call)                                              \
	do {                                                    \
		cudaError_t error_ = (call);                    \
		if (error_ != cudaSuccess)                      \
			die(#call, cudaGetErrorString(error_)); \
	} while (0)
#define NCCL(call)                                               \
	do {                                                     \
		ncclResult_t result_ = (call);                   \
		if (result_ != ncclSuccess)                      \
			die(#call, ncclGetErrorString(result_)); \
	} while (0)

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	if (!p)
		die("start", "no memory");
	return p;
}

/* An error that only a communicator knows of would leave the streams waiting. */
static void *watch(void *arg)
{
	const struct timespec interval = {.tv_nsec = 100000000};
	struct run *run = arg;
	ncclResult_t state;

	while (!atomic_load(&run->is_over)) {
		for (int g = -1; g < GROUPS; g++) {
			ncclComm_t comm = g < 0 ? run->world : run->comms[g];

			if (comm && ncclCommGetAsyncError(comm, &state) == ncclSuccess &&
			    state != ncclSuccess && state != ncclInProgress)
				die("NCCL reports", ncclGetErrorString(state));
		}
		nanosleep(&interval, NULL);
	}
	return NULL;
}

/* --- steps ----------------------------------------------------------------------------------- */

/* Called on a thread of the CUDA runtime. */
static void sleep_for_segment(void *arg)
{
	static _Thread_local int is_exact;
	struct segment *segment = arg;
	struct timespec due;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &due);
	ns = (uint64_t)due.tv_nsec + segment->ns;
	due.tv_sec += (time_t)(ns / 1000000000);
	due.tv_nsec = (long)(ns % 1000000000);
	if (!is_exact) /* by default the kernel may wake a sleeper 50 us late */
		prctl(PR_SET_TIMERSLACK, 1);
	is_exact = 1;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
		continue;
}

static uint64_t floats_of(uint64_t bytes, uint64_t parts)
{
	return (bytes + 4 * parts - 1) / (4 * parts);
}

/* To and from each member, the same number of floats. */
static void all_to_all(struct run *run, const struct step *step, uint64_t count)
{
	const char *sent = run->buffers[step->stream];
	char *got = run->buffers[step->stream] + run->half_bytes[step->stream];
	cudaStream_t stream = run->streams[step->stream];
	ncclComm_t comm = run->comms[step->group];

	NCCL(ncclGroupStart());
	for (uint32_t i = 0; i < run->place->groups[step->group].n; i++) {
		NCCL(ncclSend(sent + 4 * count * i, count, ncclFloat, (int)i, comm, stream));
		NCCL(ncclRecv(got + 4 * count * i, count, ncclFloat, (int)i, comm, stream));
	}
	NCCL(ncclGroupEnd());
}

/* A group of all-reduces, each of @count floats. */
static void all_reduce(struct run *run, const struct step *step, uint64_t count)
{
	char *buffer = run->buffers[step->stream];

	NCCL(ncclGroupStart());
	for (uint32_t i = 0; i < step->parts; i++)
		NCCL(ncclAllReduce(buffer + 4 * count * i, buffer + 4 * count * i, count, ncclFloat,
				   ncclSum, run->comms[step->group], run->streams[step->stream]));
	NCCL(ncclGroupEnd());
}

static void pass(struct run *run, const struct step *step, uint64_t count)
{
	const char *sent = run->buffers[step->stream];
	char *got = run->buffers[step->stream] + run->half_bytes[step->stream];
	cudaStream_t stream = run->streams[step->stream];
	ncclComm_t comm = run->comms[step->group];

	NCCL(ncclGroupStart());
	if (step->send_to != NOBODY)
		NCCL(ncclSend(sent, count, ncclFloat, step->send_to, comm, stream));
	if (step->recv_from != NOBODY)
		NCCL(ncclRecv(got, count, ncclFloat, step->recv_from, comm, stream));
	NCCL(ncclGroupEnd());
}

static void launch_op(struct run *run, const struct step *step)
{
	uint32_t n = run->place->groups[step->group].n,
		 index = run->place->groups[step->group].index;
	uint64_t all = floats_of(step->bytes, 1), part = floats_of(step->bytes, n);
	char *buffer = run->buffers[step->stream];
	cudaStream_t stream = run->streams[step->stream];
	ncclComm_t comm = run->comms[step->group];

	switch ((int)step->kind) {
	case STEP_ALL_REDUCE:
		all_reduce(run, step, floats_of(step->bytes, step->parts));
		break;
	case STEP_ALL_GATHER:
		NCCL(ncclAllGather(buffer + 4 * part * index, buffer, part, ncclFloat, comm,
				   stream));
		break;
	case STEP_REDUCE_SCATTER:
		NCCL(ncclReduceScatter(buffer, buffer + 4 * part * index, part, ncclFloat, ncclSum,
				       comm, stream));
		break;
	case STEP_ALL_TO_ALL:
		all_to_all(run, step, part);
		break;
	default:
		pass(run, step, all);
	}
}

/* How long the computation of iteration @i takes. */
static void set_pace(struct run *run, uint64_t i)
{
	struct segment *s = run->segments;
	uint64_t stretch = 0; /* computation between two edges: what jitter draws for */

	for (size_t k = 0; k < run->plan->n; k++) {
		const struct step *step = &run->plan->steps[k];
		double ns = step->ns;

		if (step->kind == STEP_COMPUTE) {
			ns *= pace_factor(run->pace, i, stretch, step->layer);
			s++->ns = (uint64_t)(ns < MAX_SEGMENT_NS ? ns : MAX_SEGMENT_NS);
		} else if (step->stream == STREAM_COMPUTE) {
			stretch++;
		}
	}
}

/* Of an iteration, so far. */
struct cursor {
	size_t n_segments, n_waits;
};

/* What the host reads the time of is no edge of a graph. */
static void record_time(struct run *run, cudaEvent_t ev, cudaStream_t stream)
{
	CUDA(cudaEventRecordWithFlags(ev, stream,
				      run->is_graph ? cudaEventRecordExternal
						    : cudaEventRecordDefault));
}

static void launch(struct run *run, const struct step *step, struct cursor *at)
{
	cudaStream_t stream = run->streams[step->stream];

	switch ((int)step->kind) {
	case STEP_COMPUTE:
		CUDA(cudaLaunchHostFunc(stream, sleep_for_segment,
					&run->segments[at->n_segments++]));
		break;
	case STEP_RECORD:
		CUDA(cudaEventRecord(run->events[step->event], stream));
		break;
	case STEP_WAIT:
		if (step->stream == STREAM_COMPUTE)
			record_time(run, run->waits[at->n_waits].from, stream);
		CUDA(cudaStreamWaitEvent(stream, run->events[step->event], 0));
		if (step->stream == STREAM_COMPUTE)
			record_time(run, run->waits[at->n_waits++].to, stream);
		break;
	default:
		launch_op(run, step);
	}
}

static void launch_all(struct run *run)
{
	struct cursor at = {0};

	for (size_t k = 0; k < run->plan->n; k++)
		launch(run, &run->plan->steps[k], &at);
}

static void capture(struct run *run)
{
	cudaStream_t stream = run->streams[STREAM_COMPUTE];
	cudaGraph_t graph;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	launch_all(run);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&run->graph, graph, 0));
	CUDA(cudaGraphDestroy(graph));
}

struct run_times run_iteration(struct run *run, uint64_t i)
{
	struct run_times times = {0};
	struct timespec now;
	float ms;

	set_pace(run, i);
	if (run->is_graph && !run->graph)
		capture(run);
	if (run->is_graph)
		CUDA(cudaGraphLaunch(run->graph, run->streams[STREAM_COMPUTE]));
	else
		launch_all(run);
	CUDA(cudaStreamSynchronize(run->streams[STREAM_COMPUTE]));
	clock_gettime(CLOCK_MONOTONIC, &now);
	times.iteration_ms = (double)(now.tv_sec - run->last.tv_sec) * 1e3 +
			     (double)(now.tv_nsec - run->last.tv_nsec) / 1e6;
	run->last = now;
	for (size_t w = 0; w < run->n_waits; w++) {
		CUDA(cudaEventElapsedTime(&ms, run->waits[w].from, run->waits[w].to));
		times.exposed_ms += ms;
	}
	return times;
}

/* --- begin and end --------------------------------------------------------------------------- */

static void make_streams(struct run *run)
{
	uint64_t need[STREAMS] = {0}, bytes;
	int is_used[STREAMS] = {[STREAM_COMPUTE] = 1};

	for (size_t k = 0; k < run->plan->n; k++) {
		const struct step *step = &run->plan->steps[k];

		/* every rank of a group, and every op of one, has its part rounded up */
		bytes = step->bytes +
			4 * (uint64_t)(run->place->groups[step->group].n + step->parts);
		is_used[step->stream] = 1;
		if (step->bytes && bytes > need[step->stream])
			need[step->stream] = bytes;
		run->n_segments += step->kind == STEP_COMPUTE;
		run->n_waits += step->kind == STEP_WAIT && step->stream == STREAM_COMPUTE;
	}
	for (int s = 0; s < STREAMS; s++) {
		if (is_used[s])
			CUDA(cudaStreamCreateWithFlags(&run->streams[s], cudaStreamNonBlocking));
		if (!need[s])
			continue;
		run->half_bytes[s] = (need[s] + 255) / 256 * 256;
		CUDA(cudaMalloc((void **)&run->buffers[s], 2 * run->half_bytes[s]));
	}
}

static void make_events(struct run *run)
{
	run->events = allocate(run->plan->n_events, sizeof(*run->events));
	run->segments = allocate(run->n_segments, sizeof(*run->segments));
	run->waits = allocate(run->n_waits, sizeof(*run->waits));
	for (size_t e = 0; e < run->plan->n_events; e++)
		CUDA(cudaEventCreateWithFlags(&run->events[e], cudaEventDisableTiming));
	for (size_t w = 0; w < run->n_waits; w++) {
		CUDA(cudaEventCreate(&run->waits[w].from));
		CUDA(cudaEventCreate(&run->waits[w].to));
	}
}

/* The world first. A group that is the world has its communicator, as PyTorch's default group; the
 * experts' group, and those of a pipeline but the first, have one of their own even then. */
static void make_comms(struct run *run, const char *id_file)
{
	uint32_t rank = run->pace->rank, world = run->pace->world;
	ncclUniqueId id;

	if (rendezvous((int)rank, id_file, &id) != 0)
		_exit(1);
	NCCL(ncclCommInitRank(&run->world, (int)world, id, (int)rank));
	rendezvous_end();
	for (int g = 0; g < GROUPS; g++) {
		if (!run->place->groups[g].is_used)
			continue;
		if (run->place->groups[g].n == world && g != GROUP_EXPERT && g <= GROUP_PIPE)
			run->comms[g] = run->world;
		else
			NCCL(ncclCommSplit(run->world, place_color(run->place, g),
					   (int)run->place->groups[g].index, &run->comms[g], NULL));
	}
}

struct run *run_new(const struct place *place, const struct plan *plan, const struct pace *pace,
		    int local_rank, const char *id_file, bool is_graph)
{
	struct run *run;
	int n_devices;

	rank_for_messages = pace->rank;
	run = allocate(1, sizeof(*run));
	run->place = place;
	run->plan = plan;
	run->pace = pace;
	run->is_graph = is_graph;
	CUDA(cudaGetDeviceCount(&n_devices));
	CUDA(cudaSetDevice(local_rank % n_devices));
	make_streams(run);
	make_events(run);
	make_comms(run, id_file);
	if (pthread_create(&run->watchdog, NULL, watch, run) != 0)
		die("watchdog", "no thread");
	clock_gettime(CLOCK_MONOTONIC, &run->last);
	return run;
}

void run_free(struct run *run)
{
	CUDA(cudaDeviceSynchronize());
	atomic_store(&run->is_over, 1);
	pthread_join(run->watchdog, NULL);
	if (run->graph)
		CUDA(cudaGraphExecDestroy(run->graph));
	for (int g = 0; g < GROUPS; g++)
		if (run->comms[g] && run->comms[g] != run->world)
			NCCL(ncclCommDestroy(run->comms[g]));
	NCCL(ncclCommDestroy(run->world));
	for (size_t e = 0; e < run->plan->n_events; e++)
		CUDA(cudaEventDestroy(run->events[e]));
	for (size_t w = 0; w < run->n_waits; w++) {
		CUDA(cudaEventDestroy(run->waits[w].from));
		CUDA(cudaEventDestroy(run->waits[w].to));
	}
	for (int s = 0; s < STREAMS; s++) {
		if (run->streams[s])
			CUDA(cudaStreamDestroy(run->streams[s]));
		CUDA(cudaFree(run->buffers[s]));
	}
	free(run->events);
	free(run->segments);
	free(run->waits);
	free(run);
}
