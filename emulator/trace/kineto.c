/* See kineto.h. Names are those that Kineto's output_json.cpp and PyTorch's getNcclMeta() write. */
#include "trace/kineto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schedule/coll.h"
#include "trace/torch-words.h"

#define COMMS_MAX (1 << 14)

enum category { OPERATOR, CALL, KERNEL, COPY, WAIT, RANGE, CATEGORIES };

static const struct {
	const char *name;
	enum category category;
} categories[] = {
	{"cpu_op", OPERATOR}, {"cuda_runtime", CALL},     {"cuda_driver", CALL},
	{"kernel", KERNEL},   {"gpu_memcpy", COPY},       {"gpu_memset", COPY},
	{"cuda_sync", WAIT},  {"user_annotation", RANGE},
};

static uint32_t number_or(const struct json_value *object, const char *name, uint32_t other)
{
	uint64_t n;

	return chrome_number(object, name, &n) && n < TRACE_NONE ? (uint32_t)n : other;
}

/* --- collectives -------------------------------------------------------------------------------
 */

/* The members that the file's header says of the group. Return: how many; 0; -ENOMEM. */
static int told_members(const struct chrome *c, const char *group, uint64_t n, uint32_t **ret)
{
	const struct json_value *list = json_value_get(c->info.list, "pg_config"), *entry = NULL;
	uint64_t world;

	while ((entry = json_value_next(list, entry)) != NULL) {
		const char *name = json_value_text(json_value_get(entry, "pg_name"));

		if (name && strcmp(name, group) == 0)
			return torch_ranks(json_value_get(entry, "ranks"), ret);
	}
	if (!chrome_number(c->info.list, "world_size", &world) || world != n || n > TRACE_RANKS_MAX)
		return 0;
	*ret = calloc(n + 1, sizeof(**ret));
	for (uint32_t rank = 0; *ret && rank < n; rank++)
		(*ret)[rank] = rank;
	return *ret ? (int)n : -ENOMEM;
}

/* Return: 0; -EINVAL, -EFBIG with the sentence; -ENOMEM. */
static int find_comm(struct chrome *c, const struct json_value *args, uint32_t *ret,
		     struct err *err)
{
	const char *group = json_value_text(json_value_get(args, "Process Group Name"));
	CLEANUP(freep) uint32_t *members = NULL;
	uint64_t n = 0;
	int known;

	*ret = TRACE_NONE;
	if (!group || !chrome_number(args, "Group size", &n))
		return 0;
	if (n == 0 || n > TRACE_RANKS_MAX)
		return err_set(err, EINVAL, "Group size: %.12g: a process group has 1 to %d ranks",
			       (double)n, TRACE_RANKS_MAX);
	if (c->t->n_comms == COMMS_MAX)
		return err_set(err, EFBIG, "more than %d process groups", COMMS_MAX);
	known = torch_ranks(json_value_get(args, "Process Group Ranks"), &members);
	if (known >= 0 && (uint64_t)known != n) {
		free(steal_ptr(members));
		known = told_members(c, group, n, &members);
	}
	if (known < 0)
		return known;
	return trace_add_comm(c->t, group, (uint32_t)n, (uint64_t)known == n ? members : NULL, ret);
}

/* As NCCL's call takes them, of what goes in and comes out. */
static uint64_t count_of(uint32_t kind, uint64_t in, uint64_t out, uint64_t group)
{
	uint64_t most = in > out ? in : out;

	switch (kind) {
	case COLL_ALLGATHER:
	case COLL_GATHER:
		return in;
	case COLL_REDUCESCATTER:
	case COLL_SCATTER:
		return out;
	case COLL_ALLTOALL:
		return group ? in / group : in;
	default:
		return most;
	}
}

/* What PyTorch says of NCCL's kernel. Return: 0; -EINVAL, -EFBIG with the sentence; -ENOMEM. */
static int read_collective(struct chrome *c, const struct json_value *args, const char *kernel,
			   struct trace_op *op, struct err *err)
{
	const char *name = json_value_text(json_value_get(args, "Collective name"));
	uint64_t in = 0, out = 0, group = 0, bytes,
		 each = torch_type_bytes(json_value_text(json_value_get(args, "dtype")));
	int kind = torch_collective(name, kernel), r;

	op->kind = TRACE_COLLECTIVE;
	if (kind == TORCH_SEND || kind == TORCH_RECV) {
		op->kind = kind == TORCH_SEND ? TRACE_SEND : TRACE_RECV;
		op->peer =
			number_or(args, kind == TORCH_SEND ? "Dst Rank" : "Src Rank", TRACE_NONE);
	} else if (kind >= 0) {
		op->coll = (uint32_t)kind;
		op->peer = number_or(args, "Root", TRACE_NONE);
	}
	r = chrome_count(args, "In msg nelems", &in, err);
	r = r < 0 ? r : chrome_count(args, "Out msg nelems", &out, err);
	r = r < 0 ? r : chrome_count(args, "Group size", &group, err);
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(count_of(op->coll, in, out, group), each, &bytes))
		return err_set(err, EINVAL, "a collective of %llu elements: that is none",
			       (unsigned long long)(in > out ? in : out));
	op->bytes = bytes;
	if (op->coll != COLL_SENDRECV && !chrome_number(args, "Seq", &op->seq))
		op->seq = UINT64_MAX;
	return find_comm(c, args, &op->comm, err);
}

/* --- events ------------------------------------------------------------------------------------
 */

/* Of the GPU. */
static int take_gpu(struct chrome *c, const struct json_value *event, enum category category,
		    struct trace_op *op, struct err *err)
{
	const char *name = json_value_text(json_value_get(event, "name"));
	const struct json_value *args = json_value_get(event, "args");
	uint64_t correlation;
	uint32_t n;
	int r = 0;

	op->kind = category == COPY ? TRACE_COPY : TRACE_COMPUTE;
	op->stream = number_or(args, "stream", op->stream);
	if (category == COPY)
		chrome_number(args, "bytes", &op->bytes);
	else if (strncmp(name, "nccl", 4) == 0 || json_value_get(args, "Collective name"))
		r = read_collective(c, args, name, op, err);
	if (r == 0)
		r = chrome_add(c, event, name, op, &n, err);
	if (r == 0 && chrome_number(args, "correlation", &correlation) && correlation)
		r = chrome_add_id(&c->gpu, correlation, op->rank, n);
	return r;
}

/* An operator, or a call of CUDA: those for which a GPU's op may name them have a correlation. */
static int take_host(struct chrome *c, const struct json_value *event, enum category category,
		     struct trace_op *op, struct err *err)
{
	const char *name = json_value_text(json_value_get(event, "name"));
	uint64_t correlation;
	uint32_t n;
	int r;

	op->kind = category == OPERATOR          ? TRACE_HOST
		   : strstr(name, "Synchronize") ? TRACE_SYNC
						 : TRACE_CALL;
	/* A mark of a kernel, as nbox report --trace writes one for tools, and no call. */
	if (op->kind == TRACE_CALL && json_value_number(json_value_get(event, "dur")) == 0)
		return 0;
	r = chrome_add(c, event, name, op, &n, err);
	if (r == 0 && chrome_number(json_value_get(event, "args"), "correlation", &correlation) &&
	    correlation)
		r = chrome_add_id(&c->calls, correlation, op->rank, n);
	return r;
}

/* What waits for which stream: written with enable_cuda_sync_events. */
static int take_wait(struct chrome *c, const struct json_value *event, uint32_t slot)
{
	const char *name = json_value_text(json_value_get(event, "name"));
	const struct json_value *args = json_value_get(event, "args");
	struct chrome_wait w = {.slot = slot, .is_host = strcmp(name, "Stream Wait Event") != 0};

	w.stream = number_or(args, "stream", TRACE_NONE);
	w.on_stream = number_or(args, "wait_on_stream", w.is_host ? w.stream : TRACE_NONE);
	if (!chrome_number(args, "correlation", &w.id) || w.on_stream == TRACE_NONE ||
	    (!w.is_host && w.stream == TRACE_NONE))
		return 0; /* a context's: all streams */
	if (!chrome_number(args, "wait_on_cuda_event_record_corr_id", &w.record))
		w.record = w.id;
	return chrome_add_wait(c, w);
}

static int take_range(struct chrome *c, const struct json_value *event, uint32_t slot,
		      struct err *err)
{
	const char *name = json_value_text(json_value_get(event, "name"));
	struct chrome_step step = {.slot = slot};
	int r;

	if (strncmp(name, "ProfilerStep#", 13) != 0)
		return 0;
	step.number = (uint32_t)strtoul(name + 13, NULL, 10);
	r = chrome_times(c, event, &step.start_ns, &step.end_ns, err);
	return r < 0 ? r : chrome_add_step(c, step);
}

int kineto_event(struct chrome *c, const struct json_value *event, struct err *err)
{
	const char *category = json_value_text(json_value_get(event, "cat"));
	struct trace_op op = {.seq = UINT64_MAX,
			      .coll = TRACE_NONE,
			      .comm = TRACE_NONE,
			      .peer = TRACE_NONE,
			      .stream = number_or(event, "tid", 0)};
	size_t i = 0;
	int r;

	while (category && i < ARRAY_SIZE(categories) && strcmp(categories[i].name, category) != 0)
		i++;
	if (!category || i == ARRAY_SIZE(categories))
		return 0;
	r = chrome_slot(c, event, &op.rank, err);
	if (r < 0)
		return r;
	switch (categories[i].category) {
	case OPERATOR:
	case CALL:
		r = take_host(c, event, categories[i].category, &op, err);
		break;
	case KERNEL:
	case COPY:
		r = take_gpu(c, event, categories[i].category, &op, err);
		break;
	case WAIT:
		r = take_wait(c, event, op.rank);
		break;
	case RANGE:
		r = take_range(c, event, op.rank, err);
		break;
	case CATEGORIES:
		break;
	}
	return r < 0 ? r : 1;
}
