/* See player.h: the life of an op that is played, and the messages that drive it. run.c runs the
 * steps.
 *
 * Each event belongs to one thread of the schedule, found in O(1), and only that thread can have
 * something to do after it. So there is no list of active threads, and an event of an all-to-all
 * of a thousand threads costs as much as one of a ring. */
#include "player/player.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "player/pool.h"
#include "player/run.h"
#include "player/state.h"

#define ALIGN 64

static uint64_t align_up(uint64_t n)
{
	return (n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static uint32_t min_steps(uint64_t n_steps, uint32_t most)
{
	return n_steps < most ? (uint32_t)n_steps : most;
}

/* --- start and end -------------------------------------------------------------- */

/* Sizes of everything, then one allocation for the state and one for staging. */
struct sizes {
	uint64_t entries, flights, slots;
};

static void measure(const struct player *p, struct sizes *ret)
{
	uint32_t i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; i < p->n_threads; i++) {
		uint64_t n_steps = sched_n_steps(p->sched, p->rank, i);

		ret->entries += min_steps(n_steps, WINDOW);
		ret->flights += min_steps(n_steps * SCHED_FAN, FLIGHTS);
		ret->slots += thread_slots(p, i, n_steps);
	}
	if (ret->slots && p->data->pre)
		ret->slots++;
}

static void threads_init(struct player *p, struct entry *entries, struct flight *flights)
{
	uint32_t i;

	for (i = 0; i < p->n_threads; i++) {
		struct thread *t = &p->threads[i];

		memset(t, 0, sizeof(*t));
		t->n_steps = sched_n_steps(p->sched, p->rank, i);
		t->window = min_steps(t->n_steps, WINDOW);
		t->max_flights = min_steps(t->n_steps * SCHED_FAN, FLIGHTS);
		t->max_slots = thread_slots(p, i, t->n_steps);
		t->entries = entries;
		t->flights = flights;
		entries += t->window;
		flights += t->max_flights;
		p->n_running += t->n_steps > 0;
	}
}

static int staging_init(struct player *p, uint32_t n_slots)
{
	uint32_t i;

	p->scratch = NO_SLOT;
	if (!n_slots)
		return 0;
	p->slot_bytes = align_up(sched_max_step_bytes(p->sched));
	if (!p->slot_bytes)
		p->slot_bytes = ALIGN;
	if (p->slot_bytes > SIZE_MAX / n_slots)
		return -ENOMEM;
	p->staging = pool_take(p->slot_bytes * n_slots, &p->staging_bytes);
	if (!p->staging)
		return -ENOMEM;
	for (i = 0; i < n_slots; i++)
		p->free_slots[i] = n_slots - 1 - i;
	p->n_free = n_slots;
	if (p->data->pre)
		p->scratch = p->free_slots[--p->n_free];
	return 0;
}

static int player_alloc(struct player **ret, const struct player *like)
{
	uint64_t at_threads, at_entries, at_flights, at_free, at_refs, total;
	CLEANUP(freep) char *memory = NULL;
	struct sizes sizes;
	struct player *p;
	int r;

	measure(like, &sizes);
	if (sizes.slots > UINT32_MAX)
		return -ENOMEM;
	at_threads = align_up(sizeof(*p));
	at_entries = align_up(at_threads + like->n_threads * sizeof(struct thread));
	at_flights = align_up(at_entries + sizes.entries * sizeof(struct entry));
	at_free = align_up(at_flights + sizes.flights * sizeof(struct flight));
	at_refs = align_up(at_free + sizes.slots * sizeof(uint32_t));
	total = at_refs + sizes.slots;
	memory = malloc(total);
	if (!memory)
		return -ENOMEM;
	p = (struct player *)(void *)memory;
	*p = *like;
	p->threads = (void *)(memory + at_threads);
	p->free_slots = (void *)(memory + at_free);
	p->slot_refs = (void *)(memory + at_refs);
	threads_init(p, (void *)(memory + at_entries), (void *)(memory + at_flights));
	r = staging_init(p, (uint32_t)sizes.slots);
	if (r)
		return r;
	*ret = (struct player *)(void *)steal_ptr(memory);
	return 0;
}

int player_start(struct player **ret, const struct sched *s, uint32_t rank,
		 const struct player_data *data, const struct player_io *io, void *owner)
{
	struct player like = {.sched = s, .rank = rank, .data = data, .io = io, .owner = owner};
	struct player *p;
	uint32_t i;
	int r;

	like.n_threads = sched_n_threads(s, rank);
	r = player_alloc(&p, &like);
	for (i = 0; !r && i < like.n_threads; i++)
		r = thread_advance(p, i);
	if (r && i > 0)
		player_free(p);
	if (!r)
		*ret = p;
	return r;
}

struct player *player_free(struct player *p)
{
	if (p) {
		pool_give(p->staging, p->staging_bytes);
		free(p);
	}
	return NULL;
}

bool player_done(const struct player *p)
{
	return p->n_running == 0 && p->n_flights == 0;
}

uint64_t player_n_sent(const struct player *p)
{
	return p->n_sent;
}

uint64_t player_n_received(const struct player *p)
{
	return p->n_received;
}

/* --- events --------------------------------------------------------------------- */

/* The oldest receive of this connection that is posted and not here. */
static struct entry *find_receive(const struct thread *t, uint32_t peer, uint16_t lane,
				  uint32_t *ret_j)
{
	uint64_t i;
	uint32_t j;

	for (i = t->current; i < t->posted; i++) {
		struct entry *e = &t->entries[i % t->window];

		if (!e->missing || e->step.recv_lane != lane)
			continue;
		for (j = 0; j < e->step.n_recv; j++) {
			if (e->step.recv[j] == peer && (e->missing & 1u << j)) {
				*ret_j = j;
				return e;
			}
		}
	}
	return NULL;
}

static int unexpected(const struct player *p, const char *what, uint32_t peer, uint16_t lane,
		      uint64_t index, struct err *err)
{
	char waits[160];

	player_describe(p, waits, sizeof(waits));
	err_set(err, EPROTO, "message %llu %s rank %u, lane %u, is not expected now; %s",
		(unsigned long long)index, what, peer, lane, waits);
	return PLAYER_UNEXPECTED;
}

static int advanced(int r, uint32_t thread, struct err *err)
{
	if (r)
		err_set(err, -r, "thread %u of the schedule cannot go on: %s", thread,
			strerror(-r));
	return r;
}

int player_received(struct player *p, uint32_t peer, uint16_t lane, uint64_t index, struct err *err)
{
	uint32_t number = sched_recv_thread(p->sched, peer, p->rank, lane), j = 0;
	struct entry *e = NULL;

	if (number < p->n_threads)
		e = find_receive(&p->threads[number], peer, lane, &j);
	if (!e || e->step.recv_index != index)
		return unexpected(p, "from", peer, lane, index, err);
	e->missing &= ~(1u << j);
	p->n_received++;
	if (e->missing)
		return 0;
	return advanced(thread_advance(p, number), number, err);
}

int player_sent(struct player *p, uint32_t peer, uint16_t lane, uint64_t index, struct err *err)
{
	uint32_t number = sched_send_thread(p->sched, p->rank, peer, lane), i;
	struct thread *t;

	if (number >= p->n_threads)
		return unexpected(p, "to", peer, lane, index, err);
	t = &p->threads[number];
	for (i = 0; i < t->n_flights; i++) {
		if (t->flights[i].peer == peer && t->flights[i].lane == lane)
			break;
	}
	if (i == t->n_flights || t->flights[i].index != index)
		return unexpected(p, "to", peer, lane, index, err);
	slot_unref(p, t, t->flights[i].slot);
	memmove(&t->flights[i], &t->flights[i + 1], (t->n_flights - i - 1) * sizeof(t->flights[0]));
	t->n_flights--;
	p->n_flights--;
	p->n_sent++;
	return advanced(thread_advance(p, number), number, err);
}

/* --- words ---------------------------------------------------------------------- */

static void describe_thread(const struct player *p, uint32_t number, char *buf, uint32_t size)
{
	const struct thread *t = &p->threads[number];
	const struct entry *e;
	int n;

	n = snprintf(buf, size, "thread %u step %llu of %llu ", number,
		     (unsigned long long)t->current, (unsigned long long)t->n_steps);
	if (n < 0 || (uint32_t)n >= size)
		return;
	buf += n;
	size -= (uint32_t)n;
	e = t->current < t->posted ? &t->entries[t->current % t->window] : NULL;
	if (e && e->missing)
		snprintf(buf, size, "waits for message %llu from rank %u",
			 (unsigned long long)e->step.recv_index,
			 e->step.recv[__builtin_ctz(e->missing)]);
	else if (t->n_flights)
		snprintf(buf, size, "waits until message %llu to rank %u is sent",
			 (unsigned long long)t->flights[0].index, t->flights[0].peer);
	else
		snprintf(buf, size, "is about to run");
}

void player_describe(const struct player *p, char *buf, uint32_t size)
{
	uint32_t i;
	int n;

	for (i = 0; i < p->n_threads; i++) {
		if (p->threads[i].current < p->threads[i].n_steps)
			break;
	}
	if (i == p->n_threads && p->n_flights) {
		for (i = 0; !p->threads[i].n_flights; i++)
			;
	}
	if (i == p->n_threads) {
		snprintf(buf, size, "all %u threads are done", p->n_threads);
		return;
	}
	describe_thread(p, i, buf, size);
	n = (int)strlen(buf);
	if (p->n_running > 1)
		snprintf(buf + n, size - (uint32_t)n, ", %u others wait too", p->n_running - 1);
}
