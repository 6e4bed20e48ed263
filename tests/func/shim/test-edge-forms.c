/* libnbox.so learns the same of the job's streams whichever of CUDA's functions the job calls:
 * those of the runtime or of the driver, and of each the forms for per-thread default streams.
 * nboxd is this process, the worker another run of this program (daemon.h).
 *
 *   test-edge-forms               all tests
 *   test-edge-forms job FORMS     the worker: calls FORMS ("cu_ptsz": cuEventRecord_ptsz, ...)
 *   test-edge-forms job work-FORMS
 *   test-edge-forms job graph-FORMS */
#include <dlfcn.h>
#include <malloc.h>

#include "edges.h"

#define STREAMS 64
#define EVENTS 1024
#define GRAPHS 8192
#define MOST_BYTES 100000 /* less than is known of so many streams, events or graphs */

/* --- the worker ----------------------------------------------------------------------- */

static bool is_driver, is_ptsz;

/* FORMS, also behind "work-" or "graph-". */
static bool names_driver(const char *part)
{
	return !strstr(part, "cuda");
}

/* Not all have a form for per-thread streams. Return: NULL: there is none such. */
static void *form_of(const char *prefix, const char *what)
{
	const char *const suffixes[] = {is_ptsz ? "_ptsz" : "", is_ptsz ? "_ptds" : "", "", "_v2"};
	void *fn = NULL;
	char name[64];

	for (size_t i = 0; !fn && i < ARRAY_SIZE(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s%s", prefix, what, suffixes[i]);
		fn = dlsym(RTLD_DEFAULT, name);
	}
	return fn;
}

static void *form(const char *what)
{
	void *fn = form_of(is_driver ? "cu" : "cuda", what);

	CHECK(fn, "no form of %s", what);
	return fn;
}

/* The errors of both have the same numbers. */
#define CALL(what, types, args) ((cudaError_t(*) types)form(what)) args
#define SUCCEED(what, types, args) CUDA(CALL(what, types, args))

static void record(cudaEvent_t ev, cudaStream_t s)
{
	SUCCEED("EventRecord", (cudaEvent_t, cudaStream_t), (ev, s));
}

static void wait_for(cudaStream_t s, cudaEvent_t ev)
{
	SUCCEED("StreamWaitEvent", (cudaStream_t, cudaEvent_t, unsigned int), (s, ev, 0));
}

/* A place each. */
static void places(cudaStream_t c)
{
	cudaStream_t m = stream(cudaStreamNonBlocking);
	cudaEvent_t ev = event();

	compute(m);
	record(ev, m);
	wait_for(c, ev);
	op(c);
	compute(m);
	SUCCEED("EventRecordWithFlags", (cudaEvent_t, cudaStream_t, unsigned int), (ev, m, 0));
	wait_for(c, ev);
	op(c);
}

/* A point of the host each. */
static void waits(cudaStream_t c)
{
	cudaEvent_t ev = event();
	float x = 0, *there;

	record(ev, c);
	SUCCEED("EventSynchronize", (cudaEvent_t), (ev));
	op(c);
	record(ev, c);
	while (CALL("EventQuery", (cudaEvent_t), (ev)) == cudaErrorNotReady)
		usleep(1000);
	op(c);
	SUCCEED("StreamSynchronize", (cudaStream_t), (c));
	op(c);
	while (CALL("StreamQuery", (cudaStream_t), (c)) == cudaErrorNotReady)
		usleep(1000);
	op(c);
	if (is_driver)
		SUCCEED("CtxSynchronize", (void), ());
	else
		SUCCEED("DeviceSynchronize", (void), ());
	CUDA(cudaMalloc((void **)&there, sizeof(x)));
	op(cudaStreamPerThread);
	((cudaError_t(*)(void *, const void *, size_t,
			 int))form_of("cuda", "Memcpy"))(&x, there, sizeof(x),
							 cudaMemcpyDeviceToHost);
}

/* Stream 0 is the thread's own in the one, the legacy one in the other. */
static void default_stream(cudaStream_t c)
{
	cudaEvent_t ev = event(), done = event();

	op(cudaStreamPerThread);
	record(ev, NULL);
	wait_for(c, ev);
	op(c);
	record(done, c);
	wait_for(NULL, done);
	op(cudaStreamPerThread);
	SUCCEED("StreamSynchronize", (cudaStream_t), (NULL));
}

/* Nothing is kept of those that are gone; the runtime may take a while to free its own. */
static void ends(void)
{
	size_t before = mallinfo2().uordblks, after;
	static cudaStream_t streams[STREAMS];
	static cudaEvent_t events[EVENTS];

	for (int i = 0; i < STREAMS; i++)
		streams[i] = stream(cudaStreamNonBlocking);
	for (int i = 0; i < EVENTS; i++) {
		events[i] = event();
		record(events[i], streams[i % STREAMS]);
	}
	for (int i = 0; i < EVENTS; i++)
		SUCCEED("EventDestroy", (cudaEvent_t), (events[i]));
	for (int i = 0; i < STREAMS; i++)
		SUCCEED("StreamDestroy", (cudaStream_t), (streams[i]));
	for (int i = 0; i < 60000; i++) {
		after = mallinfo2().uordblks;
		if (after < before + MOST_BYTES)
			return;
		usleep(1000);
	}
	DIE("%zu bytes before, %zu after", before, after);
}

/* Calls that give stream @s work: some fail, for there are no kernels. */
#define WORK(name, what, types, args)          \
	static void name(cudaStream_t s)       \
	{                                      \
		(void)CALL(what, types, args); \
	}
static const dim3 one = {1, 1, 1};
static float memory[2];

WORK(kernel, "LaunchKernel", (void *, dim3, dim3, void **, size_t, cudaStream_t),
     (NULL, one, one, NULL, 0, s))
WORK(kernel_ex, "LaunchKernelExC", (cudaLaunchConfig_t *, void *, void **),
     (&(cudaLaunchConfig_t){.gridDim = one, .blockDim = one, .stream = s}, NULL, NULL))
WORK(cooperative, "LaunchCooperativeKernel", (void *, dim3, dim3, void **, size_t, cudaStream_t),
     (NULL, one, one, NULL, 0, s))
WORK(host_function, "LaunchHostFunc", (cudaStream_t, cudaHostFn_t, void *),
     (s, sleep_a_while, NULL))
WORK(copy, "MemcpyAsync", (void *, void *, size_t, int, cudaStream_t),
     (memory, memory + 1, sizeof(*memory), cudaMemcpyDefault, s))
WORK(copy_2d, "Memcpy2DAsync", (void *, size_t, void *, size_t, size_t, size_t, int, cudaStream_t),
     (memory, 4, memory + 1, 4, 4, 1, cudaMemcpyDefault, s))
WORK(copy_peer, "MemcpyPeerAsync", (void *, int, void *, int, size_t, cudaStream_t),
     (memory, 0, memory + 1, 0, sizeof(*memory), s))
WORK(fill, "MemsetAsync", (void *, int, size_t, cudaStream_t), (memory, 0, sizeof(*memory), s))

/* kernel<<<>>>() of CUDA 13 */
static void compiled_kernel(cudaStream_t s)
{
	((cudaError_t(*)(void *, dim3, dim3, void **, size_t,
			 cudaStream_t))form_of("__cuda", "LaunchKernel"))(NULL, one, one, NULL, 0,
									  s);
}

#define SIZE unsigned int
WORK(drivers_kernel, "LaunchKernel",
     (void *, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, cudaStream_t, void **, void **),
     (NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL))
WORK(drivers_cooperative, "LaunchCooperativeKernel",
     (void *, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, cudaStream_t, void **),
     (NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL))

static void drivers_kernel_ex(cudaStream_t s)
{
	struct {
		SIZE grid[3], block[3], bytes;
		cudaStream_t stream;
		void *attributes;
		SIZE n_attributes;
	} config = {{1, 1, 1}, {1, 1, 1}, 0, s, NULL, 0};

	(void)CALL("LaunchKernelEx", (void *, void *, void **, void **),
		   (&config, NULL, NULL, NULL));
}

static void nothing(cudaStream_t s)
{
	(void)s;
}

typedef void work_fn(cudaStream_t s);
static work_fn *const runtimes_work[] = {kernel,  kernel_ex,      cooperative, host_function,
					 copy,    copy_2d,        copy_peer,   fill,
					 nothing, compiled_kernel};
static work_fn *const drivers_work[] = {drivers_kernel, drivers_cooperative, nothing,
					drivers_kernel_ex};

/* Another stream waits for each stream that has had an op and some work. */
static void work(cudaStream_t c)
{
	work_fn *const *all = is_driver ? drivers_work : runtimes_work;
	size_t n_all = is_driver ? ARRAY_SIZE(drivers_work) : ARRAY_SIZE(runtimes_work);

	for (size_t i = 0; i < n_all; i++) {
		cudaStream_t s = stream(cudaStreamNonBlocking);

		op(s);
		all[i](s);
		follow(c, s);
		op(c);
	}
}

static cudaGraphExec_t instantiate(const char *what, cudaGraph_t graph)
{
	cudaGraphExec_t exec = NULL;

	SUCCEED(what, (cudaGraphExec_t *, cudaGraph_t, void *, void *, size_t),
		(&exec, graph, NULL, NULL, 0));
	return exec;
}

static cudaGraphExec_t capture(cudaStream_t c, void (*work)(cudaStream_t), const char *how,
			       cudaGraph_t *ret)
{
	CUDA(cudaStreamBeginCapture(c, cudaStreamCaptureModeThreadLocal));
	work(c);
	SUCCEED("StreamEndCapture", (cudaStream_t, cudaGraph_t *), (c, ret));
	return instantiate(how, *ret);
}

static void launch(cudaGraphExec_t exec, cudaStream_t s)
{
	SUCCEED("GraphLaunch", (cudaGraphExec_t, cudaStream_t), (exec, s));
}

/* Graphs of an op each, and one without, which is updated by a clone of the second one. Nothing is
 * kept of those that are gone. */
static void graphs(cudaStream_t c)
{
	const char *const forms[] = {"GraphInstantiate", "GraphInstantiateWithFlags",
				     is_driver ? "GraphInstantiate_v2" : "GraphInstantiate",
				     "GraphInstantiateWithParams"};
	cudaGraph_t graph[ARRAY_SIZE(forms)], none, clone;
	cudaGraphExec_t exec;
	size_t before, after;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		launch(capture(c, op, forms[i], &graph[i]), c);
	exec = capture(c, compute, "GraphInstantiate", &none);
	launch(exec, c);
	SUCCEED("GraphClone", (cudaGraph_t *, cudaGraph_t), (&clone, graph[1]));
	SUCCEED("GraphExecUpdate", (cudaGraphExec_t, cudaGraph_t, void *, void *),
		(exec, is_driver ? none : clone, NULL, NULL));
	if (is_driver)
		SUCCEED("GraphExecUpdate_v2", (cudaGraphExec_t, cudaGraph_t, void *),
			(exec, clone, NULL));
	launch(exec, c);
	SUCCEED("GraphDestroy", (cudaGraph_t), (none));
	CUDA(cudaDeviceSynchronize());
	before = mallinfo2().uordblks;
	for (int i = 0; i < GRAPHS; i++)
		SUCCEED("GraphExecDestroy", (cudaGraphExec_t),
			(instantiate("GraphInstantiateWithFlags", graph[0])));
	after = mallinfo2().uordblks;
	CHECK(after < before + MOST_BYTES, "%zu bytes before, %zu after", before, after);
}

static int run_job(const char *part)
{
	bool is_work = !strncmp(part, "work-", 5);
	cudaStream_t c;

	is_driver = names_driver(part);
	is_ptsz = strstr(part, "_ptsz");
	n = WORLD;
	NCCL(ncclCommInitRank(&comm, n, id_of("forms"), 0));
	c = stream(cudaStreamNonBlocking);
	op(c);
	if (is_work) {
		work(c);
	} else if (!strncmp(part, "graph-", 6)) {
		graphs(c);
	} else {
		places(c);
		waits(c);
		default_stream(c);
		ends();
	}
	CUDA(cudaDeviceSynchronize());
	NCCL(ncclCommDestroy(comm));
	return 0;
}

/* --- tests ------------------------------------------------------------------------------ */

/* Stream 0 is another one than the thread's own, or that: "c" and "d". */
static void all_forms_tell_the_same(void **state)
{
	play(*state, 11,
	     strstr(*state, "_ptsz") ? "A a BA.a ba. CB.b 0C DC. 1D ED. 2E FE. 3F GF. 4Gb HG 5H "
				       "IH. cI. JG.c dc. KJd. 6K 7J"
				     : "A a BA.a ba. CB.b 0C DC. 1D ED. 2E FE. 3F GF. 4Gb HG 5H "
				       "IH. cI JG.Ic dIc. KI.Jd 6JKd");
}

/* But behind the one that got nothing. */
static void behind_work_of_any_form_is_a_place(void **state)
{
	unsigned int n_works =
		names_driver(*state) ? ARRAY_SIZE(drivers_work) : ARRAY_SIZE(runtimes_work);
	unsigned int n_places = 0;

	start(*state, true);
	answer_init();
	play_from(0, 1 + 2 * n_works);
	end(0);
	for (unsigned int i = 0; i < g.n; i++)
		n_places += g.frames[i].hdr.type == WIRE_POINT &&
			    g.frames[i].point.kind == WIRE_POINT_STREAM;
	assert_int_equal(n_places, n_works - 1);
}

static void graphs_of_any_form_have_edges(void **state)
{
	play(*state, 5, "A aA. Ba bB. bE. Cb cC. Dc dD. Ed 0C");
}

#define OF(test, forms)                                            \
	{                                                          \
#test "_of_" forms, test, NULL, clean_up, (char[]) \
		{                                                  \
			forms                                      \
		}                                                  \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		OF(all_forms_tell_the_same, "cuda"),
		OF(all_forms_tell_the_same, "cuda_ptsz"),
		OF(all_forms_tell_the_same, "cu"),
		OF(all_forms_tell_the_same, "cu_ptsz"),
		OF(behind_work_of_any_form_is_a_place, "work-cuda"),
		OF(behind_work_of_any_form_is_a_place, "work-cuda_ptsz"),
		OF(behind_work_of_any_form_is_a_place, "work-cu"),
		OF(behind_work_of_any_form_is_a_place, "work-cu_ptsz"),
		OF(graphs_of_any_form_have_edges, "graph-cuda"),
		OF(graphs_of_any_form_have_edges, "graph-cuda_ptsz"),
		OF(graphs_of_any_form_have_edges, "graph-cu"),
		OF(graphs_of_any_form_have_edges, "graph-cu_ptsz"),
	};

	if (argc == 3 && !strcmp(argv[1], "job"))
		return run_job(argv[2]);
	return RUN(tests);
}
