/* Makes communicators of a virtual size with the user's own NCCL, and asks NCCL what its ops would
 * cost. `nbox oracle` starts it, plays the ranks that do not exist, and writes down what it says.
 *
 *   nbox-oracle PLUGIN [--nccl FILE] [--cudart FILE]
 *
 * It talks over descriptor ORACLE_FD (lines.h). An op is asked for on rank 0's communicator alone:
 * the plug-in notes NCCL's costs and stops the op there, so that nothing is connected, allocated or
 * launched, and its buffers are addresses that nobody looks at. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "nbox-oracle/libraries.h"
#include "nbox-oracle/lines.h"
#include "nbox-oracle/tuner.h"

#define GPUS_MAX 64
#define ELEMENT_BYTES 2 /* bfloat16: what jobs send most, and what NVLS can add */
#define NOWHERE ((void *)(uintptr_t)0x10000)

static struct {
	struct libraries lib;
	struct tuner tuner;
	FILE *in, *out; /* of the same socket */
	ncclComm_t comms[GPUS_MAX];
	int n_gpus; /* of comms; 0: there is no communicator */
	int n_ranks;
	struct nbox_oracle_device devices[NBOX_ORACLE_DEVICES_MAX];
	size_t n_devices;
} o;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(o.out, fmt, ap);
	va_end(ap);
	fputc('\n', o.out);
	fflush(o.out);
}

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* NCCL's threads may be anywhere: nothing is taken down. */
static void fail(const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = ' ';
	say("failed %s", text);
	_exit(1);
}

static void nccl(ncclResult_t result, const char *what)
{
	const char *last;

	if (result == ncclSuccess)
		return;
	last = o.lib.GetLastError(NULL);
	fail("%s: %s%s%s", what, o.lib.GetErrorString(result), last && *last ? ": " : "",
	     last ? last : "");
}

static void cuda(int result, const char *what)
{
	if (result)
		fail("%s: %s", what, o.lib.cudaGetErrorString(result));
}

/* A NIC of the network that moves nothing. All come before the first world. */
static void take_device(const char *line)
{
	struct nbox_oracle_device *d = &o.devices[o.n_devices];
	char name[128];
	int gdr, r;

	if (o.n_devices == NBOX_ORACLE_DEVICES_MAX ||
	    sscanf(line, "device %127s %" SCNx64 " %d %d %f %d %d", name, &d->guid, &d->port,
		   &d->speed_mbps, &d->latency_us, &d->n_comms_max, &gdr) != 7)
		fail("nbox said '%.40s'", line);
	d->has_gdr = gdr != 0;
	d->name = strdup(name);
	r = d->name ? o.tuner.set_devices(o.devices, ++o.n_devices, NBOX_ORACLE_FUSED) : -ENOMEM;
	if (r < 0)
		fail("the network's device %s: %s", name, strerror(-r));
	say("device");
}

static uint64_t gpu_bytes_used(void)
{
	size_t free_bytes = 0, total = 0;

	cuda(o.lib.cudaSetDevice(0), "cudaSetDevice");
	cuda(o.lib.cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
	return total - free_bytes;
}

static uint64_t rss_bytes(void)
{
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int hex_byte(const char *s)
{
	char two[3] = {s[0], s[0] ? s[1] : 0, 0}, *end;
	long v = strtol(two, &end, 16);

	return end == two + 2 && isxdigit((unsigned char)two[0]) ? (int)v : -1;
}

static void make_world(const char *line)
{
	uint64_t start_ns, rss = rss_bytes(), gpu;
	ncclUniqueId id;
	char text[2 * sizeof(id.internal) + 1];

	if (sscanf(line, "world %d %d %256s", &o.n_ranks, &o.n_gpus, text) != 3 || o.n_gpus < 1 ||
	    o.n_gpus > GPUS_MAX || o.n_ranks < o.n_gpus || strlen(text) != sizeof(text) - 1)
		fail("nbox said '%.40s...'", line);
	if (o.n_gpus > o.lib.n_gpus)
		fail("there are %d GPUs here, and the nodes are to have %d: --gpus-per-node",
		     o.lib.n_gpus, o.n_gpus);
	for (size_t i = 0; i < sizeof(id.internal); i++) {
		int byte = hex_byte(text + 2 * i);

		if (byte < 0)
			fail("nbox said an id that is none");
		id.internal[i] = (char)byte;
	}
	gpu = gpu_bytes_used();
	start_ns = clock_now_ns();
	nccl(o.lib.GroupStart(), "ncclGroupStart");
	for (int i = 0; i < o.n_gpus; i++) {
		cuda(o.lib.cudaSetDevice(i), "cudaSetDevice");
		nccl(o.lib.CommInitRank(&o.comms[i], o.n_ranks, id, i), "ncclCommInitRank");
	}
	nccl(o.lib.GroupEnd(), "ncclCommInitRank");
	start_ns = clock_now_ns() - start_ns;
	gpu = gpu_bytes_used() - gpu;
	rss = rss_bytes() - rss;
	say("world %" PRIu64 " %" PRIi64 " %" PRIi64, start_ns, (int64_t)rss, (int64_t)gpu);
}

static ncclResult_t call(enum oracle_op op, size_t count)
{
	const struct libraries *l = &o.lib;
	ncclComm_t comm = o.comms[0];

	switch (op) {
	case ORACLE_ALLREDUCE:
		return l->AllReduce(NOWHERE, NOWHERE, count, ncclBfloat16, ncclSum, comm, NULL);
	case ORACLE_ALLGATHER:
		return l->AllGather(NOWHERE, NOWHERE, count, ncclBfloat16, comm, NULL);
	case ORACLE_REDUCESCATTER:
		return l->ReduceScatter(NOWHERE, NOWHERE, count, ncclBfloat16, ncclSum, comm, NULL);
	case ORACLE_BROADCAST:
		return l->Broadcast(NOWHERE, NOWHERE, count, ncclBfloat16, 0, comm, NULL);
	case ORACLE_REDUCE:
		return l->Reduce(NOWHERE, NOWHERE, count, ncclBfloat16, ncclSum, 0, comm, NULL);
	case ORACLE_OPS:
	default:
		return ncclInvalidArgument;
	}
}

static void ask(const char *line)
{
	struct oracle_costs costs = {.op = ORACLE_OPS};
	char word[32], answer[ORACLE_LINE_MAX];
	ncclResult_t called, ended;
	uint64_t bytes;
	size_t count;

	if (sscanf(line, "ask %31s %" SCNu64, word, &bytes) != 2 || !o.n_gpus)
		fail("nbox said '%.40s'", line);
	for (int i = 0; i < ORACLE_OPS; i++)
		if (strcmp(word, oracle_op_names[i]) == 0)
			costs.op = (enum oracle_op)i;
	count = bytes / ELEMENT_BYTES;
	if (costs.op == ORACLE_ALLGATHER || costs.op == ORACLE_REDUCESCATTER)
		count /= (size_t)o.n_ranks; /* of each rank */
	if (costs.op == ORACLE_OPS)
		fail("nbox said '%.40s'", line);
	if (count == 0) {
		say("none %s %" PRIu64, word, bytes);
		return;
	}
	cuda(o.lib.cudaSetDevice(0), "cudaSetDevice");
	tuner_forget(&o.tuner);
	nccl(o.lib.GroupStart(), "ncclGroupStart");
	called = call(costs.op, count);
	ended = o.lib.GroupEnd(); /* the plug-in's own error, where it was asked */
	if (!tuner_take(&o.tuner, &costs)) {
		nccl(called, word);
		nccl(ended, word);
		fail("NCCL did not ask its tuner about %s of %" PRIu64 " bytes", word, bytes);
	}
	if (oracle_costs_print(&costs, answer, sizeof(answer)) >= (int)sizeof(answer))
		fail("NCCL has %u algorithms, more than nbox can take", costs.n_algos);
	say("%s", answer);
}

static void end_world(void)
{
	uint64_t start_ns = clock_now_ns();
	struct nbox_oracle_counts counts;

	nccl(o.lib.GroupStart(), "ncclGroupStart");
	for (int i = 0; i < o.n_gpus; i++)
		nccl(o.lib.CommDestroy(o.comms[i]), "ncclCommDestroy");
	nccl(o.lib.GroupEnd(), "ncclCommDestroy");
	o.n_gpus = 0;
	o.tuner.counts(&counts);
	say("end %" PRIu64 " %" PRIu64, clock_now_ns() - start_ns,
	    counts.n_connects + counts.n_accepts);
}

int main(int argc, char **argv)
{
	const char *nccl_file = NULL, *cudart_file = NULL;
	char line[ORACLE_LINE_MAX];
	struct err err = {""};

	o.in = fdopen(ORACLE_FD, "re");
	o.out = fdopen(fcntl(ORACLE_FD, F_DUPFD_CLOEXEC, ORACLE_LOG_FD + 1), "we");
	if (argc < 2 || !o.in || !o.out) {
		fprintf(stderr, "nbox-oracle: nbox oracle starts it\n");
		return 2;
	}
	for (int i = 2; i + 1 < argc; i += 2)
		*(strcmp(argv[i], "--nccl") == 0 ? &nccl_file : &cudart_file) = argv[i + 1];
	if (libraries_open(nccl_file, cudart_file, &o.lib, &err) < 0 ||
	    tuner_open(&o.tuner, argv[1], &err) < 0)
		fail("%s", err.text);
	say("ready %d %d %s\t%s", o.lib.version, o.lib.n_gpus, o.lib.nccl_path, o.lib.gpu_name);
	while (fgets(line, sizeof(line), o.in)) {
		if (strncmp(line, "world ", 6) == 0)
			make_world(line);
		else if (strncmp(line, "ask ", 4) == 0)
			ask(line);
		else if (strncmp(line, "device ", 7) == 0)
			take_device(line);
		else if (strcmp(line, "end\n") == 0)
			end_world();
		else
			fail("nbox said '%.40s'", line);
	}
	_exit(0);
}
