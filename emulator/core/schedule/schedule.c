/* See schedule.h: checks a request, derives what all algorithms need, and hands every question to
 * the algorithm. */
#include "schedule/schedule.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schedule/algo.h"
#include "schedule/tree.h"

/* NCCL deals a call's data to channels in cells of at least so much traffic
 * (enqueue.cc, facts 6.2), so that small calls use few channels. */
#define CELL_TRAFFIC_BYTES 16384
/* NCCL's chunk alignment (all_reduce.h, facts 6.3). */
#define GRAIN_BYTES 16

static const char *const algo_names[SCHED_ALGOS] = {
	[SCHED_RING] = "ring",
	[SCHED_TREE] = "tree",
	[SCHED_DIRECT] = "direct",
	[SCHED_CHAIN] = "chain",
};

const char *sched_algo_name(uint32_t algo)
{
	return algo < SCHED_ALGOS ? algo_names[algo] : "?";
}

int sched_algo_parse(const char *name)
{
	for (int a = 0; a < SCHED_ALGOS; a++)
		if (strcasecmp(name, algo_names[a]) == 0)
			return a;
	return -1;
}

enum sched_algo sched_default_algo(enum coll_kind kind)
{
	switch ((uint32_t)kind) {
	case COLL_ALLREDUCE:
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
		return SCHED_RING;
	case COLL_BROADCAST:
	case COLL_REDUCE:
		return SCHED_CHAIN;
	default:
		return SCHED_DIRECT;
	}
}

static bool is_pipeline(const struct sched *s)
{
	return s->kind == COLL_BROADCAST || s->kind == COLL_REDUCE;
}

static bool has_root(const struct sched *s)
{
	return is_pipeline(s) || s->kind == COLL_GATHER || s->kind == COLL_SCATTER;
}

static const struct sched_ops *ops_of(const struct sched *s)
{
	if (s->kind == COLL_SENDRECV)
		return &sched_p2p_ops;
	switch ((uint32_t)s->algo) {
	case SCHED_TREE:
		return &sched_tree;
	case SCHED_DIRECT:
		return &sched_direct;
	case SCHED_CHAIN:
		return &sched_chain;
	default: /* a ring with a root is a chain that starts or ends there */
		return is_pipeline(s) ? &sched_chain : &sched_ring;
	}
}

static bool algo_does(uint32_t algo, uint32_t kind)
{
	switch (algo) {
	case SCHED_RING:
		return kind <= COLL_REDUCE;
	case SCHED_TREE:
		return kind == COLL_ALLREDUCE;
	case SCHED_CHAIN:
		return kind == COLL_BROADCAST || kind == COLL_REDUCE;
	case SCHED_DIRECT:
		return kind >= COLL_ALLTOALL && kind < COLL_KINDS;
	default:
		return false;
	}
}

static int check(const struct sched *s, struct err *err)
{
	if ((uint32_t)s->kind >= COLL_KINDS)
		return err_set(err, EINVAL, "collective %u is unknown", (unsigned)s->kind);
	if ((uint32_t)s->algo >= SCHED_ALGOS)
		return err_set(err, EINVAL, "algorithm %u is unknown", (unsigned)s->algo);
	if (!algo_does(s->algo, s->kind))
		return err_set(err, EINVAL, "algorithm %s does not do %s; %s does",
			       sched_algo_name(s->algo), coll_kind_name(s->kind),
			       sched_algo_name(sched_default_algo(s->kind)));
	if (s->n_ranks < 1 || s->n_ranks > SCHED_MAX_RANKS)
		return err_set(err, EINVAL, "%s over %u ranks: must be 1 to %d",
			       coll_kind_name(s->kind), s->n_ranks, SCHED_MAX_RANKS);
	if (has_root(s) && s->root >= s->n_ranks)
		return err_set(err, EINVAL, "%s with root %u: the communicator has %u ranks",
			       coll_kind_name(s->kind), s->root, s->n_ranks);
	if (s->ranks_per_node < 1 || s->ranks_per_node > s->n_ranks)
		return err_set(err, EINVAL, "%u ranks cannot be on nodes of %u", s->n_ranks,
			       s->ranks_per_node);
	if (s->n_rails > SCHED_MAX_CHANNELS)
		return err_set(err, EINVAL, "%u rails: must be 1 to %d", s->n_rails,
			       SCHED_MAX_CHANNELS);
	if (s->n_channels < 1 || s->n_channels > SCHED_MAX_CHANNELS)
		return err_set(err, EINVAL, "%u channels: must be 1 to %d", s->n_channels,
			       SCHED_MAX_CHANNELS);
	if (s->elem_bytes < 1 || s->elem_bytes > (1u << 20) || s->bytes % s->elem_bytes != 0)
		return err_set(err, EINVAL, "%llu bytes are not whole elements of %u bytes",
			       (unsigned long long)s->bytes, s->elem_bytes);
	if (s->bytes > SCHED_MAX_BYTES)
		return err_set(err, EINVAL, "%llu bytes are more than a call can have (%llu)",
			       (unsigned long long)s->bytes, (unsigned long long)SCHED_MAX_BYTES);
	if (s->lane_bytes % s->elem_bytes != 0 ||
	    (s->lane_bytes &&
	     s->lane_bytes < div_up(s->bytes, s->n_channels * (s->algo == SCHED_TREE ? 2 : 1))))
		return err_set(err, EINVAL,
			       "%llu bytes a channel: %u channels must hold %llu bytes in whole "
			       "elements",
			       (unsigned long long)s->lane_bytes, s->n_channels,
			       (unsigned long long)s->bytes);
	if (s->slices > 1024)
		return err_set(err, EINVAL, "%u slices a step: must be 1 to 1024", s->slices);
	return 0;
}

/* How much of a call's bytes goes to one channel. */
static uint64_t share(const struct sched *s)
{
	uint64_t traffic, cell;

	switch ((uint32_t)s->kind) {
	case COLL_ALLREDUCE:
		traffic = 2;
		break;
	case COLL_ALLGATHER:
	case COLL_REDUCESCATTER:
		traffic = s->n_ranks;
		break;
	default:
		traffic = 1;
	}
	cell = align_up(div_up(CELL_TRAFFIC_BYTES, traffic), s->grain);
	return min_u64(s->bytes, align_up(div_up(s->bytes, s->n_channels), cell));
}

int sched_init(struct sched *s, struct err *err)
{
	uint64_t chunk = s->chunk_bytes ? s->chunk_bytes : SCHED_CHUNK_DEFAULT;
	int r = check(s, err);

	if (r < 0)
		return r;
	s->grain = (uint32_t)align_up(GRAIN_BYTES, s->elem_bytes);
	s->n_slices = s->slices && s->kind != COLL_SENDRECV ? s->slices : 1;
	s->channel_bytes = s->lane_bytes ? min_u64(s->lane_bytes, s->bytes) : share(s);
	if (s->algo == SCHED_TREE) /* a step is one of NCCL's eight slots, a ring's two */
		chunk /= 2;
	/* Whole elements, at least one, and no more than there is: products stay small.
	 * SENDRECV's calls have different elements: both ends cut alike without them. */
	if (s->kind != COLL_SENDRECV) {
		chunk = chunk < s->elem_bytes ? s->elem_bytes : chunk - chunk % s->elem_bytes;
		chunk = min_u64(chunk, s->channel_bytes ? s->channel_bytes : s->elem_bytes);
	}
	s->step_bytes = chunk;
	s->loop_bytes = chunk;
	if (s->algo == SCHED_RING && s->kind == COLL_ALLREDUCE)
		s->loop_bytes = chunk * s->n_ranks;
	s->n_loops = div_up(s->channel_bytes, s->loop_bytes);
	return s->kind == COLL_SENDRECV ? sched_p2p_number(s, err) : 0;
}

uint32_t sched_n_threads(const struct sched *s, uint32_t rank)
{
	assert(rank < s->n_ranks);
	return ops_of(s)->n_threads(s, rank);
}

uint64_t sched_n_steps(const struct sched *s, uint32_t rank, uint32_t thread)
{
	return ops_of(s)->n_steps(s, rank, thread);
}

void sched_step(const struct sched *s, uint32_t rank, uint32_t thread, uint64_t step,
		struct sched_step *ret)
{
	memset(ret, 0, sizeof(*ret));
	ops_of(s)->step(s, rank, thread, step, ret);
}

uint64_t sched_max_step_bytes(const struct sched *s)
{
	return s->kind == COLL_SENDRECV ? s->step_bytes : slice_bytes(s, s->step_bytes);
}

int sched_conns(const struct sched *s, uint32_t rank, struct sched_conn **ret_conns,
		uint32_t *ret_n_in, uint32_t *ret_n_out)
{
	struct conn_list l = {NULL, NULL, 0, 0};
	struct sched_conn *conns;
	uint32_t n_in, n_out;

	assert(rank < s->n_ranks);
	ops_of(s)->conns(s, rank, &l);
	n_in = l.n_in;
	n_out = l.n_out;
	conns = calloc((size_t)n_in + n_out + 1, sizeof(*conns));
	if (!conns)
		return -ENOMEM;
	l = (struct conn_list){conns, conns + n_in, 0, 0};
	ops_of(s)->conns(s, rank, &l);
	assert(l.n_in == n_in && l.n_out == n_out);
	*ret_conns = conns;
	*ret_n_in = n_in;
	*ret_n_out = n_out;
	return 0;
}

uint64_t sched_conn_messages(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (src >= s->n_ranks || dst >= s->n_ranks || src == dst)
		return 0;
	return ops_of(s)->n_messages(s, src, dst, lane);
}

uint64_t sched_message_bytes(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane,
			     uint64_t index)
{
	if (index >= sched_conn_messages(s, src, dst, lane))
		return 0;
	return ops_of(s)->message_bytes(s, src, dst, lane, index);
}

double sched_lane_bytes(const struct sched *s, uint16_t lane)
{
	double bytes, n = s->n_ranks;

	if (s->algo == SCHED_TREE)
		return (double)sched_tree_bytes(s, lane);
	bytes = (double)channel_span(s, lane).bytes;
	if (ops_of(s) != &sched_ring)
		return bytes;
	return (n - 1) * (s->kind == COLL_ALLREDUCE ? 2 / n : 1) * bytes;
}

uint32_t sched_recv_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (sched_conn_messages(s, src, dst, lane) == 0)
		return UINT32_MAX;
	return ops_of(s)->recv_thread(s, src, dst, lane);
}

uint32_t sched_send_thread(const struct sched *s, uint32_t src, uint32_t dst, uint16_t lane)
{
	if (sched_conn_messages(s, src, dst, lane) == 0)
		return UINT32_MAX;
	return ops_of(s)->send_thread(s, src, dst, lane);
}

uint64_t sched_total_messages(const struct sched *s)
{
	return ops_of(s)->total(s);
}
