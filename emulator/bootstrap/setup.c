/* See setup.h. The tag of NCCL's ncclTransportP2pSetup is (i << 8) + g, between ranks that are i
 * apart, for graph g; with SYNC in it, it says that all are connected. A rank tells the one i ahead
 * what it sends with, in one entry a connection, and the one i behind what it receives with: a
 * handle for its network. Where both are the same rank, it is one message, with the entries of what
 * it receives first; the answer begins with the entries for what it sends. */
#include "bootstrap/setup.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bootstrap/send.h"

#define SETUP_SYNC 128
#define SETUP_GRAPHS 6     /* g: none, ring, tree, collnet chain, NVLS, collnet direct */
#define SETUP_ENTRIES 256  /* channels of both directions, twice as many as NCCL has */
#define SETUP_SYNC_BYTES 4 /* at most; since 2.23 none */

struct setup {
	uint32_t distance;    /* to @to, the way round that the ring goes */
	uint32_t to;          /* the virtual rank */
	bool sends, receives; /* what the rank does with it */
};

size_t setup_bytes_max(const struct bootstrap_comm *comm)
{
	return (size_t)SETUP_ENTRIES * comm->records->connect_bytes;
}

/* Return: false: no tag of NCCL's between ranks of this communicator. */
static bool setup_find(const struct bootstrap_comm *comm, const struct member *m, bool is_near,
		       int32_t tag, struct setup *ret)
{
	uint32_t n = comm_ranks(comm), i = (uint32_t)tag >> 8, other = n - i;

	if (tag < 0 || i == 0 || i >= n || (tag & 0xff & ~SETUP_SYNC) >= SETUP_GRAPHS)
		return false;
	ret->distance = is_near == (i < other) ? i : other;
	ret->to = (m->rank + ret->distance) % n;
	ret->sends = ret->distance == i;
	ret->receives = ret->distance == other;
	return !comm_real_member(comm, ret->to);
}

/* An entry of a receiver begins with its network's handle, a sender's with a rank, zeros behind it.
 */
static bool is_receiver(const uint8_t *entry)
{
	for (size_t i = sizeof(int32_t); i < NCCL_HANDLE_BYTES; i++) {
		if (entry[i])
			return true;
	}
	return false;
}

/* How many entries the rank receives with. -1: they are in no order that NCCL has. */
static int64_t split_point(const struct setup *s, const uint8_t *bytes, uint32_t n, size_t entry)
{
	uint32_t at = 0;

	if (!s->sends)
		return n;
	while (s->receives && at < n && is_receiver(bytes + at * entry))
		at++;
	for (uint32_t i = at; i < n; i++) {
		if (is_receiver(bytes + i * entry))
			return -1;
	}
	return at;
}

/* The peer's entry for ours, @told: what it says of GPU direct stays. */
static void answer_entry(const struct bootstrap_comm *comm, const struct member *m,
			 const struct setup *s, bool is_send, uint32_t index, const uint8_t *told,
			 uint8_t *entry)
{
	struct bootstrap_handle handle = {.magic = comm_magic(comm),
					  .from = m->rank,
					  .to = s->to,
					  .index = index,
					  .door = comm->door};
	const struct record_field *gdr = &comm->records->use_gdr;
	int32_t rank = (int32_t)s->to;

	memcpy(handle.head, BOOTSTRAP_HANDLE_HEAD, sizeof(handle.head));
	if (is_send)
		memcpy(entry, &handle, sizeof(handle));
	else
		memcpy(entry, &rank, sizeof(rank));
	memcpy(entry + gdr->at, told + gdr->at, gdr->bytes);
}

static void answer(struct bootstrap_comm *comm, struct member *m, const struct setup *s,
		   int32_t tag, const uint8_t *bytes, uint32_t n)
{
	size_t entry = comm->records->connect_bytes;
	int64_t receives = split_point(s, bytes, n, entry);
	uint8_t *out CLEANUP(freep) = calloc(n, entry);
	uint32_t sends;

	if (!out) {
		comm_no_memory(comm);
		return;
	}
	if (receives < 0) {
		comm_fail(
			comm,
			"rank %u tells rank %u of connections (tag %#x) in an order that is not NCCL's: is its network another than "
			"nbox's plug-in?",
			m->rank, s->to, (unsigned)tag);
		return;
	}
	sends = n - (uint32_t)receives;
	for (uint32_t i = 0; i < n; i++) {
		bool is_send = i < sends;

		answer_entry(comm, m, s, is_send, i,
			     bytes + (is_send ? (uint32_t)receives + i : i - sends) * entry,
			     out + i * entry);
	}
	comm->transports += n;
	send_message(comm, m, s->to, tag, out, (uint32_t)(n * entry));
}

void setup_message(struct bootstrap_comm *comm, struct member *m, bool is_near, int32_t tag,
		   const uint8_t *bytes, uint32_t n)
{
	static const uint8_t zeros[SETUP_SYNC_BYTES];
	uint32_t entry = comm->records->connect_bytes;
	struct setup s = {0};

	if (!setup_find(comm, m, is_near, tag, &s)) {
		comm_fail(
			comm,
			"rank %u sends a message with tag %#x to a virtual rank: known are set-ups of transports, splits, and NCCL "
			"%s's barriers",
			m->rank, (unsigned)tag, comm->records->name);
	} else if (tag & SETUP_SYNC) {
		if (n > sizeof(zeros))
			comm_fail(
				comm,
				"rank %u tells rank %u with %u bytes (tag %#x) that it has connected",
				m->rank, s.to, n, (unsigned)tag);
		else
			send_message(comm, m, s.to, tag, zeros, n);
	} else if (n == 0 || n % entry) {
		comm_fail(comm,
			  "rank %u tells rank %u of connections in %u bytes (tag %#x), each has %u",
			  m->rank, s.to, n, (unsigned)tag, entry);
	} else {
		answer(comm, m, &s, tag, bytes, n / entry);
	}
}
