/* Fake completion queues and their channels. See fake-verbs.h. */
#include "fake-private.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CQES 65536

struct channel {
	struct ibv_comp_channel c;
	int writer;
	struct ibv_cq *cq;
};

struct queue {
	struct ibv_cq cq;
	struct channel *channel;
	uint32_t size;
	uint64_t head, tail;
	enum { UNARMED, SOLICITED, ALL } armed;
	struct ibv_wc wc[CQES];
};

struct ibv_comp_channel *fake_create_comp_channel(struct ibv_context *c)
{
	struct channel *ch = calloc(1, sizeof(*ch));
	int fds[2];

	if (fake_pipe(fds))
		abort();
	ch->c.context = c;
	ch->c.fd = fds[0];
	ch->writer = fds[1];
	return &ch->c;
}

int fake_destroy_comp_channel(struct ibv_comp_channel *c)
{
	struct channel *ch = container_of(c, struct channel, c);

	close(ch->c.fd);
	close(ch->writer);
	free(ch);
	return 0;
}

struct ibv_cq *fake_create_cq(struct ibv_context *c, int n, void *ctx, struct ibv_comp_channel *ch,
			      int vector)
{
	struct queue *q = calloc(1, sizeof(*q));

	(void)vector;
	q->cq.context = c;
	q->cq.cq_context = ctx;
	q->channel = container_of(ch, struct channel, c);
	q->channel->cq = &q->cq;
	q->size = (uint32_t)n;
	pthread_mutex_lock(&fake_lock);
	fake_alive++;
	pthread_mutex_unlock(&fake_lock);
	return &q->cq;
}

int fake_resize_cq(struct ibv_cq *cq, int n)
{
	if (fake_faults.cq_most && (uint32_t)n > fake_faults.cq_most)
		return EINVAL;
	container_of(cq, struct queue, cq)->size = (uint32_t)n;
	return 0;
}

int fake_destroy_cq(struct ibv_cq *cq)
{
	pthread_mutex_lock(&fake_lock);
	fake_alive--;
	pthread_mutex_unlock(&fake_lock);
	free(container_of(cq, struct queue, cq));
	return 0;
}

void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc, bool is_solicited)
{
	struct queue *q = container_of(cq, struct queue, cq);

	if (q->head - q->tail >= q->size) {
		fake_async_locked(&(struct ibv_async_event){.event_type = IBV_EVENT_CQ_ERR,
							    .element.cq = cq},
				  cq->context);
		return;
	}
	q->wc[q->head++ % CQES] = *wc;
	if (q->armed == ALL || (q->armed == SOLICITED && (is_solicited || wc->status))) {
		q->armed = UNARMED;
		fake_ring(q->channel->writer);
	}
}

int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct queue *q = container_of(cq, struct queue, cq);
	int i;

	if (fake_faults.poll_most && n > fake_faults.poll_most)
		n = fake_faults.poll_most;
	if (fake_faults.poll_fails)
		return -1;
	pthread_mutex_lock(&fake_lock);
	for (i = 0; i < n && q->tail != q->head; i++)
		wc[i] = q->wc[q->tail++ % CQES];
	pthread_mutex_unlock(&fake_lock);
	return i;
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct queue *q = container_of(cq, struct queue, cq);

	if (fake_faults.notify_fails)
		return EIO;
	pthread_mutex_lock(&fake_lock);
	if (!solicited_only)
		q->armed = ALL;
	else if (q->armed == UNARMED)
		q->armed = SOLICITED;
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int fake_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq, void **ctx)
{
	struct channel *ch = container_of(c, struct channel, c);

	if (!fake_take(c->fd)) {
		errno = EAGAIN;
		return -1;
	}
	*cq = ch->cq;
	*ctx = NULL;
	return 0;
}

void fake_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}
