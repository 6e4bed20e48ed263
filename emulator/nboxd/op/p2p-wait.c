/* What point-to-point posts wait for, in words: for the status, for warnings, for who leaves while
 * others wait for it, and for the end of those that wait too long. */
#include <stdio.h>
#include <utlist.h>

#include "base/units.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/op-find.h"
#include "nboxd/op/p2p.h"

char *p2p_call_text(const struct pair_call *call, char *buf, size_t size)
{
	char bytes[32];

	snprintf(buf, size, "%s of %s %s rank %u (%s %llu between them)",
		 call->is_send ? "send" : "receive",
		 units_print_bytes(call->bytes, bytes, sizeof(bytes)),
		 call->is_send ? "to" : "from", call->peer, call->is_send ? "send" : "receive",
		 (unsigned long long)call->number);
	return buf;
}

static const struct pair_call *first_waiting(const struct p2p_post *post)
{
	for (uint32_t i = 0; i < post->pair.n_calls; i++)
		if (post->pair.calls[i].is_waiting)
			return &post->pair.calls[i];
	return NULL;
}

static size_t describe_waiting(const struct p2p_post *post, char *buf, size_t size)
{
	const struct pair_call *call = first_waiting(post);
	const struct comm_member *peer = comm_member(post->comm, call->peer);
	char what[160];
	int n;

	n = snprintf(buf, size, "for its %s, which rank %u",
		     p2p_call_text(call, what, sizeof(what)), call->peer);
	if (peer && peer->worker && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, " (pid %u on %.20s)", peer->worker->pid,
			      peer->worker->host);
	if ((size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, " has not called");
	if (post->pair.n_waiting > 1 && (size_t)n < size)
		n += snprintf(buf + n, size - (size_t)n, ", and for %u more",
			      post->pair.n_waiting - 1);
	return (size_t)n;
}

/* The first call whose messages are not all here. */
static void describe_missing(const struct p2p_post *post, char *buf, size_t size)
{
	const struct sched *s = &post->sched;

	buf[0] = '\0';
	for (uint32_t i = 0; i < post->pair.n_calls; i++) {
		const struct sched_p2p *call = &post->calls[i];
		uint64_t n;

		if (!call->is_send || call->bytes == 0 || call->peer == post->pair.rank ||
		    post->comm->comms->config->exchange == EXCHANGE_NONE)
			continue;
		n = sched_conn_messages(s, post->pair.rank, call->peer, call->lane);
		if (post->flows[i].n_arrived == n)
			continue;
		snprintf(buf, size, "message %llu of %llu to rank %u (lane %u) and for ",
			 (unsigned long long)post->flows[i].n_arrived, (unsigned long long)n,
			 call->peer, call->lane);
		return;
	}
}

static char *post_describe(const struct p2p_post *post, uint64_t now_ns, char *buf, size_t size)
{
	double waited_s = now_ns > post->moved_ns ? (double)(now_ns - post->moved_ns) / 1e9 : 0;
	char text[400];

	if (!post->is_released) {
		describe_waiting(post, text, sizeof(text));
		snprintf(buf, size,
			 "point-to-point op %llu of rank %u, communicator %u, has waited "
			 "%.1f s %s",
			 wire_seq_number(post->seq), post->pair.rank, post->comm->number, waited_s,
			 text);
	} else if (now_ns < post->moved_ns) {
		snprintf(buf, size,
			 "point-to-point op %llu of rank %u, communicator %u, ends in %.1f s",
			 wire_seq_number(post->seq), post->pair.rank, post->comm->number,
			 (double)(post->moved_ns - now_ns) / 1e9);
	} else if (post->is_done) {
		snprintf(buf, size,
			 "point-to-point op %llu of rank %u, communicator %u, is over; its "
			 "peers are %.1f s beyond its end",
			 wire_seq_number(post->seq), post->pair.rank, post->comm->number, waited_s);
	} else {
		describe_missing(post, text, sizeof(text));
		snprintf(buf, size,
			 "point-to-point op %llu of rank %u, communicator %u, is %.1f s "
			 "beyond its end: waits for %sthe rank to say that it is done",
			 wire_seq_number(post->seq), post->pair.rank, post->comm->number, waited_s,
			 text);
	}
	return buf;
}

void p2p_describe(const struct comm *c, uint64_t now_ns,
		  void (*each)(void *ctx, const char *sentence), void *ctx)
{
	const struct p2p_post *post;
	char text[900];

	for (uint32_t i = 0; c->p2p && i < c->n_real; i++)
		DL_FOREACH(c->p2p->posts[i], post)
			each(ctx, post_describe(post, now_ns, text, sizeof(text)));
}

/* --- leaving ----------------------------------------------------------------------- */

const struct pair_call *p2p_waits_for(const struct comm *c, const struct comm_member *peer,
				      const struct p2p_post *post)
{
	for (uint32_t i = 0; post->pair.n_waiting && i < post->pair.n_calls; i++) {
		const struct pair_call *call = &post->pair.calls[i];

		if (!call->is_waiting)
			continue;
		if (peer ? call->peer == peer->rank
			 : comm_member((struct comm *)(uintptr_t)c, call->peer)->is_freed)
			return call;
	}
	return NULL;
}

bool p2p_owes(const struct comm *c, size_t i, char *buf, size_t size)
{
	const struct p2p_post *post;
	const struct pair_call *call;
	char what[160];

	for (uint32_t k = 0; c->p2p && k < c->n_real; k++) {
		DL_FOREACH(c->p2p->posts[k], post) {
			if (k == i && !post->is_done) {
				snprintf(buf, size, "its point-to-point op %llu",
					 wire_seq_number(post->seq));
				return true;
			}
			call = k == i ? NULL : p2p_waits_for(c, &c->real[i], post);
			if (!call)
				continue;
			snprintf(buf, size, "rank %u's %s", post->pair.rank,
				 p2p_call_text(call, what, sizeof(what)));
			return true;
		}
	}
	return false;
}

/* --- too long ------------------------------------------------------------------------ */

/* Return: when this post wants to be looked at again; 0: the communicator is dead. */
static uint64_t tick_one(struct p2p_post *post, uint64_t now_ns)
{
	char text[900];
	uint64_t due_ns;

	if (now_ns < post->warn_ns)
		return post->warn_ns;
	if (now_ns < post->moved_ns + WARN_NS)
		return post->warn_ns = post->moved_ns + WARN_NS;
	post_describe(post, now_ns, text, sizeof(text));
	due_ns = op_wait_tick(post->comm, text, post->moved_ns, now_ns);
	if (due_ns) /* else the post is gone */
		post->warn_ns = due_ns;
	return due_ns;
}

uint64_t p2p_tick(struct comm *c, uint64_t now_ns)
{
	uint64_t again = UINT64_MAX, due;
	struct p2p_post *post, *next;

	for (uint32_t i = 0; c->p2p && i < c->n_real; i++) {
		DL_FOREACH_SAFE(c->p2p->posts[i], post, next) {
			due = tick_one(post, now_ns);
			if (due == 0)
				return 0;
			again = due < again ? due : again;
		}
	}
	return again;
}
