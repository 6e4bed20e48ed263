/* Kernel launches, which do nothing in their place and take their time; variables, pools,
 * properties, refused functions, and the queries of the driver API. */
#include "helpers.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cudart/compiler.h>

#define N_KERNELS 3000 /* more than the table starts with */

static char kernels[N_KERNELS], variable[64], long_kernel[1], *managed;
static void **module;

static const dim3 one = {1, 1, 1};

static int set_up(void **state)
{
	(void)state;
	module = __cudaRegisterFatBinary(NULL);
	for (int i = 0; i < N_KERNELS; i++)
		__cudaRegisterFunction(module, &kernels[i], NULL, "kernel", -1, NULL, NULL, NULL,
				       NULL, NULL);
	__cudaRegisterFunction(module, long_kernel, NULL, "void long_kernel<int, char*>(int)", -1,
			       NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(module, variable, NULL, "variable", 0, sizeof(variable), 0, 0);
	__cudaRegisterManagedVar(module, (void **)&managed, NULL, "managed", 0, 16, 0, 0);
	__cudaRegisterFatBinaryEnd(module);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	__cudaUnregisterFatBinary(module);
	/* Kernels are gone with their module. */
	return cudaLaunchKernel(&kernels[0], one, one, NULL, 0, NULL) !=
	       cudaErrorInvalidDeviceFunction;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void a_launch_takes_its_place_in_the_stream(void **state)
{
	static const dim3 wrong[] = {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 65536, 1}};
	cudaLaunchConfig_t config = {.gridDim = one, .blockDim = {1024, 1, 1}};
	struct cudaFuncAttributes attributes;
	cudaStream_t stream;
	int n;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	for (int i = 0; i < N_KERNELS; i += 7)
		assert_cuda(cudaLaunchKernel(&kernels[i], one, one, NULL, 0, stream));
	assert_cuda(cudaLaunchCooperativeKernel(&kernels[0], one, one, NULL, 0, stream));
	assert_cuda(cudaLaunchKernelExC(&config, &kernels[1], NULL));
	config.blockDim.y = 2;
	assert_cuda_is(cudaLaunchKernelExC(&config, &kernels[1], NULL),
		       cudaErrorInvalidConfiguration);
	config.numAttrs = 1;
	assert_cuda_is(cudaLaunchKernelExC(&config, &kernels[1], NULL), cudaErrorInvalidValue);
	for (size_t i = 0; i < 4; i++)
		assert_cuda_is(cudaLaunchKernel(&kernels[0], wrong[i], one, NULL, 0, stream),
			       cudaErrorInvalidConfiguration);
	assert_cuda_is(cudaLaunchKernel(&n, one, one, NULL, 0, stream),
		       cudaErrorInvalidDeviceFunction);
	assert_cuda_is(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
	assert_cuda_is(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, (cudaStream_t)0x77),
		       cudaErrorInvalidResourceHandle);
	assert_cuda(cudaFuncGetAttributes(&attributes, &kernels[3]));
	assert_int_equal(attributes.maxThreadsPerBlock, 1024);
	assert_cuda_is(cudaFuncGetAttributes(&attributes, &n), cudaErrorInvalidDeviceFunction);
	assert_cuda(cudaFuncSetAttribute(&kernels[3], cudaFuncAttributeMaxDynamicSharedMemorySize,
					 65536));
	assert_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, &kernels[0], 256, 0));
	assert_int_equal(n, 4);
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaStreamDestroy(stream));
}

/* What nvcc writes for kernel<<<2, 3, 4, stream>>>(...), also within another one's arguments. */
static void compiled_kernels_are_launched(void **state)
{
	dim3 grid = {2, 1, 1}, block = {3, 1, 1}, got_grid, got_block;
	struct cudaKernelNodeParams params = {&kernels[5], {2, 1, 1}, {3, 1, 1}, 0, NULL, NULL};
	enum cudaGraphNodeType type;
	cudaStream_t stream, got_stream;
	cudaGraphNode_t node;
	cudaFunction_t function;
	cudaKernel_t kernel;
	cudaGraph_t graph;
	size_t shared_bytes;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_int_equal(__cudaPushCallConfiguration(grid, block, 4, stream), 0);
	assert_int_equal(__cudaPushCallConfiguration(one, one, 0, NULL), 0);
	assert_cuda(__cudaPopCallConfiguration(&got_grid, &got_block, &shared_bytes, &got_stream));
	assert_int_equal(got_grid.x, 1);
	assert_null(got_stream);
	assert_cuda(__cudaPopCallConfiguration(&got_grid, &got_block, &shared_bytes, &got_stream));
	assert_int_equal(got_grid.x, 2);
	assert_int_equal(got_block.x, 3);
	assert_int_equal(shared_bytes, 4);
	assert_ptr_equal(got_stream, stream);
	assert_cuda_is(__cudaPopCallConfiguration(&got_grid, &got_block, &shared_bytes,
						  &got_stream),
		       cudaErrorMissingConfiguration);
	assert_cuda(__cudaGetKernel(&kernel, &kernels[5]));
	assert_cuda(__cudaLaunchKernel(kernel, grid, block, NULL, 0, stream));
	assert_cuda_is(__cudaGetKernel(&kernel, &kernel), cudaErrorInvalidDeviceFunction);
	assert_cuda(cudaGetFuncBySymbol(&function, &kernels[5]));
	assert_cuda_is(cudaGetFuncBySymbol(&function, &kernel), cudaErrorInvalidDeviceFunction);
	assert_cuda(cudaGraphCreate(&graph, 0));
	assert_cuda(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	assert_cuda(cudaGraphNodeGetType(node, &type));
	assert_int_equal(type, cudaGraphNodeTypeKernel);
	params.func = &kernel;
	assert_cuda_is(cudaGraphAddKernelNode(&node, graph, &node, 1, &params),
		       cudaErrorInvalidDeviceFunction);
	assert_cuda_is(cudaGraphAddKernelNode(&node, graph, NULL, 0, NULL), cudaErrorInvalidValue);
	assert_cuda(cudaGraphDestroy(graph));
	assert_true(__cudaInitModule(module));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaStreamDestroy(stream));
}

/* main() writes the table. */
static void a_launch_takes_the_time_that_is_set(void **state)
{
	cudaGraphNode_t nodes[2];
	enum cudaGraphNodeType type;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	uint64_t start_ns;
	size_t n = 2;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	start_ns = now_ns();
	for (int i = 0; i < 5; i++)
		assert_cuda(cudaLaunchKernel(&kernels[i], one, one, NULL, 0, stream));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_true(now_ns() - start_ns >= 5 * 3000000);

	assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	assert_cuda(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, stream));
	assert_cuda(cudaLaunchKernel(&kernels[1], one, one, NULL, 0, stream));
	assert_cuda(cudaStreamEndCapture(stream, &graph));
	assert_cuda(cudaGraphGetNodes(graph, nodes, &n));
	assert_int_equal(n, 2);
	assert_cuda(cudaGraphNodeGetType(nodes[1], &type));
	assert_int_equal(type, cudaGraphNodeTypeKernel);
	assert_cuda(cudaGraphInstantiate(&exec, graph, 0));
	start_ns = now_ns();
	assert_cuda(cudaGraphLaunch(exec, stream));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_true(now_ns() - start_ns >= 2 * 3000000);
	assert_cuda(cudaGraphExecDestroy(exec));
	assert_cuda(cudaGraphDestroy(graph));
	assert_cuda(cudaStreamDestroy(stream));
}

/* The stubs of cuBLAS find it by its name; type 1 is float. */
static void kernels_take_the_times_of_their_names(void **state)
{
	cudaError_t (*product)(cudaStream_t, const void *);
	struct {
		int type;
		uint64_t m, n, k, batch;
	} shape = {1, 7, 5, 3, 1};
	cudaStream_t stream;
	uint64_t start_ns;

	(void)state;
	*(void **)&product = dlsym(RTLD_DEFAULT, "__cudaNboxProduct");
	assert_non_null(product);
	assert_cuda(cudaStreamCreate(&stream));
	start_ns = now_ns();
	for (int i = 0; i < 2; i++)
		assert_cuda(cudaLaunchKernel(long_kernel, one, one, NULL, 0, stream));
	assert_cuda(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, stream));
	assert_cuda(product(stream, &shape));
	shape.k = shape.m = 1; /* another name, no time: those before it are not over for it */
	assert_cuda(product(stream, &shape));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_true(now_ns() - start_ns >= 2 * 20000000 + 3000000 + 11000000);
	assert_cuda_is(product((cudaStream_t)0x77, &shape), cudaErrorInvalidResourceHandle);
	assert_cuda(cudaStreamDestroy(stream));
}

static void hold(void *is_queued)
{
	const struct timespec t = {.tv_nsec = 1000000};

	while (!atomic_load((atomic_bool *)is_queued))
		nanosleep(&t, NULL);
}

static void assert_elapsed(cudaEvent_t from, cudaEvent_t to, float ms)
{
	float elapsed;

	assert_cuda(cudaEventElapsedTime(&elapsed, from, to));
	assert_float_equal(elapsed, ms, 1e-5);
}

/* However late the threads come: what is queued in time lasts as long as it should, and not longer,
 * with the times of copies and fills, and over two streams. */
static void lateness_of_a_thread_is_not_added_up(void **state)
{
	static atomic_bool is_queued;
	cudaEvent_t start, middle, end, other_end;
	cudaStream_t stream, other;
	char *memory;

	(void)state;
	assert_cuda(cudaMalloc((void **)&memory, 1 << 16));
	assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	assert_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	assert_cuda(cudaEventCreate(&start));
	assert_cuda(cudaEventCreate(&middle));
	assert_cuda(cudaEventCreate(&end));
	assert_cuda(cudaEventCreate(&other_end));
	assert_cuda(cudaLaunchHostFunc(stream, hold, &is_queued));
	assert_cuda(cudaEventRecord(start, stream));
	for (int i = 0; i < 3; i++) {
		assert_cuda(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, stream));
		assert_cuda(cudaEventRecord(middle, stream));
		assert_cuda(cudaMemsetAsync(memory, 0, 1 << 16, stream));
		assert_cuda(cudaMemcpyAsync(memory, memory + (1 << 15), 1 << 15,
					    cudaMemcpyDeviceToDevice, stream));
	}
	assert_cuda(cudaEventRecord(end, stream));
	assert_cuda(cudaStreamWaitEvent(other, middle, 0));
	assert_cuda(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, other));
	assert_cuda(cudaEventRecord(other_end, other));
	atomic_store(&is_queued, 1);
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaStreamSynchronize(other));
	assert_elapsed(start, end, 3 * (3 + 2 + 1));
	assert_elapsed(start, middle, 2 * (3 + 2 + 1) + 3);
	assert_elapsed(middle, other_end, 3);
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaStreamDestroy(other));
	assert_cuda(cudaEventDestroy(start));
	assert_cuda(cudaEventDestroy(middle));
	assert_cuda(cudaEventDestroy(end));
	assert_cuda(cudaEventDestroy(other_end));
	assert_cuda(cudaFree(memory));
}

/* Both kernels of the graph side by side; its launches one after another, whichever streams they
 * are in. */
static void launches_of_a_graph_do_not_overlap(void **state)
{
	static atomic_bool is_queued;
	cudaEvent_t fork, join, start, ends[2];
	cudaStream_t streams[2];
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	(void)state;
	assert_cuda(cudaEventCreate(&fork));
	assert_cuda(cudaEventCreate(&join));
	assert_cuda(cudaEventCreate(&start));
	for (int i = 0; i < 2; i++) {
		assert_cuda(cudaEventCreate(&ends[i]));
		assert_cuda(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	}
	assert_cuda(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
	assert_cuda(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, streams[0]));
	assert_cuda(cudaEventRecord(fork, streams[0]));
	assert_cuda(cudaStreamWaitEvent(streams[1], fork, 0));
	assert_cuda(cudaLaunchKernel(long_kernel, one, one, NULL, 0, streams[1]));
	assert_cuda(cudaEventRecord(join, streams[1]));
	assert_cuda(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, streams[0]));
	assert_cuda(cudaStreamWaitEvent(streams[0], join, 0));
	assert_cuda(cudaStreamEndCapture(streams[0], &graph));
	assert_cuda(cudaGraphInstantiate(&exec, graph, 0));
	assert_cuda(cudaLaunchHostFunc(streams[0], hold, &is_queued));
	assert_cuda(cudaEventRecord(start, streams[0]));
	for (int i = 0; i < 2; i++) {
		assert_cuda(cudaGraphLaunch(exec, streams[i]));
		assert_cuda(cudaEventRecord(ends[i], streams[i]));
	}
	atomic_store(&is_queued, 1);
	for (int i = 0; i < 2; i++)
		assert_cuda(cudaStreamSynchronize(streams[i]));
	assert_elapsed(start, ends[0], 3 + 20);
	assert_elapsed(ends[0], ends[1], 3 + 20);
	for (int i = 0; i < 2; i++) {
		assert_cuda(cudaEventDestroy(ends[i]));
		assert_cuda(cudaStreamDestroy(streams[i]));
	}
	assert_cuda(cudaGraphExecDestroy(exec));
	assert_cuda(cudaGraphDestroy(graph));
	assert_cuda(cudaEventDestroy(fork));
	assert_cuda(cudaEventDestroy(join));
	assert_cuda(cudaEventDestroy(start));
}

/* Launches two kernels in a process of its own, since variables are read once. Return: how many
 * failed; *ret_said: what it printed. */
static int run_child(const char *kernel_time, char *ret_said, size_t size)
{
	int status, pipes[2];
	ssize_t n;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		dup2(pipes[1], STDERR_FILENO);
		setenv("NBOX_HOST_KERNEL_TIME", kernel_time, 1);
		setenv("NBOX_HOST_KERNEL_LOG", "1", 1);
		execl("/proc/self/exe", "test-launch", "child", NULL);
		_exit(127);
	}
	close(pipes[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	n = read(pipes[0], ret_said, size - 1);
	assert_true(n > 0);
	ret_said[n] = '\0';
	close(pipes[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int be_child(void)
{
	int n_failed = 0;

	set_up(NULL);
	for (int i = 0; i < 2; i++)
		n_failed += cudaLaunchKernel(&kernels[0], one, one, NULL, 0, NULL) ==
			    cudaErrorInvalidConfiguration;
	return n_failed;
}

static void a_wrong_table_fails_every_launch(void **state)
{
	char said[512];

	(void)state;
	assert_int_equal(run_child("soon", said, sizeof(said)), 2);
	assert_string_equal(said,
			    "host CUDA runtime: NBOX_HOST_KERNEL_TIME: 'soon' is no time such as "
			    "20us, none of the cards a100, h100, b200, and no file: nbox kernels "
			    "makes a table. Every kernel launch fails.\n");
}

/* The same child, with a time. */
static void the_log_counts_what_was_launched(void **state)
{
	char said[512];

	(void)state;
	assert_int_equal(run_child("2us", said, sizeof(said)), 0);
	assert_string_equal(said, "kernel: 2 launches, 4.000us in all: kernel\n");
}

static void a_graph_is_printed_as_text(void **state)
{
	char path[] = "/tmp/nbox-test-dot-XXXXXX", text[4096];
	int fd = mkstemp(path);
	cudaStream_t stream;
	cudaGraph_t graph;
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	assert_cuda(cudaLaunchKernel(&kernels[0], one, one, NULL, 0, stream));
	assert_cuda(cudaLaunchKernel(&kernels[1], one, one, NULL, 0, stream));
	assert_cuda(cudaStreamEndCapture(stream, &graph));
	assert_cuda(cudaGraphDebugDotPrint(graph, path, 0));
	assert_cuda_is(cudaGraphDebugDotPrint(graph, "/nowhere/at/all", 0),
		       cudaErrorOperatingSystem);
	assert_cuda_is(cudaGraphDebugDotPrint((cudaGraph_t)0x55, path, 0), cudaErrorInvalidValue);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	unlink(path);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "n1 [label=\"1: kernel\"]"));
	assert_non_null(strstr(text, "n0 -> n1;"));
	assert_cuda(cudaGraphDestroy(graph));
	assert_cuda(cudaStreamDestroy(stream));
}

static void variables_are_copied_to_and_from_the_device(void **state)
{
	char in[64], out[64];
	void *ptr[2];
	size_t size;

	(void)state;
	memset(in, 7, sizeof(in));
	for (int device = 0; device < 2; device++) {
		assert_cuda(cudaSetDevice(device));
		assert_cuda(cudaGetSymbolAddress(&ptr[device], variable));
		assert_cuda(cudaMemcpyFromSymbol(out, variable, 64, 0, cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < sizeof(out); i++)
			assert_int_equal(out[i], 0);
	}
	assert_ptr_not_equal(ptr[0], ptr[1]);
	assert_cuda(cudaGetSymbolSize(&size, variable));
	assert_int_equal(size, sizeof(variable));
	assert_cuda(cudaMemcpyToSymbol(variable, in, 60, 4, cudaMemcpyHostToDevice));
	assert_cuda(cudaMemcpyFromSymbol(out, variable, 64, 0, cudaMemcpyDeviceToHost));
	assert_int_equal(out[3], 0);
	assert_int_equal(out[4], 7);
	assert_cuda_is(cudaMemcpyToSymbol(variable, in, 61, 4, cudaMemcpyHostToDevice),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaMemcpyToSymbol(in, in, 1, 0, cudaMemcpyHostToDevice),
		       cudaErrorInvalidSymbol);
	assert_cuda_is(cudaMemcpyToSymbol(variable, in, 1, 0, cudaMemcpyDeviceToHost),
		       cudaErrorInvalidMemcpyDirection);
	assert_int_equal(managed[15], 0);
	assert_cuda(cudaSetDevice(0));
}

static void properties_have_the_layout_of_each_version(void **state)
{
	struct cudaDeviceProp prop;
	int value;

	(void)state;
	assert_cuda(cudaGetDeviceProperties(&prop, 1));
	assert_string_equal(prop.name, "nbox host device (stand-in, no GPU)");
	assert_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrPciBusId, 1));
	assert_int_equal(prop.pciBusID, value);
	assert_int_equal(prop.warpSize, 32);
	assert_true(prop.major >= 8 && prop.multiProcessorCount > 0 && prop.totalGlobalMem > 0);
	assert_cuda_is(cudaGetDeviceProperties(&prop, 99), cudaErrorInvalidDevice);
	assert_cuda_is(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
}

static void the_default_pool_counts_what_is_allocated(void **state)
{
	struct cudaMemAccessDesc desc = {{cudaMemLocationTypeDevice, 1},
					 cudaMemAccessFlagsProtReadWrite};
	uint64_t before, now, high, zero = 0;
	enum cudaMemAccessFlags flags;
	cudaMemPool_t pool, other;
	cudaStream_t stream;
	void *ptr;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaDeviceGetDefaultMemPool(&pool, 0));
	assert_cuda(cudaDeviceGetMemPool(&other, 0));
	assert_ptr_equal(pool, other);
	assert_cuda(cudaDeviceSetMemPool(0, pool));
	assert_cuda_is(cudaDeviceSetMemPool(1, pool), cudaErrorInvalidValue);
	assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &before));
	assert_cuda(cudaMallocFromPoolAsync(&ptr, 4 << 20, pool, stream));
	for (size_t i = 0; i < 4 << 20; i += 4093)
		assert_int_equal(((char *)ptr)[i], 0);
	assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &now));
	assert_int_equal(now - before, 4 << 20);
	assert_cuda(cudaFreeAsync(ptr, stream));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &now));
	assert_int_equal(now, before);
	assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
	assert_true(high >= before + (4 << 20));
	assert_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
	assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &high));
	assert_int_equal(high, before);
	now = 1 << 30;
	assert_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &now));
	assert_cuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &high));
	assert_int_equal(high, 1 << 30);
	assert_cuda_is(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &zero),
		       cudaErrorInvalidValue);
	assert_cuda(cudaMemPoolTrimTo(pool, 0));
	assert_cuda(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
	assert_int_equal(high, 0);
	assert_cuda(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
	assert_cuda_is(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaDeviceGraphMemTrim(7), cudaErrorInvalidDevice);
	assert_cuda(cudaMemPoolSetAccess(pool, &desc, 1));
	assert_cuda(cudaMemPoolGetAccess(&flags, pool, &desc.location));
	assert_int_equal(flags, cudaMemAccessFlagsProtReadWrite);
	desc.location.id = 44;
	assert_cuda_is(cudaMemPoolSetAccess(pool, &desc, 1), cudaErrorInvalidDevice);
	assert_cuda_is(cudaMemPoolTrimTo((cudaMemPool_t)0x99, 0), cudaErrorInvalidValue);
	assert_cuda(cudaStreamDestroy(stream));
}

static void a_pool_of_the_programs_own_is_its_devices_memory(void **state)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
					 .location = {cudaMemLocationTypeDevice, 1}};
	uint64_t number = UINT64_MAX;
	struct cudaPointerAttributes a;
	cudaMemPool_t pool, other;
	cudaStream_t stream;
	void *ptr;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaMemPoolCreate(&pool, &props));
	assert_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &number));
	assert_cuda_is(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &number),
		       cudaErrorNotSupported);
	assert_cuda_is(cudaDeviceSetMemPool(1, pool), cudaErrorNotSupported);
	assert_cuda(cudaMallocFromPoolAsync(&ptr, 100, pool, stream));
	assert_cuda(cudaPointerGetAttributes(&a, ptr));
	assert_int_equal(a.device, 1);
	assert_cuda(cudaMemPoolDestroy(pool));
	assert_cuda(cudaMemsetAsync(ptr, 1, 100, stream)); /* stays until it is freed */
	assert_cuda(cudaFreeAsync(ptr, stream));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda_is(cudaMemPoolDestroy(pool), cudaErrorInvalidValue);
	assert_cuda_is(cudaMallocFromPoolAsync(&ptr, 100, pool, stream), cudaErrorInvalidValue);
	assert_cuda(cudaDeviceGetDefaultMemPool(&other, 1));
	assert_cuda_is(cudaMemPoolDestroy(other), cudaErrorInvalidValue);
	props.location.id = 44;
	assert_cuda_is(cudaMemPoolCreate(&pool, &props), cudaErrorInvalidDevice);
	props.location.id = 1;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	assert_cuda_is(cudaMemPoolCreate(&pool, &props), cudaErrorNotSupported);
	assert_cuda_is(cudaMemPoolCreate(&pool, NULL), cudaErrorInvalidValue);
	assert_cuda(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
	assert_cuda_is(cudaDeviceSetLimit((enum cudaLimit)7, 0), cudaErrorUnsupportedLimit);
	assert_cuda(cudaStreamDestroy(stream));
}

static void what_is_not_there_is_refused_by_its_error(void **state)
{
	cudaIpcEventHandle_t event_handle = {{0}};
	cudaIpcMemHandle_t handle = {{0}};
	cudaEvent_t event;
	void *ptr;

	(void)state;
	assert_cuda(cudaMalloc(&ptr, 64));
	assert_cuda_is(cudaIpcGetMemHandle(&handle, ptr), cudaErrorNotSupported);
	assert_cuda_is(cudaIpcOpenMemHandle(&ptr, handle, 0), cudaErrorNotSupported);
	assert_cuda_is(cudaIpcCloseMemHandle(ptr), cudaErrorNotSupported);
	assert_cuda_is(cudaIpcGetEventHandle(&event_handle, NULL), cudaErrorNotSupported);
	assert_cuda_is(cudaIpcOpenEventHandle(&event, event_handle), cudaErrorNotSupported);
	assert_cuda(cudaProfilerStart());
	assert_cuda(cudaProfilerStop());
	assert_cuda(cudaFree(ptr));
}

static void the_driver_is_found_by_names(void **state)
{
	CUresult (*create)(void *, size_t, const void *, unsigned long long);
	enum cudaDriverEntryPointQueryResult found;
	const char *text;
	CUdeviceptr base, at;
	CUcontext context;
	CUdevice device;
	char name[8];
	int value;
	size_t size;
	void *ptr, *function;
	CUuuid uuid[2];

	(void)state;
	assert_int_equal(cuInit(0), CUDA_SUCCESS);
	assert_int_equal(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetCount(&value), CUDA_SUCCESS);
	assert_int_equal(value, 3);
	assert_int_equal(cuDeviceGet(&device, 3), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGet(&device, 2), CUDA_SUCCESS);
	assert_int_equal(cuDeviceGetName(name, sizeof(name), device), CUDA_SUCCESS);
	assert_string_equal(name, "nbox ho");
	for (int i = 0; i < 2; i++)
		assert_int_equal(cuDeviceGetUuid(&uuid[i], i), CUDA_SUCCESS);
	assert_memory_not_equal(&uuid[0], &uuid[1], sizeof(uuid[0]));
	assert_int_equal(cuDeviceTotalMem(&size, 0), CUDA_SUCCESS);
	assert_true(size > 0);
	assert_int_equal(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
					      0),
			 CUDA_SUCCESS);
	assert_true(value >= 8);

	/* A device that nobody has used yet has no context. */
	assert_int_equal(cuDevicePrimaryCtxGetState(2, NULL, &value), CUDA_SUCCESS);
	assert_int_equal(value, 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&context, 2), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxGetState(2, NULL, &value), CUDA_SUCCESS);
	assert_int_equal(value, 1);
	assert_int_equal(cuCtxSetCurrent(context), CUDA_SUCCESS);
	assert_cuda(cudaGetDevice(&value));
	assert_int_equal(value, 2);
	assert_int_equal(cuCtxSetCurrent((CUcontext)0x12), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxGetDevice(&device), CUDA_SUCCESS);
	assert_int_equal(device, 2);
	assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(cuDevicePrimaryCtxRelease(2), CUDA_SUCCESS);

	assert_cuda(cudaMalloc(&ptr, 1000));
	at = (CUdeviceptr)(uintptr_t)ptr + 10;
	assert_int_equal(cuMemGetAddressRange(&base, &size, at), CUDA_SUCCESS);
	assert_true(base == at - 10 && size == 1000);
	assert_int_equal(cuMemGetAddressRange(&base, &size, (uintptr_t)&base),
			 CUDA_ERROR_NOT_FOUND);
	assert_int_equal(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at),
			 CUDA_SUCCESS);
	assert_int_equal(value, 2);
	assert_int_equal(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_HOST_POINTER, at),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cudaFree(ptr));
	assert_cuda(cudaSetDevice(0));

	assert_int_equal(cuGetErrorName(CUDA_ERROR_NOT_FOUND, &text), CUDA_SUCCESS);
	assert_int_equal(cuGetErrorString(CUDA_ERROR_NOT_FOUND, &text), CUDA_SUCCESS);
	assert_cuda(cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function, 13000, 0,
						     &found));
	assert_int_equal(found, cudaDriverEntryPointSuccess);
	assert_ptr_equal(function, (void *)cuMemGetAddressRange);
	assert_cuda(cudaGetDriverEntryPointByVersion("cuMemCreate", (void **)&create, 13000, 0,
						     &found));
	assert_int_equal(create(NULL, 0, NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_cuda(cudaGetDriverEntryPointByVersion("cuMem", &function, 13000, 0, &found));
	assert_int_equal(found, cudaDriverEntryPointSymbolNotFound);
	/* of CUDA 2.0; and of 8.0 */
	assert_cuda(cudaGetDriverEntryPointByVersion("cuInit", &function, 2000, 0, &found));
	assert_int_equal(found, cudaDriverEntryPointSuccess);
	assert_cuda(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function, 7000, 0,
						     &found));
	assert_int_equal(found, cudaDriverEntryPointVersionNotSufficent);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_takes_its_place_in_the_stream),
		cmocka_unit_test(compiled_kernels_are_launched),
		cmocka_unit_test(a_launch_takes_the_time_that_is_set),
		cmocka_unit_test(kernels_take_the_times_of_their_names),
		cmocka_unit_test(lateness_of_a_thread_is_not_added_up),
		cmocka_unit_test(launches_of_a_graph_do_not_overlap),
		cmocka_unit_test(a_wrong_table_fails_every_launch),
		cmocka_unit_test(the_log_counts_what_was_launched),
		cmocka_unit_test(a_graph_is_printed_as_text),
		cmocka_unit_test(variables_are_copied_to_and_from_the_device),
		cmocka_unit_test(properties_have_the_layout_of_each_version),
		cmocka_unit_test(the_default_pool_counts_what_is_allocated),
		cmocka_unit_test(a_pool_of_the_programs_own_is_its_devices_memory),
		cmocka_unit_test(what_is_not_there_is_refused_by_its_error),
		cmocka_unit_test(the_driver_is_found_by_names),
	};

	char path[] = "/tmp/nbox-launch-XXXXXX";
	int fd, failed;

	setenv("NBOX_HOST_DEVICES", "3", 1);
	if (argc > 1 && strcmp(argv[1], "child") == 0)
		return be_child();
	fd = mkstemp(path);
	if (dprintf(fd, "kernel 3ms\nvoid long_kernel<*, char\\*>(int) 20ms\n"
			"matmul f32 5x7x* 11ms\nmemset 2ms\nmemcpy DtoD 1ms\n* 0s\n") < 0)
		return 1;
	close(fd);
	setenv("NBOX_HOST_KERNEL_TIME", path, 1);
	failed = cmocka_run_group_tests(tests, set_up, tear_down);
	unlink(path);
	return failed;
}
