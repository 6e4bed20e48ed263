/* Point-to-point ops. A post is what one real member calls in one group: the frames of
 * such an op carry the member's own number (WIRE_SEQ_P2P). Posts wait until the peers that
 * they name have called too (pairing.h); then a run, one op of the engine, plays all calls
 * of the posts that have become ready and the other ends of their pairs. The other ends'
 * posts may have to wait on for their own remaining calls, which are played by a later run: a
 * member is released when all its calls are in runs, at the end of the last one.
 *
 *   post: waiting → released → done, freed when its runs have ended too
 *   run:  live in the engine → freed */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "engine/border.h"
#include "engine/engine.h"
#include "engine/timing.h"
#include "nboxd/comm/comm.h"
#include "nboxd/op/op.h"
#include "nboxd/op/pairing.h"
#include "wire/wire.h"

struct p2p_run;

/* Of one call of a post. */
struct p2p_flow {
	uint64_t turn;       /* of the run that plays it; 0: not yet */
	struct p2p_run *run; /* borrowed; there until all the call's messages are */
	uint32_t out;        /* sends: out-connection of the run's border */
	uint64_t n_arrived;  /* sends: messages that came from the member */
};

struct p2p_post {
	struct pair_post pair; /* its calls are owned */
	struct comm *comm;     /* borrowed */
	size_t member;         /* index into comm->real */
	uint64_t seq;
	struct wire_arrive arrive;
	struct sched sched;      /* of its calls: the lanes that its worker knows */
	struct sched_p2p *calls; /* owned; the schedule's */
	struct p2p_flow *flows;  /* owned */
	uint32_t n_runs;         /* live ones */
	bool is_released, is_done;
	uint64_t turn; /* of the run that it was added to last */
	/* of the run that ends last */
	uint64_t number, start_ns, end_ns;
	double model_ns, injected_ns;
	uint32_t how;
	bool is_below_bound, is_of_model;

	uint64_t n_messages; /* that crossed the link */
	uint64_t moved_ns, warn_ns;
	struct p2p_post *prev, *next; /* of its member, by seq */
};

/* Where an in-connection leads. */
struct p2p_end {
	struct p2p_post *post;
	uint32_t call;
};

struct p2p_run {
	struct engine_user user;
	struct comm *comm;       /* borrowed */
	struct p2p_post **posts; /* owned list, borrowed posts; by member, then seq */
	uint32_t n_posts;
	struct sched_p2p *calls; /* owned; of all its posts, by rank */
	struct p2p_end *ends;    /* owned; whose call each of them is */
	uint32_t n_calls;
	uint32_t *ranks, *n_by_rank;      /* owned; n_ranks of them */
	const struct sched_p2p **by_rank; /* owned */
	uint32_t n_ranks;
	struct border border; /* owned; none in exchange none */
	struct p2p_end *to;   /* owned; by in-connection */
	struct timing timing; /* owned */
	struct engine_op *engine_op;
	uint64_t number, start_ns, end_ns;
	uint64_t turn;  /* number + 1 */
	double late_ns; /* how much later than the last post the start is */
	struct p2p_run *prev, *next;
};

/* A communicator's. */
struct p2p {
	struct p2p_post **posts; /* owned lists, by member */
	struct pairing *pairing; /* owned */
	struct p2p_run *runs;    /* list, owned */
	uint32_t n_posts;
};

/* Frames whose number has WIRE_SEQ_P2P; as their namesakes of op.h. */
int p2p_on_arrive(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
int p2p_on_message_header(struct ops *ops, struct worker *w, const struct wire_hdr *h,
			  void **ret_body);
int p2p_on_message(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);
int p2p_on_done(struct ops *ops, struct worker *w, const struct wire_hdr *h, const void *body);

/* Posts, runs and all; NULL allowed. */
void p2p_free(struct comm *c);
uint32_t p2p_n_open(const struct comm *c);
/* What member @i owes the others or itself: a post that is not over, a call that somebody
 * waits for. Return: whether there is any; it is then named in @buf. */
bool p2p_owes(const struct comm *c, size_t i, char *buf, size_t size);
/* As op_tick(), of one communicator; 0: it is dead. */
uint64_t p2p_tick(struct comm *c, uint64_t now_ns);
/* Calls @each with a sentence a post. */
void p2p_describe(const struct comm *c, uint64_t now_ns,
		  void (*each)(void *ctx, const char *sentence), void *ctx);

/* --- p2p-wait.c ---------------------------------------------------------------- */

/* The first call of @post that waits for member @peer (any freed one: NULL); NULL: none does. */
const struct pair_call *p2p_waits_for(const struct comm *c, const struct comm_member *peer,
				      const struct p2p_post *post);
/* "send of 4 KiB to rank 3 (send 12 between them)". Return: @buf. */
char *p2p_call_text(const struct pair_call *call, char *buf, size_t size);

/* --- p2p-run.c ----------------------------------------------------------------- */

/* Plays @ready and tells who is released. Return: 0; negative errno with the sentence: the
 * communicator is to be aborted. */
int p2p_run_start(struct comm *c, struct pair_post *ready, struct err *err);
struct p2p_run *p2p_run_free(struct p2p_run *run); /* returns NULL */
void p2p_post_maybe_free(struct p2p_post *post);
static inline struct p2p_post *p2p_post_of(struct pair_post *pair)
{
	return container_of(pair, struct p2p_post, pair);
}
