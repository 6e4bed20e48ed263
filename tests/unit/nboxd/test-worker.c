/* The worker's state table: every state can be reached, the end can be reached from
 * every state and is the end; payload's places stay inside the buffers. */
#include "base/cleanup.h"
#include "cmocka-all.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/payload.h"

static void every_state_can_be_reached_and_left(void **state)
{
	unsigned reached = 1u << WORKER_HELLO;

	(void)state;
	for (int round = 0; round < WORKER_STATES; round++)
		for (int s = 0; s < WORKER_STATES; s++)
			if (reached & 1u << s)
				reached |= worker_states[s].next;
	assert_int_equal(reached, (1u << WORKER_STATES) - 1);
	for (int s = 0; s < WORKER_STATES; s++) {
		assert_non_null(worker_states[s].name);
		assert_non_null(worker_states[s].on_frame);
		assert_false(worker_states[s].next & 1u << s);
		assert_false(worker_states[s].next & 1u << WORKER_HELLO);
		if (s == WORKER_CLOSED)
			assert_int_equal(worker_states[s].next, 0);
		else
			assert_true(worker_states[s].next & 1u << WORKER_CLOSED);
		/* Who may be told ERROR may be drained. */
		if (s != WORKER_CLOSED && s != WORKER_DRAINING)
			assert_true(worker_states[s].next & 1u << WORKER_DRAINING);
	}
}

static void payloads_places_stay_inside_its_buffers(void **state)
{
	static const uint64_t sizes[] = {0, 1, 63, 64, 65, 4096, 1 << 20, (1 << 20) - 1};
	struct payload p = {0};

	(void)state;
	assert_int_equal(payload_map(&p, 1 << 20), 0);
	assert_int_equal(payload_map(&p, 1 << 20), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (uint64_t index = 0; index < 3000; index += 1 + index / 7) {
			const uint8_t *from = payload_source(&p, index, sizes[i], p.bytes);
			uint8_t *to = payload_sink(&p, index, sizes[i], p.bytes), *slot;

			assert_true(from >= p.fill && from + sizes[i] <= p.fill + p.bytes);
			assert_true(to >= p.scratch && to + sizes[i] <= p.scratch + p.bytes);
			slot = payload_slot(&p, index);
			assert_true(slot >= p.slots &&
				    slot + sizes[i] <= p.slots + PAYLOAD_SLOTS * p.max_message);
			payload_reduce(&p, to, index, sizes[i], p.bytes);
			payload_reduce(&p, slot, index, sizes[i], p.bytes);
		}
	}
	assert_true(payload_source(&p, 0, 65536, p.bytes) != payload_source(&p, 1, 65536, p.bytes));
	payload_unmap(&p);
	payload_unmap(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_state_can_be_reached_and_left),
		cmocka_unit_test(payloads_places_stay_inside_its_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
