/* Groups: the calls between a thread's outermost ncclGroupStart and ncclGroupEnd take effect at
 * the end. First all new communicators are made at once; then each communicator gets its
 * collectives in the order of the calls, and its sends and receives as one op. A group may hold
 * any number of communicators and streams. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "standins/nccl/comm.h"

static _Thread_local struct {
	int depth;
	ncclResult_t error; /* the first one inside */
	struct call *calls;
	size_t n_calls, calls_size;
	struct job *jobs, **jobs_end;
	struct window *windows;
} group;

ncclResult_t group_start(void)
{
	group.depth++;
	return ncclSuccess;
}

void group_note(ncclResult_t r)
{
	if (group.depth && r && r != ncclInProgress && !group.error)
		group.error = r;
}

static ncclResult_t add_call(const struct call *c)
{
	if (!group.depth) /* a single send or receive */
		return op_enqueue(c, 1);
	if (group.n_calls == group.calls_size) {
		size_t size = group.calls_size ? 2 * group.calls_size : 16;
		void *calls = realloc(group.calls, size * sizeof(*group.calls));

		if (!calls) {
			group_note(ncclSystemError);
			return fail(ncclSystemError, "out of memory");
		}
		group.calls = calls;
		group.calls_size = size;
	}
	group.calls[group.n_calls++] = *c;
	return ncclSuccess;
}

static ncclResult_t add_job(struct job *j)
{
	j->next = NULL;
	if (!group.jobs)
		group.jobs_end = &group.jobs;
	*group.jobs_end = j;
	group.jobs_end = &j->next;
	return ncclSuccess;
}

/* NCCL sets up windows at the group's end: until then there is no handle. */
static void make_windows(struct window *windows, bool is_good)
{
	for (struct window *w = windows, *next; w; w = next) {
		next = w->next;
		if (is_good) {
			window_add(w->comm, w);
			*w->place = (ncclWindow_t)w;
		} else {
			free(w);
		}
	}
}

/* The n-th window of a communicator must be the same at all ranks. */
void group_window(struct window *w)
{
	struct window **p = &group.windows;

	w->next = NULL;
	if (!group.depth) {
		make_windows(w, true);
		return;
	}
	while (*p)
		p = &(*p)->next;
	*p = w;
}

static bool is_blocking(const struct job *j)
{
	return j->comm ? j->comm->is_blocking : j->parent->is_blocking;
}

ncclResult_t group_job(struct job *j)
{
	ncclResult_t r;

	if (group.depth)
		return add_job(j);
	if (!is_blocking(j))
		return job_launch(j);
	r = job_run(j);
	job_free(j);
	return r;
}

ncclResult_t group_call(struct call *c)
{
	ncclResult_t r = op_check(c);

	if (r) {
		group_note(r);
		return r;
	}
	if (!c->count && c->kind != COLL_SENDRECV && !c->rma.what)
		return ncclSuccess; /* nowhere anything to do */
	if (c->kind == COLL_SENDRECV || group.depth)
		return add_call(c);
	return op_enqueue(c, 1);
}

static void *run_job(void *arg)
{
	job_run(arg);
	return NULL;
}

/* Each on its own thread: they wait for each other. */
static ncclResult_t run_jobs(struct job *jobs)
{
	ncclResult_t r = ncclSuccess;
	struct job *j, *next, *threads = NULL;

	for (j = jobs; j; j = next) {
		next = j->next;
		if (!is_blocking(j)) {
			ncclResult_t e = job_launch(j);

			r = r && r != ncclInProgress ? r : e;
			continue;
		}
		if (pthread_create(&j->thread, NULL, run_job, j)) {
			r = fail(ncclSystemError, "cannot start a thread for a communicator");
			if (j->comm) {
				*j->handle = NULL;
				comm_put(j->comm);
			}
			job_free(j);
			continue;
		}
		j->next = threads;
		threads = j;
	}
	for (j = threads; j; j = next) {
		next = j->next;
		pthread_join(j->thread, NULL);
		if (j->result && (!r || r == ncclInProgress))
			r = j->result;
		job_free(j);
	}
	return r;
}

static void drop_jobs(struct job *jobs)
{
	struct job *next;

	for (; jobs; jobs = next) {
		next = jobs->next;
		if (jobs->comm) {
			*jobs->handle = NULL;
			comm_put(jobs->comm);
		}
		job_free(jobs);
	}
}

static ncclResult_t run_comm(const struct call *calls, size_t n, const struct ncclComm *c)
{
	CLEANUP(freep) struct call *p2p = malloc(n * sizeof(*p2p));
	ncclResult_t r = ncclSuccess;
	uint32_t n_p2p = 0;
	size_t i;

	if (!p2p)
		return fail(ncclSystemError, "out of memory");
	for (i = 0; i < n && !r; i++) {
		if (calls[i].comm != c)
			continue;
		if (calls[i].kind == COLL_SENDRECV)
			p2p[n_p2p++] = calls[i];
		else
			r = op_enqueue(&calls[i], 1);
	}
	return !r && n_p2p ? op_enqueue(p2p, n_p2p) : r;
}

static ncclResult_t run_calls(const struct call *calls, size_t n)
{
	ncclResult_t r = ncclSuccess, e;
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; calls[k].comm != calls[i].comm;)
			k++;
		if (k < i)
			continue; /* had its turn */
		e = run_comm(calls, n, calls[i].comm);
		r = r ? r : e;
	}
	return r;
}

ncclResult_t group_end(void)
{
	CLEANUP(freep) struct call *calls = NULL;
	struct window *windows;
	struct job *jobs;
	ncclResult_t r;
	size_t n;

	if (!group.depth)
		return fail(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
	if (--group.depth)
		return ncclSuccess;
	calls = steal_ptr(group.calls);
	jobs = steal_ptr(group.jobs);
	windows = steal_ptr(group.windows);
	n = group.n_calls;
	r = group.error;
	group.n_calls = group.calls_size = 0;
	group.error = ncclSuccess;
	make_windows(windows, !r);
	if (r) {
		drop_jobs(jobs);
		return r;
	}
	r = run_jobs(jobs);
	if (r && r != ncclInProgress)
		return r;
	if (n) {
		ncclResult_t e = run_calls(calls, n);

		r = e ? e : r;
	}
	return r;
}

void group_discard(void)
{
	group_note(ncclInvalidUsage);
	if (group.depth)
		group_end();
}
