/* See init-run.h. */
#include "shim/entry/init-run.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/data/real-comm.h"
#include "shim/entry/entry.h"
#include "shim/entry/real-group.h"
#include "shim/entry/result.h"
#include "shim/job/quiet-thread.h"
#include "shim/progress/checkin.h"
#include "shim/progress/known.h"
#include "shim/progress/meet.h"
#include "shim/progress/play.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

/* Each step is done for the whole list; an init that failed is skipped afterwards. */
struct job {
	uint32_t n;
	struct init list[];
};

/* Tells nboxd that @c has failed: other members may be waiting for this one to make the real
 * communicator. */
static void tell_failure(struct comm *c)
{
	char text[ERR_TEXT_MAX];

	if (!c->number || !c->n_ranks)
		return;
	snprintf(text, sizeof(text), "its real communicator failed: %.400s", c->why);
	known_abort(c, EPIPE, text);
}

/* Tells nboxd at once: this thread may go on to wait for another communicator's members, and those
 * may wait for this one's. */
static void failed(const struct init *init, int r, const struct err *err)
{
	comm_fail(init->comm, r, "%s", err->text);
	tell_failure(init->comm);
}

static bool is_ok(const struct init *init)
{
	return !comm_error(init->comm);
}

static void check_in(struct job *job)
{
	struct err err = {""};
	int r;

	for (uint32_t i = 0; i < job->n; i++) {
		struct init *init = &job->list[i];

		checkin_begin(init->comm, init->type, init->parent, init->rank, init->body,
			      init->bytes);
	}
	for (uint32_t i = 0; i < job->n; i++) {
		r = checkin_wait(job->list[i].comm, &err);
		if (r)
			failed(&job->list[i], r, &err);
	}
}

/* One step of the meeting (meet.h), for all inits that are still in it. */
static void each(struct job *job, int (*step)(struct comm *c, struct err *err))
{
	struct err err = {""};

	for (uint32_t i = 0; i < job->n; i++) {
		struct init *init = &job->list[i];
		int r = init->meets ? step(init->comm, &err) : 0;

		if (!r)
			continue;
		init->meets = false;
		failed(init, r, &err);
		/* after the cause: members that wait for the id report the last error that they
		 * know */
		if (step == real_comm_offer_id)
			meet_send_id(init->comm, NULL);
	}
}

static void make_all_real(struct job *job)
{
	struct real_group *group = real_group_new(
		job->n); /* before the promise, which must not fail for lack of memory */
	struct err err = {""};
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n; i++) {
		struct init *init = &job->list[i];

		init->meets = is_ok(init) && real_comm_is_together(init->comm);
		if (!is_ok(init)) /* another thread may have aborted it before nboxd's answer came
				   */
			tell_failure(init->comm);
		if (init->meets && !group) {
			init->meets = false;
			failed(init, err_set(&err, ENOMEM, "no memory"), &err);
		}
	}
	each(job, real_comm_check);
	each(job, meet_promise);
	each(job, meet_wait_all);
	each(job, real_comm_offer_id);
	each(job, meet_wait_id);
	for (uint32_t i = 0; i < job->n; i++) {
		if (!job->list[i].meets)
			continue;
		real_group_add(group, job->list[i].comm, steal_ptr(job->list[i].config));
		n++;
	}
	if (n)
		real_group_make(group);
	else
		free(group);
}

/* Return: the first error. Gives up the inits' references. */
static ncclResult_t job_run(struct job *job)
{
	ncclResult_t first = ncclSuccess;

	check_in(job);
	make_all_real(job);
	for (uint32_t i = 0; i < job->n; i++) {
		struct init *init = &job->list[i];
		struct comm *c = init->comm;
		ncclResult_t result = result_of(comm_error(c));
		int starting = COMM_STARTING;

		if (c->n_real == 1) /* before it is seen to be ready */
			c->real_config = steal_ptr(init->config);
		if (result != ncclSuccess)
			last_error_set(result, "%s", c->why);
		first = first == ncclSuccess ? result : first;
		atomic_compare_exchange_strong(&c->state, &starting,
					       result == ncclSuccess ? COMM_READY : COMM_FAILED);
		if (result != ncclSuccess) {
			tell_failure(c);
			if (c->is_full) /* what NCCL may still do ends */
				play_kill(c);
		}
		if (starting == COMM_DEAD || !init->ret || (c->is_blocking && result)) {
			/* aborted meanwhile, a split without color, or failed */
			if (c->number && c->n_ranks)
				known_send(c, WIRE_COMM_FREE, NULL, 0);
			real_comm_abort(c, c->real);
			c->real = NULL;
			if (starting != COMM_DEAD) {
				if (init->ret)
					*init->ret = NULL;
				if (comm_unregister(c) || !init->ret)
					comm_unref(c); /* the handle's */
			}
		}
		free(init->body);
		free(init->config);
		comm_unref(c);
	}
	return first;
}

static void *run_background(void *arg)
{
	pthread_setname_np(pthread_self(), "nbox-init");
	job_run(arg);
	free(arg);
	return NULL;
}

void init_drop(const struct init *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct comm *c = list[i].comm;

		if (list[i].ret)
			*list[i].ret = NULL;
		if (comm_unregister(c) || !list[i].ret)
			comm_unref(c); /* the handle's */
		free(list[i].body);
		free(list[i].config);
		comm_unref(c);
	}
}

ncclResult_t init_run(const struct init *list, uint32_t n)
{
	struct job *job = calloc(1, sizeof(*job) + n * sizeof(*list));
	ncclResult_t result;
	bool is_blocking = true;

	if (!job)
		return last_error_set(ncclSystemError, "no memory");
	job->n = n;
	memcpy(job->list, list, n * sizeof(*list));
	for (uint32_t i = 0; i < n; i++)
		is_blocking = is_blocking && list[i].comm->is_blocking;
	if (is_blocking) {
		result = job_run(job);
		free(job);
		return result;
	}
	/* a failed one keeps its handle, which the job may be looking at */
	for (uint32_t i = 0; i < n; i++)
		list[i].comm->is_blocking = false;
	if (!quiet_thread(NULL, run_background, job))
		return ncclInProgress;
	result = job_run(job);
	free(job);
	return result;
}
