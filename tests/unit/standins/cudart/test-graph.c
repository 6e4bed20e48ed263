/* Capture and replay: order, branches that overlap, what may not be captured, user objects. */
#include "helpers.h"

#include <pthread.h>

static cudaGraphExec_t end_and_instantiate(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	assert_cuda(cudaStreamEndCapture(stream, &graph));
	assert_cuda(cudaGraphInstantiate(&exec, graph, 0));
	assert_cuda(cudaGraphDestroy(graph)); /* the executable form stands alone */
	return exec;
}

struct chain {
	int *device, value, expected, n_wrong;
};

static void advance(void *arg)
{
	struct chain *chain = arg;

	chain->value++;
}

static void check(void *arg)
{
	struct chain *chain = arg;

	chain->n_wrong += chain->value != ++chain->expected;
}

static void a_thousand_replays_do_what_one_does(void **state)
{
	struct chain chain = {0};
	cudaGraphExec_t exec;
	cudaStream_t stream;
	int *scratch;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaMalloc((void **)&chain.device, 2 * sizeof(int)));
	scratch = chain.device + 1;
	assert_cuda(cudaMemset(scratch, 0, sizeof(int)));
	assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	assert_cuda(cudaLaunchHostFunc(stream, advance, &chain));
	assert_cuda(cudaMemcpyAsync(chain.device, &chain.value, sizeof(int), cudaMemcpyHostToDevice,
				    stream));
	assert_cuda(cudaMemsetAsync(scratch, 1, sizeof(int), stream));
	assert_cuda(cudaMemcpyAsync(&chain.value, chain.device, sizeof(int), cudaMemcpyDeviceToHost,
				    stream));
	assert_cuda(cudaLaunchHostFunc(stream, check, &chain));
	exec = end_and_instantiate(stream);
	assert_int_equal(chain.value, 0); /* nothing ran while capturing */
	for (int i = 0; i < 1000; i++)
		assert_cuda(cudaGraphLaunch(exec, stream));
	assert_cuda(cudaGraphExecDestroy(exec)); /* what is launched still runs */
	assert_cuda(cudaStreamSynchronize(stream));
	assert_int_equal(chain.value, 1000);
	assert_int_equal(chain.n_wrong, 0);
	assert_int_equal(*scratch, 0x01010101);
	assert_cuda(cudaFree(chain.device));
	assert_cuda(cudaStreamDestroy(stream));
}

/* Three branches that each wait until all three have come: impossible one after another. */
struct meeting {
	_Atomic int n, n_total;
	int n_parties;
};

static void meet(void *arg)
{
	struct meeting *meeting = arg;
	int round =
		(atomic_fetch_add(&meeting->n, 1) / meeting->n_parties + 1) * meeting->n_parties;

	while (atomic_load(&meeting->n) < round)
		usleep(20);
}

static void join_up(void *arg)
{
	struct meeting *meeting = arg;

	/* All of this round, and none of the next, are there. */
	if (atomic_load(&meeting->n) % meeting->n_parties == 0)
		atomic_fetch_add(&meeting->n_total, 1);
}

static void branches_of_a_graph_overlap(void **state)
{
	struct meeting meeting = {.n_parties = 3};
	cudaStream_t streams[3];
	cudaEvent_t fork, joins[3];
	cudaGraphExec_t exec;

	(void)state;
	assert_cuda(cudaEventCreate(&fork));
	for (int i = 0; i < 3; i++) {
		assert_cuda(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
		assert_cuda(cudaEventCreate(&joins[i]));
	}
	assert_cuda(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeThreadLocal));
	for (int round = 0; round < 4; round++) {
		assert_cuda(cudaEventRecord(fork, streams[0]));
		for (int i = 1; i < 3; i++)
			assert_cuda(cudaStreamWaitEvent(streams[i], fork, 0));
		for (int i = 0; i < 3; i++)
			assert_cuda(cudaLaunchHostFunc(streams[i], meet, &meeting));
		for (int i = 1; i < 3; i++) {
			assert_cuda(cudaEventRecord(joins[i], streams[i]));
			assert_cuda(cudaStreamWaitEvent(streams[0], joins[i], 0));
		}
		assert_cuda(cudaLaunchHostFunc(streams[0], join_up, &meeting));
	}
	exec = end_and_instantiate(streams[0]);
	for (int i = 0; i < 250; i++) /* launches of one graph follow each other in any stream */
		assert_cuda(cudaGraphLaunch(exec, streams[i % 3]));
	assert_cuda(cudaDeviceSynchronize());
	assert_int_equal(meeting.n, 3 * 4 * 250);
	assert_int_equal(meeting.n_total, 4 * 250);
	assert_cuda(cudaGraphExecDestroy(exec));
	assert_cuda(cudaEventDestroy(fork));
	for (int i = 0; i < 3; i++) {
		assert_cuda(cudaStreamDestroy(streams[i]));
		assert_cuda(cudaEventDestroy(joins[i]));
	}
}

/* Random forks and joins over four streams: each node sees all that came before it in capture order
 * along streams and events, in every replay. */
enum { N_NODES = 60, N_STREAMS = 4 };
struct random_graph {
	int round;
	_Atomic int done[N_NODES]; /* rounds that the node has ended */
	struct random_node {
		struct random_graph *graph;
		int id, n_before, before[N_NODES];
	} nodes[N_NODES];
	_Atomic int n_wrong;
};

static void random_node_run(void *arg)
{
	struct random_node *node = arg;
	int round = atomic_load(&node->graph->done[node->id]) + 1;

	for (int i = 0; i < node->n_before; i++)
		if (atomic_load(&node->graph->done[node->before[i]]) < round)
			atomic_fetch_add(&node->graph->n_wrong, 1);
	atomic_store(&node->graph->done[node->id], round);
}

static void a_random_graph_runs_in_the_order_of_its_edges(void **state)
{
	static struct random_graph graph;
	unsigned char sees[N_STREAMS][N_NODES];
	cudaStream_t streams[N_STREAMS];
	cudaEvent_t event;
	cudaGraphExec_t exec;
	unsigned seed = 11;

	(void)state;
	assert_cuda(cudaEventCreate(&event));
	for (int i = 0; i < N_STREAMS; i++)
		assert_cuda(cudaStreamCreate(&streams[i]));
	for (int trial = 0; trial < 20; trial++) {
		memset(&graph, 0, sizeof(graph));
		memset(sees, 0, sizeof(sees));
		assert_cuda(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed));
		assert_cuda(cudaEventRecord(event, streams[0]));
		for (int i = 1; i < N_STREAMS; i++)
			assert_cuda(cudaStreamWaitEvent(streams[i], event, 0));
		for (int id = 0; id < N_NODES; id++) {
			struct random_node *node = &graph.nodes[id];
			int s = rand_r(&seed) % N_STREAMS, from = rand_r(&seed) % N_STREAMS;

			if (rand_r(&seed) % 3 == 0) {
				assert_cuda(cudaEventRecord(event, streams[from]));
				assert_cuda(cudaStreamWaitEvent(streams[s], event, 0));
				for (int k = 0; k < N_NODES; k++)
					sees[s][k] |= sees[from][k];
			}
			node->graph = &graph;
			node->id = id;
			for (int k = 0; k < N_NODES; k++)
				if (sees[s][k])
					node->before[node->n_before++] = k;
			sees[s][id] = 1;
			assert_cuda(cudaLaunchHostFunc(streams[s], random_node_run, node));
		}
		for (int i = 1; i < N_STREAMS; i++) {
			assert_cuda(cudaEventRecord(event, streams[i]));
			assert_cuda(cudaStreamWaitEvent(streams[0], event, 0));
		}
		exec = end_and_instantiate(streams[0]);
		for (int i = 0; i < 20; i++)
			assert_cuda(cudaGraphLaunch(exec, streams[1]));
		assert_cuda(cudaGraphExecDestroy(exec));
		assert_cuda(cudaStreamSynchronize(streams[1]));
		assert_int_equal(graph.n_wrong, 0);
		for (int id = 0; id < N_NODES; id++)
			assert_int_equal(graph.done[id], 20);
	}
	for (int i = 0; i < N_STREAMS; i++)
		assert_cuda(cudaStreamDestroy(streams[i]));
	assert_cuda(cudaEventDestroy(event));
}

static void external_events_are_recorded_and_awaited_at_each_launch(void **state)
{
	struct door door = {0};
	cudaStream_t stream, other;
	cudaEvent_t before, after;
	cudaGraphExec_t exec;
	_Atomic int n = 0;

	(void)state;
	assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	assert_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	assert_cuda(cudaEventCreate(&before));
	assert_cuda(cudaEventCreate(&after));
	assert_cuda_is(cudaEventRecordWithFlags(after, stream, cudaEventRecordExternal),
		       cudaErrorIllegalState);
	assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	assert_cuda(cudaStreamWaitEvent(stream, before, cudaEventWaitExternal));
	assert_cuda(cudaLaunchHostFunc(stream, count_up, &n));
	assert_cuda(cudaEventRecordWithFlags(after, stream, cudaEventRecordExternal));
	exec = end_and_instantiate(stream);
	assert_cuda(cudaLaunchHostFunc(other, door_wait, &door));
	assert_cuda(cudaEventRecord(before, other));
	assert_cuda(cudaGraphLaunch(exec, stream));
	assert_cuda_is(cudaEventQuery(after), cudaErrorNotReady);
	assert_int_equal(n, 0);
	door_open(&door);
	assert_cuda(cudaEventSynchronize(after));
	assert_int_equal(n, 1);
	assert_cuda(cudaGraphExecDestroy(exec));
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaStreamDestroy(other));
	assert_cuda(cudaEventDestroy(before));
	assert_cuda(cudaEventDestroy(after));
}

/* As NCCL orders a capture with its calls outside: nodes of its own for an event, edges to them. */
static void event_nodes_follow_what_they_are_tied_to(void **state)
{
	struct cudaHostNodeParams params = {count_up, NULL};
	cudaGraphEdgeData edges[2] = {{0}, {.type = 1}};
	cudaGraphNode_t wait, work, record, got[4];
	struct door door = {0};
	cudaStream_t stream, other;
	cudaEvent_t before, after;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	_Atomic int n = 0;
	size_t n_got = 4;

	(void)state;
	params.userData = (void *)(uintptr_t)&n;
	assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	assert_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	assert_cuda(cudaEventCreate(&before));
	assert_cuda(cudaEventCreate(&after));
	assert_cuda(cudaGraphCreate(&graph, 0));
	assert_cuda_is(cudaGraphAddEventWaitNode(&wait, graph, NULL, 0, NULL),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaGraphAddEventRecordNode(&record, NULL, NULL, 0, after),
		       cudaErrorInvalidValue);
	assert_cuda(cudaGraphAddEventWaitNode(&wait, graph, NULL, 0, before));
	assert_cuda(cudaGraphAddHostNode(&work, graph, &wait, 1, &params));
	assert_cuda(cudaGraphAddEventRecordNode(&record, graph, NULL, 0, after));
	assert_cuda(cudaGraphAddDependencies(graph, &work, &record, edges, 1));
	assert_cuda_is(cudaGraphAddDependencies(graph, &work, &record, NULL, 1),
		       cudaErrorInvalidValue); /* is there already */
	assert_cuda_is(cudaGraphAddDependencies(graph, &wait, &wait, NULL, 1),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaGraphAddDependencies(graph, &record, &wait, NULL, 1),
		       cudaErrorNotSupported);
	assert_cuda_is(cudaGraphAddDependencies(graph, &wait, &record, &edges[1], 1),
		       cudaErrorNotSupported);
	assert_cuda_is(cudaGraphAddDependencies(NULL, &wait, &record, NULL, 1),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaGraphAddDependencies(graph, NULL, &record, NULL, 1),
		       cudaErrorInvalidValue);
	assert_cuda(cudaGraphNodeGetDependencies(record, got, NULL, &n_got));
	assert_int_equal(n_got, 1);
	assert_ptr_equal(got[0], work);
	assert_cuda(cudaGraphInstantiate(&exec, graph, 0));
	assert_cuda(cudaLaunchHostFunc(other, door_wait, &door));
	assert_cuda(cudaEventRecord(before, other));
	assert_cuda(cudaGraphLaunch(exec, stream));
	assert_cuda_is(cudaEventQuery(after), cudaErrorNotReady);
	assert_int_equal(n, 0);
	door_open(&door);
	assert_cuda(cudaEventSynchronize(after));
	assert_int_equal(n, 1);
	assert_cuda(cudaGraphExecDestroy(exec));
	assert_cuda(cudaGraphDestroy(graph));
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaStreamDestroy(other));
	assert_cuda(cudaEventDestroy(before));
	assert_cuda(cudaEventDestroy(after));
}

/* NCCL leaves its own stream there; work that is captured behind the node has to be joined. */
static void a_node_that_a_call_added_need_not_be_joined(void **state)
{
	cudaStream_t stream, other;
	cudaGraphNode_t record;
	const cudaGraphNode_t *deps;
	cudaEvent_t fork, event;
	cudaGraph_t graph;
	_Atomic int n = 0;
	enum cudaStreamCaptureStatus status;
	size_t n_deps;

	(void)state;
	assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	assert_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	assert_cuda(cudaEventCreate(&fork));
	assert_cuda(cudaEventCreate(&event));
	for (int is_used = 0; is_used < 2; is_used++) {
		assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
		assert_cuda(cudaEventRecord(fork, stream));
		assert_cuda(cudaStreamWaitEvent(other, fork, 0));
		assert_cuda(cudaLaunchHostFunc(other, count_up, &n));
		assert_cuda(cudaStreamGetCaptureInfo(other, &status, NULL, &graph, &deps, NULL,
						     &n_deps));
		assert_int_equal(n_deps, 1);
		assert_cuda(cudaGraphAddEventRecordNode(&record, graph, deps, 1, event));
		assert_cuda(cudaStreamUpdateCaptureDependencies(other, &record, NULL, 1,
								cudaStreamSetCaptureDependencies));
		if (is_used)
			assert_cuda(cudaLaunchHostFunc(other, count_up, &n));
		assert_cuda_is(cudaStreamEndCapture(stream, &graph),
			       is_used ? cudaErrorStreamCaptureUnjoined : cudaSuccess);
		if (!is_used)
			assert_cuda(cudaGraphDestroy(graph));
	}
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaStreamDestroy(other));
	assert_cuda(cudaEventDestroy(fork));
	assert_cuda(cudaEventDestroy(event));
}

static void assert_status(cudaStream_t stream, enum cudaStreamCaptureStatus expected)
{
	enum cudaStreamCaptureStatus status;

	assert_cuda(cudaStreamIsCapturing(stream, &status));
	assert_int_equal(status, expected);
}

static void what_may_not_be_captured_ends_the_capture(void **state)
{
	struct {
		cudaError_t error;
		int call;
	} cases[] = {
		{cudaErrorStreamCaptureUnsupported, 0},
		{cudaErrorStreamCaptureUnsupported, 1},
		{cudaErrorStreamCaptureUnsupported, 2},
		{cudaErrorStreamCaptureImplicit, 3},
		{cudaErrorStreamCaptureIsolation, 4},
		{cudaErrorStreamCaptureUnsupported, 5},
		{cudaErrorCapturedEvent, 6},
		{cudaErrorStreamCaptureUnsupported, 7},
	};
	cudaEvent_t outside, inside;
	cudaStream_t stream, other;
	cudaGraph_t graph;
	cudaError_t error;
	_Atomic int n = 0;
	void *ptr;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaStreamCreate(&other));
	assert_cuda(cudaEventCreate(&outside));
	assert_cuda(cudaEventCreate(&inside));
	assert_cuda(cudaEventRecord(outside, other));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
		assert_cuda(cudaEventRecord(inside, stream));
		assert_status(stream, cudaStreamCaptureStatusActive);
		switch (cases[i].call) {
		case 0:
			error = cudaStreamSynchronize(stream);
			break;
		case 1:
			error = cudaStreamQuery(stream);
			break;
		case 2:
			error = cudaMalloc(&ptr, 16);
			break;
		case 3:
			error = cudaLaunchHostFunc(NULL, count_up, &n);
			break;
		case 4:
			error = cudaStreamWaitEvent(stream, outside, 0);
			break;
		case 5:
			error = cudaDeviceSynchronize();
			break;
		case 6:
			error = cudaEventSynchronize(inside);
			break;
		default:
			error = cudaEventQuery(outside);
			break;
		}
		assert_cuda_is(error, cases[i].error);
		assert_status(stream, cudaStreamCaptureStatusInvalidated);
		assert_cuda_is(cudaLaunchHostFunc(stream, count_up, &n),
			       cudaErrorStreamCaptureInvalidated);
		assert_cuda_is(cudaStreamEndCapture(stream, &graph),
			       cudaErrorStreamCaptureInvalidated);
		assert_null(graph);
		assert_status(stream, cudaStreamCaptureStatusNone);
	}
	assert_int_equal(n, 0);
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaStreamDestroy(other));
	assert_cuda(cudaEventDestroy(outside));
	assert_cuda(cudaEventDestroy(inside));
}

static void *allocate_elsewhere(void *arg)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
	cudaError_t *error = arg;
	void *ptr;

	cudaThreadExchangeStreamCaptureMode(&mode);
	*error = cudaMalloc(&ptr, 16);
	if (*error == cudaSuccess)
		*error = cudaFree(ptr);
	return NULL;
}

static void end_elsewhere_fails(cudaStream_t stream);

static void a_mode_says_whose_unsafe_calls_end_a_capture(void **state)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaStream_t stream;
	cudaGraph_t graph;
	pthread_t thread;
	cudaError_t error;
	void *ptr;

	(void)state;
	assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	pthread_create(&thread, NULL, allocate_elsewhere, &error);
	pthread_join(thread, NULL);
	assert_cuda(error);
	assert_cuda(cudaThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, cudaStreamCaptureModeGlobal);
	assert_cuda(cudaMalloc(&ptr, 16)); /* relaxed: at one's own risk */
	assert_cuda(cudaFree(ptr));
	assert_cuda(cudaThreadExchangeStreamCaptureMode(&mode));
	end_elsewhere_fails(stream);
	assert_cuda(cudaStreamEndCapture(stream, &graph));
	assert_cuda(cudaGraphDestroy(graph));
	assert_cuda_is(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
	assert_cuda_is(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed),
		       cudaErrorStreamCaptureUnsupported);
	assert_cuda(cudaStreamDestroy(stream));
}

static void *end_capture(void *arg)
{
	cudaGraph_t graph;

	return (void *)(uintptr_t)cudaStreamEndCapture(arg, &graph);
}

static void end_elsewhere_fails(cudaStream_t stream)
{
	pthread_t thread;
	void *error;

	pthread_create(&thread, NULL, end_capture, stream);
	pthread_join(thread, &error);
	assert_cuda_is((uintptr_t)error, cudaErrorStreamCaptureWrongThread);
}

static void a_capture_ends_when_all_its_streams_are_joined(void **state)
{
	cudaStream_t one, two, three;
	cudaEvent_t event;
	cudaGraph_t graph;
	_Atomic int n = 0;

	(void)state;
	assert_cuda(cudaStreamCreate(&one));
	assert_cuda(cudaStreamCreate(&two));
	assert_cuda(cudaStreamCreate(&three));
	assert_cuda(cudaEventCreate(&event));
	/* never joined */
	assert_cuda(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
	assert_cuda(cudaEventRecord(event, one));
	assert_cuda(cudaStreamWaitEvent(two, event, 0));
	assert_cuda(cudaLaunchHostFunc(two, count_up, &n));
	assert_cuda_is(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
	assert_cuda_is(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
	/* a stream that is destroyed meanwhile is no error, what it did and nobody joined is */
	for (int work = 0; work < 2; work++) {
		cudaStream_t gone;

		assert_cuda(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking));
		assert_cuda(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
		assert_cuda(cudaLaunchHostFunc(one, count_up, &n));
		assert_cuda(cudaEventRecord(event, one));
		assert_cuda(cudaStreamWaitEvent(gone, event, 0));
		if (work)
			assert_cuda(cudaLaunchHostFunc(gone, count_up, &n));
		assert_cuda(cudaStreamDestroy(gone));
		assert_cuda_is(cudaStreamEndCapture(one, &graph),
			       work ? cudaErrorStreamCaptureUnjoined : cudaSuccess);
		if (!work)
			assert_cuda(cudaGraphDestroy(graph));
	}
	assert_status(two, cudaStreamCaptureStatusNone);
	/* an event of a capture that is over */
	assert_cuda_is(cudaStreamWaitEvent(two, event, 0), cudaErrorCapturedEvent);
	/* two captures cannot become one */
	assert_cuda(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
	assert_cuda(cudaStreamBeginCapture(three, cudaStreamCaptureModeGlobal));
	assert_cuda(cudaEventRecord(event, one));
	assert_cuda_is(cudaStreamWaitEvent(three, event, 0), cudaErrorStreamCaptureMerge);
	assert_cuda_is(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
	assert_cuda(cudaStreamDestroy(three)); /* in the middle of a capture */
	assert_cuda(cudaLaunchHostFunc(one, count_up, &n));
	assert_cuda(cudaStreamSynchronize(one));
	assert_int_equal(n, 1);
	assert_cuda(cudaStreamDestroy(one));
	assert_cuda(cudaStreamDestroy(two));
	assert_cuda(cudaEventDestroy(event));
}

static void a_capture_says_its_graph_and_frontier(void **state)
{
	struct cudaHostNodeParams params = {count_up, NULL};
	const cudaGraphNode_t *deps;
	enum cudaStreamCaptureStatus status;
	cudaGraphNode_t node, nodes[8];
	enum cudaGraphNodeType type;
	unsigned long long id = 0;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph, ended;
	_Atomic int n = 0;
	size_t n_deps = 9;

	(void)state;
	params.userData = (void *)(uintptr_t)&n;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	assert_cuda(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &deps, NULL, &n_deps));
	assert_int_equal(status, cudaStreamCaptureStatusActive);
	assert_true(id != 0);
	assert_int_equal(n_deps, 0);
	assert_cuda(cudaLaunchHostFunc(stream, count_up, &n));
	assert_cuda(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &deps, NULL, &n_deps));
	assert_int_equal(n_deps, 1);
	assert_cuda(cudaGraphNodeGetType(deps[0], &type));
	assert_int_equal(type, cudaGraphNodeTypeHost);
	/* what NCCL does: a node of its own, which the stream then depends on */
	assert_cuda(cudaGraphAddHostNode(&node, graph, deps, n_deps, &params));
	assert_cuda(cudaStreamUpdateCaptureDependencies(stream, &node, NULL, 1,
							cudaStreamSetCaptureDependencies));
	assert_cuda(cudaLaunchHostFunc(stream, count_up, &n));
	assert_cuda(cudaStreamEndCapture(stream, &ended));
	assert_ptr_equal(ended, graph);
	n_deps = 0;
	assert_cuda(cudaGraphGetNodes(graph, NULL, &n_deps));
	assert_int_equal(n_deps, 3);
	n_deps = 8;
	assert_cuda(cudaGraphGetNodes(graph, nodes, &n_deps));
	assert_int_equal(n_deps, 3);
	assert_null(nodes[3]);
	assert_cuda(cudaGraphNodeGetDependencies(nodes[2], &nodes[4], NULL, (n_deps = 2, &n_deps)));
	assert_int_equal(n_deps, 1);
	assert_ptr_equal(nodes[4], node);
	assert_cuda(cudaGraphInstantiate(&exec, graph, 0));
	assert_cuda(cudaGraphLaunch(exec, stream));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_int_equal(n, 3);
	assert_cuda(cudaGraphDestroy(graph));
	assert_cuda_is(cudaGraphNodeGetType(node, &type), cudaErrorInvalidValue);
	assert_cuda_is(cudaGraphDestroy(graph), cudaErrorInvalidValue);
	assert_cuda(cudaGraphExecDestroy(exec));
	assert_cuda_is(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
	assert_cuda(cudaStreamDestroy(stream));
}

static void user_objects_live_as_long_as_their_graphs(void **state)
{
	cudaUserObject_t object;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	_Atomic int n = 0;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaGraphCreate(&graph, 0));
	assert_cuda(cudaUserObjectCreate(&object, (void *)(uintptr_t)&n, count_up, 2,
					 cudaUserObjectNoDestructorSync));
	assert_cuda(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
	assert_cuda(cudaUserObjectRelease(object, 1));
	assert_cuda(cudaGraphInstantiate(&exec, graph, 0));
	assert_cuda(cudaGraphDestroy(graph));
	assert_int_equal(n, 0);                     /* the executable graph holds it */
	assert_cuda(cudaGraphLaunch(exec, stream)); /* an empty one */
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaGraphExecDestroy(exec));
	assert_cuda(cudaStreamDestroy(stream));
	assert_int_equal(n, 1);
	assert_cuda_is(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thousand_replays_do_what_one_does),
		cmocka_unit_test(branches_of_a_graph_overlap),
		cmocka_unit_test(a_random_graph_runs_in_the_order_of_its_edges),
		cmocka_unit_test(event_nodes_follow_what_they_are_tied_to),
		cmocka_unit_test(a_node_that_a_call_added_need_not_be_joined),
		cmocka_unit_test(external_events_are_recorded_and_awaited_at_each_launch),
		cmocka_unit_test(what_may_not_be_captured_ends_the_capture),
		cmocka_unit_test(a_mode_says_whose_unsafe_calls_end_a_capture),
		cmocka_unit_test(a_capture_ends_when_all_its_streams_are_joined),
		cmocka_unit_test(a_capture_says_its_graph_and_frontier),
		cmocka_unit_test(user_objects_live_as_long_as_their_graphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
