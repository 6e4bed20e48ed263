/* Windows: memory of a rank that others put into. Their n-th one on a communicator is the same at
 * all ranks, which register in one order. And the signals that come with what is put. */
#include <errno.h>

#include "standins/nccl/impl.h"

/* What others have put into it before may come in now. */
static void do_resume(void *arg)
{
	const struct ncclComm *c = arg;

	for (struct conn *k = proxy_conns(); k; k = k->next)
		if (k->comm == c && k->key == KEY_RMA && k->is_held) {
			k->is_held = false;
			link_resume(k->link);
		}
}

void window_add(struct ncclComm *c, struct window *w)
{
	pthread_mutex_lock(&c->lock);
	w->number = c->n_windows++;
	w->next = c->windows;
	c->windows = w;
	pthread_mutex_unlock(&c->lock);
	if (c->n_ranks > 1)
		proxy_call(do_resume, c);
}

void window_remove(struct ncclComm *c, struct window *w)
{
	struct window **p;

	pthread_mutex_lock(&c->lock);
	for (p = &c->windows; *p && *p != w;)
		p = &(*p)->next;
	if (*p)
		*p = w->next;
	pthread_mutex_unlock(&c->lock);
}

bool window_has(struct ncclComm *c, const void *at)
{
	const struct window *w;

	pthread_mutex_lock(&c->lock);
	for (w = c->windows; w; w = w->next)
		if (w->is_symmetric && (uintptr_t)at - (uintptr_t)w->base < w->size)
			break;
	pthread_mutex_unlock(&c->lock);
	return w;
}

int window_place(struct ncclComm *c, uint64_t number, uint64_t offset, uint64_t bytes, void **ret)
{
	const struct window *w;
	int r = 0;

	pthread_mutex_lock(&c->lock);
	for (w = c->windows; w && w->number != number;)
		w = w->next;
	if (!w)
		r = number >= c->n_windows ? LINK_HOLD : -EPROTO;
	else if (offset > w->size || bytes > w->size - offset)
		r = -EPROTO;
	else
		*ret = (char *)w->base + offset;
	pthread_mutex_unlock(&c->lock);
	return r;
}

void window_signal(struct ncclComm *c, uint32_t peer)
{
	pthread_mutex_lock(&c->lock);
	c->peers[peer].n_signals++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}
