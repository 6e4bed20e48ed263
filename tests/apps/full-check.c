/* Runs NCCL's ops and looks at each value. What a rank contributes is a small whole number that
 * follows from its rank and the element; what must come out follows from which ranks are real and
 * what the others contribute:
 *
 *   all       all ranks are real
 *   identity  others contribute nothing: the element that changes no result, zeros in gathers
 *   mirror    others contribute what the rank at their place of the first real node does, or, where
 *             there are several real nodes, of the one that is their node modulo their number
 *   none      values are not looked at
 *
 * usage: full-check --data all|identity|mirror|none --real RANKS --gpus N [--ops LIST] [--counts
 * LIST]
 *                   [--times N] [--end abort|kill] [--init-all] [--id HEX --rank R --ranks N]
 *   --init-all: also sums in communicators that ncclCommInitAll makes, of this process alone
 *   --ops sum: an all-reduce of floats alone
 *   --ops alone: an all-reduce again and again, for measurements
 *   --real: how many ranks are real, from 0 on; --id: without a rendezvous; --end abort: rank 0
 *   aborts while ops are under way; kill: rank 0 dies there */
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nbox-perf/rendezvous.h"

enum data { ALL, IDENTITY, MIRROR, NONE };

static struct {
	int rank, n, n_real, n_gpus, times;
	enum data data;
	bool init_all;
	const char *ops, *counts, *id, *end;
	ncclComm_t comm;
	cudaStream_t stream;
	char *in, *out;
	uint64_t n_checked;
} job = {.n_gpus = 1, .times = 1, .counts = "1,1000,70001", .ops = "all"};

static void must(bool is_ok, const char *what)
{
	if (is_ok)
		return;
	fprintf(stderr, "full-check: rank %d: %s failed: %s\n", job.rank, what,
		ncclGetLastError(NULL));
	exit(1);
}

#define CUDA(call) must((call) == cudaSuccess, #call)
#define NCCL(call) must((call) == ncclSuccess, #call)

/* --- what has to come out ---------------------------------------------------------- */

static int value(int rank, size_t i)
{
	return (int)((rank * 5 + i % 97) % 7) + 1;
}

/* The real rank whose values @rank contributes; -1: none. */
static int source_of(int rank)
{
	if (rank < job.n_real)
		return rank;
	if (job.data == MIRROR)
		return rank % job.n_real;
	return -1;
}

enum { SUM = ncclSum, PROD = ncclProd, MAX = ncclMax, MIN = ncclMin, AVG = ncclAvg };

static double reduced(int op, size_t i)
{
	double r = op == PROD ? 1 : op == MIN ? 1000 : 0;

	for (int rank = 0; rank < job.n; rank++) {
		int s = source_of(rank);

		if (s < 0)
			continue;
		if (op == PROD)
			r *= value(s, i);
		else if (op == MAX)
			r = value(s, i) > r ? value(s, i) : r;
		else if (op == MIN)
			r = value(s, i) < r ? value(s, i) : r;
		else
			r += value(s, i);
	}
	/* with identity nbox takes the mean of the real ranks */
	return op == AVG ? r / (job.data == IDENTITY ? job.n_real : job.n) : r;
}

/* --- buffers ----------------------------------------------------------------------- */

static const struct type {
	const char *name;
	ncclDataType_t dtype;
	size_t bytes;
} types[] = {{"float", ncclFloat32, 4}, {"int32", ncclInt32, 4}, {"double", ncclFloat64, 8}};

static void put(const struct type *t, void *at, size_t i, int v)
{
	if (t->dtype == ncclFloat32)
		((float *)at)[i] = (float)v;
	else if (t->dtype == ncclInt32)
		((int32_t *)at)[i] = v;
	else
		((double *)at)[i] = v;
}

static double get(const struct type *t, const void *at, size_t i)
{
	if (t->dtype == ncclFloat32)
		return (double)((const float *)at)[i];
	if (t->dtype == ncclInt32)
		return ((const int32_t *)at)[i];
	return ((const double *)at)[i];
}

static void check(const char *what, const struct type *t, size_t count, size_t i, double got,
		  double wanted)
{
	double off = got > wanted ? got - wanted : wanted - got;

	if (job.data == NONE)
		return;
	job.n_checked++;
	if (off <= 1e-5 * (wanted > 0 ? wanted : -wanted))
		return;
	fprintf(stderr, "full-check: rank %d: %s of %zu %ss: element %zu is %g, not %g\n", job.rank,
		what, count, t->name, i, got, wanted);
	exit(1);
}

static void finish(void)
{
	CUDA(cudaStreamSynchronize(job.stream));
}

static void fill(const struct type *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(t, job.in, i, value(job.rank, i));
	memset(job.out, 0xa5, n * t->bytes);
}

/* --- ops --------------------------------------------------------------------------- */

static const char *const redop_names[] = {"sum", "prod", "max", "min", "avg"};

static void all_reduce_by(const struct type *t, size_t count, int op)
{
	char name[64];

	fill(t, count);
	NCCL(ncclAllReduce(job.in, job.out, count, t->dtype, (ncclRedOp_t)op, job.comm,
			   job.stream));
	finish();
	snprintf(name, sizeof(name), "AllReduce %s", redop_names[op]);
	for (size_t i = 0; i < count; i++)
		check(name, t, count, i, get(t, job.out, i), reduced(op, i));
}

/* One alone, for counts of millions. */
static void sum(const struct type *t, size_t count)
{
	if (t->dtype == ncclFloat32)
		all_reduce_by(t, count, SUM);
}

static void all_reduce(const struct type *t, size_t count)
{
	for (int op = SUM; op <= AVG; op++) {
		if (op == PROD && (job.n > 8 || t->dtype == ncclInt32))
			continue; /* too large for the type */
		if (op == AVG && t->dtype == ncclInt32)
			continue;
		all_reduce_by(t, count, op);
	}
	fill(t, count); /* in place */
	NCCL(ncclAllReduce(job.in, job.in, count, t->dtype, ncclSum, job.comm, job.stream));
	finish();
	for (size_t i = 0; i < count; i++)
		check("AllReduce in place", t, count, i, get(t, job.in, i), reduced(SUM, i));
}

static void all_gather(const struct type *t, size_t count)
{
	fill(t, count);
	memset(job.out, 0xa5, (size_t)job.n * count * t->bytes);
	NCCL(ncclAllGather(job.in, job.out, count, t->dtype, job.comm, job.stream));
	finish();
	for (int r = 0; r < job.n; r++)
		for (size_t i = 0; i < count; i++)
			check("AllGather", t, count, (size_t)r * count + i,
			      get(t, job.out, (size_t)r * count + i),
			      source_of(r) < 0 ? 0 : value(source_of(r), i));
}

static void reduce_scatter(const struct type *t, size_t count)
{
	fill(t, count * (size_t)job.n);
	NCCL(ncclReduceScatter(job.in, job.out, count, t->dtype, ncclSum, job.comm, job.stream));
	finish();
	for (size_t i = 0; i < count; i++)
		check("ReduceScatter", t, count, i, get(t, job.out, i),
		      reduced(SUM, (size_t)job.rank * count + i));
}

static void broadcast_from(const struct type *t, size_t count, int root)
{
	int source = source_of(root) < 0 ? job.rank : source_of(root);

	fill(t, count);
	NCCL(ncclBroadcast(job.in, job.in, count, t->dtype, root, job.comm, job.stream));
	finish();
	for (size_t i = 0; i < count; i++)
		check("Broadcast in place", t, count, i, get(t, job.in, i), value(source, i));
}

static void broadcast(const struct type *t, size_t count)
{
	for (int root = 0; root<job.n_real; root += job.n_real> 1 ? job.n_real - 1 : 1) {
		fill(t, count);
		NCCL(ncclBroadcast(job.in, job.out, count, t->dtype, root, job.comm, job.stream));
		finish();
		for (size_t i = 0; i < count; i++)
			check("Broadcast", t, count, i, get(t, job.out, i), value(root, i));
	}
	/* of a virtual root: what its template has, or nothing */
	broadcast_from(t, count, job.n - 1);
	broadcast_from(t, count, job.n_real % job.n);
}

static void reduce(const struct type *t, size_t count)
{
	for (int root = 0; root<job.n_real; root += job.n_real> 1 ? job.n_real - 1 : 1) {
		fill(t, count);
		NCCL(ncclReduce(job.in, job.out, count, t->dtype, ncclSum, root, job.comm,
				job.stream));
		finish();
		for (size_t i = 0; i < count && job.rank == root; i++)
			check("Reduce", t, count, i, get(t, job.out, i), reduced(SUM, i));
	}
}

/* Everybody sends to everybody, itself included, and the values of those that are real count. */
static void send_recv(const struct type *t, size_t count)
{
	fill(t, count);
	memset(job.out, 0, (size_t)job.n * count * t->bytes);
	NCCL(ncclGroupStart());
	for (int r = 0; r < job.n; r++) {
		NCCL(ncclSend(job.in, count, t->dtype, r, job.comm, job.stream));
		NCCL(ncclRecv(job.out + (size_t)r * count * t->bytes, count, t->dtype, r, job.comm,
			      job.stream));
	}
	NCCL(ncclGroupEnd());
	finish();
	for (int r = 0; r < job.n_real; r++)
		for (size_t i = 0; i < count; i++)
			check("Send and Recv", t, count, (size_t)r * count + i,
			      get(t, job.out, (size_t)r * count + i), value(r, i));
}

/* Two collectives, of which NCCL launches the second one first, and among real ranks sends and
 * receives, of one group: before, between and behind these. */
static void grouped_at(const struct type *t, size_t count, int at)
{
	size_t small = (count + 1) / 2;
	char *sums[2] = {job.out, job.out + count * t->bytes};
	char *received = job.out + 2 * count * t->bytes;

	fill(t, count);
	memset(job.out, 0xa5, (size_t)job.n * count * t->bytes);
	NCCL(ncclGroupStart());
	for (int i = 0; i < 3; i++) {
		for (int r = 0; r < job.n_real && i == at; r++) {
			NCCL(ncclSend(job.in, count, t->dtype, r, job.comm, job.stream));
			NCCL(ncclRecv(received + (size_t)r * count * t->bytes, count, t->dtype, r,
				      job.comm, job.stream));
		}
		if (i < 2)
			NCCL(ncclAllReduce(job.in, sums[i], i == 0 ? small : count, t->dtype,
					   i == 0 ? ncclSum : ncclMax, job.comm, job.stream));
	}
	NCCL(ncclGroupEnd());
	finish();
	for (size_t i = 0; i < count; i++) {
		if (i < small)
			check("AllReduce sum in a group", t, count, i, get(t, sums[0], i),
			      reduced(SUM, i));
		check("AllReduce max in a group", t, count, i, get(t, sums[1], i), reduced(MAX, i));
		for (int r = 0; r < job.n_real; r++)
			check("Recv in a group", t, count, (size_t)r * count + i,
			      get(t, received, (size_t)r * count + i), value(r, i));
	}
}

static void grouped(const struct type *t, size_t count)
{
	if (job.n < job.n_real + 2)
		return;
	for (int at = 0; at < 3; at++)
		grouped_at(t, count, at);
}

/* For measurements: nothing but the op. */
static void alone(const struct type *t, size_t count)
{
	if (t->dtype != ncclFloat32)
		return;
	NCCL(ncclAllReduce(job.in, job.out, count, t->dtype, ncclSum, job.comm, job.stream));
	finish();
}

static const struct {
	const char *name;
	void (*run)(const struct type *t, size_t count);
} ops[] = {{"allreduce", all_reduce},
	   {"allgather", all_gather},
	   {"reducescatter", reduce_scatter},
	   {"broadcast", broadcast},
	   {"reduce", reduce},
	   {"sendrecv", send_recv},
	   {"grouped", grouped},
	   {"sum", sum},
	   {"alone", alone}};

static bool is_wanted(const char *name)
{
	const char *at = strstr(job.ops, name);
	size_t n = strlen(name);

	if (strcmp(job.ops, "all") == 0)
		return strcmp(name, "alone") != 0;
	while (at && !((at == job.ops || at[-1] == ',') && (!at[n] || at[n] == ',')))
		at = strstr(at + 1, name);
	return at != NULL;
}

static void run_counts(size_t o)
{
	for (const char *at = job.counts; at && *at; at = strchr(at, ',')) {
		size_t count;

		at += *at == ',';
		count = strtoull(at, NULL, 10);
		for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
			ops[o].run(&types[i], count);
	}
}

/* --- start ------------------------------------------------------------------------- */

static size_t largest(void)
{
	size_t most = 1;

	for (const char *at = job.counts; at && *at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strtoull(at, NULL, 10) > most)
			most = strtoull(at, NULL, 10);
	}
	return most;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {{"data", 1, NULL, 'd'},     {"real", 1, NULL, 'r'},
						{"gpus", 1, NULL, 'g'},     {"ops", 1, NULL, 'o'},
						{"counts", 1, NULL, 'c'},   {"times", 1, NULL, 't'},
						{"end", 1, NULL, 'e'},      {"id", 1, NULL, 'i'},
						{"rank", 1, NULL, 'k'},     {"ranks", 1, NULL, 'n'},
						{"init-all", 0, NULL, 'a'}, {NULL, 0, NULL, 0}};

	for (int c = 0; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		switch (c) {
		case 'd':
			job.data = strcmp(optarg, "mirror") == 0     ? MIRROR
				   : strcmp(optarg, "identity") == 0 ? IDENTITY
				   : strcmp(optarg, "none") == 0     ? NONE
								     : ALL;
			break;
		case 'r':
			job.n_real = atoi(optarg);
			break;
		case 'g':
			job.n_gpus = atoi(optarg);
			break;
		case 'o':
			job.ops = optarg;
			break;
		case 'c':
			job.counts = optarg;
			break;
		case 't':
			job.times = atoi(optarg);
			break;
		case 'e':
			job.end = optarg;
			break;
		case 'a':
			job.init_all = true;
			break;
		case 'i':
			job.id = optarg;
			break;
		case 'k':
			job.rank = atoi(optarg);
			break;
		case 'n':
			job.n = atoi(optarg);
			break;
		default:
			exit(2);
		}
}

static int number(const char *name)
{
	const char *text = getenv(name);

	must(text && *text, name);
	return atoi(text);
}

/* It may be a non-blocking one, by NCCL_COMM_BLOCKING. */
static void init(ncclUniqueId id)
{
	ncclResult_t r = ncclCommInitRank(&job.comm, job.n, id, job.rank), state;
	struct timespec pause = {.tv_nsec = 1000000};

	must(r == ncclSuccess || r == ncclInProgress, "ncclCommInitRank");
	for (;;) {
		NCCL(ncclCommGetAsyncError(job.comm, &state));
		if (state != ncclInProgress)
			break;
		nanosleep(&pause, NULL);
	}
	must(state == ncclSuccess, "the communicator's init");
}

static void join(void)
{
	ncclUniqueId id;
	int n_devices = 0;

	if (!job.id) {
		job.rank = number("RANK");
		job.n = number("WORLD_SIZE");
		must(rendezvous(job.rank, NULL, &id) == 0, "rendezvous");
	} else {
		for (size_t i = 0; i < sizeof(id.internal); i++) {
			char two[3] = {job.id[2 * i], job.id[2 * i + 1], 0};

			id.internal[i] = (char)strtoul(two, NULL, 16);
		}
	}
	if (!job.n_real)
		job.n_real = job.n;
	CUDA(cudaGetDeviceCount(&n_devices));
	CUDA(cudaSetDevice(job.rank % job.n_gpus % n_devices));
	CUDA(cudaStreamCreate(&job.stream));
	init(id);
}

/* One thread has all ranks, each on a device of its own. */
static void check_init_all(void)
{
	enum { N = 2, COUNT = 70001 };
	ncclComm_t comms[N];
	cudaStream_t streams[N];
	int *data[N], before, devices[N] = {1, 0};

	CUDA(cudaGetDevice(&before));
	NCCL(ncclCommInitAll(comms, N, devices));
	for (int r = 0; r < N; r++) {
		int rank = -1, n = -1;

		NCCL(ncclCommUserRank(comms[r], &rank));
		NCCL(ncclCommCount(comms[r], &n));
		must(rank == r && n == N, "what ncclCommInitAll has made");
		CUDA(cudaSetDevice(devices[r]));
		CUDA(cudaStreamCreate(&streams[r]));
		CUDA(cudaMalloc((void **)&data[r], COUNT * sizeof(**data)));
		for (size_t i = 0; i < COUNT; i++)
			data[r][i] = value(r, i);
	}
	NCCL(ncclGroupStart());
	for (int r = 0; r < N; r++)
		NCCL(ncclAllReduce(data[r], data[r], COUNT, ncclInt32, ncclSum, comms[r],
				   streams[r]));
	NCCL(ncclGroupEnd());
	for (int r = 0; r < N; r++) {
		CUDA(cudaStreamSynchronize(streams[r]));
		for (size_t i = 0; i < COUNT; i++)
			must(data[r][i] == value(0, i) + value(1, i), "a sum of ncclCommInitAll's");
	}
	for (int r = 0; r < N; r++) {
		NCCL(ncclCommDestroy(comms[r]));
		CUDA(cudaFree(data[r]));
		CUDA(cudaStreamDestroy(streams[r]));
	}
	CUDA(cudaSetDevice(before));
}

/* Ops that nobody waits for. */
static int end_midway(void)
{
	for (int i = 0; i < 8; i++)
		NCCL(ncclAllReduce(job.in, job.out, largest(), ncclFloat32, ncclSum, job.comm,
				   job.stream));
	if (strcmp(job.end, "kill") == 0)
		raise(SIGKILL);
	NCCL(ncclCommAbort(job.comm));
	finish();
	printf("rank %d: aborted\n", job.rank);
	return 0;
}

int main(int argc, char **argv)
{
	struct timespec begin, end;

	parse(argc, argv);
	if (job.init_all)
		check_init_all();
	join();
	CUDA(cudaMalloc((void **)&job.in, largest() * (size_t)job.n * 8));
	CUDA(cudaMalloc((void **)&job.out, largest() * (size_t)job.n * 8));
	if (job.end && job.rank == 0)
		return end_midway();
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int n = 0; n < job.times; n++)
		for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
			if (is_wanted(ops[o].name))
				run_counts(o);
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (job.init_all)
		check_init_all();
	NCCL(ncclCommDestroy(job.comm));
	printf("rank %d: %llu values are right, %.3f s\n", job.rank,
	       (unsigned long long)job.n_checked,
	       (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
	return 0;
}
