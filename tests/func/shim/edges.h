/* For tests of what libnbox.so tells nboxd of the job's streams: what their workers share, and what
 * came, as text. */
#pragma once

#include "daemon.h"

#define MS 10 /* a piece of computing */

/* --- the worker ----------------------------------------------------------------------- */

static _Thread_local ncclComm_t comm;

static inline void sleep_a_while(void *arg)
{
	(void)arg;
	usleep(MS * 1000);
}

static inline void compute(cudaStream_t s)
{
	CUDA(cudaLaunchHostFunc(s, sleep_a_while, NULL));
}

static inline cudaStream_t stream(unsigned int flags)
{
	cudaStream_t s;

	CUDA(cudaStreamCreateWithFlags(&s, flags));
	return s;
}

static inline cudaEvent_t event(void)
{
	cudaEvent_t ev;

	CUDA(cudaEventCreateWithFlags(&ev, cudaEventDisableTiming));
	return ev;
}

/* @to waits for what is on @from now. */
static inline void follow(cudaStream_t to, cudaStream_t from)
{
	cudaEvent_t ev = event();

	CUDA(cudaEventRecord(ev, from));
	CUDA(cudaStreamWaitEvent(to, ev, 0));
	CUDA(cudaEventDestroy(ev));
}

static inline void op(cudaStream_t s)
{
	static _Thread_local float *buf;

	if (!buf)
		CUDA(cudaMalloc((void **)&buf, sizeof(*buf)));
	NCCL(ncclAllReduce(buf, buf, 1, ncclFloat, ncclSum, comm, s));
}

/* --- nboxd ------------------------------------------------------------------------------ */

/* What came, in the order of the names: "A" to "Z" are ops, "a" to "z" places in streams, "0" to
 * "9" points of the host. Behind it what it waited for, with "." behind what lies on its own
 * stream. What came several times under one name has a row each time. Points of the host without
 * anything behind them are passed over: such a wait was for computation, or for a busy machine. */
static char rows[1024];
static int rows_of = -1; /* a world rank whose only communicator is COMM + that; -1: all there is */

static inline uint64_t name_of(unsigned int i)
{
	uint32_t rank = g.frames[i].hdr.type == WIRE_POINT ? g.frames[i].hdr.rank
							   : g.frames[i].hdr.comm - COMM;

	if (rows_of >= 0 && rank != (uint32_t)rows_of)
		return 0;
	if (g.frames[i].hdr.type == WIRE_POINT && g.frames[i].point.kind == WIRE_POINT_HOST &&
	    g.frames[i].point.n_deps == 0)
		return 0;
	return g.frames[i].hdr.type == WIRE_POINT    ? g.frames[i].point.name
	       : g.frames[i].hdr.type == WIRE_ARRIVE ? g.frames[i].arrive.name
						     : 0;
}

static inline bool is_first(unsigned int i)
{
	for (unsigned int j = 0; j < i; j++)
		if (name_of(j) == name_of(i))
			return false;
	return name_of(i) != 0;
}

static inline char kind_of(unsigned int i)
{
	return g.frames[i].hdr.type == WIRE_ARRIVE           ? 'A'
	       : g.frames[i].point.kind == WIRE_POINT_STREAM ? 'a'
							     : '0';
}

static inline uint64_t order(uint64_t name)
{
	return name & ~WIRE_NAME_CAPTURED;
}

static inline char letter_of(uint64_t name)
{
	unsigned int of = 0;
	char c;

	while (of < g.n && name_of(of) != name)
		of++;
	assert_true(of < g.n);
	c = kind_of(of);
	for (unsigned int i = 0; i < g.n; i++)
		c = (char)(c + (is_first(i) && kind_of(i) == kind_of(of) &&
				order(name_of(i)) < order(name)));
	return c;
}

static inline const struct wire_dep *deps_of(unsigned int i, uint32_t *ret_n)
{
	bool is_point = g.frames[i].hdr.type == WIRE_POINT;
	size_t skip = is_point ? sizeof(struct wire_point) : sizeof(struct wire_arrive);

	*ret_n = is_point ? g.frames[i].point.n_deps : g.frames[i].arrive.n_deps;
	return (const struct wire_dep *)(const void *)(g.frames[i].bytes + skip);
}

/* What an op or a point names is known, and if it is an op it is over. */
static inline void check_order(unsigned int at, uint64_t name)
{
	unsigned int i = at;

	while (i-- > 0 && name_of(i) != name)
		;
	if (i == UINT32_MAX)
		fail_msg("frame %u names %c, which comes later", at, letter_of(name));
	if (g.frames[i].hdr.type == WIRE_POINT)
		return;
	for (unsigned int j = i; j < at; j++)
		if (g.frames[j].hdr.type == WIRE_DONE &&
		    g.frames[j].hdr.comm == g.frames[i].hdr.comm &&
		    g.frames[j].hdr.seq == g.frames[i].hdr.seq)
			return;
	fail_msg("frame %u names %c, which is not over", at, letter_of(name));
}

static inline void add_row(unsigned int i)
{
	uint32_t n_deps;
	const struct wire_dep *deps = deps_of(i, &n_deps);
	char *end = rows + strlen(rows);

	assert_true((size_t)(end - rows) + 2 * n_deps + 3 < sizeof(rows));
	if (rows[0])
		*end++ = ' ';
	*end++ = letter_of(name_of(i));
	for (char c = '0'; c <= 'z'; c++) {
		for (uint32_t d = 0; d < n_deps; d++) {
			if (letter_of(deps[d].name) != c)
				continue;
			check_order(i, deps[d].name);
			*end++ = c;
			if (deps[d].is_same_stream)
				*end++ = '.';
		}
	}
	*end = '\0';
}

/* Answers @n_ops ops from number @first on. */
static inline void play_from(unsigned int first, unsigned int n_ops)
{
	for (unsigned int seq = first; seq < first + n_ops; seq++)
		answer_op(seq, 1);
}

static inline void check_rows(const char *want)
{
	uint64_t most = 0;

	rows[0] = '\0';
	for (unsigned int i = 0; i < g.n; i++)
		most = order(name_of(i)) > most ? order(name_of(i)) : most;
	for (uint64_t name = 1; name <= most; name++)
		for (unsigned int i = 0; i < g.n; i++)
			if (order(name_of(i)) == name)
				add_row(i);
	assert_string_equal(rows, want);
}

static inline void see_rows(const char *want)
{
	end(0);
	check_rows(want);
}

static inline void play(const char *part, unsigned int n_ops, const char *want)
{
	start(part, true);
	answer_init();
	play_from(0, n_ops);
	see_rows(want);
}
