/* See slots.h. */
#include "traffic/slots.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void slots_deinit(struct slots *s)
{
	for (uint64_t i = 0; i < s->n; i++)
		traffic_body_unref(slots_at(s, s->first + i)->body);
	free(s->ring);
	*s = (struct slots){0};
}

struct slot *slots_at(const struct slots *s, uint64_t index)
{
	assert(index >= s->first && index - s->first < s->n);
	return &s->ring[index & (s->room - 1)];
}

static int grow(struct slots *s)
{
	uint64_t room = s->room ? 2 * s->room : 8;
	struct slot *ring = malloc(room * sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	for (uint64_t i = s->first; i < s->first + s->n; i++)
		ring[i & (room - 1)] = *slots_at(s, i);
	free(s->ring);
	s->ring = ring;
	s->room = room;
	return 0;
}

int slots_push(struct slots *s, struct traffic_body *body, uint32_t users)
{
	if (users == 0) {
		traffic_body_unref(body);
		body = NULL;
		if (s->n == 0) {
			s->first++;
			return 0;
		}
	}
	if (s->n == s->room && grow(s) < 0) {
		traffic_body_unref(body);
		return -ENOMEM;
	}
	s->n++;
	*slots_at(s, s->first + s->n - 1) = (struct slot){body, users};
	return 0;
}

struct traffic_body *slots_take(struct slots *s, uint64_t index)
{
	struct slot *slot = slots_at(s, index);
	struct traffic_body *body = slot->body;

	assert(slot->users);
	if (--slot->users)
		return body ? traffic_body_ref(body) : NULL;
	slot->body = NULL;
	slots_trim(s);
	return body;
}

uint64_t slots_bytes(const struct slots *s)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < s->n; i++) {
		const struct traffic_body *body = slots_at(s, s->first + i)->body;

		bytes += body ? traffic_body_room(body) : 0;
	}
	return bytes;
}

void slots_trim(struct slots *s)
{
	while (s->n && slots_at(s, s->first)->users == 0) {
		traffic_body_unref(slots_at(s, s->first)->body);
		s->first++;
		s->n--;
	}
}
