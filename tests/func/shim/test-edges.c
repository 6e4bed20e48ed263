/* What libnbox.so tells nboxd of the job's streams: which op waits for which place of which stream.
 * nboxd is this process, the worker another run of this program (daemon.h). Each job says in what
 * order things are; what it computes is sleep.
 *
 *   test-edges             all tests
 *   test-edges job PART    the worker (below) */
#include "edges.h"

#define BLIND_OPS 110

/* --- the worker ----------------------------------------------------------------------- */

/* Gradients in two buckets, and an optimiser behind both; twice. */
static void ddp(void)
{
	cudaStream_t m = stream(cudaStreamNonBlocking), c = stream(cudaStreamNonBlocking);
	cudaEvent_t done[2] = {event(), event()}, place = event();

	for (int i = 0; i < 2; i++) {
		for (int bucket = 0; bucket < 2; bucket++) {
			compute(m);
			follow(c, m);
			op(c);
			CUDA(cudaEventRecord(done[bucket], c));
		}
		compute(m);
		CUDA(cudaEventRecord(place, m));
		for (int bucket = 0; bucket < 2; bucket++)
			CUDA(cudaStreamWaitEvent(m, done[bucket], 0));
		compute(m);
	}
	CUDA(cudaStreamSynchronize(m));
}

static void busy(void)
{
	cudaStream_t m = stream(cudaStreamNonBlocking), c = stream(cudaStreamNonBlocking);
	cudaEvent_t ev = event();

	op(c);
	compute(m);
	CUDA(cudaEventRecord(ev, m));
	CUDA(cudaStreamWaitEvent(c, ev, 0));
	op(c);
	CUDA(cudaEventSynchronize(ev));
}

/* The host waits for some of the last stretch of computing, and comes late with the rest. */
static void idle(void)
{
	cudaStream_t c = stream(cudaStreamNonBlocking);

	for (int i = 0; i < 3; i++) {
		compute(NULL);
		if (i == 2) {
			CUDA(cudaStreamSynchronize(NULL));
			usleep(MS * 1000);
		}
		compute(NULL);
		follow(c, NULL);
		op(c);
	}
	CUDA(cudaStreamSynchronize(c));
}

/* A stream of nothing but ops, until it computes as well. */
static void mixed(void)
{
	cudaStream_t c = stream(cudaStreamNonBlocking), d = stream(cudaStreamNonBlocking);

	op(c);
	op(d);
	follow(d, c);
	op(d);
	compute(c);
	follow(d, c);
	op(d);
	CUDA(cudaStreamSynchronize(d));
}

/* Copies on one stream, gathers on a second, reductions on a third. */
static void fsdp(void)
{
	cudaStream_t m = stream(cudaStreamNonBlocking), copy = stream(cudaStreamNonBlocking),
		     gather = stream(cudaStreamNonBlocking), reduce = stream(cudaStreamNonBlocking);

	for (int i = 0; i < 2; i++) {
		follow(copy, m);
		compute(copy);
		follow(gather, copy);
		op(gather);
		follow(m, gather);
		compute(m);
		follow(reduce, m);
		op(reduce);
		follow(m, reduce);
	}
	CUDA(cudaDeviceSynchronize());
}

static void *look_after(void *ev)
{
	while (cudaEventQuery(ev) == cudaErrorNotReady)
		usleep(1000);
	CUDA(cudaEventSynchronize(ev));
	return NULL;
}

/* Only what makes the enqueuing thread wait, and tells it something, is a point. */
static void host(void)
{
	cudaStream_t m = stream(cudaStreamNonBlocking), c = stream(cudaStreamNonBlocking);
	cudaEvent_t done = event(), after = event();
	pthread_t watchdog;
	float x = 0, *there;

	CUDA(cudaMalloc((void **)&there, sizeof(x)));
	follow(c, m);
	op(c);
	CUDA(cudaEventRecord(done, c));
	CHECK(!pthread_create(&watchdog, NULL, look_after, done), "thread");
	pthread_join(watchdog, NULL);
	say("watched\n");
	wait_for_go();
	CUDA(cudaEventSynchronize(done));
	CUDA(cudaEventQuery(done));
	CUDA(cudaStreamSynchronize(c));
	follow(c, m);
	op(c);
	CUDA(cudaEventRecord(after, c));
	while (cudaEventQuery(after) == cudaErrorNotReady)
		usleep(1000);
	op(c);
	CUDA(cudaStreamWaitEvent(NULL, done, 0));
	CUDA(cudaDeviceSynchronize());
	op(NULL);
	CUDA(cudaMemcpy(&x, there, sizeof(x), cudaMemcpyDeviceToHost));
}

/* A blocking stream follows the legacy stream without any event. */
static void legacy(void)
{
	cudaStream_t b = stream(cudaStreamDefault), c = stream(cudaStreamNonBlocking),
		     apart = stream(cudaStreamNonBlocking);

	compute(NULL);
	follow(c, NULL);
	op(c);
	follow(cudaStreamLegacy, c);
	follow(c, b);
	follow(c, apart);
	op(c);
	CUDA(cudaStreamSynchronize(c));
}

static void replays(void)
{
	cudaStream_t m = stream(cudaStreamNonBlocking), c = stream(cudaStreamNonBlocking);
	cudaGraphExec_t exec;
	cudaGraph_t captured;

	follow(c, m);
	op(c);
	CUDA(cudaStreamBeginCapture(m, cudaStreamCaptureModeGlobal));
	compute(m);
	follow(c, m);
	op(c);
	compute(m);
	follow(c, m);
	op(c);
	follow(m, c);
	CUDA(cudaStreamEndCapture(m, &captured));
	CUDA(cudaGraphInstantiate(&exec, captured, 0));
	for (int i = 0; i < 2; i++)
		CUDA(cudaGraphLaunch(exec, m));
	CUDA(cudaStreamSynchronize(m));
	follow(c, m);
	op(c);
	CUDA(cudaStreamSynchronize(c));
}

/* A graph on one stream, behind and before ops on that. */
static void launches(void)
{
	cudaStream_t m = stream(cudaStreamNonBlocking);
	cudaGraphExec_t exec;
	cudaGraph_t captured;

	op(m);
	CUDA(cudaStreamSynchronize(m));
	usleep(MS * 1000); /* its record serves an op of the capture, too */
	CUDA(cudaStreamBeginCapture(m, cudaStreamCaptureModeGlobal));
	op(m);
	compute(m);
	op(m);
	CUDA(cudaStreamEndCapture(m, &captured));
	CUDA(cudaGraphInstantiateWithFlags(&exec, captured, 0));
	CUDA(cudaGraphDestroy(captured));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphLaunch(exec, m));
	op(m);
	CUDA(cudaStreamSynchronize(m));
	CUDA(cudaGraphExecDestroy(exec));
}

/* One event again and again; one that is destroyed before anybody knows that it marks a place. */
static void records(void)
{
	cudaStream_t m = stream(cudaStreamNonBlocking), c = stream(cudaStreamNonBlocking);
	cudaEvent_t ev = event(), gone = event();

	for (int i = 0; i < 2; i++) {
		compute(m);
		CUDA(cudaEventRecord(ev, m));
		CUDA(cudaStreamWaitEvent(c, ev, 0));
		CUDA(cudaStreamWaitEvent(c, ev, 0));
		op(c);
	}
	CUDA(cudaEventRecord(gone, m));
	CUDA(cudaEventDestroy(gone));
	CUDA(cudaEventRecord(ev, c));
	CUDA(cudaStreamWaitEvent(m, ev, 0));
	CUDA(cudaStreamDestroy(c));
	c = stream(cudaStreamNonBlocking);
	follow(c, m);
	op(c);
	CUDA(cudaStreamSynchronize(c));
}

/* The communicator's device is 0. */
static void other_device(void)
{
	cudaStream_t m, c = stream(cudaStreamNonBlocking);

	op(c);
	CUDA(cudaSetDevice(1));
	m = stream(cudaStreamNonBlocking);
	compute(m);
	follow(c, m);
	CUDA(cudaSetDevice(0));
	op(c);
	CUDA(cudaSetDevice(1));
	compute(m);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamSynchronize(c));
}

/* As if it were linked with a runtime of its own: no call of CUDA's goes through libnbox.so. */
static void blind(void)
{
	for (int i = 0; i < BLIND_OPS; i++)
		op(NULL);
}

static int run_job(const char *part)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {{"ddp", ddp},         {"fsdp", fsdp},
		     {"busy", busy},       {"mixed", mixed},
		     {"blind", blind},     {"host", host},
		     {"legacy", legacy},   {"replays", replays},
		     {"records", records}, {"other_device", other_device},
		     {"idle", idle},       {"launches", launches}};

	n = WORLD;
	NCCL(ncclCommInitRank(&comm, n, id_of("edges"), 0));
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strcmp(part, parts[i].name))
			parts[i].run();
	NCCL(ncclCommDestroy(comm));
	return 0;
}

/* --- tests ------------------------------------------------------------------------------ */

static void a_bucket_waits_for_its_gradients_and_the_optimiser_for_all_buckets(void **state)
{
	(void)state;
	play("ddp", 4, "A a BA.a ba. cAb. dBc. CB.d ed. DC.e fe. gCf. 0Dg");
}

/* nboxd does not let the op before end until it has heard of the place. */
static void a_place_is_stamped_while_the_communication_stream_is_busy(void **state)
{
	unsigned int place;

	(void)state;
	start("busy", true);
	answer_init();
	frame(WIRE_ARRIVE, 0);
	place = frame(WIRE_POINT, 0);
	frame(WIRE_POINT, 1);
	assert_int_equal(count(WIRE_DONE), 0);
	assert_int_equal(count(WIRE_ARRIVE), 1);
	play_from(0, 2);
	see_rows("A a BA.a 0a");
	assert_in_range(g.frames[place].point.call_ns, 1, g.frames[place].point.time_ns);
	assert_in_range(g.frames[place].point.time_ns, 1,
			g.frames[frame(WIRE_DONE, 0)].done.release_ns);
}

static void a_place_says_when_its_stream_got_its_first_work(void **state)
{
	const struct wire_point *first, *second;

	(void)state;
	play("idle", 3, "A a BA.a 0a ba. CB.b 1C");
	first = &g.frames[frame(WIRE_POINT, 0)].point;
	second = &g.frames[frame(WIRE_POINT, 2)].point;
	assert_in_range(first->work_ns, 1, first->call_ns);
	assert_in_range(second->work_ns, first->call_ns + MS * UINT64_C(1000000), second->call_ns);
	assert_int_equal(g.frames[frame(WIRE_ARRIVE, 1)].arrive.work_ns, 0);
}

static void behind_an_op_is_a_place_only_where_the_stream_computes(void **state)
{
	(void)state;
	play("mixed", 4, "A BA CAB. aA. DC.a 0D");
}

static void gathers_wait_for_copies_and_reductions_for_compute(void **state)
{
	(void)state;
	play("fsdp", 4, "A a b BAab. cAa. d eBcd. CA.Be fBc. gCf. DB.Cg hg. 0CDeh");
}

static void a_wait_of_the_enqueuing_thread_is_a_point_if_it_tells_something(void **state)
{
	(void)state;
	start("host", true);
	answer_init();
	answer_op(0, 1);
	wait_for_word("watched\n");
	let_go();
	play_from(1, 3);
	see_rows("A 0A a BA.a 1B CB. b 2Cab DCb. 3D");
}

static void blocking_streams_follow_the_legacy_stream(void **state)
{
	(void)state;
	play("legacy", 2, "A a bAa c BA.bc 0B");
}

static void a_replay_has_the_names_of_the_capture(void **state)
{
	(void)state;
	play("replays", 6, "A a aCd. ba ba Bb Bb cb. cb. CB.c CB.c dc. dc. 0Cd eCd. DA.e 1D");
}

/* The host launches all before the first one is over. */
static void a_launch_comes_after_the_replay_before_it(void **state)
{
	(void)state;
	play("launches", 8, "A 0A aA. aC. aC. Ba Ba Ba CB. CB. CB. DC. 1D");
}

static void an_event_means_its_last_record(void **state)
{
	(void)state;
	play("records", 3, "A a BA.a ba. c CBbc. 0C");
}

static void what_another_device_does_is_the_same_ranks(void **state)
{
	(void)state;
	start("other_device", true);
	answer_init_of(0, COMM, 2);
	play_from(0, 2);
	see_rows("A a BA.a 0a 1B");
	for (unsigned int i = 0; i < g.n; i++)
		if (g.frames[i].hdr.type == WIRE_POINT)
			assert_int_equal(g.frames[i].hdr.rank, 2);
}

static void a_job_whose_events_cannot_be_seen_is_told_so_once(void **state)
{
	unsigned int flagged = 0;

	(void)state;
	start("blind", true);
	answer_init();
	play_from(0, BLIND_OPS);
	end(0);
	for (unsigned int i = 0; i < BLIND_OPS; i++) {
		unsigned int at = frame(WIRE_ARRIVE, i);

		flagged += g.frames[at].arrive.flags == WIRE_ARRIVE_NO_EDGES;
		assert_int_equal(g.frames[at].arrive.n_deps, i > 0);
		if (i)
			assert_int_equal(deps_of(at, &(uint32_t){0})->name,
					 g.frames[frame(WIRE_ARRIVE, i - 1)].arrive.name);
	}
	assert_in_range(flagged, 1, BLIND_OPS - 1);
	for (unsigned int i = 0; i < g.n; i++)
		flagged += g.frames[i].hdr.type == WIRE_NOTE &&
					   strstr(g.frames[i].text.text, "linked statically")
				   ? 1000
				   : 0;
	assert_in_range(flagged, 1000, 1999);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		T(a_bucket_waits_for_its_gradients_and_the_optimiser_for_all_buckets),
		T(a_place_is_stamped_while_the_communication_stream_is_busy),
		T(a_place_says_when_its_stream_got_its_first_work),
		T(behind_an_op_is_a_place_only_where_the_stream_computes),
		T(gathers_wait_for_copies_and_reductions_for_compute),
		T(a_wait_of_the_enqueuing_thread_is_a_point_if_it_tells_something),
		T(blocking_streams_follow_the_legacy_stream),
		T(a_replay_has_the_names_of_the_capture),
		T(a_launch_comes_after_the_replay_before_it),
		T(an_event_means_its_last_record),
		T(what_another_device_does_is_the_same_ranks),
		T(a_job_whose_events_cannot_be_seen_is_told_so_once),
	};

	if (argc == 3 && !strcmp(argv[1], "job"))
		return run_job(argv[2]);
	return RUN(tests);
}
