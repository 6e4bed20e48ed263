/* See impl.h: the init of a communicator, in the order of ncclCommInitRank. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "impl.h"
#include "schedule/dtree.h"
#include "wire.h"

#define WAIT_NS (UINT64_C(60) * NS_PER_S)
#define RECORD_MAX 4096

/* FNV-1a. What NCCL makes of an id, to name a communicator to its plug-ins, is its own affair. */
static uint64_t hash_of(const void *bytes, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t host_hash(void)
{
	const char *told = getenv("NCCL_HOSTID");
	char name[256] = "";

	if (!told)
		gethostname(name, sizeof(name) - 1);
	return hash_of(told ? told : name, strlen(told ? told : name));
}

bool comm_is_local(const struct ncclComm *c, uint32_t peer)
{
	return c->node[peer] == c->node[c->rank];
}

void comm_failed(ncclComm_t c, int result, const char *what)
{
	int none = ncclSuccess;

	say("rank %u: %s", c->rank, what);
	atomic_compare_exchange_strong(&c->async, &none, result);
}

/* --- who is where ------------------------------------------------------------------ */

static int gather_peers(ncclComm_t c)
{
	const struct record_peer *p = &c->w.records->peer;
	uint64_t host = host_hash() + hash_of(c->id.internal, sizeof(c->id)), *hosts;
	uint8_t own[RECORD_MAX], *all;

	said_peer(&c->w, c->rank, own);
	memcpy(own + p->host_hash.at, &host, sizeof(host));
	if (client_all_gather(&c->client, own, p->bytes, &all) < 0)
		return -1;
	hosts = calloc(c->n_ranks, sizeof(*hosts));
	for (uint32_t r = 0; r < c->n_ranks; r++) {
		int32_t rank;
		uint32_t n = 0;

		memcpy(&host, all + r * p->bytes + p->host_hash.at, sizeof(host));
		memcpy(&rank, all + r * p->bytes + p->rank.at, sizeof(rank));
		if (rank != (int32_t)r)
			return wire_fail("peer record %u is of rank %d", r, rank);
		while (n < c->n_nodes && hosts[n] != host)
			n++;
		if (n == c->n_nodes)
			hosts[c->n_nodes++] = host;
		c->node[r] = n;
		c->template[r] = r;
	}
	free(hosts);
	free(all);
	return said_world_init(&c->w);
}

/* --- rings and trees --------------------------------------------------------------- */

static size_t array_at(const struct record_graph *g, enum record_array array, int channel)
{
	return g->arrays_at + ((size_t)array * g->n_channels_max + (size_t)channel) * 4;
}

static int32_t get(const struct record_graph *g, const uint8_t *all, uint32_t rank,
		   enum record_array array, int channel)
{
	int32_t v;

	memcpy(&v, all + rank * (size_t)g->bytes + array_at(g, array, channel), sizeof(v));
	return v;
}

static void put(const struct record_graph *g, uint8_t *own, enum record_array array, int channel,
		int32_t v)
{
	memcpy(own + array_at(g, array, channel), &v, sizeof(v));
}

/* A channel's ring and chain begin at another rank of the node each. */
static void say_graph(ncclComm_t c, uint8_t *own)
{
	const struct record_graph *g = &c->w.records->graph;
	const uint32_t *ranks = c->w.by_node + c->w.first[c->rank];
	uint32_t n = c->w.count[c->rank], place = 0;
	int32_t n_graphs = c->n_graphs;

	said_graph(&c->w, c->rank, own);
	while (ranks[place] != c->rank)
		place++;
	memset(own + g->arrays_at, 0, (size_t)RECORD_ARRAYS * g->n_channels_max * 4);
	for (int i = 0; i < 2; i++)
		memcpy(own + (i ? RECORD_OF_RING : RECORD_OF_TREE) * g->graph_bytes +
			       g->n_channels.at,
		       &n_graphs, 4);
	if (g->nvls_head_count.bytes)
		memset(own + g->nvls_head_count.at, 0, g->nvls_head_count.bytes);
	for (int ch = 0; ch < n_graphs; ch++) {
		uint32_t first = (uint32_t)ch % n, at = (place + n - first) % n;
		int32_t begin = (int32_t)ranks[first], end = (int32_t)ranks[(first + n - 1) % n],
			second = (int32_t)ranks[(first + (n > 1)) % n];

		put(g, own, RECORD_RING_RECV, ch, begin);
		put(g, own, RECORD_RING_SEND, ch, end);
		put(g, own, RECORD_RING_PREV, ch, at ? (int32_t)ranks[(first + at - 1) % n] : -1);
		put(g, own, RECORD_RING_NEXT, ch,
		    at + 1 < n ? (int32_t)ranks[(first + at + 1) % n] : -1);
		put(g, own, RECORD_TREE_PARENT, ch, begin);
		put(g, own, RECORD_TREE_CHILD0, ch, second);
		put(g, own, RECORD_TREE_CHILD1, ch, begin);
	}
}

static int find_ring(ncclComm_t c, const uint8_t *all, const uint32_t *first_of, int ch)
{
	const struct record_graph *g = &c->w.records->graph;
	struct channel *to = &c->channels[ch];
	uint32_t *ring = calloc(c->n_ranks, sizeof(*ring)), n = 0, at = 0;

	to->ring = calloc(c->n_ranks, sizeof(*ring));
	for (uint32_t node = 0; node < c->n_nodes; node++)
		for (int32_t r = get(g, all, first_of[node], RECORD_RING_RECV, ch % c->n_graphs);
		     r >= 0; r = get(g, all, (uint32_t)r, RECORD_RING_NEXT, ch % c->n_graphs)) {
			if (n == c->n_ranks || (uint32_t)r >= c->n_ranks || c->node[r] != node)
				return wire_fail("the ring of channel %d is none", ch);
			ring[n++] = (uint32_t)r;
		}
	while (at < n && ring[at] != c->rank)
		at++;
	if (n != c->n_ranks || at == n)
		return wire_fail("the ring of channel %d has %u ranks", ch, n);
	for (uint32_t i = 0; i < n; i++)
		to->ring[i] = ring[(at + i) % n];
	to->next = to->ring[n > 1];
	to->prev = to->ring[n - 1];
	free(ring);
	return 0;
}

static void find_tree(ncclComm_t c, const uint8_t *all, const uint32_t *first_of, int ch)
{
	const struct record_graph *g = &c->w.records->graph;
	struct channel *to = &c->channels[ch];
	uint32_t node = c->node[c->rank];
	int graph = ch % c->n_graphs, n_down = 0;
	int32_t parent, child[2], parents_child[2], grand,
		entry[2] = {get(g, all, c->rank, RECORD_TREE_CHILD0, graph),
			    get(g, all, c->rank, RECORD_TREE_CHILD1, graph)};

	to->up = get(g, all, c->rank, RECORD_RING_PREV, graph);
	to->down[0] = to->down[1] = to->down[2] = -1;
	if (get(g, all, c->rank, RECORD_RING_NEXT, graph) >= 0)
		to->down[n_down++] = get(g, all, c->rank, RECORD_RING_NEXT, graph);
	sched_dtree(c->n_nodes, node, ch / c->n_graphs % 2, &parent, child);
	if (parent >= 0 && get(g, all, c->rank, RECORD_TREE_PARENT, graph) == (int32_t)c->rank) {
		sched_dtree(c->n_nodes, (uint32_t)parent, ch / c->n_graphs % 2, &grand,
			    parents_child);
		to->up = get(g, all, first_of[parent],
			     parents_child[0] == (int32_t)node ? RECORD_TREE_CHILD0
							       : RECORD_TREE_CHILD1,
			     graph);
	}
	for (int i = 0; i < 2; i++)
		if (child[i] >= 0 && entry[i] == (int32_t)c->rank)
			to->down[n_down++] =
				get(g, all, first_of[child[i]], RECORD_TREE_PARENT, graph);
}

static int gather_graphs(ncclComm_t c)
{
	uint8_t own[RECORD_MAX], *all;
	uint32_t *first_of = calloc(c->n_nodes, sizeof(*first_of));
	int r = 0;

	say_graph(c, own);
	if (client_all_gather(&c->client, own, c->w.records->graph.bytes, &all) < 0)
		return -1;
	for (uint32_t i = c->n_ranks; i-- > 0;)
		first_of[c->node[i]] = i;
	for (int ch = 0; ch < c->n_channels && r == 0; ch++) {
		r = find_ring(c, all, first_of, ch);
		if (r == 0)
			find_tree(c, all, first_of, ch);
	}
	free(first_of);
	free(all);
	return r;
}

/* --- connections of collectives ---------------------------------------------------- */

static int connect_rings(ncclComm_t c)
{
	struct edge edges[2 * CHANNELS_MAX];
	size_t n = 0;

	for (int ch = 0; ch < c->n_channels; ch++) {
		edges[n++] = (struct edge){c->channels[ch].prev, ch, 0, false};
		edges[n++] = (struct edge){c->channels[ch].next, ch, 0, true};
	}
	return comm_set_up(c, 0, edges, n);
}

static int connect_trees(ncclComm_t c)
{
	struct edge edges[2 * (PEERS_MAX + 1) * CHANNELS_MAX];
	size_t n = 0;

	for (int ch = 0; ch < c->n_channels; ch++)
		for (int i = -1; i < PEERS_MAX; i++) {
			int32_t peer = i < 0 ? c->channels[ch].up : c->channels[ch].down[i];

			if (peer < 0)
				continue;
			edges[n++] = (struct edge){(uint32_t)peer, ch, 0, false};
			edges[n++] = (struct edge){(uint32_t)peer, ch, 0, true};
		}
	return comm_set_up(c, 1, edges, n);
}

/* --- all of it --------------------------------------------------------------------- */

static int number(const char *name, int otherwise, int max)
{
	const char *told = getenv(name);
	int n = told ? atoi(told) : otherwise;

	return n < 1 ? 1 : n > max ? max : n;
}

static int prepare(ncclComm_t c)
{
	const char *optional = getenv("NCCL_NET_OPTIONAL_RECV_COMPLETION");
	char why[256];

	c->is_completion_optional = !optional || strcmp(optional, "0") != 0;
	c->version = version_told();
	c->n_graphs = number("FAKE_NCCL_CHANNELS", 2, CHANNELS_MAX) / 2;
	if (!c->n_graphs)
		c->n_graphs = 1;
	c->n_channels = 2 * c->n_graphs;
	if (c->n_channels < c->n_channels_min)
		c->n_channels = c->n_channels_min < CHANNELS_MAX ? c->n_channels_min : CHANNELS_MAX;
	c->node = calloc(c->n_ranks, sizeof(*c->node));
	c->template = calloc(c->n_ranks, sizeof(*c->template));
	if (!c->node || !c->template)
		return wire_fail("no memory");
	c->w = (struct said_world){.records = nccl_records_find(c->version, true, why, sizeof(why)),
				   .n_ranks = c->n_ranks,
				   .node = c->node,
				   .template = c->template,
				   .seed = 1};
	return c->w.records ? 0 : wire_fail("%s", why);
}

static int bootstrap(ncclComm_t c)
{
	const struct sockaddr_in here = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t at[NCCL_ADDRESS_BYTES] = {0}, next[NCCL_ADDRESS_BYTES];

	memcpy(at, &here, sizeof(here));
	client_new(&c->client, &c->w, c->rank, at, clock_now_ns() + WAIT_NS);
	c->has_client = true;
	if (client_check_in(&c->client, (const uint8_t *)c->id.internal, 1) < 0 ||
	    client_answer(&c->client, next) < 0 || client_ring(&c->client, next) < 0 ||
	    client_contacts(&c->client) < 0 || gather_peers(c) < 0 || client_node(&c->client) < 0)
		return -1;
	return gather_graphs(c);
}

int comm_init(ncclComm_t c)
{
	c->hash = hash_of(c->id.internal, sizeof(c->id));
	wire_abort_by(&c->aborted);
	pthread_mutex_init(&c->lock, NULL);
	c->submitted_last = &c->submitted;
	if (prepare(c) < 0 || plugins_net_init(c, c->hash) < 0 || bootstrap(c) < 0 ||
	    tuner_init(c) < 0 || plugins_profiler_init(c, c->hash) < 0 || proxy_start(c) < 0 ||
	    connect_rings(c) < 0 || connect_trees(c) < 0)
		goto fail;
	wire_abort_by(NULL);
	return 0;
fail:
	say("rank %u of %u: %s", c->rank, c->n_ranks, wire_error());
	wire_abort_by(NULL);
	return -1;
}

void comm_end(ncclComm_t c)
{
	proxy_stop(c);
	while (c->pipes) {
		struct pipe *p = c->pipes;

		c->pipes = p->next;
		if (p->is_net)
			net_close(c, p);
		pipe_free(p);
	}
	tuner_end(c);
	plugins_end(c);
	if (c->has_client)
		client_free(&c->client);
	if (c->w.by_node)
		said_world_deinit(&c->w);
	for (int ch = 0; ch < c->n_channels; ch++)
		free(c->channels[ch].ring);
	free(c->node);
	free(c->template);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
