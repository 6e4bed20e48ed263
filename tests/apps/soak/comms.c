/* The steps that make communicators and that end them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "soak.h"

static bool has_real(const struct comm *c, int index)
{
	return c->reals & 1u << index;
}

bool comm_is_member(const struct lane *l, const struct comm *c)
{
	return has_real(c, l->index);
}

static int n_reals(const struct comm *c)
{
	return __builtin_popcount(c->reals);
}

static uint32_t all_reals(void)
{
	return (1u << job.k) - 1;
}

/* The number of a real member, drawn from the plan. */
static int some_real(struct lane *l, const struct comm *c)
{
	int left = (int)rng_below(&l->plan, (uint32_t)n_reals(c));

	for (int i = 0;; i++) {
		if (has_real(c, i) && !left--)
			return i;
	}
}

/* --- ids ---------------------------------------------------------------------------------- */

static void write_id(const struct lane *l, const char *path, const ncclUniqueId *id)
{
	char tmp[4200];
	int fd;

	snprintf(tmp, sizeof(tmp), "%s.new", path);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, id, sizeof(*id)) != (ssize_t)sizeof(*id) || close(fd) ||
	    rename(tmp, path))
		DIE(l, "%s: %s", path, strerror(errno));
}

/* A number for the name makes an id of it under nbox; host NCCL needs one of its own, which
 * the first real rank makes. */
static ncclUniqueId id_new(struct lane *l, uint32_t serial, int part)
{
	char path[4100];
	ncclUniqueId id;
	int fd;

	memset(&id, 0, sizeof(id));
	if (!job.is_plain && rng_below(&l->plan, 2)) {
		snprintf(id.internal, sizeof(id.internal), "soak %d.%d.%u.%d", l->lap, l->number,
			 serial, part);
		return id;
	}
	snprintf(path, sizeof(path), "%s/id.%d.%d.%u.%d", job.dir, l->lap, l->number, serial, part);
	if (l->index == 0) {
		NCCL(l, ncclGetUniqueId(&id));
		write_id(l, path, &id);
		return id;
	}
	WAIT_UNTIL(l, !access(path, R_OK));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &id, sizeof(id)) != (ssize_t)sizeof(id) || close(fd))
		DIE(l, "%s: %s", path, strerror(errno));
	return id;
}

/* --- the table ------------------------------------------------------------------------------ */

struct comm *comm_any(struct lane *l)
{
	return &l->comms[rng_below(&l->plan, (uint32_t)l->n_comms)];
}

/* One that may end; NULL: there is none. */
static struct comm *comm_mortal(struct lane *l)
{
	if (l->n_comms < 2)
		return NULL;
	return &l->comms[1 + rng_below(&l->plan, (uint32_t)l->n_comms - 1)];
}

static void comm_remove(struct lane *l, struct comm *c)
{
	*c = l->comms[--l->n_comms];
}

static void make_room(struct lane *l, int n)
{
	while (l->n_comms + n > MAX_COMMS) {
		struct comm *c = comm_mortal(l);

		comm_destroy(l, c);
		comm_remove(l, c);
	}
}

static struct comm *comm_add(struct lane *l, const struct comm *c)
{
	struct comm *new = &l->comms[l->n_comms++];

	*new = *c;
	new->serial = l->serial++;
	return new;
}

static void wait_until_ready(struct lane *l, ncclComm_t comm)
{
	ncclResult_t state = ncclInProgress;

	for (int i = 0; state == ncclInProgress; i++) {
		watch_enter(l->watch, "waiting for a non-blocking communicator", l->step);
		while (!ncclCommGetAsyncError(comm, &state) && state == ncclInProgress)
			nap_us(200);
		watch_leave(l->watch);
	}
	if (state)
		DIE(l, "a non-blocking call ended with %s (%s)", ncclGetErrorString(state),
		    ncclGetLastError(comm));
}

/* What a call that makes or finalizes a communicator says at once. */
static void check_started(struct lane *l, const struct comm *c, ncclResult_t r, const char *what)
{
	if (r && !(r == ncclInProgress && !c->is_blocking))
		DIE(l, "%s: %s (%s)", what, ncclGetErrorString(r), ncclGetLastError(NULL));
}

/* Sizes and ranks of a new one. */
static void comm_look(struct lane *l, struct comm *c)
{
	if (!c->is_blocking)
		wait_until_ready(l, c->handle);
	NCCL(l, ncclCommCount(c->handle, &c->n));
	NCCL(l, ncclCommUserRank(c->handle, &c->rank));
	if (c->is_world && (c->n != job.n || c->rank != l->me))
		DIE(l, "rank %d of %d, not %d of %d", c->rank, c->n, l->me, job.n);
}

/* --- beginnings ------------------------------------------------------------------------------- */

static struct comm *world_comm(struct lane *l, bool is_blocking)
{
	struct comm c = {.n = job.n,
			 .rank = l->me,
			 .reals = all_reals(),
			 .is_world = true,
			 .is_blocking = is_blocking};

	make_room(l, 1);
	return comm_add(l, &c);
}

void comm_base(struct lane *l)
{
	struct comm *c = world_comm(l, true);
	ncclUniqueId id = id_new(l, c->serial, 0);

	NCCL(l, ncclCommInitRank(&c->handle, job.n, id, l->me));
	comm_look(l, c);
}

void step_init(struct lane *l)
{
	comm_base(l);
	use_check(l, &l->comms[l->n_comms - 1]);
}

static ncclConfig_t config_of(const struct comm *c)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

	config.blocking = c->is_blocking;
	return config;
}

void step_init_nonblocking(struct lane *l)
{
	struct comm *c = world_comm(l, false);
	ncclUniqueId id = id_new(l, c->serial, 0);
	ncclConfig_t config = config_of(c);

	dawdle(l);
	check_started(l, c,
		      WATCHED(l, ncclCommInitRankConfig(&c->handle, job.n, id, l->me, &config)),
		      "ncclCommInitRankConfig");
	comm_look(l, c);
	use_check(l, c);
}

void step_init_group(struct lane *l)
{
	int n = 2 + (int)rng_below(&l->plan, 2);
	struct comm *c[3];
	ncclUniqueId ids[3];

	make_room(l, n);
	for (int i = 0; i < n; i++) {
		c[i] = world_comm(l, true);
		ids[i] = id_new(l, c[i]->serial, i);
	}
	dawdle(l);
	NCCL(l, ncclGroupStart());
	for (int i = 0; i < n; i++)
		NCCL(l, ncclCommInitRank(&c[i]->handle, job.n, ids[i], l->me));
	NCCL(l, ncclGroupEnd());
	for (int i = n - 1; i >= 0; i--) {
		comm_look(l, c[i]);
		use_check(l, c[i]);
	}
}

void step_scalable(struct lane *l)
{
	struct comm *c = world_comm(l, rng_below(&l->plan, 2));
	ncclConfig_t config = config_of(c);
	int n = job.n < 2 ? 1 : 2;
	ncclUniqueId ids[2];

	for (int i = 0; i < n; i++)
		ids[i] = id_new(l, c->serial, i);
	check_started(l, c,
		      WATCHED(l,
			      ncclCommInitRankScalable(&c->handle, job.n, l->me, n, ids, &config)),
		      "ncclCommInitRankScalable");
	comm_look(l, c);
	use_check(l, c);
}

static void split(struct lane *l, const struct comm *parent, struct comm *child, int color, int key)
{
	dawdle(l);
	check_started(l, parent,
		      WATCHED(l, ncclCommSplit(parent->handle, color, key, &child->handle, NULL)),
		      "ncclCommSplit");
	if (color == NCCL_SPLIT_NOCOLOR) {
		if (child->handle)
			DIE(l, "a split without a color gave a communicator");
		return;
	}
	if (!child->handle)
		DIE(l, "a split gave no communicator");
	comm_look(l, child);
	use_check(l, child);
}

void step_split(struct lane *l)
{
	bool is_turned = rng_below(&l->plan, 3) == 0;
	struct comm *parent, *child, c;

	make_room(l, 1);
	parent = comm_any(l);
	c = *parent;
	c.handle = NULL;
	c.is_world = parent->is_world && !is_turned;
	child = comm_add(l, &c);
	if (!comm_is_member(l, parent))
		return;
	split(l, parent, child, 0, is_turned ? -parent->rank : parent->rank);
	if (child->n != parent->n)
		DIE(l, "a split by one color has %d ranks, not %d", child->n, parent->n);
}

void step_split_without(struct lane *l)
{
	struct comm *parent, *child, c;
	int who;

	make_room(l, 1);
	parent = comm_any(l);
	if (n_reals(parent) < 2)
		return;
	who = some_real(l, parent);
	c = *parent;
	c.handle = NULL;
	c.is_world = false;
	c.reals &= ~(1u << who);
	child = comm_add(l, &c);
	if (comm_is_member(l, parent))
		split(l, parent, child, who == l->index ? NCCL_SPLIT_NOCOLOR : 7, parent->rank);
}

void step_shrink(struct lane *l)
{
	struct comm *parent, *child, c;
	bool must_abort = rng_below(&l->plan, 3) == 0;
	int out, index = -1;

	make_room(l, 1);
	parent = must_abort ? comm_mortal(l) : comm_any(l);
	if (!parent || !parent->is_world || job.n < 3 || job.k < 2)
		return;
	out = (int)rng_below(&l->plan, (uint32_t)job.n);
	for (int i = 0; i < job.k; i++)
		index = job.real[i] == out ? i : index;
	c = *parent;
	c.handle = NULL;
	c.is_world = false;
	if (index >= 0)
		c.reals &= ~(1u << index);
	child = comm_add(l, &c);
	if (must_abort)
		barrier(l); /* nobody is in an op of it any more */
	dawdle(l);
	if (index != l->index) {
		check_started(l, parent,
			      WATCHED(l,
				      ncclCommShrink(parent->handle, &out, 1, &child->handle, NULL,
						     must_abort ? NCCL_SHRINK_ABORT
								: NCCL_SHRINK_DEFAULT)),
			      "ncclCommShrink");
		comm_look(l, child);
		if (child->n != job.n - 1 || child->rank != l->me - (out < l->me))
			DIE(l, "shrunk: rank %d of %d", child->rank, child->n);
		use_check(l, child);
	}
	if (!must_abort)
		return;
	NCCL(l, ncclCommAbort(parent->handle));
	comm_remove(l, parent);
}

/* --- ends ----------------------------------------------------------------------------------------
 */

void comm_destroy(struct lane *l, struct comm *c)
{
	if (comm_is_member(l, c))
		NCCL(l, ncclCommDestroy(c->handle));
}

static ncclResult_t sum(struct lane *l, const struct comm *c, uint32_t slot, uint32_t count)
{
	return WATCHED(l, ncclAllReduce(l->slots[slot].send, l->slots[slot].recv, count, ncclFloat,
					ncclSum, c->handle, l->streams[slot % N_STREAMS]));
}

static void sync_streams(struct lane *l)
{
	for (int i = 0; i < N_STREAMS; i++)
		CUDA(l, cudaStreamSynchronize(l->streams[i]));
}

void barrier(struct lane *l)
{
	ncclResult_t r = sum(l, &l->comms[0], 0, 1);

	if (r)
		DIE(l, "the barrier: %s (%s)", ncclGetErrorString(r), ncclGetLastError(NULL));
	sync_streams(l);
}

/* Perhaps something that is still under way when the end comes. */
static void leave_work(struct lane *l, const struct comm *c)
{
	uint32_t n = rng_below(&l->plan, 4);

	for (uint32_t i = 0; i < n; i++) {
		ncclResult_t r = sum(l, c, i % N_SLOTS, 1 + rng_below(&l->plan, 5000));

		if (r)
			DIE(l, "ncclAllReduce: %s (%s)", ncclGetErrorString(r),
			    ncclGetLastError(NULL));
	}
}

void step_destroy(struct lane *l)
{
	struct comm *c = comm_mortal(l);

	if (!c)
		return;
	if (comm_is_member(l, c))
		leave_work(l, c);
	dawdle(l);
	comm_destroy(l, c);
	sync_streams(l);
	comm_remove(l, c);
}

void step_finalize(struct lane *l)
{
	struct comm *c = comm_mortal(l);

	if (!c)
		return;
	if (comm_is_member(l, c)) {
		leave_work(l, c);
		dawdle(l);
		check_started(l, c, WATCHED(l, ncclCommFinalize(c->handle)), "ncclCommFinalize");
		if (!c->is_blocking)
			wait_until_ready(l, c->handle);
		dawdle(l);
		NCCL(l, ncclCommDestroy(c->handle));
	}
	sync_streams(l);
	comm_remove(l, c);
}

void step_abort_idle(struct lane *l)
{
	struct comm *c = comm_mortal(l);

	if (!c)
		return;
	barrier(l);
	dawdle(l);
	if (comm_is_member(l, c))
		NCCL(l, ncclCommAbort(c->handle));
	comm_remove(l, c);
}

/* One rank aborts while the others are in an op that needs it, or come to it later. What the others
 * have on their streams must come to an end. */
static void abort_in_op(struct lane *l, bool others_destroy)
{
	struct comm *c = comm_mortal(l);
	uint32_t n_ops = 1 + rng_below(&l->plan, 4), given = rng_below(&l->plan, n_ops);
	uint32_t count = 1 + rng_below(&l->plan, 20000);
	bool syncs_first = rng_below(&l->plan, 2);
	ncclResult_t state;
	int who;

	if (!c || n_reals(c) < 2)
		return;
	who = some_real(l, c);
	barrier(l);
	if (!comm_is_member(l, c)) {
		comm_remove(l, c);
		return;
	}
	for (uint32_t i = 0; i < (who == l->index ? given : n_ops); i++) {
		dawdle(l);
		if (sum(l, c, i % N_SLOTS, count))
			break; /* another one was quicker */
	}
	dawdle(l);
	if (who == l->index) {
		NCCL(l, ncclCommAbort(c->handle));
	} else {
		if (syncs_first) {
			sync_streams(l);
			NCCL(l, ncclCommGetAsyncError(c->handle, &state));
			if (!state)
				DIE(l, "no error after an op that needs rank %d, which has aborted",
				    job.real[who]);
		}
		if (others_destroy)
			WATCHED(l,
				ncclCommDestroy(c->handle)); /* its result: of the communicator */
		else
			NCCL(l, ncclCommAbort(c->handle));
	}
	sync_streams(l);
	comm_remove(l, c);
}

void step_abort_in_op(struct lane *l)
{
	abort_in_op(l, false);
}

void step_abort_beside_destroy(struct lane *l)
{
	abort_in_op(l, true);
}

/* Nobody waits for those who do not come, once they have aborted. */
void step_abort_in_init(struct lane *l)
{
	struct comm c = {.is_blocking = false};
	int deserter = (int)rng_below(&l->plan, (uint32_t)job.k + 1);
	ncclConfig_t config = config_of(&c);
	ncclUniqueId id = id_new(l, l->serial++, 0);

	if (deserter == l->index)
		return;
	check_started(l, &c,
		      WATCHED(l, ncclCommInitRankConfig(&c.handle, job.n, id, l->me, &config)),
		      "ncclCommInitRankConfig");
	dawdle(l);
	NCCL(l, ncclCommAbort(c.handle));
}

void step_revoke(struct lane *l)
{
	struct comm *c = comm_mortal(l);
	ncclResult_t state = ncclSuccess;
	int who;

	if (!c || n_reals(c) < 2)
		return;
	who = some_real(l, c);
	barrier(l);
	if (who == l->index) {
		NCCL(l, ncclCommRevoke(c->handle, 0));
	} else if (comm_is_member(l, c) && !job.is_plain) { /* libnbox tells the others */
		watch_enter(l->watch, "waiting for another's ncclCommRevoke", l->step);
		while (!ncclCommGetAsyncError(c->handle, &state) && !state)
			nap_us(200);
		watch_leave(l->watch);
	}
	dawdle(l);
	if (comm_is_member(l, c))
		NCCL(l, ncclCommAbort(c->handle));
	comm_remove(l, c);
}

void comms_end(struct lane *l)
{
	while (l->n_comms > 1) {
		struct comm *c = comm_mortal(l);

		comm_destroy(l, c);
		comm_remove(l, c);
	}
	comm_destroy(l, &l->comms[0]);
	l->n_comms = 0;
}
