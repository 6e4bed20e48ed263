/* See pairing.h. Each ordered pair of ranks has a queue of the calls that wait. All in a queue are
 * sends, or all are receives: a call of the other kind takes the first out. */
#include "op/pairing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <uthash.h>

#define ONESIDED (UINT64_C(1) << 31)
#define PUTS 64

struct pair_pipe {
	uint64_t key; /* source << 32 | destination, or ONESIDED */
	struct pair_call *first, *last;
	uint64_t n_sends, n_receives;
	uint64_t notes[PAIRING_NOTES];
	struct put {
		uint64_t bytes;
		double began[2]; /* NAN: not yet */
	} * puts;                /* owned: the last PUTS; NULL: none */
	UT_hash_handle hh;
};

void pairing_deinit(struct pairing *p)
{
	struct pair_pipe *pipe, *next;

	HASH_ITER(hh, p->pipes, pipe, next) {
		HASH_DEL(p->pipes, pipe);
		free(pipe->puts);
		free(pipe);
	}
}

static struct pair_pipe *pipe_get(struct pairing *p, uint32_t src, uint64_t dst)
{
	uint64_t key = (uint64_t)src << 32 | dst;
	struct pair_pipe *pipe;

	HASH_FIND(hh, p->pipes, &key, sizeof(key), pipe);
	if (pipe)
		return pipe;
	pipe = calloc(1, sizeof(*pipe));
	if (!pipe)
		return NULL;
	pipe->key = key;
	HASH_ADD(hh, p->pipes, key, sizeof(key), pipe);
	return pipe;
}

uint64_t *pairing_note(struct pairing *p, uint32_t src, uint32_t dst)
{
	struct pair_pipe *pipe = pipe_get(p, src, dst);

	return pipe ? pipe->notes : NULL;
}

/* --- puts --------------------------------------------------------------------------- */

static uint64_t other_end(const struct pair_post *post, uint32_t dst)
{
	return post->is_onesided ? dst | ONESIDED : dst;
}

static struct put *put_of(const struct pair_pipe *pipe, uint64_t number)
{
	bool is_kept =
		pipe && pipe->puts && number < pipe->n_sends && pipe->n_sends - number <= PUTS;

	return is_kept ? &pipe->puts[number % PUTS] : NULL;
}

double *pairing_began(struct pairing *p, const struct pair_post *post, const struct pair_call *call)
{
	struct put *put =
		put_of(pipe_get(p, post->rank, other_end(post, call->peer)), call->number);

	return put ? put->began : NULL;
}

/* The pipe of the own puts that are like what @call waits for. NULL: no memory. */
static struct pair_pipe *like(struct pairing *p, const struct pair_post *post,
			      const struct pair_call *call, uint32_t n_ranks)
{
	uint64_t to = (2 * (uint64_t)post->rank + n_ranks - call->peer) % n_ranks;

	return pipe_get(p, post->rank, to | ONESIDED);
}

const double *pairing_like(struct pairing *p, const struct pair_post *post,
			   const struct pair_call *call, uint32_t n_ranks)
{
	const struct put *put = put_of(like(p, post, call, n_ranks), call->number);

	return put && !isnan(put->began[0]) ? put->began : NULL;
}

/* Towards a virtual rank, or itself: nobody waits. */
static int put_or_wait(struct pairing *p, struct pair_call *c, uint32_t n_ranks)
{
	const struct pair_post *post = c->post;
	struct pair_pipe *pipe = c->is_send ? pipe_get(p, post->rank, other_end(post, c->peer))
					    : pipe_get(p, c->peer, other_end(post, post->rank));
	struct pair_pipe *own = c->is_send ? NULL : like(p, post, c, n_ranks);
	const struct put *put;

	if (!pipe || (!c->is_send && !own))
		return -ENOMEM;
	c->number = c->is_send ? pipe->n_sends : pipe->n_receives++;
	if (c->is_send)
		return 0;
	put = put_of(own, c->number);
	if (!put && own->n_sends)
		put = put_of(own, own->n_sends - 1);
	c->bytes = put ? put->bytes : c->bytes;
	return 0;
}

/* @c is its pipe's next. */
static int note_put(struct pairing *p, const struct pair_call *c)
{
	struct pair_pipe *pipe = pipe_get(p, c->post->rank, other_end(c->post, c->peer));

	if (pipe && !pipe->puts)
		pipe->puts = calloc(PUTS, sizeof(*pipe->puts));
	if (!pipe || !pipe->puts)
		return -ENOMEM;
	pipe->puts[c->number % PUTS] = (struct put){c->bytes, {NAN, NAN}};
	pipe->n_sends = c->number + 1;
	return 0;
}

/* --- pairs ---------------------------------------------------------------------------- */

static int check_sizes(struct pair_call *a, struct pair_call *b, struct err *err)
{
	struct pair_call *send = a->is_send ? a : b, *recv = a->is_send ? b : a;

	if (send->post->is_onesided)
		recv->bytes = send->bytes;
	if (send->bytes == recv->bytes)
		return 0;
	return err_set(err, EPROTO,
		       "rank %u sends %llu bytes to rank %u (send %llu between them), which "
		       "receives %llu",
		       send->post->rank, (unsigned long long)send->bytes, send->peer,
		       (unsigned long long)send->number, (unsigned long long)recv->bytes);
}

/* Return: 0 or negative errno; *ret_ready grows by the peer's post when that is ready. */
static int call_add(struct pairing *p, struct pair_call *c, struct pair_post **ret_ready,
		    struct err *err)
{
	uint32_t rank = c->post->rank;
	struct pair_pipe *pipe = c->is_send ? pipe_get(p, rank, other_end(c->post, c->peer))
					    : pipe_get(p, c->peer, other_end(c->post, rank));
	struct pair_call *other;

	if (!pipe)
		return err_set(err, ENOMEM, "out of memory");
	c->number = c->is_send ? pipe->n_sends++ : pipe->n_receives++;
	c->post->n_unplayed++;
	other = pipe->first;
	if (!other || other->is_send == c->is_send) {
		c->is_waiting = true;
		c->post->n_waiting += pair_call_waits(c);
		*(other ? &pipe->last->next : &pipe->first) = c;
		pipe->last = c;
		return 0;
	}
	pipe->first = other->next;
	other->next = NULL;
	other->pair = c;
	c->pair = other;
	if (pair_call_waits(other) && --other->post->n_waiting == 0) {
		other->post->next_ready = *ret_ready;
		*ret_ready = other->post;
	}
	other->is_waiting = false;
	return check_sizes(c, other, err);
}

int pairing_add(struct pairing *p, struct pair_post *post, const struct bitmap *real,
		struct pair_post **ret_ready, struct err *err)
{
	struct pair_post *ready = NULL, **last = &ready;

	post->n_waiting = post->n_unplayed = 0;
	post->next_ready = NULL;
	for (uint32_t i = 0; i < post->n_calls; i++) {
		struct pair_call *c = &post->calls[i];
		int r;

		c->post = post;
		c->pair = c->next = NULL;
		c->is_waiting = false;
		c->number = 0;
		if (c->peer != post->rank && bitmap_test(real, c->peer))
			r = call_add(p, c, &ready, err);
		else
			r = post->is_onesided ? put_or_wait(p, c, (uint32_t)real->n_bits) : 0;
		if (r == 0 && post->is_onesided && c->is_send)
			r = note_put(p, c);
		if (r < 0)
			return r;
	}
	while (*last)
		last = &(*last)->next_ready;
	if (post->n_waiting == 0)
		*last = post;
	*ret_ready = ready;
	return 0;
}
