/* Runs the steps of a thread: posts receives ahead, combines what came, sends.
 *
 * Where a step's bytes lie:
 *   received, not reduced  straight in the output, or in a slot when not kept
 *   received, reduced      a slot each; the result in the output when the step
 *                          keeps it, else in the first slot
 *   only sent              the own input or output itself, or a slot when `pre`
 *                          or `post` has to change it
 * A send reads the result where it lies; a slot is free again when its last send
 * is through.
 *
 * In place (input = output) a posted receive may be written into memory that is
 * still to be read as input. That is safe: what arrives for a place of the output
 * contains our own input of that place, so its sender had it from us before.
 *
 * No deadlock on slots: a step takes all it needs at once, and only when the steps
 * before it have theirs. A ring of ranks that all wait for slots would need every
 * rank to be ahead of its successor by all its slots but one, hence ahead of itself;
 * trees and chains have no cycle. */
#include "player/run.h"

#include <errno.h>
#include <string.h>

#include "player/state.h"

/* Through integers: the owner may give absolute addresses as offsets from NULL. */
static void *out_at(const struct player *p, const struct sched_step *st)
{
	return (void *)((uintptr_t)p->data->output + st->out_off);
}

static const void *in_at(const struct player *p, const struct sched_step *st)
{
	return (const void *)((uintptr_t)p->data->input + st->in_off);
}

static void *slot_at(const struct player *p, uint32_t slot)
{
	return p->staging + (uint64_t)slot * p->slot_bytes;
}

/* --- slots ---------------------------------------------------------------------- */

/* A step that only sends, but not what lies in its input. */
static bool changes_input(const struct player *p, const struct sched_step *st)
{
	return (st->flags & STEP_INPUT) &&
	       (p->data->pre || (p->data->post && (st->flags & STEP_FINAL)));
}

static uint32_t slots_needed(const struct player *p, const struct sched_step *st)
{
	if (!p->data)
		return 0;
	if (st->flags & STEP_REDUCE && st->n_recv)
		return st->n_recv;
	if (st->flags & STEP_OUTPUT)
		return 0;
	if (st->n_recv)
		return 1;
	return changes_input(p, st) ? 1 : 0;
}

/* In a ring or chain a step receives one message; in a tree all steps of a thread
 * are alike. A full window, and as many results again that are being sent. */
uint32_t thread_slots(const struct player *p, uint32_t number, uint64_t n_steps)
{
	uint32_t fan = 1;
	struct sched_step st;
	uint64_t most;

	if (!p->data || !n_steps)
		return 0;
	if (p->sched->kind != COLL_ALLREDUCE && p->sched->kind != COLL_REDUCE &&
	    p->sched->kind != COLL_REDUCESCATTER && !p->data->pre && !p->data->post)
		return 0;
	if (p->sched->algo == SCHED_TREE) {
		sched_step(p->sched, p->rank, number, 0, &st);
		fan = slots_needed(p, &st);
	}
	most = fan ? (uint64_t)fan * WINDOW + WINDOW : 0;
	return (uint32_t)(most < n_steps * fan ? most : n_steps * fan);
}

static void slots_take(struct player *p, struct thread *t, struct entry *e, uint32_t n)
{
	uint32_t j;

	for (j = 0; j < SCHED_FAN; j++)
		e->slot[j] = j < n ? p->free_slots[--p->n_free] : NO_SLOT;
	t->n_slots += n;
}

static void slot_free(struct player *p, struct thread *t, uint32_t slot)
{
	p->free_slots[p->n_free++] = slot;
	t->n_slots--;
}

void slot_unref(struct player *p, struct thread *t, uint32_t slot)
{
	if (slot != NO_SLOT && --p->slot_refs[slot] == 0)
		slot_free(p, t, slot);
}

/* --- posting -------------------------------------------------------------------- */

static int step_check(const struct player *p, const struct sched_step *st)
{
	bool reduces = st->flags & STEP_REDUCE;

	if (st->n_recv > SCHED_FAN || st->n_send > SCHED_FAN)
		return -EINVAL;
	if (!p->data)
		return 0;
	if (st->n_recv > 1 && !reduces)
		return -EINVAL;
	if (p->staging && slots_needed(p, st) && st->bytes > p->slot_bytes)
		return -EINVAL;
	return 0;
}

static void *receive_at(const struct player *p, const struct entry *e, uint32_t j)
{
	if (!p->data)
		return NULL;
	return e->slot[j] != NO_SLOT ? slot_at(p, e->slot[j]) : out_at(p, &e->step);
}

static int post_step(struct player *p, struct entry *e)
{
	const struct sched_step *st = &e->step;
	uint32_t j;
	int r;

	e->missing = (1u << st->n_recv) - 1;
	for (j = 0; j < st->n_recv; j++) {
		r = p->io->post(p->owner, st->recv[j], st->recv_lane, st->recv_index,
				receive_at(p, e, j), st->bytes);
		if (r)
			return r;
	}
	return 0;
}

static int post_ahead(struct player *p, struct thread *t, uint32_t number)
{
	struct entry *e;
	uint32_t need;
	int r;

	while (t->posted < t->n_steps && t->posted - t->current < t->window) {
		e = &t->entries[t->posted % t->window];
		if (!t->has_next) {
			sched_step(p->sched, p->rank, number, t->posted, &e->step);
			r = step_check(p, &e->step);
			if (r)
				return r;
			t->has_next = true;
		}
		need = slots_needed(p, &e->step);
		if (t->n_slots + need > t->max_slots) {
			/* a thread that holds no slot would wait for ever */
			return need > t->max_slots ? -EINVAL : 0;
		}
		slots_take(p, t, e, need);
		t->has_next = false;
		t->posted++;
		r = post_step(p, e);
		if (r)
			return r;
	}
	return 0;
}

/* --- running -------------------------------------------------------------------- */

static void copy(void *dst, const void *src, uint64_t bytes)
{
	if (dst != src && bytes)
		memmove(dst, src, bytes);
}

/* The own part, ready to be sent, kept, or both. */
static const void *run_own(struct player *p, const struct entry *e)
{
	const struct player_data *d = p->data;
	const struct sched_step *st = &e->step;
	const void *own;
	void *dst;

	own = in_at(p, st);
	if (st->flags & STEP_OUTPUT)
		dst = out_at(p, st);
	else if (e->slot[0] != NO_SLOT)
		dst = slot_at(p, e->slot[0]);
	else
		return own;
	if (d->pre && st->bytes)
		d->pre(d, dst, own, st->bytes);
	else
		copy(dst, own, st->bytes);
	if (d->post && (st->flags & STEP_FINAL) && st->bytes)
		d->post(d, dst, st->bytes);
	return dst;
}

/* recv[0] (op) recv[1] (op) ... (op) own input, in this order always. */
static const void *run_reduce(struct player *p, const struct entry *e)
{
	const struct player_data *d = p->data;
	const struct sched_step *st = &e->step;
	uint32_t j, last = st->n_recv - 1;
	void *dst, *first = slot_at(p, e->slot[0]);
	bool own = st->flags & STEP_INPUT;
	const void *mine = NULL;

	dst = st->flags & STEP_OUTPUT ? out_at(p, st) : first;
	if (!st->bytes)
		return dst;
	if (own) {
		mine = in_at(p, st);
		if (d->pre) {
			d->pre(d, slot_at(p, p->scratch), mine, st->bytes);
			mine = slot_at(p, p->scratch);
		}
	}
	for (j = 1; j <= last; j++)
		d->reduce(d, j == last && !own ? dst : first, first, slot_at(p, e->slot[j]),
			  st->bytes);
	if (own)
		d->reduce(d, dst, first, mine, st->bytes);
	else if (last == 0)
		copy(dst, first, st->bytes);
	if (d->post && (st->flags & STEP_FINAL))
		d->post(d, dst, st->bytes);
	return dst;
}

static const void *run_data(struct player *p, const struct entry *e)
{
	const struct sched_step *st = &e->step;

	if (!p->data)
		return NULL;
	if (st->n_recv == 0)
		return run_own(p, e);
	if (st->flags & STEP_REDUCE)
		return run_reduce(p, e);
	return receive_at(p, e, 0);
}

/* The first slot lives on while sends read the result in it. */
static void release_slots(struct player *p, struct thread *t, const struct entry *e,
			  const void *result)
{
	bool keep = e->slot[0] != NO_SLOT && e->step.n_send && result == slot_at(p, e->slot[0]);
	uint32_t j;

	for (j = 0; j < SCHED_FAN; j++) {
		if (e->slot[j] != NO_SLOT && !(j == 0 && keep))
			slot_free(p, t, e->slot[j]);
	}
	if (keep)
		p->slot_refs[e->slot[0]] = (uint8_t)e->step.n_send;
}

static int run_step(struct player *p, struct thread *t, const struct entry *e)
{
	const struct sched_step *st = &e->step;
	const void *result = run_data(p, e);
	uint32_t slot = NO_SLOT, j;
	int r;

	if (p->data && p->staging) {
		if (e->slot[0] != NO_SLOT && result == slot_at(p, e->slot[0]))
			slot = e->slot[0];
		release_slots(p, t, e, result);
	}
	for (j = 0; j < st->n_send; j++) {
		t->flights[t->n_flights++] = (struct flight){.index = st->send_index,
							     .peer = st->send[j],
							     .lane = st->send_lane,
							     .slot = slot};
		p->n_flights++;
		r = p->io->send(p->owner, st->send[j], st->send_lane, st->send_index, result,
				st->bytes);
		if (r)
			return r;
	}
	return 0;
}

int thread_advance(struct player *p, uint32_t number)
{
	struct thread *t = &p->threads[number];
	struct entry *e;
	int r;

	for (;;) {
		r = post_ahead(p, t, number);
		if (r)
			return r;
		if (t->current == t->posted) /* over, or no slot */
			return 0;
		e = &t->entries[t->current % t->window];
		if (e->missing || t->n_flights + e->step.n_send > t->max_flights)
			return 0;
		r = run_step(p, t, e);
		if (r)
			return r;
		if (++t->current == t->n_steps)
			p->n_running--;
	}
}
