/* Records of runs with other real ranks, as one. */
#include <errno.h>
#include <string.h>

#include "cmocka-all.h"

#include "replay/merge.h"

struct one {
	struct record_member real;
	struct record_comm comms[2];
	struct record_op op;
	struct record_point point;
	struct record rec;
};

/* A run in which @rank is real: an op of the world, made after a communicator of its own. */
static void make(struct one *o, uint32_t rank, uint32_t n_nodes, uint64_t begins_ns)
{
	*o = (struct one){.real = {rank, rank}};
	o->comms[0] = (struct record_comm){.number = 1, .n_ranks = 1, .base = rank, .stride = 1};
	o->comms[1] = (struct record_comm){
		.number = 2, .n_ranks = n_nodes, .stride = 1, .n_real = 1, .real = &o->real};
	o->op = (struct record_op){.number = 3,
				   .arrive_ns = begins_ns + 10,
				   .release_ns = begins_ns + 20,
				   .order = 1,
				   .done_order = 2,
				   .world_rank = rank,
				   .comm = 2,
				   .of = &o->comms[1]};
	o->point = (struct record_point){.time_ns = begins_ns, .world_rank = rank};
	o->rec = (struct record){.header = {.world_size = n_nodes,
					    .n_nodes = n_nodes,
					    .gpus_per_node = 1,
					    .n_real = 1},
				 .comms = o->comms,
				 .n_comms = 2,
				 .ops = &o->op,
				 .n_ops = 1,
				 .points = &o->point,
				 .n_points = 1};
}

static void test_two(void **state)
{
	struct one a, b;
	const struct record *recs[] = {&a.rec, &b.rec};
	struct record all;
	struct err err = {""};

	(void)state;
	make(&a, 0, 4, 1000);
	make(&b, 2, 4, 500000);
	assert_int_equal(merge_records(recs, 2, &all, &err), 0);
	assert_int_equal(all.header.n_real, 2);
	assert_int_equal(all.n_comms, 3); /* the world, and one of each */
	assert_int_equal(all.n_ops, 2);
	assert_ptr_equal(all.ops[0].of, all.ops[1].of);
	assert_int_equal(all.ops[1].of->n_real, 2);
	assert_int_equal(all.ops[1].of->real[1].world_rank, 2);
	/* clocks begin together, numbers and order go on */
	assert_int_equal(all.points[1].time_ns, 1000);
	assert_int_equal(all.ops[1].release_ns, 1020);
	assert_true(all.ops[1].number > all.ops[0].number);
	assert_int_equal(all.ops[1].order, 3);
	record_deinit(&all);
}

static void test_refusals(void **state)
{
	struct one a, b, c;
	const struct record *twice[] = {&a.rec, &b.rec}, *worlds[] = {&a.rec, &c.rec};
	struct record all;
	struct err err = {""};

	(void)state;
	make(&a, 0, 4, 1000);
	make(&b, 0, 4, 1000);
	make(&c, 1, 8, 1000);
	assert_int_equal(merge_records(twice, 2, &all, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rank 0 is real in two"));
	assert_int_equal(merge_records(worlds, 2, &all, &err), -EINVAL);
	assert_non_null(strstr(err.text, "other worlds"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
