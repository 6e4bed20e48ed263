/* See record.h. A virtual rank's record is its template's, rewritten (patches/rewrite.h); of
 * another real rank's only the address for messages is another: ours. */
#include "bootstrap/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

const char *record_name(enum gather_kind kind)
{
	static const char *const names[] = {"contact", "peer", "graph", "split", "copied"};

	return names[kind];
}

/* "..., and others of 2, 4" */
static void known(const struct nccl_records *r, char *buf, size_t size)
{
	size_t at = (size_t)
		snprintf(buf, size,
			 "after the communicator is made NCCL %s has votes in a split, of %u bytes",
			 r->name, r->split.bytes);

	for (size_t i = 0; i < RECORD_LATER_MAX && r->later[i].bytes && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%u", i ? ", " : ", and others of ",
				       r->later[i].bytes);
}

static int kind_of_init(struct bootstrap_comm *comm, int32_t bytes, struct gather *ret,
			char *sentence, size_t size)
{
	const struct nccl_records *r = comm->records;
	uint32_t contacts = r->n_contacts, want;

	/* A split that shares resources has only the first, before 2.23. */
	if (comm->stage > 0 && comm->stage < contacts && bytes == r->peer.bytes &&
	    bytes != r->contacts[comm->stage].bytes)
		comm->stage = contacts;
	ret->kind = comm->stage < contacts    ? GATHER_CONTACT
		    : comm->stage == contacts ? GATHER_PEER
					      : GATHER_GRAPH;
	ret->contact = comm->stage;
	want = ret->kind == GATHER_CONTACT ? r->contacts[comm->stage].bytes
	       : ret->kind == GATHER_PEER  ? r->peer.bytes
					   : r->graph.bytes;
	if ((uint32_t)bytes != want) {
		snprintf(
			sentence, size,
			"it comes where NCCL %s tells a %s of %u bytes: have the ranks another version of NCCL?",
			r->name, record_name(ret->kind), want);
		return -EINVAL;
	}
	comm->stage++;
	return 0;
}

int record_kind(struct bootstrap_comm *comm, int32_t bytes, struct gather *ret, char *sentence,
		size_t size)
{
	const struct nccl_records *r = comm->records;
	const struct record_later *later;

	if (!comm_is_made(comm))
		return kind_of_init(comm, bytes, ret, sentence, size);
	if (bytes == r->split.bytes) {
		ret->kind = GATHER_SPLIT;
		ret->contact = comm->color != NULL;
		return 0;
	}
	ret->kind = GATHER_COPIED;
	later = bytes > 0 ? nccl_records_later(r, (size_t)bytes) : NULL;
	if (!later)
		known(r, sentence, size);
	else if (later->refused)
		snprintf(sentence, size, "%s", later->refused);
	else
		return 0;
	return -EINVAL;
}

void record_contacts(struct bootstrap_comm *comm, const struct gather *g)
{
	const struct record_field *f = &comm->records->contacts[g->contact].peer_address;
	struct bootstrap *all = comm->all;
	unsigned door = comm->door * PORT_DOOR;
	struct err err = {""};
	int r = 0;

	if (!f->bytes)
		return;
	comm->real = malloc((size_t)comm->n_real * NCCL_ADDRESS_BYTES);
	if (!comm->real) {
		comm_no_memory(comm);
		return;
	}
	r = all->sink->port(all->ctx, door + PORT_NEAR, comm->near, &err);
	if (r == 0)
		r = all->sink->port(all->ctx, door + PORT_FAR, comm->far, &err);
	for (uint32_t k = 0; k < comm->n_real && r == 0; k++) {
		r = all->sink->port(all->ctx, door + PORT_REAL + k,
				    comm->real + (size_t)k * NCCL_ADDRESS_BYTES, &err);
		memcpy(comm->members[k].peer_address, g->records + (size_t)k * g->bytes + f->at,
		       NCCL_ADDRESS_BYTES);
		comm->members[k].has_contact = true;
	}
	if (r < 0)
		comm_fail(comm, "%s", err.text);
}

static void make_contact(const struct bootstrap_comm *comm, const struct record_contact *c,
			 const struct member *to, uint32_t rank, uint8_t *record)
{
	uint32_t n = comm_ranks(comm), k = comm->member_of[rank];

	if (k == COMM_NO_MEMBER)
		rewrite_contact(c, (rank + n - to->rank) % n <= n / 2 ? comm->near : comm->far,
				record);
	else if (c->peer_address.bytes)
		memcpy(record + c->peer_address.at, comm->real + (size_t)k * NCCL_ADDRESS_BYTES,
		       NCCL_ADDRESS_BYTES);
}

static void make_vote(const struct bootstrap_comm *comm, const struct gather *g, uint32_t rank,
		      uint8_t *record)
{
	const struct record_split *s = &comm->records->split;

	memset(record, 0, g->bytes);
	if (s->n_gathers == 1 || g->contact == 0)
		record_set_int(record, s->color, g->color[rank]);
	if (s->n_gathers == 1 || g->contact == 1)
		record_set_int(record, s->key, g->key[rank]);
}

int record_make(struct bootstrap_comm *comm, const struct gather *g, const struct member *to,
		uint32_t slice, uint8_t *ret_record)
{
	uint32_t template = comm->template[slice];
	bool is_virtual = template != slice;

	memcpy(ret_record, g->records + (size_t)comm->member_of[template] * g->bytes, g->bytes);
	switch (g->kind) {
	case GATHER_CONTACT:
		make_contact(comm, &comm->records->contacts[g->contact], to, slice, ret_record);
		break;
	case GATHER_PEER:
		if (is_virtual)
			rewrite_peer(&comm->records->peer, &comm->places, slice, ret_record);
		break;
	case GATHER_GRAPH:
		if (is_virtual &&
		    rewrite_graph(&comm->records->graph, &comm->places, slice, ret_record) < 0) {
			comm_fail(
				comm,
				"rank %u tells of ranks that are not of its node in its graphs, for virtual rank %u: does the placement "
				"given for the communicator say which ranks share a node?",
				template, slice);
			return -1;
		}
		break;
	case GATHER_SPLIT:
		make_vote(comm, g, slice, ret_record);
		break;
	case GATHER_COPIED:
		break;
	}
	return 0;
}
