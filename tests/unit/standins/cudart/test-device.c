/* Devices, invalid handles, errors and their names, fork, the end of the process. */
#include "helpers.h"

#include "abi-table.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

static void NBOX_HOST_DEVICES_says_how_many_there_are(void **state)
{
	int n, device, other, value;
	char id[32];

	(void)state;
	assert_cuda(cudaGetDeviceCount(&n));
	assert_int_equal(n, 3); /* main() says so */
	assert_cuda_is(cudaSetDevice(3), cudaErrorInvalidDevice);
	assert_cuda_is(cudaSetDevice(-1), cudaErrorInvalidDevice);
	for (int i = 0; i < n; i++) {
		assert_cuda(cudaSetDevice(i));
		assert_cuda(cudaGetDevice(&device));
		assert_int_equal(device, i);
		assert_cuda(cudaDeviceGetPCIBusId(id, sizeof(id), i));
		assert_cuda(cudaDeviceGetByPCIBusId(&other, id));
		assert_int_equal(other, i);
		assert_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrPciBusId, i));
		assert_int_equal(value, strtol(id + 5, NULL, 16));
	}
	assert_cuda(cudaSetDevice(0));
	assert_cuda_is(cudaDeviceGetPCIBusId(id, 5, 0), cudaErrorInvalidValue);
	assert_cuda_is(cudaDeviceGetByPCIBusId(&other, "ffff:00:00.0"), cudaErrorInvalidDevice);
	assert_cuda_is(cudaDeviceGetByPCIBusId(&other, "no"), cudaErrorInvalidValue);
	assert_cuda(cudaDeviceGetAttribute(&value, cudaDevAttrUnifiedAddressing, 0));
	assert_int_equal(value, 1);
	assert_cuda_is(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)9999, 0),
		       cudaErrorInvalidValue);
	assert_cuda_is(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 9),
		       cudaErrorInvalidDevice);
	assert_cuda(cudaRuntimeGetVersion(&value));
	assert_int_equal(value, CUDART_VERSION);
	assert_cuda(cudaDriverGetVersion(&value));
	assert_true(value >= CUDART_VERSION);
}

static void access_to_a_peer_is_enabled_once(void **state)
{
	int can;

	(void)state;
	assert_cuda(cudaDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	assert_cuda(cudaDeviceCanAccessPeer(&can, 1, 1));
	assert_int_equal(can, 0);
	assert_cuda(cudaDeviceEnablePeerAccess(1, 0));
	assert_cuda_is(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
	assert_cuda(cudaDeviceDisablePeerAccess(1));
	assert_cuda_is(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
	assert_cuda_is(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
	assert_cuda(cudaDeviceGetP2PAttribute(&can, cudaDevP2PAttrAccessSupported, 0, 2));
	assert_int_equal(can, 1);
}

/* cudaFree waits for the device that the memory lies on, and for no other one: ranks of one process
 * wait for each other there. */
static void memory_is_counted_by_device(void **state)
{
	struct door door = {0};
	cudaStream_t stream;
	void *mem;

	(void)state;
	assert_cuda(cudaSetDevice(1));
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaLaunchHostFunc(stream, door_wait, &door));
	door_await_visitor(&door);
	assert_cuda(cudaSetDevice(0));
	assert_cuda(cudaMalloc(&mem, 64));
	assert_cuda(cudaFree(mem));
	door_open(&door);
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaStreamDestroy(stream));
}

/* Stale handles, handles of another kind, and 100,000 numbers that are none: errors, no crash. */
static void a_handle_that_is_none_is_an_error(void **state)
{
	cudaStream_t stream, again;
	cudaEvent_t event;
	unsigned seed = 5;
	float ms;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaEventCreate(&event));
	assert_cuda_is(cudaStreamSynchronize((cudaStream_t)event), cudaErrorInvalidResourceHandle);
	assert_cuda_is(cudaEventSynchronize((cudaEvent_t)stream), cudaErrorInvalidResourceHandle);
	assert_cuda_is(cudaEventRecord(NULL, stream), cudaErrorInvalidResourceHandle);
	assert_cuda(cudaStreamDestroy(stream));
	assert_cuda_is(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
	assert_cuda(cudaStreamCreate(&again));
	assert_ptr_not_equal(stream, again);
	assert_cuda_is(cudaLaunchHostFunc(stream, count_up, NULL), cudaErrorInvalidResourceHandle);
	assert_cuda_is(cudaStreamWaitEvent(stream, event, 0), cudaErrorInvalidResourceHandle);
	assert_cuda_is(cudaMemcpyAsync(NULL, NULL, 0, cudaMemcpyDefault, stream),
		       cudaErrorInvalidResourceHandle);
	assert_cuda_is(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
	for (int i = 0; i < 100000; i++) {
		uintptr_t number = (uintptr_t)again ^ (uintptr_t)rand_r(&seed)
							      << rand_r(&seed) % 33;

		if (number == (uintptr_t)again || number == (uintptr_t)event || number <= 2)
			continue;
		assert_cuda_is(cudaStreamQuery((cudaStream_t)number),
			       cudaErrorInvalidResourceHandle);
		assert_cuda_is(cudaEventElapsedTime(&ms, (cudaEvent_t)number, event),
			       cudaErrorInvalidResourceHandle);
	}
	assert_cuda_is(cudaStreamEndCapture(again, NULL), cudaErrorInvalidValue);
	assert_cuda(cudaStreamDestroy(again));
	assert_cuda(cudaEventDestroy(event));
	assert_cuda_is(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
	assert_cuda_is(cudaEventCreateWithFlags(&event, 64), cudaErrorInvalidValue);
	cudaGetLastError();
}

static void *last_error_of_thread(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)cudaPeekAtLastError();
}

static void a_thread_keeps_its_last_error(void **state)
{
	pthread_t thread;
	void *theirs;

	(void)state;
	cudaGetLastError();
	assert_cuda_is(cudaSetDevice(99), cudaErrorInvalidDevice);
	assert_cuda(cudaSetDevice(0)); /* success does not forget */
	assert_cuda_is(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	pthread_create(&thread, NULL, last_error_of_thread, NULL);
	pthread_join(thread, &theirs);
	assert_null(theirs);
	assert_cuda_is(cudaGetLastError(), cudaErrorInvalidDevice);
	assert_cuda(cudaGetLastError());
	assert_string_equal(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
	assert_string_equal(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
	assert_true(strlen(cudaGetErrorString(cudaErrorInvalidValue)) > 0);
	assert_string_equal(cudaGetErrorString((cudaError_t)-1), "unrecognized error code");
}

/* Before the first stream thread a child may use the runtime; afterwards it is told that it may
 * not. */
static void the_child_of_a_fork_gets_errors_only(void **state)
{
	cudaStream_t stream;
	_Atomic int n = 0;
	int status;
	pid_t pid;

	(void)state;
	assert_cuda(cudaStreamCreate(&stream));
	assert_cuda(cudaStreamSynchronize(stream));
	assert_cuda(cudaLaunchHostFunc(stream, count_up, &n));
	assert_cuda(cudaStreamSynchronize(stream));
	pid = fork();
	if (pid == 0)
		_exit(cudaStreamSynchronize(stream) == cudaErrorInitializationError ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_cuda(cudaStreamDestroy(stream));
}

/* What a process is left with when it exits in the middle: blocked streams, queued work, a host
 * function that runs. It must end, and end with its own status. */
static void busy_exit(void)
{
	static _Atomic int n;
	static struct door never;
	uint32_t *word;
	cudaStream_t streams[4];
	cudaEvent_t event;

	cudaMallocHost((void **)&word, sizeof(*word));
	*word = 0;
	cudaEventCreate(&event);
	for (int i = 0; i < 4; i++)
		cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
	cuStreamWaitValue32(streams[0], (uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ);
	cudaEventRecord(event, streams[0]);
	cudaStreamWaitEvent(streams[1], event, 0);
	cudaLaunchHostFunc(streams[1], door_wait, &never);
	cudaLaunchHostFunc(streams[2], (cudaHostFn_t)(void (*)(void))usleep, (void *)1000);
	cudaLaunchHostFunc(streams[2], (cudaHostFn_t)(void (*)(void))usleep, (void *)1000);
	cudaLaunchHostFunc(NULL, count_up, &n);
	cudaStreamSynchronize(NULL);
	exit(42);
}

static void exit_does_not_wait_for_work_that_is_queued(void **state)
{
	char path[4096];
	ssize_t n;
	int status;
	pid_t pid;

	(void)state;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = 0;
	pid = fork();
	if (pid == 0) {
		/* MESON_EXE_WRAPPER: what runs programs of another machine, qemu-user for one */
		execl("/bin/sh", "sh", "-c", "exec $MESON_EXE_WRAPPER \"$0\" busy-exit", path,
		      (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
}

/* All that the header promises is exported, by both libraries; CUDA 12's has its own names for the
 * calls that changed. */
static void both_versions_export_what_programs_ask_for(void **state)
{
#define NAME(name, ...) #name,
	static const char *const names[] = {ABI_FUNCTIONS(NAME)};
	static const char *const names_12[] = {"cudaGetDeviceProperties_v2",
					       "cudaStreamGetCaptureInfo_v2",
					       "cudaStreamGetCaptureInfo_v3",
					       "cudaStreamUpdateCaptureDependencies_v2",
					       "cudaGraphNodeGetDependencies_v2",
					       "cudaGraphAddDependencies_v2",
					       "cudaEventElapsedTime_v2"};
	cudaError_t (*get_version)(int *), (*create)(cudaStream_t *), (*synchronize)(cudaStream_t);
	cudaError_t (*launch)(cudaStream_t, cudaHostFn_t, void *);
	cudaError_t (*attributes_12)(void *, const void *), (*properties_12)(void *, int);
	unsigned char room[1100];
	void *library;
	cudaStream_t stream;
	_Atomic int n = 0;
	int version;

	(void)state;
	library = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail_msg("%s", dlerror());
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!dlsym(RTLD_DEFAULT, names[i]) || !dlsym(library, names[i]))
			fail_msg("%s is not exported", names[i]);
	for (size_t i = 0; i < sizeof(names_12) / sizeof(names_12[0]); i++)
		if (!dlsym(library, names_12[i]))
			fail_msg("%s is not exported", names_12[i]);
	*(void **)&get_version = dlsym(library, "cudaRuntimeGetVersion");
	*(void **)&create = dlsym(library, "cudaStreamCreate");
	*(void **)&launch = dlsym(library, "cudaLaunchHostFunc");
	*(void **)&synchronize = dlsym(library, "cudaStreamSynchronize");
	assert_cuda(get_version(&version));
	assert_int_equal(version, 12090);
	assert_cuda(create(&stream));
	assert_cuda(launch(stream, count_up, &n));
	assert_cuda(synchronize(stream));
	assert_int_equal(n, 1);
	/* CUDA 12's pointer attributes are 24 bytes, its properties 1032 with other offsets. */
	*(void **)&attributes_12 = dlsym(library, "cudaPointerGetAttributes");
	memset(room, 0x5a, sizeof(room));
	assert_cuda(attributes_12(room, &n));
	assert_int_equal(room[23], 0);
	assert_int_equal(room[24], 0x5a);
	*(void **)&properties_12 = dlsym(library, "cudaGetDeviceProperties_v2");
	memset(room, 0x5a, sizeof(room));
	assert_cuda(properties_12(room, 1));
	assert_int_equal(room[1031], 0);
	assert_int_equal(room[1032], 0x5a);
	memcpy(&version, room + 360, sizeof(version)); /* major */
	assert_int_equal(version, 8);
	/* It stays loaded: its threads run its code. */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(NBOX_HOST_DEVICES_says_how_many_there_are),
		cmocka_unit_test(access_to_a_peer_is_enabled_once),
		cmocka_unit_test(memory_is_counted_by_device),
		cmocka_unit_test(a_handle_that_is_none_is_an_error),
		cmocka_unit_test(a_thread_keeps_its_last_error),
		cmocka_unit_test(the_child_of_a_fork_gets_errors_only),
		cmocka_unit_test(exit_does_not_wait_for_work_that_is_queued),
		cmocka_unit_test(both_versions_export_what_programs_ask_for),
	};

	setenv("NBOX_HOST_DEVICES", "3", 1);
	if (argc > 1 && strcmp(argv[1], "busy-exit") == 0)
		busy_exit();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
