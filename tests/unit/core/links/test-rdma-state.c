/* The states of an rdma link: the moves that the table allows, and that the setter makes no other.
 */
#include "rdma-ends.h"

static void no_move_but_those_of_the_table(void **state)
{
	static const char moves[RDMA_STATES][RDMA_STATES + 1] = {
		/* to: idle, resolving, routing, asked, accepted, up, broken, left, ended */
		[RDMA_IDLE] = ".x..x...x",     [RDMA_RESOLVING] = "..x.....x",
		[RDMA_ROUTING] = "...x....x",  [RDMA_ASKED] = ".....x..x",
		[RDMA_ACCEPTED] = ".....xxxx", [RDMA_UP] = "......xxx",
		[RDMA_BROKEN] = ".......xx",   [RDMA_LEFT] = "........x",
		[RDMA_ENDED] = ".........",
	};

	(void)state;
	for (int from = 0; from < RDMA_STATES; from++)
		for (int to = 0; to < RDMA_STATES; to++) {
			struct rdma_hub hub = {.ticks = 7};
			struct rdma_link r = {.hub = &hub, .state = from, .is_blocked = true};
			bool is_move = moves[from][to] == 'x';

			assert_int_equal(rdma_set_state(&r, to), is_move);
			assert_int_equal(r.state, is_move ? to : from);
			assert_int_equal(r.state_tick, is_move ? 7 : 0);
			assert_int_equal(r.is_blocked, !is_move);
		}
}

/* Whatever breaks a link, it passes each state once. */
static void a_life_from_request_to_end(void **state)
{
	struct ends e;

	(void)state;
	fake_faults.drop_establish = true;
	ends_open(&e);
	assert_int_equal(rdma_of(e.a.link)->state, RDMA_ACCEPTED);
	assert_int_equal(rdma_of(e.b.link)->state, RDMA_UP);
	send_n(&e.b, &(uint64_t){0}, 1, 8);
	until_up(&e); /* the first piece is as good as the confirmation */
	e.b.link = link_free(e.b.link);
	while (!e.a.n_closed)
		peer_wait(&e.a, 1);
	assert_int_equal(rdma_of(e.a.link)->state, RDMA_ENDED);
	expect_end(&e.a, 0, "the peer closed the connection");
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(no_move_but_those_of_the_table),
		T(a_life_from_request_to_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
