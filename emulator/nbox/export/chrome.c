/* See chrome.h. Names and arguments are those that NCCL and PyTorch (torch.profiler, Kineto) give
 * to kernels of collectives, so that tools which know these know ours: Holistic Trace Analysis
 * calls communication what begins with "nccl" and has "Kernel" in it. */
#include "nbox/export/chrome.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nbox/export/out.h"
#include "nbox/report/steps.h"
#include "schedule/coll.h"
#include "schedule/schedule.h"
#include "trace/spans.h"

#define RANKS_SHOWN 30 /* of a group, as PyTorch does */
/* HTA keeps numbers of rows in as many bits as correlations need. */
#define FIRST_CORRELATION (1 << 24)
#define HOST_THREAD 9999 /* streams have small numbers */

struct writer {
	const struct record *rec;
	FILE *to;
	bool has_event;
	uint64_t correlation; /* of the last kernel */
};

/* --- words of NCCL and PyTorch ---------------------------------------------------------------- */

static const char *const nccl_types[COLL_DTYPES] = {"i8",  "u8",   "i32",    "u32",
						    "i64", "u64",  "f16",    "f32",
						    "f64", "bf16", "f8e4m3", "f8e5m2"};
static const char *const torch_types[COLL_DTYPES] = {"Char",     "Byte",          "Int",
						     "UInt32",   "Long",          "UInt64",
						     "Half",     "Float",         "Double",
						     "BFloat16", "Float8_e4m3fn", "Float8_e5m2"};
static const char *const torch_names[COLL_KINDS] = {
	"allreduce", "_allgather_base", "_reduce_scatter_base",
	"broadcast", "reduce",          "all_to_all",
	"gather",    "scatter",         "coalesced"};

static const char *redop_name(const struct record_op *op)
{
	static const char *const names[] = {"Sum", "Prod", "MinMax", "MinMax"};

	if (op->redop < COLL_AVG)
		return names[op->redop];
	return op->redop == COLL_AVG && op->dtype < COLL_FLOAT16 ? "SumPostDiv" : "PreMulSum";
}

/* NCCL's kernels of all protocols are called LL. */
static void print_kernel(const struct record_op *op, FILE *to)
{
	bool is_p2p = op->kind > COLL_REDUCE;

	fprintf(to, "ncclDevKernel_%s", coll_kind_name(is_p2p ? COLL_SENDRECV : op->kind));
	if (coll_reduces(op->kind))
		fprintf(to, "_%s_%s", redop_name(op), nccl_types[op->dtype]);
	if (!is_p2p)
		fputs(op->algo == SCHED_TREE ? "_TREE_LL" : "_RING_LL", to);
}

static const char *collective_name(const struct record_op *op)
{
	if (op->kind == COLL_SENDRECV && op->n_calls == 1)
		return op->calls[0].is_send ? "send" : "recv";
	return torch_names[op->kind];
}

static uint32_t device_of(const struct writer *t, uint32_t rank)
{
	uint32_t n = t->rec->header.gpus_per_node;

	return n ? rank % n : 0;
}

/* --- events ------------------------------------------------------------------------------------
 */

static void begin(struct writer *t, char phase, const char *category, uint32_t rank,
		  uint32_t thread)
{
	fprintf(t->to, "%s\n{\"ph\": \"%c\", ", t->has_event ? "," : "", phase);
	if (category)
		fprintf(t->to, "\"cat\": \"%s\", ", category);
	fprintf(t->to, "\"pid\": %u, \"tid\": %u, \"name\": ", rank, thread);
	t->has_event = true;
}

static void print_us(FILE *to, const char *key, uint64_t ns)
{
	fprintf(to, ", \"%s\": %" PRIu64 ".%03u", key, ns / 1000, (unsigned int)(ns % 1000));
}

static void times(struct writer *t, uint64_t from_ns, uint64_t end_ns)
{
	uint64_t start = t->rec->header.start_ns;

	print_us(t->to, "ts", from_ns > start ? from_ns - start : 0);
	print_us(t->to, "dur", end_ns > from_ns ? end_ns - from_ns : 0);
}

static void name_it(struct writer *t, const char *what, uint32_t rank, uint32_t thread,
		    const char *name, uint32_t number)
{
	begin(t, 'M', NULL, rank, thread);
	fprintf(t->to, "\"%s\", \"ts\": 0, \"args\": {\"name\": \"%s %u\"}}", what, name, number);
}

static void print_ranks(const struct record_comm *c, FILE *to)
{
	fputs("\"[", to);
	for (uint32_t i = 0; i < c->n_ranks && i < RANKS_SHOWN; i++)
		fprintf(to, "%s%u", i ? ", " : "", record_world_rank(c, i));
	fputs(c->n_ranks > RANKS_SHOWN ? ", ...]\"" : "]\"", to);
}

static void print_sizes(const struct record_op *op, FILE *to)
{
	uint64_t in = coll_input_bytes(op->kind, op->bytes, op->of->n_ranks, op->rank == op->root);
	uint64_t out =
		coll_output_bytes(op->kind, op->bytes, op->of->n_ranks, op->rank == op->root);
	uint64_t each = coll_dtype_bytes(op->dtype);

	if (op->kind == COLL_SENDRECV) {
		in = out = 0;
		for (uint32_t i = 0; i < op->n_calls; i++)
			*(op->calls[i].is_send ? &in : &out) += op->calls[i].bytes;
	}
	fprintf(to, ", \"In msg nelems\": %" PRIu64 ", \"Out msg nelems\": %" PRIu64, in / each,
		out / each);
}

/* A kernel up to its arguments, and its launch: tools take no kernel for a step's that nobody
 * launched in it. Nothing is said of when the host did: it is at the kernel's own time, at the next
 * whole us, since tools round to these. */
static void kernel(struct writer *t, const struct span *s, uint32_t stream, uint64_t from_ns,
		   uint64_t end_ns, const struct record_op *op)
{
	uint64_t late_ns = (from_ns - t->rec->header.start_ns) % 1000;
	uint64_t launch_ns = from_ns + (late_ns ? 1000 - late_ns : 0);

	begin(t, 'X', "cuda_runtime", s->world_rank, HOST_THREAD);
	fputs("\"cudaLaunchKernel\"", t->to);
	times(t, launch_ns, launch_ns);
	fprintf(t->to, ", \"args\": {\"correlation\": %" PRIu64 "}}", ++t->correlation);
	begin(t, 'X', "kernel", s->world_rank, stream);
	putc('"', t->to);
	if (op)
		print_kernel(op, t->to);
	else
		fputs("computation", t->to);
	putc('"', t->to);
	times(t, from_ns, end_ns);
	fprintf(t->to, ", \"args\": {\"device\": %u, \"stream\": %u, \"correlation\": %" PRIu64,
		device_of(t, s->world_rank), stream, t->correlation);
}

static void op_event(struct writer *t, const struct span *s)
{
	const struct record_op *op = s->op;

	kernel(t, s, op->stream, s->at_ns, s->end_ns, op);
	fprintf(t->to, ", \"Collective name\": \"%s\", \"dtype\": \"%s\"", collective_name(op),
		torch_types[op->dtype]);
	print_sizes(op, t->to);
	fprintf(t->to,
		", \"Group size\": %u, \"Rank\": %u, \"Seq\": %" PRIu64
		", \"Process Group Name\": \"%u\", \"Process Group Description\": "
		"\"communicator %u\", \"Process Group Ranks\": ",
		op->of->n_ranks, op->rank, op->seq, op->comm, op->comm);
	print_ranks(op->of, t->to);
	fprintf(t->to, ", \"modelled us\": %.3f, \"injected us\": %.3f}}", op->model_ns / 1e3,
		op->injected_ns / 1e3);
}

static void computation(struct writer *t, const struct span *s)
{
	kernel(t, s, s->stream, s->from_ns, s->at_ns, NULL);
	fputs("}}", t->to);
}

/* --- a rank ------------------------------------------------------------------------------------
 */

static int by_number(const void *pa, const void *pb)
{
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	return a < b ? -1 : a > b;
}

/* Names of the rank and its streams. Return: 0; -ENOMEM. */
static int name_rank(struct writer *t, const struct span *list, size_t n)
{
	CLEANUP(freep) uint32_t *streams = calloc(n, sizeof(*streams));
	uint32_t rank = list->world_rank;

	if (!streams)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		streams[i] = list[i].op ? list[i].op->stream : list[i].stream;
	qsort(streams, n, sizeof(*streams), by_number);
	name_it(t, "process_name", rank, 0, "rank", rank);
	name_it(t, "thread_name", rank, HOST_THREAD, "steps and launches of rank", rank);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || streams[i] != streams[i - 1])
			name_it(t, "thread_name", rank, streams[i], "stream", streams[i]);
	return 0;
}

/* The steps that were found in the rank's ops, as PyTorch's profiler marks them. Return: 0;
 * -ENOMEM. */
static int steps(struct writer *t, const struct span *list, size_t n)
{
	CLEANUP(freep) struct record_op *ops = calloc(n, sizeof(*ops));
	CLEANUP(steps_deinit) struct steps s = {0};
	uint64_t n_ops = 0;
	int r;

	if (!ops)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (list[i].op)
			ops[n_ops++] = *list[i].op;
	qsort(ops, n_ops, sizeof(*ops), steps_order);
	r = steps_find(t->rec, ops, n_ops, &s);
	for (uint64_t k = 0; k < s.n; k++)
		if (s.list[k].is_timed) {
			begin(t, 'X', "user_annotation", list->world_rank, HOST_THREAD);
			fprintf(t->to, "\"ProfilerStep#%" PRIu64 "\"", k + 1);
			times(t, ops[s.list[k].first].virtual_arrive_ns,
			      ops[s.list[k].end].virtual_arrive_ns);
			putc('}', t->to);
		}
	return r;
}

static int rank_events(struct writer *t, const struct span *list, size_t n)
{
	int r = name_rank(t, list, n);

	for (size_t i = 0; i < n; i++) {
		if (list[i].from_ns < list[i].at_ns)
			computation(t, &list[i]);
		if (list[i].op)
			op_event(t, &list[i]);
	}
	return r < 0 ? r : steps(t, list, n);
}

/* --- files -------------------------------------------------------------------------------------
 */

/* The ranks of the spans [first, end). */
static int write_file(const struct record *rec, const struct spans *s, size_t first, size_t end,
		      const char *path, struct err *err)
{
	const struct record_header *h = &rec->header;
	struct writer t = {.rec = rec, .correlation = FIRST_CORRELATION};
	int r = out_create(path, &t.to, err), finished;

	if (r < 0)
		return r;
	fprintf(t.to,
		"{\n\"schemaVersion\": 1,\n\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": "
		"%u, \"world_size\": %u},\n\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": "
		"%" PRIu64 ",\n\"traceEvents\": [",
		first < end ? s->list[first].world_rank : 0, h->world_size, h->start_unix_ns);
	for (size_t i = first; r == 0 && i < end; i = spans_rank_end(s, i))
		r = rank_events(&t, &s->list[i], spans_rank_end(s, i) - i);
	fputs("\n]\n}\n", t.to);
	finished = file_finish(t.to, path, err);
	return r < 0 ? r : finished;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return path[strlen(path) - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

int chrome_write(const struct record *rec, const char *path, struct err *err)
{
	CLEANUP(spans_deinit) struct spans s = {0};
	char file[PATH_MAX];
	int r = spans_find(rec, &s);

	if (r < 0 || !is_folder(path))
		return r < 0 ? r : write_file(rec, &s, 0, s.n, path, err);
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: cannot be made: %s", path, strerror(errno));
	for (size_t i = 0; r == 0 && i < s.n; i = spans_rank_end(&s, i)) {
		snprintf(file, sizeof(file), "%s/rank-%u.json.gz", path, s.list[i].world_rank);
		r = write_file(rec, &s, i, spans_rank_end(&s, i), file, err);
	}
	return r;
}
