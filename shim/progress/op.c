/* See op.h. */
#include "shim/progress/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/progress/comm.h"

struct op *op_get(struct comm *c)
{
	struct op *op;

	pthread_mutex_lock(&c->lock);
	op = c->pool;
	if (op)
		c->pool = op->next;
	pthread_mutex_unlock(&c->lock);
	if (!op) {
		op = calloc(1, sizeof(*op));
		if (!op)
			return NULL;
		op->comm = c;
	}
	op->next = op->launch_next = NULL;
	memset(&op->call, 0, sizeof(op->call));
	return op;
}

void op_put(struct op *op)
{
	struct comm *c = op->comm;

	if (atomic_load_explicit(&c->state, memory_order_relaxed) == COMM_DEAD) {
		op_free(op); /* captured ops may keep @c for good */
		return;
	}
	pthread_mutex_lock(&c->lock);
	op->next = c->pool;
	c->pool = op;
	pthread_mutex_unlock(&c->lock);
}

void op_keep(struct op *op)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct op *kept;

	pthread_mutex_lock(&lock);
	op->kept_next = kept;
	kept = op;
	pthread_mutex_unlock(&lock);
}

struct op *op_free(struct op *op)
{
	if (!op)
		return NULL;
	op->comm->dev->gate_deinit(&op->gate);
	player_free(op->run.player);
	free(op->run.conns);
	free(op->p2p);
	free(op);
	return NULL;
}

void op_free_pool(struct comm *c)
{
	struct op *op, *list;

	pthread_mutex_lock(&c->lock);
	list = c->pool;
	c->pool = NULL;
	pthread_mutex_unlock(&c->lock);
	while ((op = list)) {
		list = op->next;
		op_free(op);
	}
}

int op_add_p2p(struct op *op, uint32_t peer, bool is_send, uint64_t bytes)
{
	if (op->call.n_p2p == op->p2p_capacity) {
		uint32_t capacity = op->p2p_capacity ? 2 * op->p2p_capacity : 16;
		struct sched_p2p *p2p = realloc(op->p2p, capacity * sizeof(*p2p));

		if (!p2p)
			return -ENOMEM;
		op->p2p = p2p;
		op->p2p_capacity = capacity;
	}
	op->p2p[op->call.n_p2p++] =
		(struct sched_p2p){.peer = peer, .is_send = is_send, .bytes = bytes};
	return 0;
}
