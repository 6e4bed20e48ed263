/* Stream write and wait on memory words. */
#include "helpers.h"

static void a_wait_compares_as_its_flags_say(void **state)
{
	struct {
		unsigned flags;
		uint64_t start, value;
		int is_met;
	} cases[] = {
		{CU_STREAM_WAIT_VALUE_GEQ, 5, 5, 1},
		{CU_STREAM_WAIT_VALUE_GEQ, 4, 5, 0},
		{CU_STREAM_WAIT_VALUE_GEQ, 6, 5, 1},
		{CU_STREAM_WAIT_VALUE_GEQ, 1, (uint64_t)-2, 1}, /* cyclic: past the wrap */
		{CU_STREAM_WAIT_VALUE_GEQ, (uint64_t)-2, 1, 0},
		{CU_STREAM_WAIT_VALUE_EQ, 6, 5, 0},
		{CU_STREAM_WAIT_VALUE_EQ, 5, 5, 1},
		{CU_STREAM_WAIT_VALUE_AND, 6, 2, 1},
		{CU_STREAM_WAIT_VALUE_AND, 4, 2, 0},
		{CU_STREAM_WAIT_VALUE_NOR, (uint64_t)-1, 0, 0},
		{CU_STREAM_WAIT_VALUE_NOR, 0, 1, 1},
		{CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_FLUSH, 9, 8, 1},
	};
	/* what meets each of them afterwards */
	static const uint64_t cures[] = {5, 5, 5, 1, 1, 5, 5, 2, 2, 0, 0, 8};
	cudaStream_t stream, other;
	_Atomic uint64_t *word;
	void *memory;
	_Atomic int n = 0;
	CUdeviceptr at;

	(void)state;
	assert_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	assert_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	assert_cuda(cudaMallocHost(&memory, sizeof(*word)));
	word = memory;
	at = (uintptr_t)word;
	for (int wide = 0; wide < 2; wide++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			atomic_store(word, cases[i].start);
			atomic_store(&n, 0);
			if (wide)
				assert_cuda(cuStreamWaitValue64(stream, at, cases[i].value,
								cases[i].flags));
			else
				assert_cuda(cuStreamWaitValue32(stream, at,
								(uint32_t)cases[i].value,
								cases[i].flags));
			assert_cuda(cudaLaunchHostFunc(stream, count_up, &n));
			if (cases[i].is_met) {
				assert_cuda(cudaStreamSynchronize(stream));
				continue;
			}
			usleep(300);
			assert_cuda_is(cudaStreamQuery(stream), cudaErrorNotReady);
			assert_int_equal(n, 0);
			if (wide)
				assert_cuda(cuStreamWriteValue64(other, at, cures[i], 0));
			else
				assert_cuda(cuStreamWriteValue32(other, at, (uint32_t)cures[i], 0));
			assert_cuda(cudaStreamSynchronize(stream));
			assert_int_equal(n, 1);
		}
	}
	assert_cuda(cudaStreamSynchronize(other));
	assert_cuda(cudaFreeHost(memory));
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda(cudaStreamDestroy(other));
}

/* A 32-bit write leaves the other half alone; a plain store of the program is seen too. */
static void a_wait_sees_halves_and_plain_stores(void **state)
{
	cudaStream_t stream;
	_Atomic uint32_t *words;
	void *memory;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaMallocHost(&memory, 16));
	words = memory;
	for (int i = 0; i < 4; i++)
		atomic_store(&words[i], 7);
	assert_cuda(cuStreamWriteValue32(stream, (uintptr_t)&words[1], 9, 0));
	assert_cuda(cuStreamWaitValue32(stream, (uintptr_t)&words[2], 8, CU_STREAM_WAIT_VALUE_GEQ));
	assert_cuda(cuStreamWriteValue32(stream, (uintptr_t)&words[3], 10,
					 CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
	while (atomic_load(&words[1]) != 9)
		usleep(100);
	assert_int_equal(words[0], 7);
	assert_int_equal(words[3], 7);
	atomic_store(&words[2], 8);
	assert_cuda(cudaStreamSynchronize(stream));
	assert_int_equal(words[3], 10);
	assert_cuda(cudaFreeHost(memory));
	assert_cuda(cudaStreamDestroy(stream));
}

/* Ping-pong: two streams that hand a counter to each other, live and as two captured graphs. */
static void two_streams_take_turns_by_words(void **state)
{
	cudaGraphExec_t exec[2];
	cudaStream_t streams[2];
	_Atomic uint32_t *words;
	void *memory;
	cudaGraph_t graph;
	_Atomic int n = 0;

	(void)state;
	assert_cuda(cudaMalloc(&memory, 8));
	words = memory;
	assert_cuda(cudaMemset(memory, 0, 8));
	for (int i = 0; i < 2; i++)
		assert_cuda(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	for (uint32_t round = 1; round <= 300; round++) {
		assert_cuda(cuStreamWriteValue32(streams[0], (uintptr_t)&words[0], round, 0));
		assert_cuda(cuStreamWaitValue32(streams[0], (uintptr_t)&words[1], round,
						CU_STREAM_WAIT_VALUE_EQ));
		assert_cuda(cuStreamWaitValue32(streams[1], (uintptr_t)&words[0], round,
						CU_STREAM_WAIT_VALUE_EQ));
		assert_cuda(cudaLaunchHostFunc(streams[1], count_up, &n));
		assert_cuda(cuStreamWriteValue32(streams[1], (uintptr_t)&words[1], round, 0));
	}
	assert_cuda(cudaStreamSynchronize(streams[0]));
	assert_int_equal(n, 300);
	for (int i = 0; i < 2; i++) {
		assert_cuda(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeThreadLocal));
		for (uint32_t value = 1; value <= 2; value++) {
			CUdeviceptr mine = (uintptr_t)&words[i], theirs = (uintptr_t)&words[1 - i];

			if (i == 0)
				assert_cuda(cuStreamWriteValue32(streams[i], mine, value, 0));
			assert_cuda(cuStreamWaitValue32(streams[i], theirs, value,
							CU_STREAM_WAIT_VALUE_EQ));
			if (i == 1)
				assert_cuda(cuStreamWriteValue32(streams[i], mine, value, 0));
		}
		assert_cuda(cudaStreamEndCapture(streams[i], &graph));
		assert_cuda(cudaGraphInstantiate(&exec[i], graph, 0));
		assert_cuda(cudaGraphDestroy(graph));
	}
	for (int launch = 0; launch < 300; launch++)
		for (int i = 0; i < 2; i++)
			assert_cuda(cudaGraphLaunch(exec[i], streams[i]));
	assert_cuda(cudaDeviceSynchronize());
	assert_int_equal(words[0], 2);
	assert_int_equal(words[1], 2);
	for (int i = 0; i < 2; i++) {
		assert_cuda(cudaGraphExecDestroy(exec[i]));
		assert_cuda(cudaStreamDestroy(streams[i]));
	}
	assert_cuda(cudaFree(memory));
}

static void wrong_words_and_flags_are_refused(void **state)
{
	uint32_t own[2] = {0}, *pinned;

	(void)state;
	assert_cuda(cudaMallocHost((void **)&pinned, 8));
	assert_cuda_is(cuStreamWriteValue32(NULL, (uintptr_t)own, 1, 0), CUDA_ERROR_INVALID_VALUE);
	assert_cuda_is(cuStreamWriteValue32(NULL, (uintptr_t)pinned + 1, 1, 0),
		       CUDA_ERROR_INVALID_VALUE);
	assert_cuda_is(cuStreamWriteValue64(NULL, (uintptr_t)(pinned + 1), 1, 0),
		       CUDA_ERROR_INVALID_VALUE);
	assert_cuda_is(cuStreamWriteValue32(NULL, (uintptr_t)pinned, 1, 16),
		       CUDA_ERROR_INVALID_VALUE);
	assert_cuda_is(cuStreamWaitValue32(NULL, (uintptr_t)pinned, 1, 16),
		       CUDA_ERROR_INVALID_VALUE);
	assert_cuda_is(cuStreamWaitValue32((CUstream)(uintptr_t)0x1234, (uintptr_t)pinned, 1, 0),
		       CUDA_ERROR_INVALID_HANDLE);
	assert_cuda(cudaFreeHost(pinned));
}

static void entry_points_are_found_by_name_and_version(void **state)
{
	enum cudaDriverEntryPointQueryResult result;
	void *fn;

	(void)state;
	assert_cuda(cudaGetDriverEntryPoint("cuStreamWaitValue32", &fn, 0, &result));
	assert_int_equal(result, cudaDriverEntryPointSuccess);
	assert_ptr_equal(fn, (void *)cuStreamWaitValue32);
	assert_cuda(
		cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &fn, 13000, 0, &result));
	assert_ptr_equal(fn, (void *)cuStreamWriteValue64);
	/* callers ask for the version that brought the function, however old: NCCL's host code does
	 */
	assert_cuda(cudaGetDriverEntryPointByVersion("cuDeviceGet", &fn, 2000, 0, &result));
	assert_int_equal(result, cudaDriverEntryPointSuccess);
	assert_ptr_equal(fn, (void *)cuDeviceGet);
	assert_cuda(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &fn, 7000, 0, &result));
	assert_int_equal(result, cudaDriverEntryPointVersionNotSufficent);
	assert_null(fn);
	assert_cuda(cudaGetDriverEntryPoint("cuNothing", &fn, 0, &result));
	assert_int_equal(result, cudaDriverEntryPointSymbolNotFound);
	assert_null(fn);
	assert_cuda_is(cudaGetDriverEntryPoint("cuNothing", &fn, 0, NULL), cudaErrorSymbolNotFound);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_compares_as_its_flags_say),
		cmocka_unit_test(a_wait_sees_halves_and_plain_stores),
		cmocka_unit_test(two_streams_take_turns_by_words),
		cmocka_unit_test(wrong_words_and_flags_are_refused),
		cmocka_unit_test(entry_points_are_found_by_name_and_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
