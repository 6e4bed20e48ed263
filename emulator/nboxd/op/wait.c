/* See wait.h. */
#include "nboxd/op/wait.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/units.h"
#include "nboxd/comm/leave.h"
#include "nboxd/full/full.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "op/p2p.h"

struct text {
	char *buf;
	size_t size, used;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->used, t->size - t->used, fmt, ap);
	va_end(ap);
	t->used = t->used + (size_t)n < t->size ? t->used + (size_t)n : t->size - 1;
}

char *op_call_text(const struct wire_arrive *a, char *buf, size_t size)
{
	char bytes[32];

	snprintf(buf, size, "%s of %llu %s (%s), root %u", coll_kind_name(a->kind),
		 (unsigned long long)a->count, coll_dtype_name(a->dtype),
		 units_print_bytes(a->count * coll_dtype_bytes(a->dtype), bytes, sizeof(bytes)),
		 a->root);
	return buf;
}

/* --- one op ------------------------------------------------------------------------ */

static void add_process(struct text *t, const struct worker *w)
{
	if (w)
		add(t, " (pid %u on %.20s)", w->pid, w->host);
}

enum of_posts { ARRIVED, MISSING, UNDECIDED };

static enum of_posts what_is(const struct post *post)
{
	return !post->node ? MISSING : post->has_arrived ? ARRIVED : UNDECIDED;
}

static bool has_any(const struct op *op, enum of_posts which)
{
	for (uint32_t i = 0; i < op->n_posts; i++)
		if (what_is(&op->posts[i]) == which)
			return true;
	return false;
}

static void add_ranks(struct text *t, const struct op *op, enum of_posts which)
{
	size_t most = t->used + 400 - 64;

	for (uint32_t i = 0; i < op->n_posts; i++) {
		const struct post *post = &op->posts[i];

		if (what_is(post) != which)
			continue;
		if (t->used > most) {
			add(t, " ...");
			break;
		}
		add(t, " %u", post->member->rank);
		if (which != ARRIVED)
			add_process(t, post->member->worker);
	}
	if (!has_any(op, which))
		add(t, " nobody");
}

/* The first call whose other end is not here. */
static void add_waiting_call(struct text *t, const struct op *op)
{
	const struct pair_post *pair = &op->p2p->pair;
	const struct pair_call *call = pair->calls;
	char what[160];

	if (pair->n_waiting == 0) {
		add(t, "to begin, though its peers have called");
		return;
	}
	while (!pair_call_waits(call))
		call++;
	if (pair->is_onesided)
		add(t, "for signal %llu, which rank %u", (unsigned long long)call->number,
		    call->peer);
	else
		add(t, "for its %s, which rank %u", p2p_call_text(call, what, sizeof(what)),
		    call->peer);
	add_process(t, comm_member(op->comm, call->peer)->worker);
	add(t, " has not %s", pair->is_onesided ? "given" : "called");
	if (pair->n_waiting > 1)
		add(t, ", and for %u more", pair->n_waiting - 1);
}

/* The first flow from a real rank whose messages are not all here. */
static void add_missing_message(struct text *t, const struct op *op)
{
	char text[256];

	if (full_waits(op->comm, text, sizeof(text))[0])
		add(t, "NCCL's messages (%s), and for ", text);
	if (op->comm->ops->config->exchange == EXCHANGE_NONE)
		return;
	for (uint32_t i = 0; i < op->n_flows; i++) {
		const struct sched_p2p *call = op->p2p ? &op->p2p->calls[i] : NULL;
		const struct border_conn *conn = call ? NULL : &op->call->border.out[i];
		uint32_t src = call ? op->p2p->pair.rank : conn->src;
		uint32_t dst = call ? call->peer : conn->dst;
		uint16_t lane = call ? call->lane : conn->lane;
		uint64_t n = sched_conn_messages(op->sched, src, dst, lane);

		if (op->flows[i].n_arrived == n || src == dst ||
		    (call && (!call->is_send || call->bytes == 0)))
			continue;
		add(t, "message %llu of %llu ", (unsigned long long)op->flows[i].n_arrived,
		    (unsigned long long)n);
		if (!call)
			add(t, "from rank %u ", src);
		add(t, "to rank %u (lane %u)%s", dst, lane, call ? " and for " : ", ");
		return;
	}
}

static char *describe(const struct op *op, uint64_t now_ns, char *buf, size_t size)
{
	const struct post *post = op_first_arrived(op);
	double waited_s = now_ns > op->moved_ns ? (double)(now_ns - op->moved_ns) / 1e9 : 0;
	char text[160];
	struct text t = {buf, size, 0};

	add(&t, "%s",
	    op_name(op->key.seq, post->member->rank, op->comm->number, text, sizeof(text)));
	if (!op->p2p)
		add(&t, ", %s", op_call_text(&post->arrive, text, sizeof(text)));
	if (op->held) {
		add(&t, ", has waited %.1f s: it never completes, by the what-if %s", waited_s,
		    op->held);
	} else if (has_any(op, UNDECIDED)) {
		add(&t, ", has waited %.1f s for NCCL to return from the call at rank", waited_s);
		add_ranks(&t, op, UNDECIDED);
		if (has_any(op, MISSING)) {
			add(&t, "; not called at");
			add_ranks(&t, op, MISSING);
		}
	} else if (!post->is_released && op->p2p) {
		add(&t, ", has waited %.1f s ", waited_s);
		add_waiting_call(&t, op);
	} else if (op->n_arrived < op->n_posts) {
		add(&t, ", has waited %.1f s for its members: arrived", waited_s);
		add_ranks(&t, op, ARRIVED);
		add(&t, "; missing");
		add_ranks(&t, op, MISSING);
	} else if (now_ns < op->moved_ns) {
		add(&t, ", ends in %.1f s", (double)(op->moved_ns - now_ns) / 1e9);
	} else if (op->p2p && post->is_done) {
		add(&t, ", is over; its peers are %.1f s beyond its end", waited_s);
	} else {
		add(&t, ", is %.1f s beyond its end: waits for ", waited_s);
		add_missing_message(&t, op);
		if (op->p2p)
			add(&t, "the rank to say that it is done");
		else
			add(&t, "all members; %u of %u are done", op->n_done, op->n_posts);
	}
	return buf;
}

/* Whether a rank with a process has arrived at @op. A record that goes on where the run ends has
 * ops without one. */
static bool has_process(const struct op *op)
{
	for (uint32_t i = 0; i < op->n_posts; i++)
		if (op->posts[i].node && !op->posts[i].member->is_recorded)
			return true;
	return false;
}

/* --- all ops ----------------------------------------------------------------------- */

uint32_t op_n_open(const struct comm *c)
{
	return c->open ? HASH_COUNT(c->open->ops) : 0;
}

void op_describe_all(const struct comm *c, uint64_t now_ns,
		     void (*each)(void *ctx, const char *sentence), void *ctx)
{
	char text[900];

	for (const struct op *op = c->open ? c->open->ops : NULL; op; op = op->hh.next)
		each(ctx, describe(op, now_ns, text, sizeof(text)));
}

/* Whether member @i of @op's communicator owes something to @op. */
static bool owes(const struct op *op, size_t i, char *buf, size_t size)
{
	const struct comm_member *m = &op->comm->real[i];
	const struct pair_call *call;
	char text[160];

	if (!has_process(op))
		return false;
	if (!op->p2p) {
		if (op->posts[i].is_done)
			return false;
		op_title(op->key.seq, op->sched->kind, buf, size);
		return true;
	}
	if (op->key.member == i) {
		if (op->posts[0].is_done)
			return false;
		snprintf(buf, size, "its %s", op_title(op->key.seq, 0, text, sizeof(text)));
		return true;
	}
	call = p2p_waits_for(op, m);
	if (!call)
		return false;
	snprintf(buf, size, "rank %u's %s", op->p2p->pair.rank,
		 p2p_call_text(call, text, sizeof(text)));
	return true;
}

bool op_is_owed(const struct comm *c, size_t i, char *buf, size_t size)
{
	for (const struct op *op = c->open ? c->open->ops : NULL; op; op = op->hh.next)
		if (owes(op, i, buf, size))
			return true;
	return false;
}

/* --- too long ---------------------------------------------------------------------- */

/* Of many collectives that wait, a warning tells of one at a time: the others wait behind it.
 * Return: when this op wants to be looked at again, twice as long after; 0: the communicator was
 * aborted. */
static uint64_t tick_one(struct op *op, uint64_t now_ns, bool *is_told)
{
	uint64_t end_ns = op->moved_ns + op->comm->ops->config->timeout_ns, due_ns;
	uint64_t first_ns = op->moved_ns + WARN_NS;
	char text[900];

	if (leave_is_left(op->comm) && !has_process(op))
		return UINT64_MAX;
	if (op->p2p && op->p2p->pair.is_onesided && op->posts[0].is_done && op->n_runs == 0)
		return UINT64_MAX; /* puts whose signals nobody has waited for, nor must */
	if (op->p2p && op->posts[0].is_done) /* the op that keeps this one open comes first */
		end_ns += WARN_NS;

	if (now_ns < op->warn_ns)
		return op->warn_ns;
	first_ns = first_ns < end_ns ? first_ns : end_ns;
	if (now_ns < first_ns)
		return op->warn_ns = first_ns;
	if (now_ns >= end_ns) {
		describe(op, now_ns, text, sizeof(text));
		comm_abort(op->comm, NULL, ETIMEDOUT, "%.400s; that is the timeout", text);
		return 0;
	}
	if (op->p2p || !*is_told)
		warn_run("%s", describe(op, now_ns, text, sizeof(text)));
	*is_told = *is_told || !op->p2p;
	due_ns = now_ns + (now_ns - op->moved_ns);
	return op->warn_ns = due_ns < end_ns ? due_ns : end_ns;
}

uint64_t op_tick(struct live *live, uint64_t now_ns)
{
	uint64_t again = UINT64_MAX, due;
	struct comm *c, *next_comm;
	struct op *op, *next;

	HASH_ITER(hh, live->comms->by_number, c, next_comm) {
		bool is_told = false;

		if (!c->open)
			continue;
		HASH_ITER(hh, c->open->ops, op, next) {
			due = tick_one(op, now_ns, &is_told);
			if (due == 0)
				break; /* the communicator's ops are gone */
			again = due < again ? due : again;
		}
	}
	return again;
}
