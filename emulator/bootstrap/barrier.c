/* See barrier.h. A rank begins the next barrier after its last message of the one before, so the
 * number of its messages says in which barrier it is. */
#include "bootstrap/barrier.h"

#include "bootstrap/send.h"

int barrier_number(const struct bootstrap_comm *comm, int32_t tag)
{
	for (int i = 0; i < COMM_BARRIERS_MAX && comm->records->barrier_tags[i]; i++) {
		if (comm->records->barrier_tags[i] == tag)
			return i;
	}
	return -1;
}

/* Messages that each rank sends in a barrier. */
static uint32_t n_sends(const struct bootstrap_comm *comm)
{
	uint32_t n = 0;

	while ((1ull << n) < comm_ranks(comm))
		n++;
	return n;
}

/* Has @m begun the barrier after those that were answered? */
static bool has_begun(const struct bootstrap_comm *comm, const struct member *m, int number)
{
	return m->n_barrier_sends[number] > (uint64_t)comm->n_barriers[number] * n_sends(comm);
}

bool barrier_waits(const struct bootstrap_comm *comm, const struct member *m, int number)
{
	if (has_begun(comm, m, number))
		return false;
	for (uint32_t k = 0; k < comm->n_real; k++) {
		if (has_begun(comm, &comm->members[k], number))
			return true;
	}
	return false;
}

/* All messages of virtual ranks to @to. */
static void answer(struct bootstrap_comm *comm, const struct member *to, int32_t tag)
{
	static const uint8_t zeros[BARRIER_BYTES];
	uint32_t n = comm_ranks(comm), from;

	for (uint64_t mask = 1; mask < n && !comm->is_over; mask <<= 1) {
		from = (uint32_t)((to->rank + n - mask) % n);
		if (!comm_real_member(comm, from))
			send_message(comm, to, from, tag, zeros, sizeof(zeros));
	}
}

void barrier_message(struct bootstrap_comm *comm, struct member *m, int32_t tag)
{
	int number = barrier_number(comm, tag);

	m->n_barrier_sends[number]++;
	for (uint32_t k = 0; k < comm->n_real; k++) {
		if (!has_begun(comm, &comm->members[k], number))
			return;
	}
	comm->n_barriers[number]++;
	for (uint32_t k = 0; k < comm->n_real && !comm->is_over; k++)
		answer(comm, &comm->members[k], tag);
}
