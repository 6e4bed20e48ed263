/* The calls that make communicators: they check their arguments and hand a job to the group. */
#include <stdlib.h>
#include <string.h>

#include "standins/nccl/comm.h"

static ncclResult_t check_config(const ncclConfig_t *config, const char *what)
{
	if (!config)
		return ncclSuccess;
	if (config->size < offsetof(ncclConfig_t, cgaClusterSize) ||
	    config->magic != NCCL_CONFIG_MAGIC_)
		return fail(ncclInvalidArgument,
			    "%s: the configuration was not made by NCCL_CONFIG_INITIALIZER", what);
	if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 &&
	    config->blocking != 1)
		return fail(ncclInvalidArgument, "%s: blocking must be 0 or 1, not %d", what,
			    config->blocking);
	if (config->size < offsetof(ncclConfig_t, trafficClass))
		return ncclSuccess;
	if ((config->minCTAs != NCCL_CONFIG_UNDEF_INT && config->minCTAs < 1) ||
	    (config->maxCTAs != NCCL_CONFIG_UNDEF_INT && config->maxCTAs < 1) ||
	    (config->minCTAs != NCCL_CONFIG_UNDEF_INT && config->maxCTAs != NCCL_CONFIG_UNDEF_INT &&
	     config->minCTAs > config->maxCTAs))
		return fail(ncclInvalidArgument, "%s: minCTAs %d, maxCTAs %d", what,
			    config->minCTAs, config->maxCTAs);
	if (config->splitShare != NCCL_CONFIG_UNDEF_INT && config->splitShare != 0 &&
	    config->splitShare != 1)
		return fail(ncclInvalidArgument, "%s: splitShare must be 0 or 1, not %d", what,
			    config->splitShare);
	return ncclSuccess;
}

ncclResult_t comm_init_rank(struct ncclComm **ret, int n_ranks, const ncclUniqueId *ids, int n_ids,
			    int rank, const ncclConfig_t *config, const char *what)
{
	ncclResult_t r = check_config(config, what);
	const char *common = getenv("NCCL_COMM_ID");
	struct job *j;
	int i;

	if (r)
		return r;
	if (!ret || !ids || n_ids < 1)
		return fail(ncclInvalidArgument,
			    "%s: a place for the communicator and an id are "
			    "needed",
			    what);
	if (n_ranks < 1 || n_ranks > SCHED_MAX_RANKS || rank < 0 || rank >= n_ranks)
		return fail(ncclInvalidArgument, "%s: rank %d of %d ranks", what, rank, n_ranks);
	if (n_ids > n_ranks)
		return fail(ncclInvalidArgument, "%s: %d ids of %d ranks", what, n_ids, n_ranks);
	*ret = NULL;
	j = calloc(1, sizeof(*j));
	if (j)
		j->others = calloc((size_t)n_ids, sizeof(*j->others));
	if (!j || !j->others) {
		free(j);
		return fail(ncclSystemError, "out of memory");
	}
	j->kind = JOB_INIT;
	memcpy(&j->id, &ids[0], sizeof(j->id));
	for (i = 1; i < n_ids; i++)
		memcpy(&j->others[j->n_others++], &ids[i], sizeof(j->id));
	j->has_common_id = common && *common;
	j->handle = ret;
	j->comm = comm_new((uint32_t)rank, (uint32_t)n_ranks, config);
	if (!j->comm) {
		job_free(j);
		return fail(ncclSystemError, "%s: out of memory, or no device", what);
	}
	*ret = j->comm;
	return group_job(j);
}

ncclResult_t comm_init_all(struct ncclComm **comms, int n, const int *devices)
{
	int i, k, before = 0, count = 0;
	ncclResult_t r = ncclSuccess, e;
	ncclUniqueId id;

	if (!comms || n < 1)
		return fail(ncclInvalidArgument, "ncclCommInitAll: %d communicators", n);
	if (cudaGetDevice(&before) || cudaGetDeviceCount(&count))
		return fail(ncclUnhandledCudaError, "ncclCommInitAll: no device");
	for (i = 0; i < n; i++) {
		int d = devices ? devices[i] : i;

		if (d < 0 || d >= count)
			return fail(ncclUnhandledCudaError, "ncclCommInitAll: no device %d", d);
		for (k = 0; devices && k < i; k++) {
			if (devices[k] == d)
				return fail(ncclInvalidUsage, "ncclCommInitAll: device %d twice",
					    d);
		}
	}
	r = boot_make_id(&id);
	if (r)
		return r;
	group_start();
	for (i = 0; i < n && !r; i++) {
		cudaSetDevice(devices ? devices[i] : i);
		r = comm_init_rank(&comms[i], n, &id, 1, i, NULL, "ncclCommInitAll");
		group_note(r);
	}
	e = group_end();
	cudaSetDevice(before);
	return r ? r : e;
}

ncclResult_t comm_split(struct ncclComm *parent, int color, int key, struct ncclComm **ret,
			const ncclConfig_t *config)
{
	ncclResult_t r = comm_check(parent, "ncclCommSplit");
	struct job *j;

	if (!r)
		r = check_config(config, "ncclCommSplit");
	if (r)
		return r;
	/* any color: so does NCCL, and PyTorch 2.4 passes negative ones */
	if (!ret)
		return fail(ncclInvalidArgument, "ncclCommSplit: newcomm is NULL");
	*ret = NULL;
	j = calloc(1, sizeof(*j));
	if (!j)
		return fail(ncclSystemError, "out of memory");
	j->kind = JOB_SPLIT;
	j->handle = ret;
	j->parent = comm_get(parent);
	j->color = color;
	j->key = key;
	pthread_mutex_lock(&parent->lock);
	j->number = parent->n_splits++;
	pthread_mutex_unlock(&parent->lock);
	if (color != NCCL_SPLIT_NOCOLOR) {
		/* as large as can be; its own size is known later */
		j->comm = comm_new(0, parent->n_ranks, config);
		if (!j->comm) {
			job_free(j);
			return fail(ncclSystemError, "ncclCommSplit: out of memory");
		}
		if (!config || config->blocking == NCCL_CONFIG_UNDEF_INT)
			j->comm->is_blocking = parent->is_blocking;
		*ret = j->comm;
	}
	return group_job(j);
}

ncclResult_t comm_shrink(struct ncclComm *parent, const int *excluded, int n_excluded,
			 struct ncclComm **ret, const ncclConfig_t *config, int flags)
{
	ncclResult_t r = flags & NCCL_SHRINK_ABORT ? comm_known(parent, "ncclCommShrink")
						   : comm_check(parent, "ncclCommShrink");
	uint32_t i, rank = UINT32_MAX;
	struct job *j;
	int k;

	if (!r)
		r = check_config(config, "ncclCommShrink");
	if (r)
		return r;
	if (!ret || !excluded || n_excluded < 1 || (uint32_t)n_excluded >= parent->n_ranks)
		return fail(ncclInvalidArgument, "ncclCommShrink: %d excluded ranks of %u",
			    n_excluded, parent->n_ranks);
	*ret = NULL;
	j = calloc(1, sizeof(*j));
	if (j)
		j->members = calloc(parent->n_ranks, sizeof(*j->members));
	if (!j || !j->members) {
		free(j);
		return fail(ncclSystemError, "out of memory");
	}
	j->kind = JOB_SHRINK;
	j->handle = ret;
	j->parent = comm_get(parent);
	j->must_abort = flags & NCCL_SHRINK_ABORT;
	for (i = 0; i < parent->n_ranks; i++) {
		for (k = 0; k < n_excluded && (uint32_t)excluded[k] != i;)
			k++;
		if (k < n_excluded)
			continue;
		if (i == parent->rank)
			rank = j->n_members;
		j->members[j->n_members++] = i;
	}
	if (rank == UINT32_MAX || j->n_members + (uint32_t)n_excluded != parent->n_ranks) {
		job_free(j);
		return fail(ncclInvalidArgument,
			    rank == UINT32_MAX
				    ? "ncclCommShrink: the calling rank is excluded"
				    : "ncclCommShrink: a rank is excluded twice or does not exist");
	}
	j->comm = comm_new(rank, parent->n_ranks, config);
	if (!j->comm || job_number_shrink(j)) {
		comm_put(j->comm);
		job_free(j);
		return fail(ncclSystemError, "ncclCommShrink: out of memory");
	}
	if (!config || config->blocking == NCCL_CONFIG_UNDEF_INT)
		j->comm->is_blocking = parent->is_blocking;
	*ret = j->comm;
	return group_job(j);
}
