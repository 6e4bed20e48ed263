/* See pairing.h. Each ordered pair of ranks has a queue of the calls that wait. All in a queue are
 * sends, or all are receives: a call of the other kind takes the first out. */
#include "op/pairing.h"

#include <errno.h>
#include <stdlib.h>
#include <uthash.h>

struct pair_pipe {
	uint64_t key; /* source << 32 | destination */
	struct pair_call *first, *last;
	uint64_t n_sends, n_receives;
	uint64_t notes[PAIRING_NOTES];
	UT_hash_handle hh;
};

void pairing_deinit(struct pairing *p)
{
	struct pair_pipe *pipe, *next;

	HASH_ITER(hh, p->pipes, pipe, next) {
		HASH_DEL(p->pipes, pipe);
		free(pipe);
	}
}

static struct pair_pipe *pipe_get(struct pairing *p, uint32_t src, uint32_t dst)
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

static int check_sizes(const struct pair_call *a, const struct pair_call *b, struct err *err)
{
	const struct pair_call *send = a->is_send ? a : b, *recv = a->is_send ? b : a;

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
	struct pair_pipe *pipe =
		c->is_send ? pipe_get(p, rank, c->peer) : pipe_get(p, c->peer, rank);
	struct pair_call *other;

	if (!pipe)
		return err_set(err, ENOMEM, "out of memory");
	c->number = c->is_send ? pipe->n_sends++ : pipe->n_receives++;
	other = pipe->first;
	if (!other || other->is_send == c->is_send) {
		c->is_waiting = true;
		c->post->n_waiting++;
		*(other ? &pipe->last->next : &pipe->first) = c;
		pipe->last = c;
		return 0;
	}
	pipe->first = other->next;
	other->next = NULL;
	other->is_waiting = false;
	other->pair = c;
	c->pair = other;
	if (--other->post->n_waiting == 0) {
		other->post->next_ready = *ret_ready;
		*ret_ready = other->post;
	}
	return check_sizes(c, other, err);
}

int pairing_add(struct pairing *p, struct pair_post *post, const struct bitmap *real,
		struct pair_post **ret_ready, struct err *err)
{
	struct pair_post *ready = NULL, **last = &ready;

	post->n_waiting = 0;
	post->next_ready = NULL;
	for (uint32_t i = 0; i < post->n_calls; i++) {
		struct pair_call *c = &post->calls[i];
		int r;

		c->post = post;
		c->pair = c->next = NULL;
		c->is_waiting = false;
		c->number = 0;
		if (c->peer == post->rank || !bitmap_test(real, c->peer))
			continue;
		r = call_add(p, c, &ready, err);
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
