/* The player: see player.h.
 *
 * Each thread of the rank's schedule is a window of at most WINDOW steps:
 *
 *     done <= run <= posted <= done + WINDOW
 *
 * Steps before `done` are over; those before `run` are executed, their sends under
 * way; those before `posted` have their receives posted. A step executes when it is
 * the next of its thread and all its receives are in. Step i lives in slot i mod
 * WINDOW, with staging memory for received operands and for results that are not
 * stored to the output; a slot is free again when its sends are done, which bounds
 * memory and the number of outstanding messages. Receives that are not reduced
 * land in the output directly: posting them ahead is safe in place, because a
 * finished chunk can only arrive after our own part of it was sent. */
#include "player/player.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 4

struct slot {
	struct sched_step step;
	unsigned char *stage; /* first of the step's staging buffers, or NULL */
	uint32_t recv_left, send_left; /* one bit a peer of the step */
};

struct thread {
	struct slot *slots;
	uint64_t n_steps, done, run, posted;
	uint32_t window;
};

struct player {
	const struct sched *s;         /* borrowed */
	const struct player_data *data; /* borrowed or NULL */
	const struct player_io *io;    /* borrowed */
	void *owner;
	struct thread *threads;
	uint64_t stage_bytes;          /* of one staging buffer */
	uint64_t n_sent, n_received;
	uint32_t rank, n_threads, n_stages;
	uint32_t n_running;            /* threads that are not over */
	size_t size;                   /* of this allocation */
};

/* --- memory ----------------------------------------------------------------
 * A player with its threads, slots and staging is one block. Blocks are kept for
 * the next op: fresh pages for megabytes of staging would cost more than the op. */

#define POOL_BLOCKS 8
#define POOL_BYTES_MAX ((size_t)256 << 20)

static struct {
	pthread_mutex_t lock;
	struct player *blocks[POOL_BLOCKS];
	size_t bytes;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct player *pool_take(size_t size)
{
	struct player *p = NULL;
	size_t real = size;
	int best = -1;

	pthread_mutex_lock(&pool.lock);
	for (int i = 0; i < POOL_BLOCKS; i++) {
		struct player *b = pool.blocks[i];

		if (b && b->size >= size && (best < 0 || b->size < pool.blocks[best]->size))
			best = i;
	}
	if (best >= 0) {
		p = pool.blocks[best];
		pool.blocks[best] = NULL;
		pool.bytes -= p->size;
		real = p->size;
	}
	pthread_mutex_unlock(&pool.lock);
	if (!p && posix_memalign((void **)&p, 64, size) != 0)
		return NULL;
	memset(p, 0, sizeof(*p));
	p->size = real;
	return p;
}

static void pool_give(struct player *p)
{
	struct player *drop = p;

	pthread_mutex_lock(&pool.lock);
	for (int i = 0; i < POOL_BLOCKS && drop; i++) {
		if (pool.blocks[i] || pool.bytes + p->size > POOL_BYTES_MAX)
			continue;
		pool.blocks[i] = p;
		pool.bytes += p->size;
		drop = NULL;
	}
	pthread_mutex_unlock(&pool.lock);
	free(drop);
}

/* At the end of the process, so that leak checkers see a clean house. */
__attribute__((destructor)) static void pool_drain(void)
{
	for (int i = 0; i < POOL_BLOCKS; i++) {
		free(pool.blocks[i]);
		pool.blocks[i] = NULL;
	}
}

/* --- bytes ----------------------------------------------------------------- */

/* Calls of a point-to-point group address from 0: no arithmetic on NULL. */
static void *at(const void *base, uint64_t off)
{
	return (void *)((uintptr_t)base + off);
}

static unsigned char *stage_of(const struct player *p, const struct slot *slot, uint32_t i)
{
	return slot->stage ? slot->stage + i * p->stage_bytes : NULL;
}

/* Where the @i-th receive of a step goes. */
static void *landing(const struct player *p, const struct slot *slot, uint32_t i)
{
	const struct sched_step *st = &slot->step;

	if (!p->data)
		return NULL;
	if (!(st->flags & STEP_REDUCE) && (st->flags & STEP_OUTPUT))
		return at(p->data->output, st->out_off);
	return stage_of(p, slot, i);
}

/* A step without receives: what it sends, after it stored what it stores. */
static const void *source(const struct player *p, const struct slot *slot)
{
	const struct player_data *d = p->data;
	const struct sched_step *st = &slot->step;
	void *out = at(d->output, st->out_off), *to;
	const void *in = at(d->input, st->in_off);

	if (st->flags & STEP_FROM_OUTPUT)
		return out;
	if (st->bytes == 0 || !(st->flags & STEP_INPUT))
		return in;
	to = st->flags & STEP_OUTPUT ? out : stage_of(p, slot, 0);
	if (d->pre)
		d->pre(d, to, in, st->bytes);
	else if (!(st->flags & STEP_OUTPUT))
		to = at(d->input, st->in_off);
	else if (out != in)
		memmove(out, in, st->bytes);
	if ((st->flags & STEP_FINAL) && d->post && (st->flags & STEP_OUTPUT))
		d->post(d, out, st->bytes);
	return to;
}

/* The received operands and the own input, combined. */
static const void *reduce(const struct player *p, const struct slot *slot)
{
	const struct player_data *d = p->data;
	const struct sched_step *st = &slot->step;
	void *first = stage_of(p, slot, 0);
	void *dst = st->flags & STEP_OUTPUT ? at(d->output, st->out_off) : first;
	uint32_t next = 1;

	if (st->bytes == 0)
		return dst;
	if (st->flags & STEP_INPUT) {
		const void *in = at(d->input, st->in_off);

		if (d->pre) { /* the buffer after the receives' is for this */
			void *own = stage_of(p, slot, st->n_recv);

			d->pre(d, own, in, st->bytes);
			in = own;
		}
		d->reduce(d, dst, first, in, st->bytes);
	} else if (st->n_recv > 1) {
		d->reduce(d, dst, first, stage_of(p, slot, next++), st->bytes);
	} else if (dst != first) {
		memcpy(dst, first, st->bytes);
	}
	for (; next < st->n_recv; next++)
		d->reduce(d, dst, dst, stage_of(p, slot, next), st->bytes);
	if ((st->flags & STEP_FINAL) && d->post)
		d->post(d, dst, st->bytes);
	return dst;
}

static const void *result(const struct player *p, const struct slot *slot)
{
	const struct sched_step *st = &slot->step;

	if (!p->data)
		return NULL;
	if (st->n_recv == 0)
		return source(p, slot);
	if (st->flags & STEP_REDUCE)
		return reduce(p, slot);
	return landing(p, slot, 0);
}

/* --- steps ----------------------------------------------------------------- */

static struct slot *slot_of(struct thread *t, uint64_t step)
{
	return &t->slots[step % t->window];
}

static int post_step(struct player *p, uint32_t thread, struct thread *t)
{
	struct slot *slot = slot_of(t, t->posted);
	struct sched_step *st = &slot->step;

	sched_step(p->s, p->rank, thread, t->posted, st);
	slot->recv_left = (1u << st->n_recv) - 1;
	slot->send_left = (1u << st->n_send) - 1;
	t->posted++;
	for (uint32_t i = 0; i < st->n_recv; i++) {
		int r = p->io->post(p->owner, st->recv[i], st->recv_lane, st->recv_index,
				    landing(p, slot, i), st->bytes);

		if (r < 0)
			return r;
	}
	return 0;
}

static int run_step(struct player *p, struct thread *t)
{
	struct slot *slot = slot_of(t, t->run);
	const struct sched_step *st = &slot->step;
	const void *src = result(p, slot);

	t->run++;
	for (uint32_t i = 0; i < st->n_send; i++) {
		int r = p->io->send(p->owner, st->send[i], st->send_lane, st->send_index, src,
				    st->bytes);

		if (r < 0)
			return r;
	}
	return 0;
}

static int advance(struct player *p, uint32_t thread)
{
	struct thread *t = &p->threads[thread];
	int r = 0;

	while (r == 0) {
		while (t->done < t->run && slot_of(t, t->done)->send_left == 0)
			t->done++;
		if (t->done == t->n_steps) {
			p->n_running--;
			break;
		}
		if (t->posted < t->n_steps && t->posted < t->done + t->window)
			r = post_step(p, thread, t);
		else if (t->run < t->posted && slot_of(t, t->run)->recv_left == 0)
			r = run_step(p, t);
		else
			break;
	}
	return r;
}

/* --- interface ------------------------------------------------------------- */

/* Staging buffers a slot needs: for received operands, and for the own input when
 * it is scaled first. */
static uint32_t stages_needed(const struct sched *s, const struct player_data *d)
{
	uint32_t n;

	if (!d)
		return 0;
	if (s->kind != COLL_ALLREDUCE && s->kind != COLL_REDUCESCATTER && s->kind != COLL_REDUCE)
		return 0;
	n = s->algo == SCHED_TREE ? SCHED_FAN : 1;
	return n + (d->pre ? 1 : 0);
}

static uint32_t window_of(const struct sched *s, uint32_t rank, uint32_t thread)
{
	uint64_t n = sched_n_steps(s, rank, thread);

	return n < WINDOW ? (uint32_t)n : WINDOW;
}

static size_t round_up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

int player_start(struct player **ret, const struct sched *s, uint32_t rank,
		 const struct player_data *data, const struct player_io *io, void *owner)
{
	uint32_t n_threads = sched_n_threads(s, rank), n_stages = stages_needed(s, data);
	size_t head = round_up(sizeof(struct player)), threads, slots, stage;
	uint64_t n_slots = 0;
	struct player *p;
	int r = 0;

	for (uint32_t t = 0; t < n_threads; t++)
		n_slots += window_of(s, rank, t);
	threads = round_up(n_threads * sizeof(struct thread));
	slots = round_up(n_slots * sizeof(struct slot));
	stage = n_stages ? round_up(sched_max_step_bytes(s)) : 0;
	p = pool_take(head + threads + slots + n_slots * n_stages * stage);
	if (!p)
		return -ENOMEM;
	p->s = s;
	p->rank = rank;
	p->data = data;
	p->io = io;
	p->owner = owner;
	p->n_threads = p->n_running = n_threads;
	p->n_stages = n_stages;
	p->stage_bytes = stage;
	p->threads = (struct thread *)(void *)((char *)p + head);

	struct slot *slot = (struct slot *)(void *)((char *)p + head + threads);
	unsigned char *staging = (unsigned char *)p + head + threads + slots;

	for (uint32_t t = 0; t < n_threads; t++) {
		uint32_t window = window_of(s, rank, t);

		p->threads[t] = (struct thread){ .slots = slot, .window = window,
						 .n_steps = sched_n_steps(s, rank, t) };
		for (uint32_t i = 0; i < window; i++, slot++, staging += n_stages * stage)
			slot->stage = n_stages ? staging : NULL;
	}
	for (uint32_t t = 0; t < n_threads && r == 0; t++)
		r = advance(p, t);
	if (r < 0) {
		player_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct player *player_free(struct player *p)
{
	if (p)
		pool_give(p);
	return NULL;
}

static int unexpected(const struct player *p, struct err *err, const char *what, uint32_t peer,
		      uint16_t lane, uint64_t index)
{
	char state[128];

	player_describe(p, state, sizeof(state));
	err_set(err, EPROTO, "%s of rank %u: unexpected message %llu, peer %u, lane %u (%s)", what,
		p->rank, (unsigned long long)index, peer, lane, state);
	return PLAYER_UNEXPECTED;
}

int player_received(struct player *p, uint32_t peer, uint16_t lane, uint64_t index,
		    struct err *err)
{
	uint32_t thread = peer < p->s->n_ranks ? sched_recv_thread(p->s, peer, p->rank, lane) :
						  UINT32_MAX;

	if (thread >= p->n_threads)
		return unexpected(p, err, "a receive", peer, lane, index);

	struct thread *t = &p->threads[thread];

	for (uint64_t i = t->run; i < t->posted; i++) {
		struct slot *slot = slot_of(t, i);

		if (slot->step.recv_index != index || slot->recv_left == 0)
			continue;
		for (uint32_t k = 0; k < slot->step.n_recv; k++) {
			if (slot->step.recv[k] != peer || slot->step.recv_lane != lane ||
			    !(slot->recv_left & 1u << k))
				continue;
			slot->recv_left &= ~(1u << k);
			p->n_received++;
			return advance(p, thread);
		}
	}
	return unexpected(p, err, "a receive", peer, lane, index);
}

int player_sent(struct player *p, uint32_t peer, uint16_t lane, uint64_t index, struct err *err)
{
	uint32_t thread = peer < p->s->n_ranks ? sched_send_thread(p->s, p->rank, peer, lane) :
						  UINT32_MAX;

	if (thread >= p->n_threads)
		return unexpected(p, err, "a send", peer, lane, index);

	struct thread *t = &p->threads[thread];

	for (uint64_t i = t->done; i < t->run; i++) {
		struct slot *slot = slot_of(t, i);

		if (slot->step.send_index != index || slot->send_left == 0)
			continue;
		for (uint32_t k = 0; k < slot->step.n_send; k++) {
			if (slot->step.send[k] != peer || slot->step.send_lane != lane ||
			    !(slot->send_left & 1u << k))
				continue;
			slot->send_left &= ~(1u << k);
			p->n_sent++;
			return advance(p, thread);
		}
	}
	return unexpected(p, err, "a send", peer, lane, index);
}

bool player_done(const struct player *p)
{
	return p->n_running == 0;
}

uint64_t player_n_sent(const struct player *p)
{
	return p->n_sent;
}

uint64_t player_n_received(const struct player *p)
{
	return p->n_received;
}

void player_describe(const struct player *p, char *buf, uint32_t size)
{
	for (uint32_t i = 0; i < p->n_threads; i++) {
		struct thread *t = &p->threads[i];
		const struct sched_step *st;

		if (t->done == t->n_steps)
			continue;
		if (t->run < t->posted) {
			st = &slot_of(t, t->run)->step;
			snprintf(buf, size, "thread %u step %llu of %llu waits for message %llu from rank %u, lane %u",
				 i, (unsigned long long)t->run, (unsigned long long)t->n_steps,
				 (unsigned long long)st->recv_index, st->recv[0], st->recv_lane);
		} else {
			st = &slot_of(t, t->done)->step;
			snprintf(buf, size, "thread %u step %llu of %llu waits until message %llu to rank %u, lane %u is sent",
				 i, (unsigned long long)t->done, (unsigned long long)t->n_steps,
				 (unsigned long long)st->send_index, st->send[0], st->send_lane);
		}
		return;
	}
	snprintf(buf, size, "nothing is left to do");
}
