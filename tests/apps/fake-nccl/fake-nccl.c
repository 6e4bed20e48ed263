/* An NCCL for tests of nbox oracle: it makes communicators over NCCL's bootstrap, as a real rank
 * does (tests/func/bootstrap), asks the tuner's plug-in about its ops, and logs as NCCL does.
 * Nothing is ever sent. Its costs are a latency and a bandwidth for each algorithm and protocol.
 *
 *   FAKE_NCCL_VERSION=22809    what it says to be, and whose records it speaks
 *   FAKE_NCCL_DOES=            refuse: init fails; hang, crash: in init; crash-op: at an op; lie:
 * it does not log the graphs that it sends
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "client.h"
#include "nccl-plugin/tuner.h"
#include "shim/real/nccl-api.h"
#include "wire.h"

#define API __attribute__((visibility("default")))
#define GPUS_MAX 64
#define WAIT_NS (UINT64_C(60) * NS_PER_S)
#define N_CHANNELS 2

struct ncclComm {
	int n_ranks, n_nodes, n_gpus, rank;
	ncclUniqueId id;
	struct client client;
	struct tuner_plugin_v2 *v2;
	struct tuner_plugin_v4 *v4;
	struct tuner_plugin_v5 *v5;
	void *tuner;
	ncclResult_t result;
};

static struct {
	int depth;
	ncclComm_t comms[GPUS_MAX]; /* that the group makes */
	int n_comms;
	ncclResult_t result;
	char last[256];
	FILE *log;
} f;

static void say(int rank, const char *kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(int rank, const char *kind, const char *fmt, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *file = getenv("NCCL_DEBUG_FILE");
	va_list ap;

	pthread_mutex_lock(&lock);
	if (!f.log)
		f.log = file ? fopen(file, "we") : NULL;
	if (f.log) {
		fprintf(f.log, "host:%d:%d [%d] NCCL %s ", (int)getpid(), (int)getpid(), rank,
			kind);
		va_start(ap, fmt);
		vfprintf(f.log, fmt, ap);
		va_end(ap);
		fputc('\n', f.log);
		fflush(f.log);
	}
	pthread_mutex_unlock(&lock);
}

static bool does(const char *what)
{
	const char *told = getenv("FAKE_NCCL_DOES");

	return told && strcmp(told, what) == 0;
}

API ncclResult_t ncclGetVersion(int *version)
{
	const char *told = getenv("FAKE_NCCL_VERSION");

	*version = told ? atoi(told) : NCCL_CODE(2, 28, 9);
	return ncclSuccess;
}

API const char *ncclGetErrorString(ncclResult_t result)
{
	return result == ncclSuccess ? "no error" : "internal error";
}

API const char *ncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return f.last;
}

/* --- what it logs ------------------------------------------------------------------------ */

static int ring_next(const struct ncclComm *c)
{
	return c->rank + 1 < c->n_gpus ? c->rank + 1 : c->n_gpus % c->n_ranks;
}

static void log_graphs(const struct ncclComm *c)
{
	static const int patterns[] = {4, 1};

	for (int i = 0; i < 2; i++)
		say(c->rank, "INFO",
		    "Pattern %d, crossNic 0, nChannels %d, bw 20.000000/%d.000000, type NVL/%s, sameChannels 1",
		    patterns[i], N_CHANNELS / (i + 1), 20 * (i + 1),
		    c->n_nodes > 1 ? "PIX" : "NVL");
	say(c->rank, "INFO",
	    "comm 0x1 rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL 0", c->rank,
	    c->n_ranks, c->n_nodes, c->n_gpus, c->rank);
}

static void log_edges(const struct ncclComm *c)
{
	char trees[1024] = "";
	int down = c->rank + 1 < c->n_gpus ? c->rank + 1 : -1;
	int up = c->rank ? c->rank - 1 : c->n_nodes > 1 ? c->n_gpus : -1;

	for (int i = 0; i < N_CHANNELS; i++) {
		size_t n = strlen(trees);

		say(c->rank, "INFO", "Ring %02d : %d -> %d -> %d", i,
		    c->rank ? c->rank - 1 : c->n_ranks - 1, c->rank, ring_next(c));
		snprintf(trees + n, sizeof(trees) - n, " [%d] %d/-1/-1->%d->%d", i, down, c->rank,
			 up);
	}
	say(c->rank, "INFO", "Trees%s", trees);
}

static void log_tables(const struct ncclComm *c)
{
	if (c->rank == 0) {
		say(0, "INFO",
		    "  Algorithm   |                            Tree                  |                            Ring                  |                   CollNetDirect                  |");
		say(0, "INFO",
		    "  Protocol    |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |");
		say(0, "INFO",
		    " Max NThreads |            512 |            640 |            512 |            512 |            640 |            512 |              0 |              0 |            640 |");
	}
	say(c->rank, "INFO", "threadThresholds 8/8/64 | %d/8/64 | 512 | 512", 8 * c->n_ranks);
	say(c->rank, "INFO",
	    "%d coll channels, %d collnet channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer",
	    N_CHANNELS, N_CHANNELS);
}

/* What this rank sends of its graphs is made up by the bootstrap's client: it logs that, too. */
static void log_sent_graphs(const struct ncclComm *c, const struct said_world *w)
{
	const struct record_graph *r = &w->records->graph;
	uint8_t record[4096];

	said_graph(w, (uint32_t)c->rank, record);
	for (int i = 0; i < r->n_graphs; i++) {
		int32_t pattern, n_channels;

		memcpy(&pattern, record + i * r->graph_bytes + r->pattern.at, sizeof(pattern));
		memcpy(&n_channels, record + i * r->graph_bytes + r->n_channels.at,
		       sizeof(n_channels));
		say(c->rank, "INFO",
		    "Pattern %d, crossNic 0, nChannels %d, bw 0.000000/0.000000, type DIS/DIS, sameChannels 1",
		    pattern, n_channels);
	}
}

/* --- init -------------------------------------------------------------------------------- */

static int open_tuner(struct ncclComm *c)
{
	const char *file = getenv("NCCL_TUNER_PLUGIN");
	void *library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
	struct tuner_domains domains = {1, c->n_ranks, c->n_ranks};
	struct tuner_constants constants = {.base_us = {{0}}};
	size_t ranks = (size_t)c->n_ranks, nodes = (size_t)c->n_nodes;
	int version;

	ncclGetVersion(&version);
	if (!library)
		return 0;
	if (version >= NCCL_CODE(2, 28, 0)) {
		c->v5 = dlsym(library, "ncclTunerPlugin_v5");
		return c->v5 ? c->v5->init(&c->tuner, 1, ranks, nodes, NULL, &domains, &constants)
			     : 1;
	}
	if (version >= NCCL_CODE(2, 22, 0)) {
		c->v4 = dlsym(library, "ncclTunerPlugin_v4");
		return c->v4 ? c->v4->init(ranks, nodes, NULL, &c->tuner) : 1;
	}
	c->v2 = dlsym(library, "ncclTunerPlugin_v2");
	return c->v2 ? c->v2->init(ranks, nodes, NULL, &c->tuner) : 1;
}

static int join(struct ncclComm *c, struct said_world *w)
{
	const struct sockaddr_in here = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t at[NCCL_ADDRESS_BYTES] = {0};
	uint32_t *node = calloc(2 * (size_t)c->n_ranks, sizeof(*node)),
		 *template = node + c->n_ranks;
	char why[256];
	int version, r;

	ncclGetVersion(&version);
	memcpy(at, &here, sizeof(here));
	for (int i = 0; i < c->n_ranks; i++) {
		node[i] = (uint32_t)(i / c->n_gpus);
		template[i] = (uint32_t)(i % c->n_gpus);
	}
	*w = (struct said_world){.records = nccl_records_find(version, true, why, sizeof(why)),
				 .n_ranks = (uint32_t)c->n_ranks,
				 .node = node,
				 .template = template,
				 .seed = 1};
	if (!w->records || said_world_init(w) < 0)
		return -1;
	if (!does("lie"))
		log_sent_graphs(c, w);
	client_new(&c->client, w, (uint32_t)c->rank, at, clock_now_ns() + WAIT_NS);
	if (does("crash-midway") &&
	    client_check_in(&c->client, (const uint8_t *)c->id.internal, 1) == 0)
		abort();
	r = client_init(&c->client, (const uint8_t *)c->id.internal, 1);
	if (r < 0)
		say(c->rank, "WARN", "%s", wire_error());
	said_world_deinit(w);
	free(node);
	return r;
}

static void *init_rank(void *ctx)
{
	struct ncclComm *c = ctx;
	struct said_world w;

	if (does("hang"))
		pause();
	if (does("crash"))
		abort();
	c->result = ncclSuccess;
	log_graphs(c);
	if (does("refuse") || join(c, &w) < 0 || open_tuner(c)) {
		say(c->rank, "WARN", "the fake NCCL does not make this communicator");
		c->result = ncclInternalError;
		return NULL;
	}
	log_edges(c);
	log_tables(c);
	return NULL;
}

static ncclResult_t init_all(void)
{
	pthread_t threads[GPUS_MAX];
	ncclResult_t r = ncclSuccess;

	for (int i = 0; i < f.n_comms; i++) {
		f.comms[i]->n_gpus = f.n_comms;
		f.comms[i]->n_nodes = f.comms[i]->n_ranks / f.n_comms;
		pthread_create(&threads[i], NULL, init_rank, f.comms[i]);
	}
	for (int i = 0; i < f.n_comms; i++) {
		pthread_join(threads[i], NULL);
		if (f.comms[i]->result != ncclSuccess) {
			r = f.comms[i]->result;
			snprintf(f.last, sizeof(f.last), "rank %d was not made", f.comms[i]->rank);
		}
	}
	f.n_comms = 0;
	return r;
}

API ncclResult_t ncclCommInitRank(ncclComm_t *ret, int n_ranks, ncclUniqueId id, int rank)
{
	struct ncclComm *c = calloc(1, sizeof(*c));

	c->n_ranks = n_ranks;
	c->rank = rank;
	c->id = id;
	f.comms[f.n_comms++] = *ret = c;
	return f.depth ? ncclSuccess : init_all();
}

API ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	client_free(&comm->client);
	if (comm->v5)
		comm->v5->destroy(comm->tuner);
	else if (comm->v4)
		comm->v4->destroy(comm->tuner);
	else if (comm->v2)
		comm->v2->destroy(comm->tuner);
	free(comm);
	return ncclSuccess;
}

/* --- ops --------------------------------------------------------------------------------- */

API ncclResult_t ncclGroupStart(void)
{
	f.depth++;
	return ncclSuccess;
}

API ncclResult_t ncclGroupEnd(void)
{
	ncclResult_t r = f.result;

	if (--f.depth)
		return ncclSuccess;
	f.result = ncclSuccess;
	return f.n_comms ? init_all() : r;
}

static void fill_costs(const struct ncclComm *c, int function, size_t bytes,
		       float us[PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS])
{
	static const float latency[PLUGIN_N_PROTOCOLS] = {1, 2, 8};         /* us a step */
	static const float rate[PLUGIN_N_PROTOCOLS] = {5000, 18000, 20000}; /* bytes/us */
	float steps[PLUGIN_N_ALGORITHMS] = {2, (float)c->n_ranks};

	for (int nodes = c->n_nodes; nodes > 1; nodes /= 2)
		steps[PLUGIN_TREE] += 2;
	for (int a = 0; a < PLUGIN_N_ALGORITHMS; a++)
		for (int p = 0; p < PLUGIN_N_PROTOCOLS; p++) {
			bool is_had = a == PLUGIN_RING ||
				      (a == PLUGIN_TREE && function == PLUGIN_ALLREDUCE);
			float slower = a == PLUGIN_TREE ? 1.25f : 1;

			us[a][p] = is_had ? steps[a] * latency[p] + (float)bytes * slower / rate[p]
					  : TUNER_IGNORED;
		}
}

static ncclResult_t op(ncclComm_t c, int function, size_t bytes)
{
	float us[PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS];
	int algorithm = -1, protocol = -1, n_channels = 0, r = PLUGIN_OK;

	if (does("crash-op"))
		abort();
	fill_costs(c, function, bytes, us);
	if (c->v5)
		r = c->v5->get_info(c->tuner, function, bytes, 1, (float **)us, PLUGIN_N_ALGORITHMS,
				    PLUGIN_N_PROTOCOLS, 0, &n_channels);
	else if (c->v4)
		r = c->v4->get_info(c->tuner, function, bytes, 1, (float **)us, PLUGIN_N_ALGORITHMS,
				    PLUGIN_N_PROTOCOLS, 0, &n_channels);
	for (int i = 0; c->v2 && r == PLUGIN_OK && i < 2; i++) { /* 2.21 asks twice */
		r = c->v2->get_info(c->tuner, function, bytes, 0, 0, 1, &algorithm, &protocol,
				    &n_channels);
		if (i == 0)
			say(0, "INFO", "%zu Bytes -> Algo 1 proto 2 time %f", bytes,
			    (double)us[PLUGIN_RING][PLUGIN_SIMPLE]);
	}
	f.result = (ncclResult_t)r;
	return f.depth ? ncclSuccess : f.result;
}

static const size_t element_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

API ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)recv, (void)redop, (void)stream;
	return op(comm, PLUGIN_ALLREDUCE, count * element_bytes[dtype]);
}

API ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)recv, (void)stream;
	return op(comm, PLUGIN_ALLGATHER, count * element_bytes[dtype] * (size_t)comm->n_ranks);
}

API ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t dtype,
				   ncclRedOp_t redop, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)recv, (void)redop, (void)stream;
	return op(comm, PLUGIN_REDUCESCATTER, count * element_bytes[dtype] * (size_t)comm->n_ranks);
}

API ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			       int root, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)recv, (void)root, (void)stream;
	return op(comm, PLUGIN_BROADCAST, count * element_bytes[dtype]);
}

API ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype,
			    ncclRedOp_t redop, int root, ncclComm_t comm, cudaStream_t stream)
{
	(void)send, (void)recv, (void)redop, (void)root, (void)stream;
	return op(comm, PLUGIN_REDUCE, count * element_bytes[dtype]);
}
