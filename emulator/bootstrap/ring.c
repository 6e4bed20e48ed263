/* See ring.h. NCCL closes both connections of the ring when it destroys the communicator: a rank
 * that does so while others need it has died. */
#include "bootstrap/ring.h"

#include <string.h>

#include "bootstrap/gather.h"

static void ring_ended(struct bootstrap_conn *c, int error)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = &comm->members[c->member];
	uint32_t n_left = 0;
	char text[128];

	if (!c->was_open) {
		comm_fail(comm, "rank %u cannot be reached as its neighbour in the ring%s", m->rank,
			  conn_error_text(error, text, sizeof(text)));
		return;
	}
	if (gather_leave(c, error) < 0)
		return;
	conn_hang_up(c, true);
	*(c->is_next ? &m->next : &m->prev) = NULL;
	m->has_left = true;
	for (uint32_t k = 0; k < comm->n_real; k++)
		n_left += comm->members[k].has_left && !comm->members[k].next &&
			  !comm->members[k].prev;
	if (n_left == comm->n_real)
		comm_over(comm);
}

static const struct conn_kind ring_kind = {.name = "ring",
					   .in = gather_in,
					   .more = gather_more,
					   .ended = ring_ended};

static void ring_joined(struct bootstrap_comm *comm)
{
	for (uint32_t k = 0; k < comm->n_real; k++) {
		if (!comm->members[k].has_rung)
			return;
	}
	comm->parent = NULL;
}

/* The child of a split learns its magic from its first member. Return: 0; -1: failed. */
static int ring_magic(struct bootstrap_comm *comm, const struct member *m, uint64_t magic)
{
	if (!comm->has_magic) {
		while (bootstrap_comm_find(comm->all, magic, comm->door))
			comm->door++;
		comm->magics[0] = magic;
		comm->has_magic = true;
	}
	if (magic != comm_magic(comm)) {
		comm_fail(
			comm,
			"rank %u enters the ring with magic %016llx, the communicator's is %016llx: all its ranks must split "
			"alike, or somebody else came to its port",
			m->rank, (unsigned long long)magic, (unsigned long long)comm_magic(comm));
		return -1;
	}
	return 0;
}

bool bootstrap_conn_awaits(const struct bootstrap_conn *c, uint64_t magic)
{
	return c->comm && (!c->comm->has_magic || comm_magic(c->comm) == magic);
}

static void ring_enter(struct bootstrap_conn *c)
{
	struct bootstrap_comm *comm = c->comm;
	struct member *m = &comm->members[c->member];
	struct bootstrap_conn *prev;

	if (ring_magic(comm, m, hello_magic(&c->hello)) < 0)
		return;
	if (hello_type(&c->hello) != NCCL_SOCKET_BOOTSTRAP) {
		comm_fail(comm, "rank %u enters the ring with a connection of type %d, not %d",
			  m->rank, hello_type(&c->hello), NCCL_SOCKET_BOOTSTRAP);
		return;
	}
	c->kind = &ring_kind;
	c->is_next = true;
	prev = comm_dial_begin(comm, &ring_kind, m, comm_magic(comm));
	if (!prev || comm_dial(comm, prev, m->ring_address) < 0)
		return;
	m->next = c;
	m->prev = prev;
	m->has_rung = true;
	ring_joined(comm);
}

static void wait_in(struct bootstrap_conn *c, const uint8_t *bytes, size_t n)
{
	if (!hello_take(&c->hello, &bytes, &n))
		return;
	ring_enter(c);
	if (!c->is_hung_up && n)
		c->kind->in(c, bytes, n);
}

static void wait_ended(struct bootstrap_conn *c, int error)
{
	char text[128];

	comm_fail(c->comm, "rank %u has closed its connection to the ring before its begin%s",
		  c->comm->members[c->member].rank, conn_error_text(error, text, sizeof(text)));
}

static const struct conn_kind wait_kind = {.name = "ring to come",
					   .in = wait_in,
					   .ended = wait_ended};

int ring_expect(struct bootstrap_comm *comm, struct member *m,
		uint8_t ret_address[NCCL_ADDRESS_BYTES])
{
	struct bootstrap *all = comm->all;
	struct bootstrap_conn *c = conn_new(all, all->sink, all->ctx, &wait_kind, &all->loose);
	struct err err = {""};

	if (!c) {
		comm_no_memory(comm);
		return -1;
	}
	if (comm_attach(comm, c) < 0) {
		conn_free(c);
		return -1;
	}
	c->member = comm_member_number(comm, m);
	c->is_known = true;
	if (all->sink->port_once(all->ctx, c, ret_address, &err) < 0) {
		bootstrap_conn_closed(c);
		comm_fail(comm, "%s", err.text);
		return -1;
	}
	return 0;
}
