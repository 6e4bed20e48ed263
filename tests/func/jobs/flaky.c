/* A worker that makes one communicator of the world and sums a word in it. With FLAKY=N the
 * process with LOCAL_RANK 1 ends with code 3 after its communicator in the first N attempts of
 * an elastic launcher; "early" as argument: with code 3 before it makes one; "leave": with 0
 * before it makes one, when its LOCAL_RANK is 1; "leave-once": in the first attempt only, and 6 s
 * late in the next; "late": that one does something else for 14 s first, under another title;
 * "chatty": it writes to descriptors 0, 1 and 2 before its op, open or not; "until FILE": it waits
 * after its op until FILE is there. With another argument it sleeps after its op. Both 300 s at
 * most. Its ranks find each other by their parent, or by the file that FLAKY_ID names. Prints
 * nothing when all is well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "nbox-perf/rendezvous.h"

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int rc_ = (int)(call);                                                             \
		if (rc_) {                                                                         \
			fprintf(stderr, "flaky: " #call ": %d %s\n", rc_, ncclGetLastError(NULL)); \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static int number(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : 0;
}

/* Who this process is, in whichever launcher's words. */
static int one_of(const char *a, const char *b, const char *c)
{
	return number(getenv(a) ? a : getenv(b) ? b : c);
}

/* As setproctitle does: what the process was started with is written over. */
static void take_title(void)
{
	size_t n = 0;
	char **copy, *first = environ[0], *end = first;

	while (environ[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++) {
		if (environ[i] == end) /* those that were set later lie elsewhere */
			end += strlen(environ[i]) + 1;
		copy[i] = strdup(environ[i]);
	}
	environ = copy;
	memset(first, 't', (size_t)(end - first));
}

int main(int argc, char **argv)
{
	int rank = one_of("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID");
	int local = one_of("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID");
	int world = one_of("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"), n, is_chatty = 0;
	ncclUniqueId id;
	ncclComm_t comm;
	void *device;
	ncclResult_t state;
	float value = 1, sum = 0;
	char path[4096];

	if (argc > 1 && strcmp(argv[1], "early") == 0)
		return 3;
	if (argc > 1 && strcmp(argv[1], "leave") == 0 && local == 1)
		return 0;
	if (argc > 1 && strcmp(argv[1], "leave-once") == 0) {
		if (local == 1 && number("TORCHELASTIC_RESTART_COUNT") == 0)
			return 0;
		if (local == 1)
			sleep(6);
		argc = 1;
	}
	if (argc > 1 && strcmp(argv[1], "late") == 0) {
		if (local == 1) {
			take_title();
			sleep(14);
		}
		argc = 1;
	}
	if (argc > 1 && strcmp(argv[1], "chatty") == 0) {
		is_chatty = 1;
		argc = 1;
	}
	CHECK(cudaSetDevice(local));
	/* rank 0 need not be here: the first of this node makes the id, for this attempt */
	snprintf(path, sizeof(path), "%s/flaky-id.%d.%d", getenv("TMPDIR"), (int)getppid(),
		 number("TORCHELASTIC_RESTART_COUNT"));
	if (rendezvous(local, getenv("FLAKY_ID") ? getenv("FLAKY_ID") : path, &id))
		return 1;
	CHECK(ncclCommInitRank(&comm, world, id, rank));
	CHECK(ncclCommCount(comm, &n));
	if (n != world)
		return 4;
	if (local == 1 && number("TORCHELASTIC_RESTART_COUNT") < number("FLAKY"))
		return 3;
	for (int fd = 0; is_chatty && fd <= 2; fd++)
		if (write(fd, "a line of the job\n", 18) < 0)
			continue; /* nobody is to get it */
	CHECK(cudaMalloc(&device, sizeof(value)));
	CHECK(cudaMemcpy(device, &value, sizeof(value), cudaMemcpyHostToDevice));
	CHECK(ncclAllReduce(device, device, 1, ncclFloat, ncclSum, comm, NULL));
	CHECK(cudaStreamSynchronize(NULL));
	CHECK(ncclCommGetAsyncError(comm, &state)); /* the stream goes on where a peer has left */
	CHECK(state);
	CHECK(cudaMemcpy(&sum, device, sizeof(sum), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(device));
	for (int i = 0; argc > 1 && i < 6000 && (argc < 3 || access(argv[2], F_OK)); i++)
		usleep(50000);
	CHECK(ncclCommDestroy(comm));
	if (sum != (float)world) {
		fprintf(stderr, "flaky: rank %d of %d got %g\n", rank, world, sum);
		return 5;
	}
	return 0;
}
