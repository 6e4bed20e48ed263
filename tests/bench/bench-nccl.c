/* Times one collective over a range of sizes and prints nccl-tests' table. A plain
 * NCCL program: it includes only the public headers and runs as one rank, on NVIDIA's
 * libraries, on the host ones, and under nbox.
 *
 *   RANK=r WORLD_SIZE=n nbox-perf --op allreduce -b 8 -e 256M -f 2
 *
 * The ranks meet by NCCL_COMM_ID=host:port or by a file (tests/apps/rendezvous.h). Each size is timed
 * twice: every repetition on its own (launch until the stream is idle: median, mean,
 * p99) and, as nccl-tests does it, many launches and one synchronisation. Only one
 * rank (0, or --print-rank) prints and writes; the times are its own. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "rendezvous.h"

enum op { ALLREDUCE, ALLGATHER, REDUCESCATTER, BROADCAST, REDUCE, ALLTOALL, SENDRECV, OPS };
static const char *const op_names[OPS] = {"allreduce", "allgather", "reducescatter", "broadcast",
					  "reduce", "alltoall", "sendrecv"};

static const struct dtype {
	const char *name;
	ncclDataType_t type;
	size_t bytes;
	uint64_t one; /* the bits of 1 */
} dtypes[] = {
	{"int8", ncclInt8, 1, 1},
	{"uint8", ncclUint8, 1, 1},
	{"int32", ncclInt32, 4, 1},
	{"uint32", ncclUint32, 4, 1},
	{"int64", ncclInt64, 8, 1},
	{"uint64", ncclUint64, 8, 1},
	{"half", ncclHalf, 2, 0x3c00},
	{"float", ncclFloat, 4, 0x3f800000},
	{"double", ncclDouble, 8, UINT64_C(0x3ff0000000000000)},
	{"bfloat16", ncclBfloat16, 2, 0x3f80},
	{"f8e4m3", ncclFloat8e4m3, 1, 0x38},
	{"f8e5m2", ncclFloat8e5m2, 1, 0x3c},
};
static const char *const redops[] = {"sum", "prod", "max", "min", "avg"};

static struct {
	enum op op;
	const struct dtype *dtype;
	ncclRedOp_t redop;
	int root;
	size_t min, max, step;
	double factor;
	int iters, warmup;
	bool in_place, check, is_started;
	const char *json, *id_file;
	int rank, n_ranks, printer;
	ncclComm_t comm;
	cudaStream_t stream;
	char *send, *recv; /* device */
	char *host;
} b = {
	.dtype = &dtypes[7],
	.min = 8,
	.max = 32 << 20,
	.factor = 2,
	.iters = 20,
	.warmup = 5,
	.check = true,
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

#define NCCL(x)                                                                                    \
	do {                                                                                       \
		ncclResult_t r_ = (x);                                                             \
		if (r_)                                                                            \
			die("%s: %s: %s", #x, ncclGetErrorString(r_),                              \
			    ncclGetLastError(b.comm));                                             \
	} while (0)
#define CUDA(x)                                                                                    \
	do {                                                                                       \
		cudaError_t e_ = (x);                                                              \
		if (e_)                                                                            \
			die("%s: %s", #x, cudaGetErrorString(e_));                                 \
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
	return b.op == ALLGATHER || b.op == REDUCESCATTER || b.op == ALLTOALL;
}

static size_t count_of(size_t bytes)
{
	return bytes / b.dtype->bytes / (per_rank() ? (size_t)b.n_ranks : 1);
}

static size_t send_count(size_t count)
{
	return b.op == REDUCESCATTER || b.op == ALLTOALL ? count * (size_t)b.n_ranks : count;
}

static size_t recv_count(size_t count)
{
	return b.op == ALLGATHER || b.op == ALLTOALL ? count * (size_t)b.n_ranks : count;
}

static bool is_reduction(void)
{
	return b.op == ALLREDUCE || b.op == REDUCESCATTER || b.op == REDUCE;
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

	switch (b.op) {
	case ALLREDUCE:
	case REDUCE:
		return reduced(i);
	case REDUCESCATTER:
		return reduced((size_t)b.rank * count + i);
	case BROADCAST:
		return value(b.root, i);
	case ALLGATHER:
		return value((int)block, off);
	case ALLTOALL:
		return value((int)block, (size_t)b.rank * count + off);
	case SENDRECV:
		return value(prev, i);
	case OPS:
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
	if (b.op == ALLGATHER)
		*send = b.recv + off;
	else if (b.op == REDUCESCATTER)
		*recv = b.send + off;
	else
		*recv = b.send;
}

static bool has_in_place(void)
{
	return b.in_place && b.op != ALLTOALL && b.op != SENDRECV;
}

static void launch(size_t count, char *send, char *recv)
{
	ncclDataType_t t = b.dtype->type;

	switch (b.op) {
	case ALLREDUCE:
		NCCL(ncclAllReduce(send, recv, count, t, b.redop, b.comm, b.stream));
		break;
	case ALLGATHER:
		NCCL(ncclAllGather(send, recv, count, t, b.comm, b.stream));
		break;
	case REDUCESCATTER:
		NCCL(ncclReduceScatter(send, recv, count, t, b.redop, b.comm, b.stream));
		break;
	case BROADCAST:
		NCCL(ncclBroadcast(send, recv, count, t, b.root, b.comm, b.stream));
		break;
	case REDUCE:
		NCCL(ncclReduce(send, recv, count, t, b.redop, b.root, b.comm, b.stream));
		break;
	case ALLTOALL: { /* as nccl-tests does it: works with every NCCL */
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
	case SENDRECV:
		NCCL(ncclGroupStart());
		NCCL(ncclSend(send, count, t, (b.rank + 1) % b.n_ranks, b.comm, b.stream));
		NCCL(ncclRecv(recv, count, t, (b.rank + b.n_ranks - 1) % b.n_ranks, b.comm,
			      b.stream));
		NCCL(ncclGroupEnd());
		break;
	case OPS:
		break;
	}
}

static long wrong(size_t count, const char *recv)
{
	size_t n = recv_count(count), i;
	long bad = 0;
	uint64_t want;

	if (b.op == REDUCE && b.rank != b.root)
		return 0;
	CUDA(cudaMemcpy(b.host, recv, n * b.dtype->bytes, cudaMemcpyDeviceToHost));
	for (i = 0; i < n; i++) {
		want = expected(i, count) ? b.dtype->one : 0;
		bad += memcmp(b.host + i * b.dtype->bytes, &want, b.dtype->bytes) != 0;
	}
	return bad;
}

/* --- timing ------------------------------------------------------------------------------------ */

static int by_size(const void *x, const void *y)
{
	double d = *(const double *)x - *(const double *)y;

	return d < 0 ? -1 : d > 0;
}

static void measure(size_t bytes, bool in_place, struct row *ret)
{
	size_t count = count_of(bytes);
	double *t = malloc((size_t)b.iters * sizeof(*t)), start;
	char *send, *recv;
	int i;

	if (!t)
		die("out of memory");
	memset(ret, 0, sizeof(*ret));
	ret->count = count;
	ret->bytes = count * b.dtype->bytes * (per_rank() ? (size_t)b.n_ranks : 1);
	ret->wrong = -1;
	buffers(count, in_place, &send, &recv);
	if (b.check) {
		fill(send, send_count(count));
		launch(count, send, recv);
		CUDA(cudaStreamSynchronize(b.stream));
		ret->wrong = b.redop == ncclAvg && is_reduction() ? -1 : wrong(count, recv);
	}
	for (i = 0; i < b.warmup; i++)
		launch(count, send, recv);
	CUDA(cudaStreamSynchronize(b.stream));
	for (i = 0; i < b.iters; i++) {
		start = now_us();
		launch(count, send, recv);
		CUDA(cudaStreamSynchronize(b.stream));
		t[i] = now_us() - start;
		ret->mean += t[i] / b.iters;
	}
	start = now_us();
	for (i = 0; i < b.iters; i++)
		launch(count, send, recv);
	CUDA(cudaStreamSynchronize(b.stream));
	ret->batch = (now_us() - start) / b.iters;
	qsort(t, (size_t)b.iters, sizeof(*t), by_size);
	ret->least = t[0];
	ret->median = (t[(b.iters - 1) / 2] + t[b.iters / 2]) / 2;
	ret->p99 = t[(b.iters * 99 + 99) / 100 - 1];
	free(t);
}

/* --- output ------------------------------------------------------------------------------------- */

static double busbw_factor(void)
{
	double n = b.n_ranks;

	return b.op == ALLREDUCE ? 2 * (n - 1) / n : per_rank() ? (n - 1) / n : 1;
}

static double algbw(const struct row *r)
{
	return r->batch > 0 ? (double)r->bytes / r->batch * 1e-3 : 0; /* decimal GB/s */
}

static void print_head(void)
{
	printf("# %s: nThread 1 nGpus 1 minBytes %zu maxBytes %zu ", op_names[b.op], b.min, b.max);
	if (b.step)
		printf("step: %zu(bytes)", b.step);
	else
		printf("step: %g(factor)", b.factor);
	printf(" warmup iters: %d iters: %d agg iters: 1 validation: %d graph: 0\n", b.warmup,
	       b.iters, b.check);
	printf("# nRanks %d, times of rank %d\n#\n", b.n_ranks, b.printer);
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
	printf(" %8.*f %7.2f %7.2f %6s", r->batch < 100 ? 2 : r->batch < 10000 ? 1 : 0, r->batch,
	       algbw(r), algbw(r) * busbw_factor(), bad);
}

static void print_row(const struct row *out, const struct row *in)
{
	bool has_root = b.op == BROADCAST || b.op == REDUCE;
	char root[16] = "-1";

	if (has_root)
		snprintf(root, sizeof(root), "%d", b.root);
	printf("%12zu %13zu %9s %7s %7s", out->bytes, out->count, b.dtype->name,
	       is_reduction() ? redops[b.redop] : "none", root);
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

/* --- start -------------------------------------------------------------------------------------- */

static size_t parse_size(const char *s)
{
	char *end;
	double v = strtod(s, &end);
	int shift = !strcasecmp(end, "k")   ? 10
		    : !strcasecmp(end, "m") ? 20
		    : !strcasecmp(end, "g") ? 30
		    : !*end		    ? 0
					    : -1;

	if (end == s || !(v >= 0 && v < 1e15) || shift < 0)
		die("%s is no size: a number with K, M or G is expected", s);
	return (size_t)(v * (double)(UINT64_C(1) << shift));
}

static int parse_count(const char *s, int least)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || *end || v < least || v > 100000000)
		die("%s is not a number in range", s);
	return (int)v;
}

static double parse_factor(const char *s)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !(v > 1 && v < 1e15))
		die("-f %s is no factor: a number larger than 1 is expected", s);
	return v;
}

static int find(const char *name, const char *const *names, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!strcasecmp(name, names[i]))
			return (int)i;
	}
	die("%s: no such %s", name, what);
}

static void usage(void)
{
	printf("usage: [RANK=r WORLD_SIZE=n] %s [options]\n", program_invocation_short_name);
	puts("      --op NAME      allreduce allgather reducescatter broadcast reduce alltoall\n"
	     "                     sendrecv (default: allreduce)\n"
	     "  -b, --min SIZE     first size, with K, M, G (8)\n"
	     "  -e, --max SIZE     last size (32M)\n"
	     "  -f, --factor F     from one size to the next (2)\n"
	     "  -i, --step SIZE    added instead of -f\n"
	     "  -n, --iters N      repetitions (20)\n"
	     "  -w, --warmup N     of them before, untimed (5)\n"
	     "      --dtype T      int8 uint8 int32 uint32 int64 uint64 half float double bfloat16\n"
	     "                     f8e4m3 f8e5m2 (float)\n"
	     "      --redop R      sum prod max min avg (sum)\n"
	     "      --root R       of broadcast and reduce (0)\n"
	     "      --print-rank R whose times are printed (0)\n"
	     "      --in-place     time in place, too\n"
	     "      --no-check     do not compare results\n"
	     "      --json FILE    median, mean, p99 of each size in us; '-': standard output\n"
	     "      --id-file F    where the ranks meet without NCCL_COMM_ID (default: named after MASTER_PORT)\n"
	     "SIZE is nccl-tests': of the larger buffer. JSON times are of single repetitions, but\n"
	     "for batch_us, which is the table's time.");
}

enum { OPT_OP = 256, OPT_DTYPE, OPT_REDOP, OPT_ROOT, OPT_PRINT_RANK, OPT_IN_PLACE, OPT_NO_CHECK, OPT_JSON, OPT_ID };

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{"op", 1, NULL, OPT_OP},	   {"dtype", 1, NULL, OPT_DTYPE},
		{"redop", 1, NULL, OPT_REDOP},	   {"root", 1, NULL, OPT_ROOT},
		{"print-rank", 1, NULL, OPT_PRINT_RANK},
		{"in-place", 0, NULL, OPT_IN_PLACE}, {"no-check", 0, NULL, OPT_NO_CHECK},
		{"json", 1, NULL, OPT_JSON},	   {"id-file", 1, NULL, OPT_ID},
		{"min", 1, NULL, 'b'},		   {"max", 1, NULL, 'e'},
		{"factor", 1, NULL, 'f'},	   {"step", 1, NULL, 'i'},
		{"iters", 1, NULL, 'n'},	   {"warmup", 1, NULL, 'w'},
		{"help", 0, NULL, 'h'},		   {NULL, 0, NULL, 0},
	};
	const char *names[12];
	bool has_max = false;
	size_t i;
	int o;

	for (i = 0; i < 12; i++)
		names[i] = dtypes[i].name;
	while ((o = getopt_long(argc, argv, "b:e:f:i:n:w:h", options, NULL)) >= 0) {
		switch (o) {
		case OPT_OP: b.op = (enum op)find(optarg, op_names, OPS, "op"); break;
		case OPT_DTYPE: b.dtype = &dtypes[find(optarg, names, 12, "dtype")]; break;
		case OPT_REDOP: b.redop = (ncclRedOp_t)find(optarg, redops, 5, "redop"); break;
		case OPT_ROOT: b.root = parse_count(optarg, 0); break;
		case OPT_PRINT_RANK: b.printer = parse_count(optarg, 0); break;
		case OPT_IN_PLACE: b.in_place = true; break;
		case OPT_NO_CHECK: b.check = false; break;
		case OPT_JSON: b.json = optarg; break;
		case OPT_ID: b.id_file = optarg; break;
		case 'b': b.min = parse_size(optarg); break;
		case 'e': b.max = parse_size(optarg); has_max = true; break;
		case 'f': b.factor = parse_factor(optarg); break;
		case 'i': b.step = parse_size(optarg); break;
		case 'n': b.iters = parse_count(optarg, 1); break;
		case 'w': b.warmup = parse_count(optarg, 0); break;
		case 'h': usage(); exit(0);
		default: exit(2);
		}
	}
	if (optind < argc)
		die("unexpected argument %s", argv[optind]);
	if (b.min > b.max)
		die("the first size, -b %zu, is larger than the last, -e %zu%s", b.min, b.max,
		    has_max ? "" : " when not given");
}

static int env_number(const char *name, int otherwise)
{
	const char *s = getenv(name);

	return s && *s ? parse_count(s, 0) : otherwise;
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
	if (rendezvous(b.rank, b.id_file, &id) < 0)
		exit(1);
	NCCL(ncclCommInitRank(&b.comm, b.n_ranks, id, b.rank));
	NCCL(ncclCommCount(b.comm, &count));
	b.n_ranks = count;
	rendezvous_end();
	if (b.root >= count)
		die("--root is not a rank");
	most = b.max + 64 * (size_t)b.n_ranks;
	CUDA(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc((void **)&b.send, most));
	CUDA(cudaMalloc((void **)&b.recv, most));
	CUDA(cudaMemset(b.send, 0, most));
	CUDA(cudaMemset(b.recv, 0, most));
	b.host = b.check ? malloc(most) : NULL;
	if (b.check && !b.host)
		die("out of memory");
}

/* Always larger: 0 times a factor would never end. */
static size_t next_size(size_t bytes)
{
	size_t next = b.step ? bytes + b.step : (size_t)((double)bytes * b.factor + 0.5);

	return next > bytes ? next : bytes + 1;
}

int main(int argc, char **argv)
{
	size_t bytes;
	bool prints;
	double sum = 0;
	long bad = 0;
	int n = 0;
	FILE *json = NULL;

	parse(argc, argv);
	start();
	prints = b.rank == b.printer;
	if (prints && b.json) {
		json = strcmp(b.json, "-") ? fopen(b.json, "w") : stdout;
		if (!json)
			die("%s: %s", b.json, strerror(errno));
		fprintf(json,
			"{\"op\": \"%s\", \"dtype\": \"%s\", \"redop\": \"%s\", \"ranks\": %d, "
			"\"iters\": %d, \"warmup\": %d, \"rows\": [",
			op_names[b.op], b.dtype->name, is_reduction() ? redops[b.redop] : "none",
			b.n_ranks, b.iters, b.warmup);
	}
	if (prints && json != stdout)
		print_head();
	for (bytes = b.min; bytes <= b.max;) {
		struct row out, in;

		measure(bytes, false, &out);
		if (has_in_place())
			measure(bytes, true, &in);
		if (prints && json != stdout)
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
		bytes = next_size(bytes);
	}
	if (prints && json != stdout) {
		printf("# Out of bounds values : %ld %s\n", bad, bad ? "FAILED" : "OK");
		printf("# Avg bus bandwidth    : %g\n#\n", n ? sum / n : 0);
	}
	if (json) {
		fprintf(json, "\n]}\n");
		if (json != stdout && fclose(json))
			die("%s: %s", b.json, strerror(errno));
	}
	NCCL(ncclCommDestroy(b.comm));
	CUDA(cudaFree(b.send));
	CUDA(cudaFree(b.recv));
	CUDA(cudaStreamDestroy(b.stream));
	free(b.host);
	return bad ? 1 : 0;
}
