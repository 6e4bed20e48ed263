/* One-sided calls, on the stream's thread. What is put goes by a connection of its own; the proxy
 * of the target writes it into the window and counts the signal, whatever the target does. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "standins/nccl/impl.h"

#define LOOK_NS 20000000
#define QUEUED_MAX (UINT64_C(16) << 20) /* that has been put and is not sent */
#define SEND_NS 100000

struct put {
	struct ncclComm *comm;
	uint32_t peer;
	struct wire_hdr h;
	const void *body;
	int result;
};

static void do_put(void *arg)
{
	struct put *p = arg;
	struct conn *k = conn_out(p->comm, p->peer, KEY_RMA);

	if (!k || k->is_dead || k->is_bye)
		p->result = -ECONNRESET;
	else if (link_queued_bytes(k->link) > QUEUED_MAX)
		p->result = -EAGAIN;
	else
		p->result = link_send_copy(k->link, &p->h, p->body);
}

static bool is_over(struct ncclComm *c)
{
	return atomic_load(&c->error) || atomic_load(&c->abort);
}

static ncclResult_t put(struct ncclComm *c, const struct rma *m, uint32_t peer)
{
	struct put p = {.comm = c, .peer = peer, .body = m->bytes ? m->from : NULL};
	void *to;
	ncclResult_t r;

	if (peer == c->rank) {
		if (m->bytes && window_place(c, m->window, m->offset, m->bytes, &to))
			return fail(ncclInvalidArgument, "ncclPutSignal: outside of the window");
		if (m->bytes)
			memmove(to, m->from, m->bytes);
		window_signal(c, peer);
		return ncclSuccess;
	}
	r = conn_open(c, peer, KEY_RMA);
	if (r)
		return r;
	wire_hdr_init(&p.h, WIRE_MESSAGE, m->bytes);
	p.h.seq = m->window;
	p.h.index = m->offset;
	proxy_call(do_put, &p);
	while (p.result == -EAGAIN && !is_over(c)) {
		clock_sleep_until_ns(clock_now_ns() + SEND_NS);
		proxy_call(do_put, &p);
	}
	return p.result ? fail(ncclRemoteError, "rank %u, which is put to, has left", peer)
			: ncclSuccess;
}

struct look {
	struct ncclComm *comm;
	uint32_t peer;
	bool is_gone;
};

/* All that the peer had sent has come in, or has been lost with it. */
static void do_look(void *arg)
{
	struct look *l = arg;
	const struct peer *p = &l->comm->peers[l->peer];
	const struct inbox *in = p->in;

	while (in && in->key != KEY_RMA)
		in = in->next;
	l->is_gone = in && in->conn ? in->conn->is_bye || in->conn->is_dead
				    : p->has_left && !peer_may_connect(l->comm, p);
}

/* Up to LOOK_NS. Return: whether they are there. */
static bool has_signals(struct ncclComm *c, struct peer *p, uint64_t n)
{
	struct timespec until;
	uint64_t at = clock_now_ns() + LOOK_NS;
	bool has;

	until.tv_sec = (time_t)(at / NS_PER_S);
	until.tv_nsec = (long)(at % NS_PER_S);
	pthread_mutex_lock(&c->lock);
	while (p->n_signals < p->n_waited + n && !is_over(c))
		if (pthread_cond_timedwait(&c->changed, &c->lock, &until))
			break;
	has = p->n_signals >= p->n_waited + n;
	if (has)
		p->n_waited += n;
	pthread_mutex_unlock(&c->lock);
	return has;
}

static ncclResult_t wait_for(struct ncclComm *c, uint32_t peer, uint64_t n)
{
	struct look look = {.comm = c, .peer = peer};
	ncclResult_t r = peer == c->rank ? ncclSuccess : conn_watch(c, peer);

	while (!r && !has_signals(c, &c->peers[peer], n)) {
		if (is_over(c))
			break;
		if (look.is_gone)
			return fail(ncclRemoteError, "rank %u has left without its signals", peer);
		if (peer != c->rank)
			proxy_call(do_look, &look);
	}
	return r;
}

ncclResult_t rma_play(const struct op *op)
{
	return op->rma.what == RMA_WAIT ? wait_for(op->comm, op->root, op->count)
					: put(op->comm, &op->rma, op->root);
}
