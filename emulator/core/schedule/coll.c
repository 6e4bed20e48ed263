/* See coll.h. Sources: NCCL's public header for the enums and buffer sizes, nccl-tests'
 * PERFORMANCE document for the factors. */
#include "schedule/coll.h"

#include <ctype.h>

#include "base/cleanup.h"

static const char *const kind_names[COLL_KINDS] = {
	[COLL_ALLREDUCE] = "AllReduce",
	[COLL_ALLGATHER] = "AllGather",
	[COLL_REDUCESCATTER] = "ReduceScatter",
	[COLL_BROADCAST] = "Broadcast",
	[COLL_REDUCE] = "Reduce",
	[COLL_ALLTOALL] = "AllToAll",
	[COLL_GATHER] = "Gather",
	[COLL_SCATTER] = "Scatter",
	[COLL_SENDRECV] = "SendRecv",
};

static const struct {
	const char *name;
	size_t bytes;
} dtypes[COLL_DTYPES] = {
	[COLL_INT8] = {"int8", 1},         [COLL_UINT8] = {"uint8", 1},
	[COLL_INT32] = {"int32", 4},       [COLL_UINT32] = {"uint32", 4},
	[COLL_INT64] = {"int64", 8},       [COLL_UINT64] = {"uint64", 8},
	[COLL_FLOAT16] = {"half", 2},      [COLL_FLOAT32] = {"float", 4},
	[COLL_FLOAT64] = {"double", 8},    [COLL_BFLOAT16] = {"bfloat16", 2},
	[COLL_FLOAT8E4M3] = {"f8e4m3", 1}, [COLL_FLOAT8E5M2] = {"f8e5m2", 1},
};

const char *coll_kind_name(uint32_t kind)
{
	return kind < COLL_KINDS ? kind_names[kind] : "?";
}

bool coll_has_root(uint32_t kind)
{
	return kind == COLL_BROADCAST || kind == COLL_REDUCE || kind == COLL_GATHER ||
	       kind == COLL_SCATTER;
}

bool coll_reduces(uint32_t kind)
{
	return kind == COLL_ALLREDUCE || kind == COLL_REDUCE || kind == COLL_REDUCESCATTER;
}

static const char *skip_marks(const char *s)
{
	while (*s == '-' || *s == '_')
		s++;
	return s;
}

static int same_word(const char *a, const char *b)
{
	for (;;) {
		a = skip_marks(a);
		b = skip_marks(b);
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return 0;
		if (!*a)
			return 1;
		a++;
		b++;
	}
}

int coll_kind_parse(const char *name)
{
	for (int k = 0; k < COLL_KINDS; k++)
		if (same_word(name, kind_names[k]))
			return k;
	return -1;
}

const char *coll_dtype_name(uint32_t dtype)
{
	return dtype < COLL_DTYPES ? dtypes[dtype].name : "?";
}

size_t coll_dtype_bytes(uint32_t dtype)
{
	return dtype < COLL_DTYPES ? dtypes[dtype].bytes : 0;
}

uint64_t coll_input_bytes(uint32_t kind, uint64_t bytes, uint32_t n_ranks, int is_root)
{
	switch (kind) {
	case COLL_REDUCESCATTER:
	case COLL_ALLTOALL:
		return bytes * n_ranks;
	case COLL_BROADCAST:
		return is_root ? bytes : 0;
	case COLL_SCATTER:
		return is_root ? bytes * n_ranks : 0;
	default:
		return bytes;
	}
}

uint64_t coll_output_bytes(uint32_t kind, uint64_t bytes, uint32_t n_ranks, int is_root)
{
	switch (kind) {
	case COLL_ALLGATHER:
	case COLL_ALLTOALL:
		return bytes * n_ranks;
	case COLL_REDUCE:
		return is_root ? bytes : 0;
	case COLL_GATHER:
		return is_root ? bytes * n_ranks : 0;
	default:
		return bytes;
	}
}

double coll_busbw_factor(uint32_t kind, uint32_t n_ranks)
{
	double n = n_ranks;

	if (n_ranks == 0)
		return 0;
	switch (kind) {
	case COLL_ALLREDUCE:
		return 2 * (n - 1) / n;
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
	case COLL_ALLTOALL:
	case COLL_GATHER:
	case COLL_SCATTER:
		return (n - 1) / n;
	default: /* Broadcast, Reduce, SendRecv */
		return 1;
	}
}
