/* See op.h. */
#include "shim/progress/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void op_pool_init(struct op_pool *p, const struct device *dev)
{
	pthread_mutex_init(&p->lock, NULL);
	p->first = NULL;
	p->dev = dev;
}

void op_pool_deinit(struct op_pool *p)
{
	op_pool_empty(p);
	pthread_mutex_destroy(&p->lock);
}

struct op *op_get(struct op_pool *p)
{
	struct op *op;

	pthread_mutex_lock(&p->lock);
	op = p->first;
	if (op)
		p->first = op->next;
	pthread_mutex_unlock(&p->lock);
	if (!op) {
		op = calloc(1, sizeof(*op));
		if (!op)
			return NULL;
		op->dev = p->dev;
	}
	op->next = op->group_next = NULL;
	memset(&op->call, 0, sizeof(op->call));
	return op;
}

void op_put(struct op_pool *p, struct op *op)
{
	pthread_mutex_lock(&p->lock);
	op->next = p->first;
	p->first = op;
	pthread_mutex_unlock(&p->lock);
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
	op->dev->gate_deinit(&op->gate);
	player_free(op->run.player);
	free(op->run.conns);
	free(op->p2p);
	free(op->deps);
	free(op);
	return NULL;
}

void op_pool_empty(struct op_pool *p)
{
	struct op *op, *list;

	pthread_mutex_lock(&p->lock);
	list = p->first;
	p->first = NULL;
	pthread_mutex_unlock(&p->lock);
	while ((op = list)) {
		list = op->next;
		op_free(op);
	}
}

int op_set_deps(struct op *op, const struct wire_dep *deps, uint32_t n)
{
	if (n > op->deps_capacity) {
		struct wire_dep *more = realloc(op->deps, n * sizeof(*deps));

		if (!more)
			return -ENOMEM;
		op->deps = more;
		op->deps_capacity = n;
	}
	if (n)
		memcpy(op->deps, deps, n * sizeof(*deps));
	op->call.n_deps = n;
	return 0;
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
