/* What an op waits for, in words: for the status, for warnings that come ever more seldom, and for
 * the end of those that wait too long. */
#include <errno.h>
#include <stdio.h>

#include "base/units.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/op-find.h"
#include "nboxd/op/p2p.h"

char *op_call_text(const struct wire_arrive *a, char *buf, size_t size)
{
	char bytes[32];

	snprintf(buf, size, "%s of %llu %s (%s), root %u", coll_kind_name(a->kind),
		 (unsigned long long)a->count, coll_dtype_name(a->dtype),
		 units_print_bytes(a->count * coll_dtype_bytes(a->dtype), bytes, sizeof(bytes)),
		 a->root);
	return buf;
}

const struct op_member *op_first_arrived(const struct op *op)
{
	for (uint32_t i = 0; i < op->comm->n_real; i++)
		if (op->members[i].has_arrived)
			return &op->members[i];
	return &op->members[0];
}

static size_t list_ranks(const struct op *op, bool arrived, char *buf, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0; i < op->comm->n_real; i++) {
		const struct comm_member *m = &op->comm->real[i];

		if (op->members[i].has_arrived != arrived)
			continue;
		if (used + 64 > size) {
			used += (size_t)snprintf(buf + used, size - used, " ...");
			break;
		}
		used += (size_t)snprintf(buf + used, size - used, " %u", m->rank);
		if (!arrived && m->worker)
			used += (size_t)snprintf(buf + used, size - used, " (pid %u on %.20s)",
						 m->worker->pid, m->worker->host);
	}
	if (used == 0)
		used += (size_t)snprintf(buf, size, " nobody");
	return used;
}

/* The first connection from a real rank on which messages are missing. */
static void missing_message(const struct op *op, char *buf, size_t size)
{
	const struct border *b = &op->call->border;

	buf[0] = '\0';
	for (uint32_t i = 0; op->call->has_border && op->n_out && i < b->n_out; i++) {
		if (op->n_out[i] == b->out[i].n_messages)
			continue;
		snprintf(buf, size, "message %llu of %llu from rank %u to rank %u (lane %u), ",
			 (unsigned long long)op->n_out[i], (unsigned long long)b->out[i].n_messages,
			 b->out[i].src, b->out[i].dst, b->out[i].lane);
		return;
	}
}

char *op_describe(const struct op *op, uint64_t now_ns, char *buf, size_t size)
{
	char what[160], who[400], message[160];
	double waited_s = now_ns > op->moved_ns ? (double)(now_ns - op->moved_ns) / 1e9 : 0;

	op_call_text(&op_first_arrived(op)->arrive, what, sizeof(what));
	if (!op->is_live && !op->has_ended) {
		size_t used = (size_t)snprintf(buf, size,
					       "op %llu of communicator %u, %s, has waited "
					       "%.1f s for its members: arrived",
					       (unsigned long long)op->seq, op->comm->number, what,
					       waited_s);

		if (used < size) {
			list_ranks(op, true, who, sizeof(who));
			used += (size_t)snprintf(buf + used, size - used, "%s; missing", who);
		}
		if (used < size) {
			list_ranks(op, false, who, sizeof(who));
			snprintf(buf + used, size - used, "%s", who);
		}
		return buf;
	}
	if (now_ns < op->moved_ns) {
		snprintf(buf, size, "op %llu of communicator %u, %s, ends in %.1f s",
			 (unsigned long long)op->seq, op->comm->number, what,
			 (double)(op->moved_ns - now_ns) / 1e9);
		return buf;
	}
	missing_message(op, message, sizeof(message));
	snprintf(buf, size,
		 "op %llu of communicator %u, %s, is %.1f s beyond its end: waits for "
		 "%sall members; %u of %u are done",
		 (unsigned long long)op->seq, op->comm->number, what, waited_s, message, op->n_done,
		 op->comm->n_real);
	return buf;
}

/* --- too long ------------------------------------------------------------------------ */

uint64_t op_wait_tick(struct comm *c, const char *text, uint64_t moved_ns, uint64_t now_ns)
{
	uint64_t bound_ns = moved_ns + c->comms->config->timeout_ns,
		 again_ns = now_ns + (now_ns - moved_ns);

	if (now_ns >= bound_ns) {
		comm_abort(c, NULL, ETIMEDOUT, "%.400s; that is the timeout", text);
		return 0;
	}
	warn_run("%s", text);
	return again_ns < bound_ns ? again_ns : bound_ns;
}

/* Of many ops that wait, one is told of at a time: the others wait behind it. Return: when this op
 * wants to be looked at again; 0: the communicator is dead. */
static uint64_t tick_one(struct op *op, uint64_t now_ns, bool *is_told)
{
	uint64_t end_ns = op->moved_ns + op->comm->comms->config->timeout_ns, due_ns;
	char text[900];

	if (now_ns < op->warn_ns)
		return op->warn_ns;
	if (now_ns < op->moved_ns + WARN_NS)
		return op->warn_ns = op->moved_ns + WARN_NS;
	if (*is_told && now_ns < end_ns) {
		due_ns = now_ns + (now_ns - op->moved_ns);
		return op->warn_ns = due_ns < end_ns ? due_ns : end_ns;
	}
	*is_told = true;
	op_describe(op, now_ns, text, sizeof(text));
	due_ns = op_wait_tick(op->comm, text, op->moved_ns, now_ns);
	if (due_ns) /* else the op is gone */
		op->warn_ns = due_ns;
	return due_ns;
}

uint64_t op_tick(struct ops *ops, uint64_t now_ns)
{
	uint64_t again = UINT64_MAX, due;
	struct comm *c, *next_comm;
	struct op *op, *next;

	HASH_ITER(hh, ops->comms->by_number, c, next_comm) {
		bool is_told = false;

		HASH_ITER(hh, c->ops, op, next) {
			due = tick_one(op, now_ns, &is_told);
			if (due == 0)
				break;
			again = due < again ? due : again;
		}
		due = c->is_dead ? 0 : p2p_tick(c, now_ns);
		if (due != 0)
			again = due < again ? due : again;
	}
	return again;
}
