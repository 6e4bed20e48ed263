/* An NCCL for tests of --nccl full: it makes communicators over NCCL's bootstrap, and what its
 * ranks send and receive between nodes goes through the network plug-in that NCCL_NET_PLUGIN names,
 * with the events that the profiler's plug-in of NCCL_PROFILER_PLUGIN hears, in the order in which
 * NCCL's proxy calls both. Rings, double binary trees, sends and receives in the protocols Simple,
 * LL and LL128: chunks, slices, steps, slots and flags are NCCL's. The device's part is a host
 * function in the stream, with a thread for each channel.
 *
 * Which room has what: api.c what jobs call, launch.c what a group of calls becomes, comm.c
 * a communicator's init, root.c the bootstrap of one process, setup.c its connections, plugins.c
 * and tuner.c the plug-ins, proxy.c NCCL's proxy, pipe.c one connection and its slots, kernel.c
 * what the device does. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "nccl-plugin/net.h"
#include "profiler.h"
#include "schedule/coll.h"
#include "shim/real/nccl-api.h"

#define STEPS 8 /* slots of a connection */
#define PEERS_MAX 3
#define CHANNELS_MAX 32
#define P2P_CHUNK (128u << 10)

/* --- a connection ------------------------------------------------------------------ */

/* What the two ends of a connection share: the device and the proxy, or, inside a node, two
 * devices. Counts of steps since the connection was made. */
struct slots {
	_Atomic uint64_t head;        /* the reader has given back */
	_Atomic uint64_t tail;        /* the writer has filled */
	_Atomic int64_t bytes[STEPS]; /* -1: not yet known */
	unsigned char data[] __attribute__((aligned(4096)));
};

struct pipe {
	struct pipe *next;
	uint32_t peer;
	int channel, index; /* index: 0 collectives, 1 sends and receives */
	bool is_send, is_net;
	struct slots *slots;
	size_t mapped;
	int fd;        /* of the memory that a peer of the node maps; -1 */
	uint64_t step; /* the device's */
	/* the proxy's, of a network connection */
	void *listener, *net;
	void *registrations[PLUGIN_N_PROTOCOLS];
	uint64_t proxy_step;
	struct proxy_op *first, **last; /* in order; the first one goes on */
};

size_t step_bytes(int protocol); /* of a slot */
struct pipe *pipe_new(uint32_t peer, int channel, int index, bool is_send, bool is_net);
int pipe_map(struct pipe *p, int fd); /* fd -1: makes the memory; 0, -1 */
void pipe_free(struct pipe *p);
unsigned char *pipe_slot(struct pipe *p, int protocol, uint64_t step);

/* --- ops --------------------------------------------------------------------------- */

struct p2p_task {
	bool is_send;
	uint32_t peer;
	void *buffer;
	size_t bytes, count;
	ncclDataType_t dtype;
	struct pipe *pipe;
	void *event;
};

/* One launch: a collective, or all sends and receives of a group. */
struct op {
	struct op *next;
	ncclComm_t comm;
	cudaStream_t stream;
	enum coll_kind kind;
	const void *send;
	void *recv;
	size_t count;
	ncclDataType_t dtype;
	uint32_t redop; /* enum coll_redop */
	bool has_scalar;
	unsigned char scalar[8];
	uint32_t root;
	int algorithm, protocol;
	int n_channels;                                 /* before the launch: the most */
	size_t begin[CHANNELS_MAX], part[CHANNELS_MAX]; /* elements */
	struct p2p_task *tasks;
	size_t n_tasks;
	uint64_t number; /* of the communicator's launches */
};

/* Elements of a chunk, as the device and the proxy both compute it. */
size_t op_chunk(const struct op *o);
int op_chunk_steps(const struct op *o);
int op_slice_steps(const struct op *o);
size_t p2p_chunk(const struct p2p_task *t);

/* The device's part, in a host function of the stream. Takes @op. */
void kernel_run(void *op);

/* --- the proxy --------------------------------------------------------------------- */

struct proxy_handle {
	void *step_event, *context;
	struct proxy_op *op;
};

struct proxy_op {
	struct proxy_op *next;
	struct pipe *pipe;
	void *task_event, *event;
	int mask;
	uint32_t functions, algorithm, protocol;
	uint64_t n_steps, base, posted, received, transmitted, done;
	int chunk_steps, slice_steps, chunk_bytes;
	size_t bytes_max;
	bool has_begun;
	void *requests[STEPS], *consumed[STEPS];
	struct proxy_handle handles[STEPS];
};

int proxy_start(ncclComm_t c);
void proxy_stop(ncclComm_t c);
void proxy_submit(ncclComm_t c, struct proxy_op *list);

/* --- plug-ins ---------------------------------------------------------------------- */

struct plugins {
	const struct net_plugin_v11 *v11;
	const struct net_plugin_v10 *v10;
	const struct net_plugin_v9 *v9;
	const struct net_plugin_v8 *v8;
	void *net_context;
	void *profiler_context;
};

int plugins_net_init(ncclComm_t c, uint64_t hash);
int plugins_profiler_init(ncclComm_t c, uint64_t hash);
void plugins_end(ncclComm_t c);
int net_listen(ncclComm_t c, void *handle, void **ret_listener);
int net_connect(ncclComm_t c, void *handle, void **ret_sender);
int net_accept(ncclComm_t c, void *listener, void **ret_receiver);
int net_register(ncclComm_t c, void *comm, void *data, size_t bytes, void **ret);
int net_isend(ncclComm_t c, void *sender, void *data, size_t bytes, int tag, void *reg,
	      void *parent, void **ret_request);
int net_irecv(ncclComm_t c, void *receiver, void *data, size_t bytes, int tag, void *reg,
	      void *parent, void **ret_request);
int net_test(ncclComm_t c, void *request, int *ret_done, int *ret_bytes);
int net_consumed(ncclComm_t c, void *receiver, void *request);
void net_attributes_set(ncclComm_t c, const struct proxy_op *o);
void net_close(ncclComm_t c, struct pipe *p);

int profiler_mask(void);
void profiler_group(ncclComm_t c, void **ret);
void profiler_coll(ncclComm_t c, void *group, const struct op *o, uint64_t seq, void **ret);
void profiler_p2p(ncclComm_t c, void *group, const struct p2p_task *t, void **ret);
void profiler_proxy_op(ncclComm_t c, struct proxy_op *o);
void profiler_step(ncclComm_t c, struct proxy_op *o, uint64_t step);
void profiler_step_state(ncclComm_t c, struct proxy_op *o, uint64_t step, int state, size_t bytes);
/* Of the op, as NCCL before 2.26; @steps of the connection. */
void profiler_op_state(struct proxy_op *o, uint64_t steps, int state);
void profiler_step_stop(struct proxy_op *o, uint64_t step);
void profiler_stop(void *event);

int tuner_init(ncclComm_t c);
void tuner_end(ncclComm_t c);
/* What @o takes, in place of its algorithm, protocol and n_channels. Return: ncclResult_t. */
int tuner_ask(struct op *o);

/* --- a communicator ---------------------------------------------------------------- */

struct channel {
	uint32_t *ring;              /* [n_ranks], owned; from this rank on */
	uint32_t prev, next;         /* in the ring */
	int32_t up, down[PEERS_MAX]; /* in the tree; -1: none */
};

struct ncclComm {
	uint32_t n_ranks, rank, n_nodes;
	ncclUniqueId id;
	uint64_t hash; /* of the id: plug-ins know the communicator by it */
	int version, device;
	bool is_completion_optional; /* of receives, where the lines have flags */
	struct said_world w;
	uint32_t *node, *template; /* [n_ranks], owned */
	struct client client;
	bool has_client;
	int n_channels, n_graphs; /* n_graphs: before they are doubled */
	int n_channels_min;       /* of the config: more are copies of those */
	struct channel channels[CHANNELS_MAX];
	struct pipe *pipes;
	struct plugins plugins;
	bool has_tuner;
	void *tuner; /* context */
	uint64_t seq[COLL_KINDS];
	bool is_nonblocking;
	_Atomic bool aborted, is_starting; /* is_starting: it is not made yet */
	_Atomic int async;                 /* ncclResult_t */
	/* the proxy's thread */
	pthread_t proxy;
	bool has_proxy;
	_Atomic bool proxy_ends;
	pthread_mutex_t lock;
	struct proxy_op *submitted, **submitted_last;
	/* launches run one after the other */
	uint64_t n_launched;
	_Atomic uint64_t n_run;
	_Atomic uint64_t n_sent, n_received; /* messages of the network */
};

int comm_init(ncclComm_t c);
/* Of @n ranks of one node, all in this process. 0, -1 */
int root_make_id(uint32_t n, ncclUniqueId *ret);
int version_told(void); /* NCCL_CODE() of the NCCL that is played */
void comm_end(ncclComm_t c);
void comm_failed(ncclComm_t c, int result, const char *what);
bool comm_is_local(const struct ncclComm *c, uint32_t peer);
struct pipe *comm_pipe(ncclComm_t c, uint32_t peer, int channel, int index, bool is_send);
/* Connects what of @wanted is not connected; @graph as in struct client_edges. */
struct edge {
	uint32_t peer;
	int channel, index;
	bool is_send;
};
int comm_set_up(ncclComm_t c, int graph, const struct edge *edges, size_t n);

/* Launches what was enqueued. */
ncclResult_t launch(struct op *list);

size_t dtype_bytes(ncclDataType_t t);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Between two looks at something. */
void pause_for(unsigned *n);
