/* The entry points that make communicators. Each checks the job's arguments and the process, and
 * makes an init of them (init-run.h), which is carried out when the group ends. */
#include "shim/entry/init-run.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "shim/entry/comm-config.h"
#include "shim/entry/entry.h"
#include "shim/entry/group.h"
#include "shim/entry/ready.h"
#include "shim/entry/result.h"
#include "shim/job/env.h"
#include "shim/job/job-ranks.h"
#include "shim/progress/known.h"
#include "shim/progress/play.h"
#include "shim/progress/session.h"
#include "shim/real/comm-blocking.h"
#include "shim/real/comm-id.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"
#include "wire/unique-id.h"

#define N_DEVICES 64
#define GROUPS_TOLD 256

/* The world rank of each device of this process, which may drive several: learned from
 * communicators of the world's size. */
static pthread_mutex_t ranks_lock = PTHREAD_MUTEX_INITIALIZER;
static int device_rank[N_DEVICES]; /* rank + 1; 0: unknown */

static int world_rank(int device, uint32_t n_ranks, uint32_t rank, struct err *err)
{
	int known = 0;

	if (n_ranks == session_welcome()->world) {
		if (device >= 0 && device < N_DEVICES) {
			pthread_mutex_lock(&ranks_lock);
			device_rank[device] = (int)rank + 1;
			pthread_mutex_unlock(&ranks_lock);
		}
		return (int)rank;
	}
	if (device >= 0 && device < N_DEVICES) {
		pthread_mutex_lock(&ranks_lock);
		known = device_rank[device];
		pthread_mutex_unlock(&ranks_lock);
	}
	if (known)
		return known - 1;
	if (env_get()->rank >= 0)
		return env_get()->rank;
	return err_set(
		err, EINVAL,
		"the world rank of this process is not known: set RANK, or make a "
		"communicator of all %u ranks first; ranks that a program gives to processes of "
		"its own (mp.spawn, Ray) are not reached: start it with torchrun",
		session_welcome()->world);
}

/* --- what the entry points share ------------------------------------------------------- */

/* As NCCL: a variable goes before all configs, and a config of its own does not inherit what it
 * leaves open. */
static bool becomes_blocking(const ncclConfig_t *config, bool inherited)
{
	int said = comm_blocking_get();

	if (said >= 0)
		return said;
	if (!config)
		return inherited;
	return config->blocking == NCCL_CONFIG_UNDEF_INT || config->blocking;
}

/* A new communicator on @device, whose check-in is frame @type. */
static ncclResult_t begin(const char *what, const struct device *dev, int device, ncclComm_t *ret,
			  const ncclConfig_t *config, bool is_blocking, enum wire_type type,
			  uint32_t parent, uint32_t rank, const void *body, size_t bytes)
{
	struct init init = {.ret = ret, .type = type, .parent = parent, .rank = rank};
	struct err err = {""};
	struct comm *c = NULL;
	int r = config_copy(config, &init.config, &err);

	if (!r) {
		init.body = malloc(bytes);
		c = comm_new(dev, device);
		if (!init.body || !c)
			r = err_set(&err, ENOMEM, "no memory");
	}
	if (r) {
		free(init.config);
		free(init.body);
		comm_unref(c);
		return group_fail(r == -EINVAL ? ncclInvalidArgument : ncclSystemError, "%s: %s",
				  what, err.text);
	}
	memcpy(init.body, body, bytes);
	init.bytes = bytes;
	c->is_blocking = becomes_blocking(config, is_blocking);
	c->rank = rank;
	init.comm = comm_ref(c);
	if (type == WIRE_COMM_SPLIT &&
	    ((const struct wire_comm_split *)body)->color == NCCL_SPLIT_NOCOLOR) {
		c->is_blocking = true; /* gives no communicator: nothing to poll */
		*ret = NULL;
		init.ret = NULL;
	} else {
		comm_register(c);
		*ret = comm_handle(c);
	}
	return group_init(&init);
}

/* Tells nboxd of a group once, as long as the group has the same ranks. */
static void tell_group(const struct wire_group *g, const uint32_t *ranks)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t told[GROUPS_TOLD];
	static uint32_t n_told;
	size_t bytes = sizeof(*g) + g->n_ranks * sizeof(*ranks);
	CLEANUP(freep) char *body = malloc(bytes);
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	bool is_told = false;

	if (!body)
		return;
	memcpy(body, g, sizeof(*g));
	memcpy(body + sizeof(*g), ranks, g->n_ranks * sizeof(*ranks));
	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)body[i]) * UINT64_C(0x100000001b3);
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < n_told && i < GROUPS_TOLD; i++)
		is_told = is_told || told[i] == hash;
	if (!is_told)
		told[n_told++ % GROUPS_TOLD] = hash;
	pthread_mutex_unlock(&lock);
	if (!is_told)
		known_send(NULL, WIRE_GROUP, body, bytes);
}

/* Return: @body, followed by the job's own list of world ranks for this communicator where PyTorch
 * knows it; the caller's to free(). NULL: no memory. */
static void *with_job_ranks(const void *body, size_t body_bytes, uint32_t n_ranks, uint32_t rank,
			    int world, size_t *ret_bytes)
{
	CLEANUP(freep) uint32_t *ranks = NULL;
	uint32_t n = 0, most = session_welcome()->world;
	char *all;

	if (session_welcome()->wants_groups && env_get()->ask_python)
		job_groups(tell_group);
	if (world >= 0 && n_ranks < most && env_get()->ask_python)
		n = job_ranks(n_ranks, rank, (uint32_t)world, most, &ranks);
	all = malloc(body_bytes + n * sizeof(*ranks));
	if (!all)
		return NULL;
	memcpy(all, body, body_bytes);
	if (n)
		memcpy(all + body_bytes, ranks, n * sizeof(*ranks));
	*ret_bytes = body_bytes + n * sizeof(*ranks);
	return all;
}

static ncclResult_t init_rank(const char *what, ncclComm_t *ret, int n_ranks,
			      const ncclUniqueId *id, int rank, const ncclConfig_t *config)
{
	struct wire_comm_init body;
	CLEANUP(freep) void *all = NULL;
	const struct device *dev;
	size_t bytes = 0;
	ncclResult_t result;
	struct err err;
	int world, device = 0;

	if (!ret)
		return group_fail(ncclInvalidArgument, "%s: comm is NULL", what);
	*ret = NULL;
	if (n_ranks < 1 || rank < 0 || rank >= n_ranks)
		return group_fail(ncclInvalidArgument, "%s: rank %d of %d ranks", what, rank,
				  n_ranks);
	dev = ready_get(what, &result);
	if (!dev)
		return group_failed(result);
	if (dev->get(&device))
		return group_fail(ncclSystemError, "%s: the CUDA runtime has no current device",
				  what);
	if (device == DEVICE_NONE)
		device = 0; /* as the runtime would take */
	world = world_rank(device, (uint32_t)n_ranks, (uint32_t)rank, &err);
	if (world < 0)
		return group_fail(ncclInvalidUsage, "%s: %s", what, err.text);
	memset(&body, 0, sizeof(body));
	memcpy(body.id, id, sizeof(body.id));
	body.n_ranks = (uint32_t)n_ranks;
	body.rank = (uint32_t)rank;
	body.world_rank = (uint32_t)world;
	all = with_job_ranks(&body, sizeof(body), (uint32_t)n_ranks, (uint32_t)rank, world, &bytes);
	if (!all)
		return group_fail(ncclSystemError, "%s: no memory", what);
	return begin(what, dev, device, ret, config, true, WIRE_COMM_INIT, 0, (uint32_t)rank, all,
		     bytes);
}

/* --- entry points ------------------------------------------------------------------------ */

/* Frameworks call this before they wait for ranks that may not exist: the place to refuse a world
 * that cannot be. */
ncclResult_t ncclGetVersion(int *version)
{
	ENTER();
	const struct env *env = env_get();

	if (env->is_virtual && env->error)
		return ready_refuse("ncclGetVersion", env->error, &env->err, "");
	return CALL_REAL(GetVersion, (version));
}
ALSO_PNCCL(GetVersion);

/* The real ncclCommInitAll calls ncclGetUniqueId through the linker, that is here. */
static __thread bool is_for_real;

/* The job's id is only a name here: no socket listens behind it. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	ENTER();
	static _Atomic uint32_t counter;
	const char *common = comm_id_get();
	struct wire_unique_id u = {.magic = WIRE_UNIQUE_ID_MAGIC, .version = 1};
	int rank = env_get()->rank;

	if (!env_get()->is_virtual || is_for_real)
		return CALL_REAL(GetUniqueId, (id));
	if (!id)
		return last_error_set(ncclInvalidArgument, "ncclGetUniqueId: id is NULL");
	/* as NCCL: every process that calls has the same id then */
	if (common && *common) {
		memset(id, 0, sizeof(*id));
		snprintf(id->internal, sizeof(id->internal), WIRE_COMMON_ID "%s", common);
		return ncclSuccess;
	}
	if (getrandom(u.random, sizeof(u.random), 0) != (ssize_t)sizeof(u.random))
		u.random[0] = clock_now_ns();
	u.creator = rank >= 0 ? (uint32_t)rank : WIRE_CREATOR_UNKNOWN;
	u.pid = (uint32_t)getpid();
	u.serial = atomic_fetch_add(&counter, 1);
	memcpy(id, &u, sizeof(u));
	return ncclSuccess;
}
ALSO_PNCCL(GetUniqueId);

ncclResult_t ncclCommInitRank(ncclComm_t *ret, int n_ranks, ncclUniqueId id, int rank)
{
	ENTER();

	if (!env_get()->is_virtual)
		return CALL_REAL(CommInitRank, (ret, n_ranks, id, rank));
	return init_rank("ncclCommInitRank", ret, n_ranks, &id, rank, NULL);
}
ALSO_PNCCL(CommInitRank);

ncclResult_t ncclCommInitRankConfig(ncclComm_t *ret, int n_ranks, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	ENTER();

	if (!env_get()->is_virtual)
		return CALL_REAL(CommInitRankConfig, (ret, n_ranks, id, rank, config));
	return init_rank("ncclCommInitRankConfig", ret, n_ranks, &id, rank, config);
}
ALSO_PNCCL(CommInitRankConfig);

/* Every rank passes the same ids: the first names the communicator. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *ret, int n_ranks, int rank, int n_ids,
				      ncclUniqueId *ids, ncclConfig_t *config)
{
	ENTER();

	if (!env_get()->is_virtual)
		return CALL_REAL(CommInitRankScalable, (ret, n_ranks, rank, n_ids, ids, config));
	if (n_ids < 1 || !ids || n_ids > n_ranks)
		return group_fail(
			ncclInvalidArgument,
			"ncclCommInitRankScalable: %d ids of %d ranks: 1 to as many as ranks",
			n_ids, n_ranks);
	return init_rank("ncclCommInitRankScalable", ret, n_ranks, &ids[0], rank, config);
}
ALSO_PNCCL(CommInitRankScalable);

/* All members are in this process: no virtual rank takes part. */
ncclResult_t ncclCommInitAll(ncclComm_t *ret, int n_dev, const int *devs)
{
	ENTER();
	ncclResult_t result;

	if (env_get()->is_virtual) /* NCCL looks now, and once */
		comm_blocking_get();
	/* so it does for its network */
	if (env_get()->is_virtual && env_get()->is_full && !ready_get("ncclCommInitAll", &result))
		return group_failed(result);
	is_for_real = true;
	result = FORWARD(CommInitAll, (ret, n_dev, devs));
	is_for_real = false;
	return result;
}
ALSO_PNCCL(CommInitAll);

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *ret,
			   ncclConfig_t *config)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct wire_comm_split body = {.color = color, .key = key};
	CLEANUP(freep) void *all = NULL;
	ncclResult_t result;
	size_t bytes = 0;

	if (!c)
		return FORWARD(CommSplit, (comm, color, key, ret, config));
	result = result_check(c, "ncclCommSplit");
	if (result != ncclSuccess)
		return group_failed(result);
	/* NCCL documents colors that are not negative, and takes others too: PyTorch 2.4 passes
	 * hashes cut to 32 bits. The frame has room for 31. */
	if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
		body.color = color & INT_MAX;
	if (!ret)
		return group_fail(ncclInvalidArgument, "ncclCommSplit: color %d, newcomm %p", color,
				  (void *)ret);
	body.parent = c->number;
	body.rank = c->rank;
	body.count = c->n_splits++;
	all = with_job_ranks(&body, sizeof(body), 0, (uint32_t)key,
			     color != NCCL_SPLIT_NOCOLOR && key >= 0 ? env_get()->rank : -1,
			     &bytes);
	if (!all)
		return group_fail(ncclSystemError, "ncclCommSplit: no memory");
	return begin("ncclCommSplit", c->dev, c->device, ret, config, c->is_blocking,
		     WIRE_COMM_SPLIT, c->number, c->rank, all, bytes);
}
ALSO_PNCCL(CommSplit);

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int n_excluded, ncclComm_t *ret,
			    ncclConfig_t *config, int flags)
{
	ENTER();
	CLEANUP(comm_unrefp) struct comm *c = comm_find(comm);
	struct wire_comm_shrink *body;
	CLEANUP(freep) void *mem = NULL;
	uint32_t *list;
	ncclResult_t result;

	if (!c)
		return FORWARD(CommShrink, (comm, excluded, n_excluded, ret, config, flags));
	result = flags & 1 ? ncclSuccess : result_check(c, "ncclCommShrink");
	if (result != ncclSuccess)
		return group_failed(result);
	if (!ret || n_excluded < 1 || !excluded || (uint32_t)n_excluded >= c->n_ranks)
		return group_fail(ncclInvalidArgument, "ncclCommShrink: %d of %u ranks to exclude",
				  n_excluded, c->n_ranks);
	mem = malloc(sizeof(*body) + (size_t)n_excluded * sizeof(*list));
	if (!mem)
		return group_fail(ncclSystemError, "no memory");
	body = mem;
	list = (uint32_t *)(void *)(body + 1);
	for (int i = 0; i < n_excluded; i++) {
		if (excluded[i] < 0 || (uint32_t)excluded[i] >= c->n_ranks ||
		    (uint32_t)excluded[i] == c->rank)
			return group_fail(ncclInvalidArgument,
					  "ncclCommShrink: rank %d cannot be "
					  "excluded by rank %u of %u",
					  excluded[i], c->rank, c->n_ranks);
		list[i] = (uint32_t)excluded[i];
	}
	if (flags & 1) { /* NCCL_SHRINK_ABORT */
		comm_fail(c, -ECANCELED, "aborted by ncclCommShrink");
		play_kill(c);
	}
	*body = (struct wire_comm_shrink){.parent = c->number,
					  .rank = c->rank,
					  .n_excluded = (uint32_t)n_excluded};
	return begin("ncclCommShrink", c->dev, c->device, ret, config, c->is_blocking,
		     WIRE_COMM_SHRINK, c->number, c->rank, body,
		     sizeof(*body) + (size_t)n_excluded * sizeof(*list));
}
ALSO_PNCCL(CommShrink);
