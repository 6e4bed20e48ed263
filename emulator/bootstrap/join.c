/* See join.h. */
#include "bootstrap/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bootstrap/ring.h"
#include "bootstrap/send.h"

void join_message(struct bootstrap_comm *parent, struct member *m, const uint8_t *bytes, uint32_t n)
{
	uint32_t size = parent->records->next_bytes;
	uint8_t *next CLEANUP(freep) = calloc(1, size);
	struct bootstrap_comm *child = m->child;
	struct member *self;

	if (!next) {
		comm_no_memory(parent);
		return;
	}
	if (!child) {
		comm_fail(
			parent,
			"rank %u begins in a split that it has not voted for; a shrink must be told of before",
			m->rank);
		return;
	}
	if (n != size) {
		comm_fail(
			parent,
			"rank %u tells its place in the ring of a split in %u bytes, NCCL %s does in %u",
			m->rank, n, parent->records->name, size);
		return;
	}
	self = &child->members[m->child_member];
	m->child = NULL;
	self->has_checked_in = true;
	memcpy(self->ring_address, bytes, NCCL_ADDRESS_BYTES);
	if (ring_expect(child, self, next) < 0)
		return;
	send_message(parent, m, m->child_next, parent->records->split.tag, next, size);
}
