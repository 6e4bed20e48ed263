/* See impl.h: NCCL's proxy. Each connection has its ops in their order; of the first, up to 8 steps
 * are under way. What FAKE_NCCL_FAULT names goes wrong once: "skip-send:N", "repeat-send:N",
 * "wrong-peer:N" (over another connection), the N-th message of a communicator. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"

#define OPTIONAL_COMPLETION ((void *)1)

/* --- one message ------------------------------------------------------------------- */

static bool has_flags(const struct proxy_op *o, const unsigned char *at, size_t bytes,
		      uint64_t step)
{
	if (o->protocol == 1u << PLUGIN_LL) {
		const uint32_t flag = (uint32_t)(step + 1);

		for (size_t i = 0; i < bytes; i += 16)
			if (__atomic_load_n((const uint32_t *)(at + i + 4), __ATOMIC_ACQUIRE) !=
				    flag ||
			    __atomic_load_n((const uint32_t *)(at + i + 12), __ATOMIC_ACQUIRE) !=
				    flag)
				return false;
	} else if (o->protocol == 1u << PLUGIN_LL128) {
		for (size_t i = 0; i < bytes; i += 128)
			if (__atomic_load_n((const uint64_t *)(at + i + 120), __ATOMIC_ACQUIRE) !=
			    step + 1)
				return false;
	}
	return true;
}

static int protocol_of(const struct proxy_op *o)
{
	return __builtin_ctz(o->protocol);
}

/* Is it the message that is to go wrong? */
static bool has_fault(const char *what, uint64_t n)
{
	const char *told = getenv("FAKE_NCCL_FAULT");
	size_t length = strlen(what);

	return told && strncmp(told, what, length) == 0 && told[length] == ':' &&
	       strtoull(told + length + 1, NULL, 10) == n;
}

static void *another(ncclComm_t c, const struct pipe *than)
{
	for (struct pipe *p = c->pipes; p; p = p->next)
		if (p->is_net && p->is_send && p->peer != than->peer)
			return p->net;
	return than->net;
}

/* Return: 1 with progress; 0; -1. */
static int send_one(ncclComm_t c, struct proxy_op *o)
{
	struct pipe *p = o->pipe;
	int proto = protocol_of(o);
	uint64_t at = o->base + o->transmitted, step = o->transmitted;
	int64_t bytes = p->slots->bytes[at % STEPS];
	unsigned char *data = pipe_slot(p, proto, at);
	struct proxy_handle *h = &o->handles[(step + (uint64_t)o->slice_steps - 1) /
					     (uint64_t)o->slice_steps % STEPS];
	void **request = &o->requests[at % STEPS];

	if (bytes < 0 || (p->slots->tail <= at && proto != PLUGIN_LL) ||
	    !has_flags(o, data, (size_t)bytes, at))
		return 0;
	profiler_step_state(c, o, step, STATE_SEND_PEER_WAIT, 0);
	profiler_op_state(o, step + (uint64_t)o->slice_steps, STATE_SEND_REMOTE_WAIT);
	if (o->transmitted == 0)
		net_attributes_set(c, o);
	if (has_fault("skip-send", c->n_sent)) { /* as if it were done */
		c->n_sent++;
		*request = NULL;
		o->transmitted += (uint64_t)o->slice_steps;
		return 1;
	}
	*request = NULL;
	if (net_isend(c, has_fault("wrong-peer", c->n_sent) ? another(c, p) : p->net, data,
		      (size_t)bytes, (int)c->rank, p->registrations[proto], h, request))
		return -1;
	if (!*request)
		return 0;
	if (has_fault("repeat-send", c->n_sent)) {
		void *again = NULL;
		int done = 0, n;

		while (!again && !c->aborted && !c->async)
			if (net_isend(c, p->net, data, (size_t)bytes, (int)c->rank,
				      p->registrations[proto], h, &again))
				return -1;
		while (again && !done && !c->aborted && !c->async)
			if (net_test(c, again, &done, &n))
				return -1;
	}
	c->n_sent++;
	o->transmitted += (uint64_t)o->slice_steps;
	profiler_op_state(o, o->transmitted, STATE_SEND_TRANSMITTED);
	profiler_step_state(c, o, step, STATE_SEND_WAIT, (size_t)bytes);
	return 1;
}

static int send_done(ncclComm_t c, struct proxy_op *o)
{
	struct pipe *p = o->pipe;
	uint64_t at = o->base + o->done;
	int done = 0, bytes = 0;

	if (!o->requests[at % STEPS])
		done = 1; /* a message that was skipped */
	else if (net_test(c, o->requests[at % STEPS], &done, &bytes))
		return -1;
	if (!done)
		return 0;
	p->slots->bytes[at % STEPS] = -1;
	profiler_step_stop(o, o->done);
	o->done += (uint64_t)o->slice_steps;
	profiler_op_state(o, o->done, STATE_SEND_DONE);
	p->slots->head = o->base + o->done;
	return 1;
}

static int send_progress(ncclComm_t c, struct proxy_op *o)
{
	int r;

	if (o->posted < o->n_steps && o->posted < o->done + STEPS) {
		profiler_step(c, o, o->posted);
		profiler_op_state(o, o->posted + (uint64_t)o->slice_steps, STATE_SEND_POSTED);
		profiler_step_state(c, o, o->posted, STATE_SEND_GPU_WAIT, 0);
		o->posted += (uint64_t)o->slice_steps;
		return 1;
	}
	if (o->transmitted < o->posted && o->transmitted < o->done + STEPS) {
		r = send_one(c, o);
		if (r)
			return r;
	}
	return o->done < o->transmitted ? send_done(c, o) : 0;
}

static int post_receive(ncclComm_t c, struct proxy_op *o)
{
	struct pipe *p = o->pipe;
	int proto = protocol_of(o);
	uint64_t at = o->base + o->posted;
	void **request = &o->requests[at % STEPS];
	struct proxy_handle *h = &o->handles[(o->posted + (uint64_t)o->slice_steps - 1) /
					     (uint64_t)o->slice_steps % STEPS];
	size_t bytes = step_bytes(proto) * (size_t)o->slice_steps;

	profiler_step(c, o, o->posted); /* as NCCL: again where irecv says "later" */
	if (o->posted == 0)
		net_attributes_set(c, o);
	*request =
		proto == PLUGIN_SIMPLE || !c->is_completion_optional ? NULL : OPTIONAL_COMPLETION;
	if (net_irecv(c, p->net, pipe_slot(p, proto, at),
		      bytes < o->bytes_max ? bytes : o->bytes_max, (int)p->peer,
		      p->registrations[proto], h, request))
		return -1;
	if (!*request)
		return 0;
	o->consumed[at % STEPS] = *request;
	profiler_op_state(o, o->posted + (uint64_t)o->slice_steps, STATE_RECV_POSTED);
	profiler_step_state(c, o, o->posted, STATE_RECV_WAIT, 0);
	o->posted += (uint64_t)o->slice_steps;
	return 1;
}

static int test_receive(ncclComm_t c, struct proxy_op *o)
{
	uint64_t at = o->base + o->received;
	int done = 0, bytes[8] = {0};

	if (net_test(c, o->requests[at % STEPS], &done, bytes))
		return -1;
	if (!done)
		return 0;
	c->n_received++;
	o->pipe->slots->bytes[at % STEPS] = -1;
	o->requests[at % STEPS] = NULL;
	profiler_op_state(o, o->received + (uint64_t)o->slice_steps, STATE_RECV_RECEIVED);
	profiler_step_state(c, o, o->received, STATE_RECV_FLUSH_WAIT, (size_t)bytes[0]);
	o->received += (uint64_t)o->slice_steps;
	return 1;
}

static int recv_progress(ncclComm_t c, struct proxy_op *o)
{
	int is_busy = 0, r;

	if (o->posted < o->n_steps && o->posted < o->done + STEPS) {
		r = post_receive(c, o);
		if (r)
			return r;
	}
	if (o->posted > o->received) {
		r = test_receive(c, o);
		if (r)
			return r;
	}
	if (o->received > o->transmitted) {
		profiler_op_state(o, o->transmitted + (uint64_t)o->slice_steps,
				  STATE_RECV_TRANSMITTED);
		profiler_step_state(c, o, o->transmitted, STATE_RECV_GPU_WAIT, 0);
		o->transmitted += (uint64_t)o->slice_steps;
		o->pipe->slots->tail = o->base + o->transmitted;
		return 1;
	}
	while (o->transmitted > o->done && o->pipe->slots->head > o->base + o->done) {
		void **consumed = &o->consumed[(o->base + o->done) % STEPS];

		if (*consumed && net_consumed(c, o->pipe->net, *consumed))
			return -1;
		*consumed = NULL;
		profiler_step_stop(o, o->done);
		o->done += (uint64_t)o->slice_steps;
		profiler_op_state(o, o->done, STATE_RECV_DONE);
		is_busy = 1;
	}
	return is_busy;
}

/* --- ops --------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static int progress(ncclComm_t c, struct pipe *p)
{
	struct proxy_op *o = p->first;
	int r;

	if (!o)
		return 0;
	if (!o->has_begun) {
		o->base = round_up(p->proxy_step, (uint64_t)o->chunk_steps);
		p->proxy_step = o->base + o->n_steps;
		o->has_begun = true;
	}
	r = p->is_send ? send_progress(c, o) : recv_progress(c, o);
	if (r < 0 || o->done < o->n_steps)
		return r;
	profiler_stop(o->event);
	p->first = o->next;
	if (!p->first)
		p->last = &p->first;
	free(o);
	return 1;
}

static bool take_submitted(ncclComm_t c)
{
	struct proxy_op *list;

	pthread_mutex_lock(&c->lock);
	list = c->submitted;
	c->submitted = NULL;
	c->submitted_last = &c->submitted;
	pthread_mutex_unlock(&c->lock);
	for (struct proxy_op *o = list, *next; o; o = next) {
		next = o->next;
		o->next = NULL;
		profiler_proxy_op(c, o);
		*o->pipe->last = o;
		o->pipe->last = &o->next;
	}
	return list != NULL;
}

static void *run(void *ctx)
{
	ncclComm_t c = ctx;
	unsigned idle = 0;

	bool has_ops = false;

	/* what was launched is sent, also by a communicator that is destroyed */
	while ((!c->proxy_ends || (has_ops && !c->async)) && !c->aborted) {
		bool is_busy = take_submitted(c);

		has_ops = false;
		pthread_mutex_lock(&c->lock);
		for (struct pipe *p = c->pipes; p && !c->async; p = p->next) {
			int r = p->is_net ? progress(c, p) : 0;

			if (r < 0)
				comm_failed(c, ncclRemoteError, "the network refused a message");
			is_busy |= r > 0;
			has_ops |= p->first != NULL;
		}
		pthread_mutex_unlock(&c->lock);
		if (is_busy)
			idle = 0;
		else
			pause_for(&idle);
	}
	return NULL;
}

void proxy_submit(ncclComm_t c, struct proxy_op *list)
{
	pthread_mutex_lock(&c->lock);
	*c->submitted_last = list;
	while (*c->submitted_last)
		c->submitted_last = &(*c->submitted_last)->next;
	pthread_mutex_unlock(&c->lock);
}

int proxy_start(ncclComm_t c)
{
	if (pthread_create(&c->proxy, NULL, run, c))
		return -1;
	c->has_proxy = true;
	return 0;
}

void proxy_stop(ncclComm_t c)
{
	struct proxy_op *left;

	do { /* until it has taken all */
		unsigned idle = 100;

		pthread_mutex_lock(&c->lock);
		left = c->submitted;
		pthread_mutex_unlock(&c->lock);
		pause_for(&idle);
	} while (left && c->has_proxy && !c->aborted);
	c->proxy_ends = true;
	if (c->has_proxy)
		pthread_join(c->proxy, NULL);
	c->has_proxy = false;
	while (c->submitted) {
		struct proxy_op *o = c->submitted;

		c->submitted = o->next;
		free(o);
	}
}
