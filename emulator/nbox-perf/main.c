/* Times one collective over a range of sizes and prints nccl-tests' table. A plain
 * NCCL program: of CUDA and NCCL it includes only the public headers and runs as one rank,
 * on NVIDIA's libraries, on the host ones, and under nbox. Its options: nbox-perf/options.h.
 *
 *   RANK=r WORLD_SIZE=n nbox-perf --op allreduce -b 8 -e 256M -f 2
 *
 * The ranks meet by NCCL_COMM_ID=host:port or by a file (rendezvous.h). Each size is
 * timed twice: every repetition on its own (from the call until the stream is idle: median, mean,
 * p99) and, as nccl-tests does it, many calls and one synchronisation. Only one rank (0, or
 * --print-rank) prints and writes; the times are its own. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "nbox-perf/options.h"
#include "nbox-perf/rendezvous.h"

static const struct dtype {
	ncclDataType_t type;
	size_t bytes;
	uint64_t one; /* the bits of 1 */
} dtypes[PERF_DTYPES] = {
	[PERF_INT8] = {ncclInt8, 1, 1},
	[PERF_UINT8] = {ncclUint8, 1, 1},
	[PERF_INT32] = {ncclInt32, 4, 1},
	[PERF_UINT32] = {ncclUint32, 4, 1},
	[PERF_INT64] = {ncclInt64, 8, 1},
	[PERF_UINT64] = {ncclUint64, 8, 1},
	[PERF_HALF] = {ncclHalf, 2, 0x3c00},
	[PERF_FLOAT] = {ncclFloat, 4, 0x3f800000},
	[PERF_DOUBLE] = {ncclDouble, 8, UINT64_C(0x3ff0000000000000)},
	[PERF_BFLOAT16] = {ncclBfloat16, 2, 0x3f80},
	[PERF_F8E4M3] = {ncclFloat8e4m3, 1, 0x38},
	[PERF_F8E5M2] = {ncclFloat8e5m2, 1, 0x3c},
};
static const ncclRedOp_t redops[PERF_REDOPS] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

static struct perf_options o;

static struct {
	const struct dtype *dtype;
	ncclRedOp_t redop;
	bool is_started;
	int rank, n_ranks;
	ncclComm_t comm;
	cudaStream_t stream;
	char *send, *recv; /* device */
	char *host;
} b = {
	.n_ranks = 1,
};

struct row {
	size_t bytes, count;
	double median, mean, p99, least, batch; /* us */
	long wrong;                             /* -1: not checked */
};

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	if (b.is_started)
		fprintf(stderr, "rank %d: ", b.rank);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(b.is_started ? 1 : 2); /* 2: wrong options */
}

#define NCCL(x)                                                                                  \
	do {                                                                                     \
		ncclResult_t r_ = (x);                                                           \
		if (r_)                                                                          \
			die("%s: %s: %s", #x, ncclGetErrorString(r_), ncclGetLastError(b.comm)); \
	} while (0)
#define CUDA(x)                                                    \
	do {                                                       \
		cudaError_t e_ = (x);                              \
		if (e_)                                            \
			die("%s: %s", #x, cudaGetErrorString(e_)); \
	} while (0)

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* --- sizes and buffers ----------------------------------------------------------------------- */

/* nccl-tests' meaning: of the larger buffer. */
static bool per_rank(void)
{
	return o.op == PERF_ALLGATHER || o.op == PERF_REDUCESCATTER || o.op == PERF_ALLTOALL;
}

static size_t count_of(size_t bytes)
{
	return bytes / b.dtype->bytes / (per_rank() ? (size_t)b.n_ranks : 1);
}

static size_t send_count(size_t count)
{
	return o.op == PERF_REDUCESCATTER || o.op == PERF_ALLTOALL ? count * (size_t)b.n_ranks
								   : count;
}

static size_t recv_count(size_t count)
{
	return o.op == PERF_ALLGATHER || o.op == PERF_ALLTOALL ? count * (size_t)b.n_ranks : count;
}

static bool is_reduction(void)
{
	return o.op == PERF_ALLREDUCE || o.op == PERF_REDUCESCATTER || o.op == PERF_REDUCE;
}

/* Zeros and ones, which every type has. A reduction gets one 1 an element. */
static bool value(int rank, size_t i)
{
	uint64_t h = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	if (is_reduction())
		return (h >> 33) % (unsigned)b.n_ranks == (unsigned)rank;
	h ^= (uint64_t)(rank + 1) * UINT64_C(0xbf58476d1ce4e5b9);
	return (h ^ h >> 31) >> 20 & 1;
}

static bool reduced(size_t i)
{
	bool all = true, any = false;
	int k;

	for (k = 0; k < b.n_ranks; k++) {
		all &= value(k, i);
		any |= value(k, i);
	}
	return b.redop == ncclProd || b.redop == ncclMin ? all : any;
}

static void put(char *at, size_t i, bool is_one)
{
	uint64_t v = is_one ? b.dtype->one : 0;

	memcpy(at + i * b.dtype->bytes, &v, b.dtype->bytes);
}

static void fill(char *device, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		put(b.host, i, value(b.rank, i));
	CUDA(cudaMemcpy(device, b.host, n * b.dtype->bytes, cudaMemcpyHostToDevice));
}

static bool expected(size_t i, size_t count)
{
	size_t block = count ? i / count : 0, off = count ? i % count : 0;
	int prev = (b.rank + b.n_ranks - 1) % b.n_ranks;

	switch (o.op) {
	case PERF_ALLREDUCE:
	case PERF_REDUCE:
		return reduced(i);
	case PERF_REDUCESCATTER:
		return reduced((size_t)b.rank * count + i);
	case PERF_BROADCAST:
		return value(o.root, i);
	case PERF_ALLGATHER:
		return value((int)block, off);
	case PERF_ALLTOALL:
		return value((int)block, (size_t)b.rank * count + off);
	case PERF_SENDRECV:
		return value(prev, i);
	case PERF_OPS:
		break;
	}
	return false;
}

static void buffers(size_t count, bool in_place, char **send, char **recv)
{
	size_t off = (size_t)b.rank * count * b.dtype->bytes;

	*send = b.send;
	*recv = b.recv;
	if (!in_place)
		return;
	if (o.op == PERF_ALLGATHER)
		*send = b.recv + off;
	else if (o.op == PERF_REDUCESCATTER)
		*recv = b.send + off;
	else
		*recv = b.send;
}

static bool has_in_place(void)
{
	return o.in_place && o.op != PERF_ALLTOALL && o.op != PERF_SENDRECV;
}

static void call_op(size_t count, char *send, char *recv)
{
	ncclDataType_t t = b.dtype->type;

	switch (o.op) {
	case PERF_ALLREDUCE:
		NCCL(ncclAllReduce(send, recv, count, t, b.redop, b.comm, b.stream));
		break;
	case PERF_ALLGATHER:
		NCCL(ncclAllGather(send, recv, count, t, b.comm, b.stream));
		break;
	case PERF_REDUCESCATTER:
		NCCL(ncclReduceScatter(send, recv, count, t, b.redop, b.comm, b.stream));
		break;
	case PERF_BROADCAST:
		NCCL(ncclBroadcast(send, recv, count, t, o.root, b.comm, b.stream));
		break;
	case PERF_REDUCE:
		NCCL(ncclReduce(send, recv, count, t, b.redop, o.root, b.comm, b.stream));
		break;
	case PERF_ALLTOALL: { /* as nccl-tests does it: works with every NCCL */
		size_t block = count * b.dtype->bytes;
		int k;

		NCCL(ncclGroupStart());
		for (k = 0; k < b.n_ranks; k++) {
			NCCL(ncclSend(send + (size_t)k * block, count, t, k, b.comm, b.stream));
			NCCL(ncclRecv(recv + (size_t)k * block, count, t, k, b.comm, b.stream));
		}
		NCCL(ncclGroupEnd());
		break;
	}
	case PERF_SENDRECV:
		NCCL(ncclGroupStart());
		NCCL(ncclSend(send, count, t, (b.rank + 1) % b.n_ranks, b.comm, b.stream));
		NCCL(ncclRecv(recv, count, t, (b.rank + b.n_ranks - 1) % b.n_ranks, b.comm,
			      b.stream));
		NCCL(ncclGroupEnd());
		break;
	case PERF_OPS:
		break;
	}
}

static long wrong(size_t count, const char *recv)
{
	size_t n = recv_count(count), i;
	long bad = 0;
	uint64_t want;

	if (o.op == PERF_REDUCE && b.rank != o.root)
		return 0;
	CUDA(cudaMemcpy(b.host, recv, n * b.dtype->bytes, cudaMemcpyDeviceToHost));
	for (i = 0; i < n; i++) {
		want = expected(i, count) ? b.dtype->one : 0;
		bad += memcmp(b.host + i * b.dtype->bytes, &want, b.dtype->bytes) != 0;
	}
	return bad;
}

/* --- timing ------------------------------------------------------------------------------------
 */

static int by_size(const void *x, const void *y)
{
	double d = *(const double *)x - *(const double *)y;

	return d < 0 ? -1 : d > 0;
}

static void measure(size_t bytes, bool in_place, struct row *ret)
{
	size_t count = count_of(bytes);
	double *t = malloc((size_t)o.iters * sizeof(*t)), start;
	char *send, *recv;
	int i;

	if (!t)
		die("out of memory");
	memset(ret, 0, sizeof(*ret));
	ret->count = count;
	ret->bytes = count * b.dtype->bytes * (per_rank() ? (size_t)b.n_ranks : 1);
	ret->wrong = -1;
	buffers(count, in_place, &send, &recv);
	if (!o.is_unchecked) {
		fill(send, send_count(count));
		call_op(count, send, recv);
		CUDA(cudaStreamSynchronize(b.stream));
		ret->wrong = b.redop == ncclAvg && is_reduction() ? -1 : wrong(count, recv);
	}
	for (i = 0; i < o.warmup; i++)
		call_op(count, send, recv);
	CUDA(cudaStreamSynchronize(b.stream));
	for (i = 0; i < o.iters; i++) {
		start = now_us();
		call_op(count, send, recv);
		CUDA(cudaStreamSynchronize(b.stream));
		t[i] = now_us() - start;
		ret->mean += t[i] / o.iters;
	}
	start = now_us();
	for (i = 0; i < o.iters; i++)
		call_op(count, send, recv);
	CUDA(cudaStreamSynchronize(b.stream));
	ret->batch = (now_us() - start) / o.iters;
	qsort(t, (size_t)o.iters, sizeof(*t), by_size);
	ret->least = t[0];
	ret->median = (t[(o.iters - 1) / 2] + t[o.iters / 2]) / 2;
	ret->p99 = t[(o.iters * 99 + 99) / 100 - 1];
	free(t);
}

/* --- output -------------------------------------------------------------------------------------
 */

static double busbw_factor(void)
{
	double n = b.n_ranks;

	return o.op == PERF_ALLREDUCE ? 2 * (n - 1) / n : per_rank() ? (n - 1) / n : 1;
}

static double algbw(const struct row *r)
{
	return r->batch > 0 ? (double)r->bytes / r->batch * 1e-3 : 0; /* decimal GB/s */
}

static void print_head(void)
{
	printf("# %s: nThread 1 nGpus 1 minBytes %zu maxBytes %zu ", options[FLAG_OP].choices[o.op],
	       o.min_bytes, o.max_bytes);
	if (o.step_bytes)
		printf("step: %zu(bytes)", o.step_bytes);
	else
		printf("step: %g(factor)", o.factor);
	printf(" warmup iters: %d iters: %d agg iters: 1 validation: %d graph: 0\n", o.warmup,
	       o.iters, !o.is_unchecked);
	printf("# nRanks %d, times of rank %d\n#\n", b.n_ranks, o.printer);
	printf("# %61s %29s\n", "out-of-place", "in-place");
	printf("# %10s %13s %9s %7s %7s %8s %7s %7s %6s %8s %7s %7s %6s\n", "size", "count", "type",
	       "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
	       "#wrong");
	printf("# %10s %13s %9s %7s %7s %8s %7s %7s %6s %8s %7s %7s %6s\n", "(B)", "(elements)", "",
	       "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static void print_times(const struct row *r)
{
	char bad[24] = "N/A";

	if (r->wrong >= 0)
		snprintf(bad, sizeof(bad), "%ld", r->wrong);
	printf(" %8.*f %7.2f %7.2f %6s",
	       r->batch < 100     ? 2
	       : r->batch < 10000 ? 1
				  : 0,
	       r->batch, algbw(r), algbw(r) * busbw_factor(), bad);
}

static void print_row(const struct row *out, const struct row *in)
{
	bool has_root = o.op == PERF_BROADCAST || o.op == PERF_REDUCE;
	char root[16] = "-1";

	if (has_root)
		snprintf(root, sizeof(root), "%d", o.root);
	printf("%12zu %13zu %9s %7s %7s", out->bytes, out->count,
	       options[FLAG_DTYPE].choices[o.dtype],
	       is_reduction() ? options[FLAG_REDOP].choices[o.redop] : "none", root);
	print_times(out);
	if (in)
		print_times(in);
	else
		printf(" %8s %7s %7s %6s", "N/A", "N/A", "N/A", "N/A");
	printf("\n");
	fflush(stdout);
}

static void json_row(FILE *f, const struct row *r, bool in_place, bool is_first)
{
	fprintf(f,
		"%s\n  {\"bytes\": %zu, \"count\": %zu, \"in_place\": %s, \"median_us\": %.3f, "
		"\"mean_us\": %.3f, \"p99_us\": %.3f, \"min_us\": %.3f, \"batch_us\": %.3f, "
		"\"algbw_gbs\": %.6f, \"busbw_gbs\": %.6f, \"wrong\": %ld}",
		is_first ? "" : ",", r->bytes, r->count, in_place ? "true" : "false", r->median,
		r->mean, r->p99, r->least, r->batch, algbw(r), algbw(r) * busbw_factor(), r->wrong);
}

/* --- start --------------------------------------------------------------------------------------
 */

static void parse(int argc, char **argv)
{
	struct option_word w;
	struct err err = {""};
	int i = 1, r = 0;

	perf_options_init(&o);
	while (r == 0 && i < argc) {
		r = option_take(COMMAND_NBOX_PERF, argc, argv, &i, &w, &err);
		if (r == OPTION_NONE)
			r = option_unknown(COMMAND_NBOX_PERF, argv[i], &err);
		if (r == 0 && w.id == FLAG_HELP) {
			printf("usage: [RANK=r WORLD_SIZE=n] %s [options]\n",
			       program_invocation_short_name);
			option_help(COMMAND_NBOX_PERF, 20, stdout);
			puts("SIZE is nccl-tests': of the larger buffer. JSON times are of single repetitions, but\n"
			     "for batch_us, which is the table's time.");
			exit(0);
		}
		if (r == 0)
			r = perf_options_take(&o, &w, &err);
	}
	if (r < 0 || perf_options_check(&o, &err) < 0)
		die("%s", err.text);
	b.dtype = &dtypes[o.dtype];
	b.redop = redops[o.redop];
}

static int env_number(const char *name, int otherwise)
{
	const char *s = getenv(name);
	char *end;
	long v;

	if (!s || !*s)
		return otherwise;
	v = strtol(s, &end, 10);
	if (*end || v < 0 || v > 100000000)
		die("%s=%s is no number", name, s);
	return (int)v;
}

static void start(void)
{
	int devices = 1, count;
	ncclUniqueId id;
	size_t most;

	b.rank = env_number("RANK", 0);
	b.n_ranks = env_number("WORLD_SIZE", 1);
	b.is_started = true;
	CUDA(cudaGetDeviceCount(&devices));
	CUDA(cudaSetDevice(env_number("LOCAL_RANK", b.rank) % devices));
	if (rendezvous(b.rank, o.id_file, &id) < 0)
		exit(1);
	NCCL(ncclCommInitRank(&b.comm, b.n_ranks, id, b.rank));
	NCCL(ncclCommCount(b.comm, &count));
	b.n_ranks = count;
	rendezvous_end();
	if (o.root >= count)
		die("--root is not a rank");
	most = o.max_bytes + 64 * (size_t)b.n_ranks;
	CUDA(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc((void **)&b.send, most));
	CUDA(cudaMalloc((void **)&b.recv, most));
	CUDA(cudaMemset(b.send, 0, most));
	CUDA(cudaMemset(b.recv, 0, most));
	b.host = !o.is_unchecked ? malloc(most) : NULL;
	if (!o.is_unchecked && !b.host)
		die("out of memory");
}

int main(int argc, char **argv)
{
	size_t bytes;
	bool prints, prints_table;
	double sum = 0;
	long bad = 0;
	int n = 0;
	FILE *json = NULL;

	parse(argc, argv);
	start();
	prints = b.rank == o.printer;
	if (prints && o.json) {
		json = strcmp(o.json, "-") ? fopen(o.json, "w") : stdout;
		if (!json)
			die("%s: %s", o.json, strerror(errno));
		fprintf(json,
			"{\"op\": \"%s\", \"dtype\": \"%s\", \"redop\": \"%s\", \"ranks\": %d, "
			"\"iters\": %d, \"warmup\": %d, \"rows\": [",
			options[FLAG_OP].choices[o.op], options[FLAG_DTYPE].choices[o.dtype],
			is_reduction() ? options[FLAG_REDOP].choices[o.redop] : "none", b.n_ranks,
			o.iters, o.warmup);
	}
	prints_table = prints && json != stdout && !o.is_silent;
	if (prints_table)
		print_head();
	for (bytes = o.min_bytes; bytes <= o.max_bytes;) {
		struct row out, in;

		measure(bytes, false, &out);
		if (has_in_place())
			measure(bytes, true, &in);
		if (prints_table)
			print_row(&out, has_in_place() ? &in : NULL);
		if (json) {
			json_row(json, &out, false, !n);
			if (has_in_place())
				json_row(json, &in, true, false);
		}
		sum += algbw(&out) * busbw_factor();
		bad += out.wrong > 0 ? out.wrong : 0;
		bad += has_in_place() && in.wrong > 0 ? in.wrong : 0;
		n++;
		bytes = perf_options_next(&o, bytes);
	}
	if (prints_table) {
		printf("# Out of bounds values : %ld %s\n", bad, bad ? "FAILED" : "OK");
		printf("# Avg bus bandwidth    : %g\n#\n", n ? sum / n : 0);
	}
	if (json) {
		fprintf(json, "\n]}\n");
		if (json != stdout && fclose(json))
			die("%s: %s", o.json, strerror(errno));
	}
	NCCL(ncclCommDestroy(b.comm));
	CUDA(cudaFree(b.send));
	CUDA(cudaFree(b.recv));
	CUDA(cudaStreamDestroy(b.stream));
	free(b.host);
	return bad ? 1 : 0;
}
