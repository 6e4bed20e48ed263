/* Each rank of a communicator gives a record and gets the records of all, over the control ring:
 * a rank passes on what comes from its left neighbour, until each record has gone round. */
#include <errno.h>
#include <stdlib.h>

#include "standins/nccl/impl.h"

struct gather *gather_find(struct ncclComm *c, uint64_t number)
{
	struct gather *g;

	for (g = c->gathers; g; g = g->next) {
		if (g->number == number)
			return g;
	}
	g = calloc(1, sizeof(*g));
	if (g) {
		g->records = calloc(c->n_ranks, sizeof(*g->records));
		g->has = calloc(c->n_ranks, sizeof(*g->has));
	}
	if (!g || !g->records || !g->has) {
		if (g) {
			free(g->records);
			free(g->has);
		}
		free(g);
		return NULL;
	}
	g->number = number;
	g->next = c->gathers;
	c->gathers = g;
	return g;
}

void gather_drop(struct ncclComm *c, uint64_t number)
{
	struct gather **p, *g;

	for (p = &c->gathers; *p && (*p)->number != number;)
		p = &(*p)->next;
	if (!*p)
		return;
	g = *p;
	*p = g->next;
	free(g->records);
	free(g->has);
	free(g);
}

static int gather_pass(struct ncclComm *c, uint64_t number, uint32_t origin,
		       const struct gather_record *r)
{
	uint32_t next = (c->rank + 1) % c->n_ranks;
	struct conn *k = conn_out(c, next, KEY_RING);
	struct wire_hdr h;

	if (next == origin)
		return 0;
	if (!k)
		return -ECONNRESET;
	wire_hdr_init(&h, WIRE_BOOT, sizeof(*r));
	h.seq = number;
	h.rank = origin;
	return link_send_copy(k->link, &h, r);
}

int gather_start(struct ncclComm *c, uint64_t number, const struct gather_record *mine)
{
	struct gather *g = gather_find(c, number);
	uint32_t i;
	int r;

	if (!g)
		return -ENOMEM;
	g->is_started = true;
	g->records[c->rank] = *mine;
	g->has[c->rank] = true;
	g->n_has++;
	r = gather_pass(c, number, c->rank, mine);
	/* what came before we did */
	for (i = 0; i < c->n_ranks && !r; i++) {
		if (g->has[i] && i != c->rank)
			r = gather_pass(c, number, i, &g->records[i]);
	}
	return r;
}

int gather_received(struct ncclComm *c, uint64_t number, uint32_t origin,
		    const struct gather_record *r)
{
	struct gather *g = gather_find(c, number);

	if (!g)
		return -ENOMEM;
	if (origin >= c->n_ranks || origin == c->rank || g->has[origin])
		return -EPROTO;
	g->records[origin] = *r;
	g->has[origin] = true;
	g->n_has++;
	if (g->is_started && gather_pass(c, number, origin, r))
		return -ECONNRESET;
	if (g->n_has == c->n_ranks) {
		pthread_mutex_lock(&c->lock);
		pthread_cond_broadcast(&c->changed);
		pthread_mutex_unlock(&c->lock);
	}
	return 0;
}
