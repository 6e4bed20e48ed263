/* Which send belongs to which receive. The k-th send of real rank a to real rank b and the k-th
 * receive of b from a are a pair, counted over the communicator's life. A pair_post is what one
 * member calls in one group. It is ready when each of its calls towards another real rank has its
 * pair, whatever else the peers' posts wait for: as in NCCL, a group at one end may meet single
 * calls, one after the other, at the other end. Calls towards virtual ranks and to oneself wait for
 * nothing.
 *
 * Puts and the signals that are waited for are counted by themselves. A put waits for nobody: its
 * post need not have met who waits for it. A wait does not say how much was put: that of its pair
 * counts. What a virtual rank puts is what the waiting rank itself puts to the rank that is as far
 * from it, as often. No I/O, no clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bitmap.h"
#include "base/err.h"

struct pair_post;

struct pairing {
	struct pair_pipe *pipes; /* hash, owned; one for each ordered pair of ranks */
};

struct pair_call {
	uint32_t peer;
	bool is_send;
	uint64_t bytes;

	/* made by pairing_add() */
	struct pair_post *post;
	bool is_waiting;        /* its pair is not there */
	struct pair_call *pair; /* NULL: it waits, or needs none */
	uint64_t number; /* of the call between the two, in its direction; only of two real ranks,
			    or of a put or wait */
	struct pair_call *next; /* that waits between the same two */
};

struct pair_post {
	uint32_t rank;
	bool is_onesided;        /* sends are puts, receives wait for signals */
	struct pair_call *calls; /* the owner's; in the order of the calls */
	uint32_t n_calls;

	/* made by pairing_add() */
	uint32_t n_waiting;  /* calls that wait for their pair */
	uint32_t n_unplayed; /* calls that have or get a pair; the owner counts them down */
	struct pair_post *next_ready;
};

/* Whether @c keeps its post until its pair is there. */
static inline bool pair_call_waits(const struct pair_call *c)
{
	return c->is_waiting && !(c->is_send && c->post->is_onesided);
}

/* Of the messages of @src to @dst, the owner's to use: 0 at first. NULL: no memory. */
uint64_t *pairing_note(struct pairing *p, uint32_t src, uint32_t dst);
#define PAIRING_NOTES 2

/* When put @call of @post began, the owner's to note; [1]: without what-ifs. NULL: forgotten. */
double *pairing_began(struct pairing *p, const struct pair_post *post,
		      const struct pair_call *call);
/* The same of the own put that is like what @call, of one of @n_ranks, waits for. NULL: there was
 * none yet, or it is forgotten. */
const double *pairing_like(struct pairing *p, const struct pair_post *post,
			   const struct pair_call *call, uint32_t n_ranks);

void pairing_deinit(struct pairing *p); /* posts are not touched */

/**
 * pairing_add - a member calls @post
 * @real: one bit a rank
 * @ret_ready: the posts that are ready because of it, @post last if it is one of them;
 *             NULL: none. The caller keeps posts in place while their pairs are looked at.
 *
 * Return: 0; -EPROTO when the two ends of a pair differ in size, with the sentence; -ENOMEM.
 * After an error the pairing is only good for pairing_deinit().
 */
int pairing_add(struct pairing *p, struct pair_post *post, const struct bitmap *real,
		struct pair_post **ret_ready, struct err *err);
