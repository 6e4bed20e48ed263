/* See job.h. */
#include "nbox/replay/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/coll.h"

const struct job_row job_begin = {.stream = JOB_NONE, .name = JOB_NONE, .op = JOB_NONE};

void job_deinit(struct job *j)
{
	for (uint32_t i = 0; i < j->n_comms; i++) {
		free(j->comms[i].copies);
		free((void *)(uintptr_t)j->comms[i].members.table);
	}
	for (uint32_t i = 0; i < j->n_names; i++)
		free(j->names[i]);
	free(j->ranks);
	free(j->n_alike);
	free(j->rows);
	free(j->edges);
	free(j->ops);
	free(j->members);
	free(j->calls);
	free(j->comms);
	free(j->streams);
	free(j->steps);
	free(j->names);
	*j = (struct job){.n_rows = 0};
}

/* Lists grow when their length is a power of 2. Return: 0; -ENOMEM. */
static int append(void *list, uint32_t *n, const void *item, size_t bytes)
{
	char *at = *(char **)list;

	if ((*n & (*n - 1)) == 0) {
		at = *n < UINT32_MAX / 4 ? realloc(at, (*n ? 2 * (size_t)*n : 1) * bytes) : NULL;
		if (!at)
			return -ENOMEM;
		*(char **)list = at;
	}
	memcpy(at + (size_t)(*n)++ * bytes, item, bytes);
	return 0;
}

int job_add_row(struct job *j, const struct job_row *row)
{
	return append(&j->rows, &j->n_rows, row, sizeof(*row));
}

int job_add_edge(struct job *j, uint32_t before, uint32_t after, uint32_t flags, double lag_ns)
{
	const struct job_edge e = {before, after, flags, lag_ns};

	return append(&j->edges, &j->n_edges, &e, sizeof(e));
}

int job_add_call(struct job *j, const struct job_call *call)
{
	return append(&j->calls, &j->n_calls, call, sizeof(*call));
}

int job_add_op(struct job *j, const struct job_op *op)
{
	return append(&j->ops, &j->n_ops, op, sizeof(*op));
}

int job_find_members(struct job *j)
{
	uint32_t *at = calloc((size_t)j->n_ops + 1, sizeof(*at)), n = 0;

	j->members = calloc((size_t)j->n_rows + 1, sizeof(*j->members));
	if (!at || !j->members) {
		free(at);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < j->n_rows; i++)
		if (j->rows[i].op != JOB_NONE)
			j->ops[j->rows[i].op].n++;
	for (uint32_t i = 0; i < j->n_ops; i++) {
		j->ops[i].first = at[i] = n;
		n += j->ops[i].n;
	}
	for (uint32_t i = 0; i < j->n_rows; i++)
		if (j->rows[i].op != JOB_NONE)
			j->members[at[j->rows[i].op]++] = i;
	free(at);
	return 0;
}

int job_add_step(struct job *j, uint32_t from, uint32_t to)
{
	const struct job_step s = {from, to};

	return append(&j->steps, &j->n_steps, &s, sizeof(s));
}

uint32_t job_stream(struct job *j, uint32_t rank, uint32_t number)
{
	const struct job_stream s = {rank, number};

	for (uint32_t i = 0; i < j->n_streams; i++)
		if (j->streams[i].rank == rank && j->streams[i].number == number)
			return i;
	return append(&j->streams, &j->n_streams, &s, sizeof(s)) < 0 ? JOB_NONE : j->n_streams - 1;
}

bool job_op_is_of_stage(const struct job *j, const struct job_op *op)
{
	uint32_t n = j->comms[op->comm].members.n_ranks;

	return op->kind == COLL_SENDRECV && op->n_calls && (n <= 2 || op->n_calls + 2 < 2 * n);
}

uint32_t job_name(struct job *j, const char *name)
{
	char *copy = strdup(name);

	if (!copy || append(&j->names, &j->n_names, &copy, sizeof(copy)) < 0) {
		free(copy);
		return JOB_NONE;
	}
	return j->n_names - 1;
}

static uint32_t find_rank(const struct job *j, uint32_t world_rank, uint32_t low, uint32_t high)
{
	uint32_t end = high;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (j->ranks[mid] < world_rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < end && j->ranks[low] == world_rank ? low : JOB_NONE;
}

uint32_t job_rank(const struct job *j, uint32_t world_rank)
{
	uint32_t i = find_rank(j, world_rank, 0, j->n_recorded);

	return i != JOB_NONE ? i : find_rank(j, world_rank, j->n_recorded, j->n_ranks);
}
