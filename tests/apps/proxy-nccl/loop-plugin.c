/* NCCL's plug-in of a network and a profiler for tests of proxy-nccl: ranks that are all real send
 * to each other over TCP on the loopback. It checks the order in which NCCL calls it, and that each
 * request's event leads to an op; what is wrong goes to standard error and ends the process.
 *
 *   LOOP_LATER=N: every N-th isend, irecv, connect and accept is answered with "later" */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nccl-plugin/net.h"
#include "profiler.h"

#define API __attribute__((visibility("default")))
#define REQUESTS_MAX 32

static plugin_event_fn tell;
static _Atomic unsigned n_calls;
static _Atomic uint64_t n_messages, n_steps_told;
static bool is_v1; /* counts steps of connections */
static bool is_v3; /* answers with another message than that of the request */
/* What the profiler of version 1 to 3 has told last on this thread: whose message comes now. */
static __thread struct event *op_told;

#define MUST(what)                                                                      \
	do {                                                                            \
		if (!(what)) {                                                          \
			fprintf(stderr, "loop-plugin: line %d: %s\n", __LINE__, #what); \
			abort();                                                        \
		}                                                                       \
	} while (0)

static bool is_later(void)
{
	const char *told = getenv("LOOP_LATER");
	unsigned n = told ? (unsigned)atoi(told) : 0;

	return n && ++n_calls % n == 0;
}

/* --- the profiler ------------------------------------------------------------------ */

struct event {
	int type, refs; /* an event that is a parent outlives its stop */
	struct event *parent, *kept;
	int n_steps, step, is_send;
	bool is_stopped;
};

/* All of them, until the end: a proxy that is ended leaves some unstopped. */
static struct event *_Atomic kept;

static void keep(struct event *e)
{
	e->refs++;
	e->kept = kept;
	while (!atomic_compare_exchange_weak(&kept, &e->kept, e))
		;
}

static void unref(struct event *e)
{
	while (e && __atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) == 0) {
		struct event *parent = e->parent;

		free(e);
		e = parent;
	}
}

static int on_start(void *context, void **ret, void *told)
{
	struct event_v5 *t = told;
	struct event *e = calloc(1, sizeof(*e));

	MUST(context);
	e->type = (int)(t->type & 0xff);
	e->refs = 1;
	e->parent = t->parent;
	if (e->parent)
		__atomic_add_fetch(&e->parent->refs, 1, __ATOMIC_ACQ_REL);
	keep(e);
	if (e->type == PROFILED_PROXY_OP) {
		MUST(e->parent &&
		     (e->parent->type == PROFILED_COLL || e->parent->type == PROFILED_P2P));
		MUST(t->proxy_op.n_steps > 0 && t->proxy_op.pid == getpid());
		e->n_steps = t->proxy_op.n_steps;
		e->is_send = t->proxy_op.is_send;
		n_steps_told += (uint64_t)e->n_steps;
	} else if (e->type == PROFILED_PROXY_STEP) {
		MUST(e->parent && e->parent->type == PROFILED_PROXY_OP);
		MUST(!e->parent->is_stopped);
		MUST(t->proxy_step.step >= 0 && t->proxy_step.step < e->parent->n_steps);
		e->step = t->proxy_step.step;
		op_told = e->parent;
	} else if (e->type == PROFILED_NET) {
		MUST(e->parent && e->parent->type == PROFILED_PROXY_STEP);
		MUST(!e->parent->is_stopped);
		*(struct event **)t->net.data = e->parent;
	}
	*ret = e;
	return 0;
}

static int on_stop(void *event)
{
	struct event *e = event;

	MUST(!e->is_stopped);
	e->is_stopped = true;
	unref(e);
	return 0;
}

static int on_state(void *event, int state, union state_args *args)
{
	const struct event *e = event;

	MUST(!e->is_stopped);
	if (e->type == PROFILED_PROXY_OP) { /* of versions 1 to 3 */
		MUST(state >= STATE_SEND_POSTED && state <= STATE_RECV_DONE);
		MUST(args->v3.steps > 0 && args->v3.steps <= e->n_steps);
		if (state == STATE_SEND_REMOTE_WAIT)
			op_told = event;
		return 0;
	}
	MUST(e->type == PROFILED_PROXY_STEP && state >= STATE_SEND_GPU_WAIT &&
	     state <= STATE_SEND_PEER_WAIT);
	return 0;
}

static int on_end(void *context)
{
	free(context);
	return 0;
}

static int begin(void **ret_context, int *mask)
{
	*ret_context = malloc(1);
	*mask = PROFILED_COLL | PROFILED_P2P | PROFILED_PROXY_OP | PROFILED_PROXY_STEP |
		PROFILED_NET | PROFILED_GROUP;
	return 0;
}

static int begin_v1(void **ret_context, int *mask)
{
	is_v1 = true;
	return begin(ret_context, mask);
}

static int begin_v3(void **ret_context, int *mask)
{
	is_v3 = true;
	return begin(ret_context, mask);
}

static int begin_v5(void **ret_context, uint64_t comm, int *mask, const char *name, int n_nodes,
		    int n_ranks, int rank, plugin_log_fn log)
{
	(void)name, (void)log;
	MUST(comm && n_nodes >= 1 && n_nodes <= n_ranks && rank < n_ranks);
	return begin(ret_context, mask);
}

static int begin_v4(void **ret_context, int *mask, const char *name, uint64_t comm, int n_nodes,
		    int n_ranks, int rank, plugin_log_fn log)
{
	return begin_v5(ret_context, comm, mask, name, n_nodes, n_ranks, rank, log);
}

API struct profiler_v5 ncclProfiler_v5 = {"loop", begin_v5, on_start, on_stop, on_state, on_end};
API struct profiler_v4 ncclProfiler_v4 = {"loop", begin_v4, on_start, on_stop, on_state, on_end};
API struct profiler_v3 ncclProfiler_v3 = {"loop", begin_v3, on_start, on_stop, on_state, on_end};
API struct profiler_v3 ncclProfiler_v2 = {"loop", begin, on_start, on_stop, on_state, on_end};
API struct profiler_v3 ncclProfiler_v1 = {"loop", begin_v1, on_start, on_stop, on_state, on_end};

/* --- the network ------------------------------------------------------------------- */

struct conn;
struct request {
	struct conn *of;
	unsigned char *data;
	uint64_t room, bytes, head, at; /* head: how much of @bytes itself has gone */
	bool is_used, is_done;
	struct request *next;
};

struct conn {
	int fd;
	bool is_send;
	struct request requests[REQUESTS_MAX], *first, **last;
};

struct listener {
	int fd;
};

struct handle {
	char head[8];
	struct sockaddr_in at;
};

static int find_devices(int *ret)
{
	*ret = 1;
	return 0;
}

static int get_properties(int device, struct net_properties_v11 *ret)
{
	static char name[] = "loop";

	(void)device;
	ret->v9 = (struct net_properties_v9){.name = name,
					     .memory = NET_MEMORY_HOST,
					     .speed_mbps = 10000,
					     .n_comms_max = 65536,
					     .n_receives_max = 1,
					     .fused = {1, {0}},
					     .p2p_bytes_max = NET_BYTES_MAX,
					     .collective_bytes_max = NET_BYTES_MAX};
	ret->n_requests_max = 1;
	return 0;
}

static int get_properties_v8(int device, struct net_properties_v8 *ret)
{
	static char name[] = "loop";

	(void)device;
	*ret = (struct net_properties_v8){.name = name,
					  .memory = NET_MEMORY_HOST,
					  .speed_mbps = 10000,
					  .n_comms_max = 65536,
					  .n_receives_max = 1};
	return 0;
}

static int get_properties_v10(int device, struct net_properties_v9 *ret)
{
	struct net_properties_v11 all;

	get_properties(device, &all);
	*ret = all.v9;
	return 0;
}

static int do_listen(int device, void *handle, void **ret)
{
	struct handle *h = handle;
	struct listener *l = calloc(1, sizeof(*l));
	socklen_t n = sizeof(h->at);

	(void)device;
	memset(handle, 0, NET_HANDLE_BYTES);
	memcpy(h->head, "loop-net", 8);
	h->at.sin_family = AF_INET;
	h->at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	MUST(l->fd >= 0 && bind(l->fd, (struct sockaddr *)&h->at, sizeof(h->at)) == 0 &&
	     listen(l->fd, 8) == 0 && getsockname(l->fd, (struct sockaddr *)&h->at, &n) == 0);
	*ret = l;
	return 0;
}

static struct conn *conn_new(int fd, bool is_send)
{
	struct conn *c = calloc(1, sizeof(*c));
	int one = 1;

	c->fd = fd;
	c->is_send = is_send;
	c->last = &c->first;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return c;
}

static int do_connect(int device, struct net_config *config, void *handle, void **ret, void **off)
{
	struct handle *h = handle;
	int fd;

	(void)device, (void)config, (void)off;
	MUST(memcmp(h->head, "loop-net", 8) == 0);
	*ret = NULL;
	if (is_later())
		return 0;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(connect(fd, (struct sockaddr *)&h->at, sizeof(h->at)) == 0);
	*ret = conn_new(fd, true);
	return 0;
}

static int do_accept(void *listener, void **ret, void **off)
{
	struct listener *l = listener;
	int fd;

	(void)off;
	*ret = NULL;
	if (is_later())
		return 0;
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		*ret = conn_new(fd, false);
	return 0;
}

static int register_memory(void *comm, void *data, size_t bytes, int memory, void **ret)
{
	(void)data, (void)bytes;
	MUST(comm && memory == NET_MEMORY_HOST);
	*ret = comm;
	return 0;
}

static int deregister(void *comm, void *registration)
{
	MUST(registration == comm);
	return 0;
}

static int post_of(struct conn *c, void *data, size_t bytes, const struct event *op, void **ret)
{
	bool is_send = c->is_send;
	struct request *r = c->requests;

	MUST(op && op->is_send == is_send);
	while (r < c->requests + REQUESTS_MAX && r->is_used)
		r++;
	MUST(r < c->requests + REQUESTS_MAX);
	*r = (struct request){.of = c, .data = data, .room = bytes, .is_used = true};
	r->bytes = is_send ? bytes : 0;
	*c->last = r;
	c->last = &r->next;
	n_messages++;
	*ret = r;
	return 0;
}

/* Before NCCL 2.27: what the profiler has told is of this message, and of no other. */
static int post_told(struct conn *c, void *data, size_t bytes, void *registration, void **ret)
{
	const struct event *op = op_told;

	op_told = NULL;
	MUST(registration == c);
	*ret = NULL;
	return is_later() ? 0 : post_of(c, data, bytes, op, ret);
}

static int post(struct conn *c, void *data, size_t bytes, void *registration, void *parent,
		void **ret)
{
	struct event *step = NULL;
	void *event = NULL;

	MUST(parent && registration == c);
	if (is_v3)
		return post_told(c, data, bytes, registration, ret);
	*ret = NULL;
	if (is_later())
		return 0;
	tell(&event, 0, parent, 7, &step);
	MUST(event && step);
	tell(&event, 1, parent, 7, NULL);
	return post_of(c, data, bytes, step->parent, ret);
}

static int isend_v9(void *sender, void *data, size_t bytes, int tag, void *registration, void **ret)
{
	(void)tag;
	return post_told(sender, data, bytes, registration, ret);
}

static int isend_v8(void *sender, void *data, int bytes, int tag, void *registration, void **ret)
{
	return isend_v9(sender, data, (size_t)bytes, tag, registration, ret);
}

static int irecv_v9(void *receiver, int n, void **data, size_t *bytes, int *tags,
		    void **registrations, void **ret)
{
	(void)tags;
	MUST(n == 1);
	return post_told(receiver, data[0], bytes[0], registrations[0], ret);
}

static int irecv_v8(void *receiver, int n, void **data, int *bytes, int *tags, void **registrations,
		    void **ret)
{
	size_t all = (size_t)bytes[0];

	return irecv_v9(receiver, n, data, &all, tags, registrations, ret);
}

static int do_isend(void *sender, void *data, size_t bytes, int tag, void *registration,
		    void *parent, void **ret)
{
	(void)tag;
	return post(sender, data, bytes, registration, parent, ret);
}

static int do_irecv(void *receiver, int n, void **data, size_t *bytes, int *tags,
		    void **registrations, void **parents, void **ret)
{
	(void)tags;
	MUST(n == 1);
	return post(receiver, data[0], bytes[0], registrations[0], parents[0], ret);
}

/* Return: may there be more to do now? */
static bool go_on(struct conn *c)
{
	struct request *r = c->first;
	unsigned char *at = (unsigned char *)&r->bytes + r->head;
	size_t want = sizeof(r->bytes) - r->head;
	bool is_head = want > 0;
	ssize_t n;

	if (!is_head) {
		at = r->data + r->at;
		want = r->bytes - r->at;
		MUST(r->bytes <= r->room);
	}
	n = want == 0    ? 0
	    : c->is_send ? send(c->fd, at, want, MSG_DONTWAIT | MSG_NOSIGNAL)
			 : recv(c->fd, at, want, MSG_DONTWAIT);
	if (want && n <= 0) {
		MUST(n < 0 &&
		     (errno == EAGAIN || errno == EINTR || errno == EPIPE || errno == ECONNRESET));
		return false;
	}
	if (is_head) {
		r->head += (uint64_t)n;
		return true;
	}
	r->at += (uint64_t)n;
	if (r->at < r->bytes)
		return true;
	r->is_done = true;
	c->first = r->next;
	if (!c->first)
		c->last = &c->first;
	return c->first != NULL;
}

static int test(void *request, int *done, int *bytes)
{
	struct request *r = request;

	MUST(r->is_used);
	while (r->of->first && go_on(r->of))
		;
	*done = r->is_done;
	if (r->is_done) {
		if (bytes)
			bytes[0] = (int)r->bytes;
		r->is_used = false;
	}
	return 0;
}

static int do_close(void *comm)
{
	struct conn *c = comm;

	close(c->fd);
	free(c);
	return 0;
}

static int close_listener(void *listener)
{
	struct listener *l = listener;

	close(l->fd);
	free(l);
	return 0;
}

static int init_v8(plugin_log_fn log)
{
	(void)log;
	return 0;
}

static int connect_v8(int device, void *handle, void **ret, void **off)
{
	return do_connect(device, NULL, handle, ret, off);
}

static int init_v10(plugin_log_fn log, plugin_event_fn event)
{
	(void)log;
	tell = event;
	return 0;
}

static int init_v11(void **ret_context, uint64_t comm, struct net_config *config, plugin_log_fn log,
		    plugin_event_fn event)
{
	MUST(comm && config->traffic_class == -1);
	*ret_context = malloc(1);
	return init_v10(log, event);
}

static int listen_v11(void *context, int device, void *handle, void **ret)
{
	MUST(context);
	return do_listen(device, handle, ret);
}

static int connect_v11(void *context, int device, void *handle, void **ret, void **off)
{
	MUST(context);
	return do_connect(device, NULL, handle, ret, off);
}

static int finalize(void *context)
{
	free(context);
	return 0;
}

static int set_attributes(void *context, struct net_attributes *a)
{
	MUST(context && __builtin_popcount(a->protocols) == 1);
	return 0;
}

#define ALIKE                                                                       \
	.name = "loop", .devices = find_devices, .accept = do_accept,               \
	.register_memory = register_memory, .deregister = deregister, .test = test, \
	.close_sender = do_close, .close_receiver = do_close, .close_listener = close_listener

API struct net_plugin_v8 ncclNetPlugin_v8 = {
	ALIKE,
	.init = init_v8,
	.get_properties = get_properties_v8,
	.listen = do_listen,
	.connect = connect_v8,
	.isend = isend_v8,
	.irecv = irecv_v8,
};
API struct net_plugin_v9 ncclNetPlugin_v9 = {
	ALIKE,
	.init = init_v8,
	.get_properties = get_properties_v10,
	.listen = do_listen,
	.connect = connect_v8,
	.isend = isend_v9,
	.irecv = irecv_v9,
};
API struct net_plugin_v10 ncclNetPlugin_v10 = {
	ALIKE,
	.init = init_v10,
	.get_properties = get_properties_v10,
	.listen = do_listen,
	.connect = do_connect,
	.isend = do_isend,
	.irecv = do_irecv,
};
API struct net_plugin_v11 ncclNetPlugin_v11 = {
	ALIKE,
	.init = init_v11,
	.get_properties = get_properties,
	.listen = listen_v11,
	.connect = connect_v11,
	.isend = do_isend,
	.irecv = do_irecv,
	.finalize = finalize,
	.set_attributes = set_attributes,
};

__attribute__((destructor)) static void say_counts(void)
{
	if (n_messages != n_steps_told && !is_v1 && !getenv("LOOP_ENDS_EARLY"))
		fprintf(stderr, "loop-plugin: %llu messages, %llu steps told\n",
			(unsigned long long)n_messages, (unsigned long long)n_steps_told);
	while (kept) {
		struct event *e = kept;

		kept = e->kept;
		unref(e);
	}
}
