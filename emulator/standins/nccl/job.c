/* The three ways to a communicator: by id, by split, by shrink. Each is a job. It runs on the
 * caller's thread; at the end of a group on a thread of its own; for a non-blocking communicator
 * on a thread that the caller does not wait for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "standins/nccl/comm.h"

/* A variable goes before every config, as in NCCL. */
static bool is_blocking(const ncclConfig_t *config)
{
	const char *said = getenv("NCCL_COMM_BLOCKING");

	if (said && (!strcmp(said, "0") || !strcmp(said, "1")))
		return *said == '1';
	return !(config && config->blocking == 0);
}

struct ncclComm *comm_new(uint32_t rank, uint32_t n_ranks, const ncclConfig_t *config)
{
	struct ncclComm *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (!c)
		return NULL;
	c->canary = COMM_CANARY;
	c->generation = proxy_generation();
	atomic_init(&c->refs, 1);
	c->rank = rank;
	c->n_ranks = n_ranks;
	c->is_blocking = is_blocking(config);
	atomic_init(&c->state, ncclInProgress);
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->connect_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->waiting_end = &c->waiting;
	c->peers = calloc(n_ranks, sizeof(*c->peers));
	if (!c->peers || cudaGetDevice(&c->device)) {
		comm_put(c);
		return NULL;
	}
	return c;
}

/* --- the parts of a start ------------------------------------------------------------------- */

static void place_peers(struct ncclComm *c)
{
	const struct peer_info *me = &c->peers[c->rank].info;
	uint32_t i, per = 0;

	c->settings = c->peers[0].info.settings;
	for (i = 0; i < c->n_ranks; i++) {
		const struct peer_info *p = &c->peers[i].info;

		c->peers[i].is_near =
			!memcmp(p->host_id, me->host_id, 16) && p->unix_addr[0] && me->unix_addr[0];
	}
	/* equal blocks of ranks on each host, or every rank is its own */
	for (per = 1; per < c->n_ranks; per++) {
		if (memcmp(c->peers[per].info.host_id, c->peers[0].info.host_id, 16))
			break;
	}
	for (i = 0; i < c->n_ranks && per > 1; i++) {
		if (c->n_ranks % per ||
		    memcmp(c->peers[i].info.host_id, c->peers[i - i % per].info.host_id, 16) ||
		    (i % per == 0 && i &&
		     !memcmp(c->peers[i].info.host_id, c->peers[i - 1].info.host_id, 16)))
			per = 1;
	}
	c->ranks_per_node = per;
}

struct gather_call {
	struct ncclComm *comm;
	uint64_t number;
	struct gather_record mine, *ret;
	int result;
	bool is_whole;
};

static void do_gather_start(void *arg)
{
	struct gather_call *g = arg;

	g->result = !g->comm->is_attached || g->comm->is_failed
			    ? -ECONNRESET
			    : gather_start(g->comm, g->number, &g->mine);
}

static void do_gather_look(void *arg)
{
	struct gather_call *g = arg;
	const struct gather *found;

	if (!g->comm->is_attached || g->comm->is_failed)
		return;
	found = gather_find(g->comm, g->number);
	if (!found || found->n_has < g->comm->n_ranks)
		return;
	if (g->ret)
		memcpy(g->ret, found->records, g->comm->n_ranks * sizeof(*g->ret));
	gather_drop(g->comm, g->number);
	g->is_whole = true;
}

/* All ranks of @c give a record and get all. Number 0 is the barrier of its start.
 * Ends early when @c fails or when @c or @child is aborted. */
static ncclResult_t gather_all(struct ncclComm *c, const struct ncclComm *child, uint64_t number,
			       const struct gather_record *mine, struct gather_record *ret)
{
	struct gather_call g = {.comm = c, .number = number, .mine = *mine, .ret = ret};
	struct timespec until;

	if (c->n_ranks == 1) {
		if (ret)
			*ret = *mine;
		return ncclSuccess;
	}
	proxy_call(do_gather_start, &g);
	while (!g.result) {
		proxy_call(do_gather_look, &g);
		if (g.is_whole)
			return ncclSuccess;
		if (atomic_load(&c->error) || atomic_load(&c->abort) ||
		    (child && atomic_load(&child->abort)))
			break;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += 20 * 1000000; /* a broadcast between look and wait is made good */
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&c->lock);
		pthread_cond_timedwait(&c->changed, &c->lock, &until);
		pthread_mutex_unlock(&c->lock);
	}
	if (atomic_load(&c->error))
		return fail((ncclResult_t)atomic_load(&c->error), "%s", c->text);
	return fail(g.result ? ncclRemoteError : ncclInternalError,
		    "aborted while waiting for the other ranks");
}

/* Peers are known: joins the proxy, closes the control ring, waits for all. */
static ncclResult_t comm_start(struct ncclComm *c)
{
	struct gather_record nothing = {0, 0};
	ncclResult_t r = ncclSuccess;

	place_peers(c);
	proxy_attach(c);
	if (c->n_ranks > 1) {
		r = conn_open(c, (c->rank + 1) % c->n_ranks, KEY_RING);
		if (!r)
			r = gather_all(c, NULL, 0, &nothing, NULL);
	}
	if (!r)
		debug_info("rank %u of %u ready, device %d, %u rank%s a host", c->rank, c->n_ranks,
			   c->device, c->ranks_per_node, c->ranks_per_node == 1 ? "" : "s");
	return r;
}

static ncclResult_t fill_info(struct ncclComm *c, const struct sockaddr_in *local,
			      struct peer_info *ret)
{
	ncclResult_t r = settings_read(&ret->settings);

	if (!r)
		r = port_open(local, !ret->settings.shm_disabled, ret->settings.net_is_ib,
			      &c->port);
	if (r)
		return r;
	settings_host_id(ret->host_id);
	ret->rank = c->rank;
	ret->n_ranks = c->n_ranks;
	ret->pid = (uint32_t)getpid();
	ret->device = (uint32_t)c->device;
	gethostname(ret->host, sizeof(ret->host) - 1);
	snprintf(ret->unix_addr, sizeof(ret->unix_addr), "%s", port_unix_addr(c->port));
	snprintf(ret->tcp_addr, sizeof(ret->tcp_addr), "%s", port_tcp_addr(c->port));
	return ncclSuccess;
}

static ncclResult_t job_init(struct job *j)
{
	struct ncclComm *c = j->comm;
	CLEANUP(freep) struct peer_info *table = NULL;
	CLEANUP(closep) int fd = -1;
	struct sockaddr_in local;
	struct peer_info me;
	ncclResult_t r;
	uint32_t i;

	memset(&me, 0, sizeof(me));
	if (c->n_ranks == 1) {
		r = settings_read(&me.settings);
		c->peers[0].info = me;
		if (!j->has_common_id)
			boot_dismiss(&j->id); /* nobody will check in */
		return r ? r : comm_start(c);
	}
	if (j->has_common_id) {
		r = boot_common_id(c->rank == 0, &j->id);
		if (r)
			return r;
	}
	r = boot_connect(&j->id, &c->abort, &fd, &local);
	if (!r)
		r = fill_info(c, &local, &me);
	if (!r)
		r = boot_check_in(fd, &j->id, &me, &c->abort, &table, c->magic);
	if (r) {
		if (atomic_load(&c->abort) && !j->has_common_id)
			boot_dismiss(
				&j->id); /* the others do not wait for a rank that will not come */
		return r;
	}
	for (i = 0; i < c->n_ranks; i++)
		c->peers[i].info = table[i];
	for (i = 0; i < j->n_others && c->rank == 0; i++)
		boot_dismiss(&j->others[i]);
	return comm_start(c);
}

static void mix(uint8_t magic[16], uint64_t a, uint64_t b)
{
	uint64_t h[2];

	memcpy(h, magic, 16);
	h[0] = (h[0] ^ a) * UINT64_C(0xbf58476d1ce4e5b9);
	h[1] = (h[1] ^ b ^ h[0] >> 29) * UINT64_C(0x94d049bb133111eb);
	h[0] ^= h[1] >> 31;
	memcpy(magic, h, 16);
}

/* The new communicator of @j has these ranks of the parent, in this order. */
static void inherit(struct job *j, const uint32_t *members, uint32_t n)
{
	struct ncclComm *c = j->comm, *p = j->parent;
	uint32_t i;

	for (i = 0; i < n; i++)
		c->peers[i].info = p->peers[members[i]].info;
	c->n_ranks = n;
	c->port = p->port;
	if (c->port)
		port_get(c->port);
	c->device = p->device;
}

static ncclResult_t job_split(struct job *j)
{
	struct ncclComm *p = j->parent, *c = j->comm;
	struct gather_record mine = {.color = j->color, .key = j->key};
	CLEANUP(freep) struct gather_record *all = calloc(p->n_ranks, sizeof(*all));
	CLEANUP(freep) uint32_t *members = calloc(p->n_ranks, sizeof(*members));
	uint32_t i, k, n = 0;
	ncclResult_t r;

	if (!all || !members)
		return fail(ncclSystemError, "out of memory");
	r = gather_all(p, c, j->number + 1, &mine, all);
	if (r || !c)
		return r;
	for (i = 0; i < p->n_ranks; i++) { /* by key; ties by rank */
		if (all[i].color != j->color)
			continue;
		for (k = n++; k && all[members[k - 1]].key > all[i].key; k--)
			members[k] = members[k - 1];
		members[k] = i;
	}
	inherit(j, members, n);
	for (c->rank = 0; members[c->rank] != p->rank;)
		c->rank++;
	memcpy(c->magic, p->magic, 16);
	mix(c->magic, (uint64_t)j->number + 1, (uint32_t)j->color);
	return comm_start(c);
}

static void hash_members(const struct job *j, uint8_t hash[16])
{
	uint32_t i;

	for (i = 0; i < j->n_members; i++)
		mix(hash, j->members[i], j->n_members);
}

int job_number_shrink(struct job *j)
{
	struct ncclComm *p = j->parent;
	uint8_t members[16] = {0};
	struct shrink_count *s;

	hash_members(j, members);
	pthread_mutex_lock(&p->lock);
	for (s = p->shrinks; s && memcmp(s->members, members, 16);)
		s = s->next;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (s) {
			memcpy(s->members, members, 16);
			s->next = p->shrinks;
			p->shrinks = s;
		}
	}
	if (s)
		j->number = s->n++;
	pthread_mutex_unlock(&p->lock);
	return s ? 0 : -ENOMEM;
}

static ncclResult_t job_shrink(struct job *j)
{
	struct ncclComm *p = j->parent, *c = j->comm;

	if (j->must_abort)
		comm_stop(p, "the communicator was shrunk");
	inherit(j, j->members, j->n_members);
	memcpy(c->magic, p->magic, 16);
	hash_members(j, c->magic);
	mix(c->magic, UINT64_C(0x5368), j->number);
	return comm_start(c);
}

/* --- jobs ------------------------------------------------------------------------------------ */

struct job *job_free(struct job *j)
{
	if (!j)
		return NULL;
	comm_put(j->parent);
	free(j->others);
	free(j->members);
	free(j);
	return NULL;
}

ncclResult_t job_run(struct job *j)
{
	struct ncclComm *c = j->comm;
	ncclResult_t r = proxy_start();

	if (!r)
		r = j->kind == JOB_INIT    ? job_init(j)
		    : j->kind == JOB_SPLIT ? job_split(j)
					   : job_shrink(j);
	j->result = r;
	if (!c)
		return r;
	if (r && c->is_blocking) {
		*j->handle = NULL;
		proxy_detach(c);
		comm_put(c);
		return r;
	}
	if (r)
		comm_set_error(c, r, last_error());
	atomic_store(&c->state, (int)r);
	return r;
}

static void *job_thread(void *arg)
{
	struct job *j = arg;
	struct ncclComm *c = j->comm ? j->comm : j->parent;

	job_run(j);
	pthread_mutex_lock(&c->lock);
	c->n_jobs--;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	comm_put(c);
	job_free(j);
	return NULL;
}

ncclResult_t job_launch(struct job *j)
{
	struct ncclComm *c = comm_get(j->comm ? j->comm : j->parent);
	ncclResult_t r;

	pthread_mutex_lock(&c->lock);
	c->n_jobs++;
	pthread_mutex_unlock(&c->lock);
	r = comm_spawn(job_thread, j);
	if (r) {
		pthread_mutex_lock(&c->lock);
		c->n_jobs--;
		pthread_mutex_unlock(&c->lock);
		if (j->comm)
			atomic_store(&j->comm->state, (int)r);
		job_free(j);
	}
	if (r)
		comm_put(c);
	return r ? r : ncclInProgress;
}
