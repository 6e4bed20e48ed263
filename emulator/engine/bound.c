/* See bound.h. The bytes that must cross the busiest rank's port, or the ports of the busiest node,
 * are divided by their bandwidth. Latencies do not count, and neither do bytes that an algorithm
 * sends without need. */
#include "engine/bound.h"

#include <math.h>

double bound_of_op(const struct sched *s, const struct topology *t, uint32_t n_nodes,
		   bool has_intra)
{
	double n = s->n_ranks, nodes = n_nodes, bytes = (double)s->bytes, per_rank, between = 0;
	double port = n_nodes == 1 ? t->intra.bytes_per_ns : t->inter.bytes_per_ns;
	double ports = n / nodes;

	if (s->n_ranks < 2)
		return 0;
	switch (s->kind) {
	case COLL_ALLREDUCE:
		per_rank = 2 * (n - 1) / n * bytes;
		between = 2 * (nodes - 1) / nodes * bytes;
		break;
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
		per_rank = (n - 1) * bytes;
		between = (n - n / nodes) * bytes;
		break;
	case COLL_ALLTOALL:
		per_rank = (n - 1) * bytes;
		between = (n - n / nodes) * bytes * (n / nodes);
		break;
	case COLL_GATHER:
	case COLL_SCATTER: /* the root has one port */
		per_rank = (n - 1) * bytes;
		between = (n - n / nodes) * bytes;
		ports = 1;
		break;
	case COLL_BROADCAST:
	case COLL_REDUCE:
	case COLL_SENDRECV: /* solve-p2p.c has its own */
	case COLL_KINDS:
	default:
		per_rank = bytes;
		between = n_nodes > 1 ? bytes : 0;
		break;
	}
	if (has_intra && n != nodes * s->ranks_per_node)
		between = 0; /* nodes of different size: how much each sends is not known here */
	if (has_intra)
		port = fmax(t->intra.bytes_per_ns, t->inter.bytes_per_ns);
	return fmax(per_rank / port, between / (ports * t->inter.bytes_per_ns));
}
