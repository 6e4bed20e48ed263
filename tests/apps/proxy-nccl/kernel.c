/* See impl.h: what the device does. A thread for each channel, or for each connection of sends and
 * receives. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "impl.h"
#include "reduce/reduce.h"

#define LINE_LL 16
#define LINES_LL128 2048 /* a warp's share: 16 lines of 128 bytes, 120 of them data */
#define DATA_LL128 1920

/* What a thread works with. */
struct unit {
	struct op *o;
	int channel, n_recv, n_send, protocol;
	struct pipe *recv[PEERS_MAX], *send[PEERS_MAX];
	int chunk_steps, slice_steps, n_slices;
	size_t element;
	struct p2p_task *task;
	unsigned char *sum, *lines, *own; /* slice_max() each */
	bool is_up;                       /* in a tree */
	pthread_t thread;
};

void pause_for(unsigned *n)
{
	struct timespec t = {0, 20000};

	if (++*n < 20)
		return;
	if (*n < 200)
		sched_yield();
	else
		nanosleep(&t, NULL);
}

/* --- slots ------------------------------------------------------------------------- */

static bool is_ended(const struct unit *u)
{
	return u->o->comm->aborted;
}

/* Return: 0; -1: aborted. */
static int wait_for_room(struct unit *u, struct pipe *p)
{
	unsigned n = 0;

	while (p->slots->head + STEPS < p->step + (uint64_t)u->slice_steps) {
		if (is_ended(u))
			return -1;
		pause_for(&n);
	}
	return 0;
}

static int wait_for_tail(struct unit *u, struct pipe *p)
{
	unsigned n = 0;

	while (p->slots->tail <= p->step) {
		if (is_ended(u))
			return -1;
		pause_for(&n);
	}
	return 0;
}

static size_t wire_bytes(int protocol, size_t bytes)
{
	if (protocol == PLUGIN_LL)
		return (bytes + 7) / 8 * LINE_LL;
	if (protocol == PLUGIN_LL128)
		return (bytes + DATA_LL128 - 1) / DATA_LL128 * LINES_LL128;
	return bytes;
}

static void write_slot(const struct unit *u, unsigned char *at, uint64_t step,
		       const unsigned char *data, size_t bytes)
{
	size_t done = 0;

	if (u->protocol == PLUGIN_SIMPLE) {
		memcpy(at, data, bytes);
	} else if (u->protocol == PLUGIN_LL) {
		const uint32_t flag = (uint32_t)(step + 1);

		for (; done < bytes; done += 8, at += LINE_LL) {
			uint32_t words[2] = {0, 0};
			size_t n = bytes - done < 8 ? bytes - done : 8;

			memcpy(words, data + done, n);
			__atomic_store_n((uint32_t *)at, words[0], __ATOMIC_RELAXED);
			__atomic_store_n((uint32_t *)(at + 8), words[1], __ATOMIC_RELAXED);
			__atomic_store_n((uint32_t *)(at + 4), flag, __ATOMIC_RELEASE);
			__atomic_store_n((uint32_t *)(at + 12), flag, __ATOMIC_RELEASE);
		}
	} else {
		size_t n_lines = wire_bytes(PLUGIN_LL128, bytes) / 128;

		for (size_t i = 0; i < n_lines; i++, at += 128) {
			size_t n = done < bytes ? bytes - done : 0;

			n = n < 120 ? n : 120;
			memcpy(at, data + done, n);
			done += n;
			__atomic_store_n((uint64_t *)(at + 120), step + 1, __ATOMIC_RELEASE);
		}
	}
}

/* A line's data, once its flag is there. LL: 4 bytes and their flag are read at once, as they are
 * written. */
static bool read_line(const struct unit *u, const unsigned char *at, uint64_t step,
		      unsigned char *ret)
{
	if (u->protocol == PLUGIN_LL) {
		const uint64_t *words = (const uint64_t *)(const void *)at;

		for (int i = 0; i < 2; i++) {
			uint64_t word = __atomic_load_n(&words[i], __ATOMIC_ACQUIRE);

			if ((uint32_t)(word >> 32) != (uint32_t)(step + 1))
				return false;
			memcpy(ret + 4 * i, &word, 4);
		}
		return true;
	}
	if (__atomic_load_n((const uint64_t *)(const void *)(at + 120), __ATOMIC_ACQUIRE) !=
	    step + 1)
		return false;
	memcpy(ret, at, 120);
	return true;
}

/* Spins until the lines of @step are there. Return: 0; -1. */
static int read_lines(struct unit *u, const unsigned char *at, uint64_t step, unsigned char *data,
		      size_t bytes)
{
	size_t most = u->protocol == PLUGIN_LL ? 8 : 120, done = 0;
	unsigned char line[120];
	unsigned n = 0;

	while (done < bytes) {
		size_t some = bytes - done < most ? bytes - done : most;

		if (!read_line(u, at, step, line)) {
			if (is_ended(u))
				return -1;
			pause_for(&n);
			continue;
		}
		n = 0;
		memcpy(data + done, line, some);
		done += some;
		at += u->protocol == PLUGIN_LL ? LINE_LL : 128;
	}
	return 0;
}

/* *@ret_at: the data of the next step of @p. */
static int receive(struct unit *u, struct pipe *p, size_t bytes, unsigned char **ret_at)
{
	unsigned char *slot = pipe_slot(p, u->protocol, p->step);

	if (u->protocol != PLUGIN_SIMPLE) {
		*ret_at = u->lines;
		/* a socket may write the flag of 128 bytes before the bytes, as no NIC does */
		if (u->protocol == PLUGIN_LL128 && bytes && wait_for_tail(u, p) < 0)
			return -1;
		return read_lines(u, slot, p->step, u->lines, bytes);
	}
	*ret_at = slot;
	return wait_for_tail(u, p);
}

static void give_back(const struct unit *u, struct pipe *p)
{
	p->step += (uint64_t)u->slice_steps;
	p->slots->head = p->step;
}

static int send_out(struct unit *u, struct pipe *p, const unsigned char *data, size_t bytes)
{
	if (wait_for_room(u, p) < 0)
		return -1;
	p->slots->bytes[p->step % STEPS] = (int64_t)wire_bytes(u->protocol, bytes);
	write_slot(u, pipe_slot(p, u->protocol, p->step), p->step, data, bytes);
	p->step += (uint64_t)u->slice_steps;
	p->slots->tail = p->step;
	return 0;
}

/* --- a chunk ----------------------------------------------------------------------- */

enum { RECV = 1, SEND = 2, REDUCE = 4, LAST = 8 };

static const unsigned char *own_input(struct unit *u, const unsigned char *in, size_t n)
{
	if (!u->o->has_scalar || !coll_reduces(u->o->kind))
		return in;
	reduce_scale((enum coll_dtype)u->o->dtype, u->own, in, u->o->scalar, n);
	return u->own;
}

static int slice(struct unit *u, int what, const unsigned char *in, unsigned char *out, size_t n)
{
	const enum coll_dtype dtype = (enum coll_dtype)u->o->dtype;
	const enum coll_redop redop =
		u->o->redop == COLL_AVG ? COLL_SUM : (enum coll_redop)u->o->redop;
	size_t bytes = n * u->element;
	const unsigned char *result = u->sum;

	if (in && bytes)
		memcpy(u->sum, own_input(u, in, n), bytes);
	for (int i = 0; i < u->n_recv && (what & RECV); i++) {
		unsigned char *at;

		if (receive(u, u->recv[i], bytes, &at) < 0)
			return -1;
		if ((what & REDUCE) && bytes)
			reduce_apply(dtype, redop, u->sum, u->sum, at, n);
		else if (bytes)
			memcpy(u->sum, at, bytes);
		give_back(u, u->recv[i]);
	}
	if ((what & LAST) && u->o->redop == COLL_AVG && bytes)
		reduce_average(dtype, u->sum, u->sum, u->o->comm->n_ranks, n);
	if (out && bytes)
		memcpy(out, result, bytes);
	for (int i = 0; i < u->n_send && (what & SEND); i++)
		if (send_out(u, u->send[i], result, bytes) < 0)
			return -1;
	return 0;
}

/* Elements [0, @n) of @in and @out, in slices. */
static int chunk(struct unit *u, int what, const void *in, void *out, size_t n)
{
	const unsigned char *from = in;
	unsigned char *to = out;
	size_t most = step_bytes(u->protocol) * (size_t)u->slice_steps / u->element, size = n,
	       at = 0;

	if (u->n_slices > 1) {
		size_t part = 16 * (size_t)u->n_slices;

		size = (n + part - 1) / part * 16;
		size = size > most / 32 ? size : most / 32;
	}
	for (int i = 0; i < u->n_slices; i++) {
		size_t some = n - at < size ? n - at : size;

		if (slice(u, what, from ? from + at * u->element : NULL,
			  to ? to + at * u->element : NULL, some) < 0)
			return -1;
		at += some;
	}
	return 0;
}

/* --- rings ------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int ring_allreduce(struct unit *u)
{
	const struct op *o = u->o;
	size_t n = o->comm->n_ranks, loop = n * op_chunk(o), all = o->part[u->channel],
	       grain = 16 / u->element;
	const unsigned char *in = o->send;
	unsigned char *out = o->recv;
	/* a rank's place in the ring is its distance from rank 0 there, any numbering that all
	 * ranks of the ring share */
	const uint32_t *ring = o->comm->channels[u->channel].ring;
	size_t place = 0, root = 0;

	while (ring[root] != 0)
		root++;
	place = (n - root) % n;
	for (size_t at = 0; at < all; at += loop) {
		size_t left = all - at, size = op_chunk(o);

		if (left < loop)
			size = ((left + n - 1) / n + grain - 1) / grain * grain;
		for (size_t j = 1; j < 2 * n; j++) {
			size_t c = (place + 2 * n - j) % n, off = c * size,
			       m = off < left ? least(size, left - off) : 0,
			       where = (o->begin[u->channel] + at + off) * u->element;
			const unsigned char *from = in + where;
			unsigned char *to = out + where;
			int r = 0;

			if (j == 1)
				r = chunk(u, SEND, from, NULL, m);
			else if (j < n)
				r = chunk(u, RECV | REDUCE | SEND, from, NULL, m);
			else if (j == n)
				r = chunk(u, RECV | REDUCE | SEND | LAST, from, to, m);
			else if (j < 2 * n - 1)
				r = chunk(u, RECV | SEND, NULL, to, m);
			else
				r = chunk(u, RECV, NULL, to, m);
			if (r < 0)
				return -1;
		}
	}
	return 0;
}

static int ring_allgather(struct unit *u)
{
	const struct op *o = u->o;
	size_t n = o->comm->n_ranks, all = o->part[u->channel];
	const uint32_t *ring = o->comm->channels[u->channel].ring;
	const unsigned char *in = o->send;
	unsigned char *out = o->recv;

	for (size_t at = 0; at < all; at += op_chunk(o)) {
		size_t m = least(op_chunk(o), all - at),
		       where = (o->begin[u->channel] + at) * u->element,
		       block = o->count * u->element;
		unsigned char *own = out + where + ring[0] * block;

		if (chunk(u, SEND, in + where, own == in + where ? NULL : own, m) < 0)
			return -1;
		for (size_t j = 1; j < n; j++)
			if (chunk(u, j < n - 1 ? RECV | SEND : RECV, NULL,
				  out + where + ring[n - j] * block, m) < 0)
				return -1;
	}
	return 0;
}

static int ring_reducescatter(struct unit *u)
{
	const struct op *o = u->o;
	size_t n = o->comm->n_ranks, all = o->part[u->channel];
	const uint32_t *ring = o->comm->channels[u->channel].ring;
	const unsigned char *in = o->send;
	unsigned char *out = o->recv;

	for (size_t at = 0; at < all; at += op_chunk(o)) {
		size_t m = least(op_chunk(o), all - at),
		       where = (o->begin[u->channel] + at) * u->element,
		       block = o->count * u->element;

		if (chunk(u, SEND, in + where + ring[n - 1] * block, NULL, m) < 0)
			return -1;
		for (size_t j = 2; j < n; j++)
			if (chunk(u, RECV | REDUCE | SEND, in + where + ring[n - j] * block, NULL,
				  m) < 0)
				return -1;
		if (chunk(u, RECV | REDUCE | LAST, in + where + ring[0] * block, out + where, m) <
		    0)
			return -1;
	}
	return 0;
}

static int ring_broadcast(struct unit *u)
{
	const struct op *o = u->o;
	const struct channel *ch = &o->comm->channels[u->channel];
	size_t all = o->part[u->channel];
	const unsigned char *in = o->send;
	unsigned char *out = o->recv;
	int r = 0;

	for (size_t at = 0; at < all && r == 0; at += op_chunk(o)) {
		size_t m = least(op_chunk(o), all - at),
		       where = (o->begin[u->channel] + at) * u->element;

		if (o->comm->rank == o->root)
			r = chunk(u, SEND, in + where, out == in ? NULL : out + where, m);
		else
			r = chunk(u, ch->next == o->root ? RECV : RECV | SEND, NULL, out + where,
				  m);
	}
	return r;
}

static int ring_reduce(struct unit *u)
{
	const struct op *o = u->o;
	const struct channel *ch = &o->comm->channels[u->channel];
	size_t all = o->part[u->channel];
	const unsigned char *in = o->send;
	unsigned char *out = o->recv;
	int r = 0;

	for (size_t at = 0; at < all && r == 0; at += op_chunk(o)) {
		size_t m = least(op_chunk(o), all - at),
		       where = (o->begin[u->channel] + at) * u->element;

		if (ch->prev == o->root)
			r = chunk(u, SEND, in + where, NULL, m);
		else if (o->comm->rank == o->root)
			r = chunk(u, RECV | REDUCE | LAST, in + where, out + where, m);
		else
			r = chunk(u, RECV | REDUCE | SEND, in + where, NULL, m);
	}
	return r;
}

/* --- trees: sums go up and the result goes down at the same time ------------------- */

static int tree_allreduce(struct unit *u)
{
	const struct op *o = u->o;
	bool is_root = o->comm->channels[u->channel].up < 0;
	size_t all = o->part[u->channel];
	const unsigned char *in = o->send;
	unsigned char *out = o->recv;
	int r = 0;

	for (size_t at = 0; at < all && r == 0; at += op_chunk(o)) {
		size_t m = least(op_chunk(o), all - at),
		       where = (o->begin[u->channel] + at) * u->element;

		if (u->is_up)
			r = chunk(u, RECV | REDUCE | SEND | (is_root ? LAST : 0), in + where,
				  is_root ? out + where : NULL, m);
		else
			r = chunk(u, RECV | SEND, NULL, out + where, m);
	}
	return r;
}

static void add_pipe(struct unit *u, int32_t peer, bool is_send)
{
	struct pipe *p =
		peer < 0 ? NULL : comm_pipe(u->o->comm, (uint32_t)peer, u->channel, 0, is_send);

	if (p && is_send)
		u->send[u->n_send++] = p;
	else if (p)
		u->recv[u->n_recv++] = p;
}

/* --- sends and receives ------------------------------------------------------------ */

static int do_task(struct unit *u, struct p2p_task *t)
{
	unsigned char *at = t->buffer;
	size_t size = p2p_chunk(t), done = 0;

	u->n_recv = u->n_send = 0;
	if (t->is_send)
		u->send[u->n_send++] = t->pipe;
	else
		u->recv[u->n_recv++] = t->pipe;
	do {
		size_t n = least(size, t->bytes - done);

		if (slice(u, t->is_send ? SEND : RECV, t->is_send ? at + done : NULL,
			  t->is_send ? NULL : at + done, n) < 0)
			return -1;
		done += n;
	} while (done < t->bytes);
	return 0;
}

static int do_tasks(struct unit *u)
{
	struct op *o = u->o;

	for (size_t i = 0; i < o->n_tasks; i++)
		if (o->tasks[i].pipe == u->task->pipe && do_task(u, &o->tasks[i]) < 0)
			return -1;
	return 0;
}

/* Pairs of sends and receives to oneself, in their order. */
static void do_own(struct op *o)
{
	size_t r = 0;

	for (size_t s = 0; s < o->n_tasks; s++) {
		if (o->tasks[s].pipe || !o->tasks[s].is_send)
			continue;
		while (r < o->n_tasks && (o->tasks[r].pipe || o->tasks[r].is_send))
			r++;
		if (r == o->n_tasks)
			return;
		if (o->tasks[s].bytes)
			memmove(o->tasks[r].buffer, o->tasks[s].buffer, o->tasks[s].bytes);
		r++;
	}
}

/* --- threads ----------------------------------------------------------------------- */

static int run_unit(struct unit *u)
{
	if (u->task)
		return do_tasks(u);
	if (u->o->algorithm == PLUGIN_TREE)
		return tree_allreduce(u);
	switch (u->o->kind) {
	case COLL_ALLREDUCE:
		return ring_allreduce(u);
	case COLL_ALLGATHER:
		return ring_allgather(u);
	case COLL_REDUCESCATTER:
		return ring_reducescatter(u);
	case COLL_BROADCAST:
		return ring_broadcast(u);
	case COLL_REDUCE:
		return ring_reduce(u);
	case COLL_ALLTOALL:
	case COLL_GATHER:
	case COLL_SCATTER:
	case COLL_SENDRECV:
	case COLL_KINDS:
		break;
	}
	return 0;
}

static void round_steps(struct pipe **pipes, int n, int to)
{
	for (int i = 0; i < n; i++)
		pipes[i]->step = (pipes[i]->step + (uint64_t)to - 1) / (uint64_t)to * (uint64_t)to;
}

/* Bytes. */
static size_t slice_max(void)
{
	size_t most = P2P_CHUNK;

	for (int i = 0; i < PLUGIN_N_PROTOCOLS; i++)
		most = most < 2 * step_bytes(i) ? 2 * step_bytes(i) : most;
	return most;
}

static void *run_thread(void *ctx)
{
	struct unit *u = ctx;
	size_t most = slice_max();

	u->sum = malloc(3 * most);
	u->lines = u->sum + most;
	u->own = u->lines + most;
	round_steps(u->recv, u->n_recv, u->chunk_steps);
	round_steps(u->send, u->n_send, u->chunk_steps);
	run_unit(u);
	free(u->sum);
	return NULL;
}

static void unit_init(struct unit *u, struct op *o, int channel)
{
	*u = (struct unit){.o = o,
			   .channel = channel,
			   .protocol = o->protocol,
			   .chunk_steps = op_chunk_steps(o),
			   .slice_steps = op_slice_steps(o),
			   .element = dtype_bytes(o->dtype)};
	u->n_slices = u->chunk_steps / u->slice_steps;
}

static size_t make_units(struct op *o, struct unit *units)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n_tasks; i++) {
		bool is_first = o->tasks[i].pipe != NULL;

		for (size_t k = 0; k < i; k++)
			is_first &= o->tasks[k].pipe != o->tasks[i].pipe;
		if (!is_first)
			continue;
		unit_init(&units[n], o, 0);
		units[n].element = 1;
		units[n++].task = &o->tasks[i];
	}
	for (int ch = 0; o->kind != COLL_SENDRECV && ch < o->n_channels; ch++) {
		const struct channel *c = &o->comm->channels[ch];

		if (!o->part[ch])
			continue;
		for (int down = 0; down < 1 + (o->algorithm == PLUGIN_TREE && c->up >= 0); down++) {
			struct unit *u = &units[n++];

			unit_init(u, o, ch);
			u->is_up = !down;
			if (o->algorithm != PLUGIN_TREE) {
				add_pipe(u, (int32_t)c->prev, false);
				add_pipe(u, (int32_t)c->next, true);
				continue;
			}
			add_pipe(u, c->up, !down);
			for (int i = 0; i < PEERS_MAX; i++)
				add_pipe(u, c->down[i], down);
			for (int i = 0; c->up < 0 && i < PEERS_MAX; i++)
				add_pipe(u, c->down[i], true);
		}
	}
	return n;
}

static void run_alone(const struct op *o)
{
	size_t bytes = o->count * dtype_bytes(o->dtype);

	if (o->has_scalar && coll_reduces(o->kind))
		reduce_scale((enum coll_dtype)o->dtype, o->recv, o->send, o->scalar, o->count);
	else if (o->recv != o->send && bytes)
		memmove(o->recv, o->send, bytes);
}

void kernel_run(void *ctx)
{
	struct op *o = ctx;
	ncclComm_t c = o->comm;
	struct unit *units = calloc(o->n_tasks + 2 * CHANNELS_MAX, sizeof(*units));
	size_t n = 0;
	unsigned idle = 0;

	while (c->n_run != o->number && !c->aborted)
		pause_for(&idle);
	do_own(o);
	if (o->kind != COLL_SENDRECV && c->n_ranks == 1)
		run_alone(o);
	else
		n = make_units(o, units);
	for (size_t i = 0; i < n; i++)
		if (pthread_create(&units[i].thread, NULL, run_thread, &units[i]))
			comm_failed(c, ncclSystemError, "no thread");
	for (size_t i = 0; i < n; i++)
		pthread_join(units[i].thread, NULL);
	free(units);
	free(o->tasks);
	c->n_run = o->number + 1;
	free(o);
}
