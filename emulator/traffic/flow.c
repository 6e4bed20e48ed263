/* See flow.h. */
#include "traffic/flow.h"

#include <stdio.h>
#include <stdlib.h>

#include "wire/wire.h"

uint64_t flow_depends_on(const struct flow *receive, uint64_t index)
{
	if (!receive->source || index % receive->loop < receive->shift)
		return FLOW_NO_MESSAGE;
	return index - receive->shift;
}

uint32_t flow_users(const struct flow *send, uint64_t index)
{
	return index % send->loop + send->shift < send->loop ? send->users : 0;
}

void flow_see_size(struct flow *send, uint64_t index, uint64_t bytes, struct flow_sizes *s)
{
	uint32_t i = (uint32_t)(index % send->slices);
	uint64_t loop = index / send->loop;

	if (send->own.loop[i] != loop) {
		send->own.loop[i] = loop;
		send->own.bytes[i] = 0;
		send->n_sized[i] = 0;
	}
	if (bytes == 0)
		return;
	if (bytes > send->own.bytes[i])
		send->own.bytes[i] = bytes;
	/* in a loop of a ring all chunks are alike but the last ones */
	if (++send->n_sized[i] < (send->is_ring ? 2 : 1) || (s->is_known[i] && loop < s->loop[i]))
		return;
	if (!s->is_known[i] || loop > s->loop[i] || send->own.bytes[i] > s->bytes[i])
		s->bytes[i] = send->own.bytes[i];
	s->loop[i] = loop;
	s->is_known[i] = true;
}

struct flow_source *flow_source_new(uint32_t n, uint32_t n_users)
{
	struct flow_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct flow_source){.n = n, .n_users = n_users, .refs = 1};
	s->edges = calloc(n, sizeof(*s->edges));
	if (!s->edges) {
		free(s);
		return NULL;
	}
	return s;
}

void flow_source_unref(struct flow_source *s)
{
	if (!s || --s->refs)
		return;
	slots_deinit(&s->sums);
	free(s->edges);
	free(s);
}

uint64_t flow_bytes(const struct flow *f)
{
	return sizeof(*f) + sizeof(*f->source) + f->slots.room * sizeof(*f->slots.ring);
}

void flow_free(struct flow *f)
{
	flow_source_unref(f->source);
	slots_deinit(&f->slots);
	free(f);
}

struct flow_key flow_key(const struct traffic_at *at, bool is_send, bool is_direct)
{
	return (struct flow_key){.rank = at->rank,
				 .peer = at->peer,
				 .channel = at->channel,
				 .is_send = is_send,
				 .is_direct = is_direct,
				 .seq = at->seq};
}

const char *flow_name(const struct flow_key *k, char buf[FLOW_NAME_MAX])
{
	snprintf(buf, FLOW_NAME_MAX, "%s %llu, channel %u, rank %u %s %u",
		 k->seq & WIRE_SEQ_P2P ? "sends and receives" : "op", wire_seq_number(k->seq),
		 k->channel, k->rank, k->is_send ? "->" : "<-", k->peer);
	return buf;
}
