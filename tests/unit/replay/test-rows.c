/* The graph of a record's rows: who waits for whom. */
#include "cmocka-all.h"

#include "replay/rows.h"

static struct record_dep own(uint64_t name)
{
	return (struct record_dep){name, 1, 0};
}

static const struct record_comm world = {.number = 1, .n_ranks = 2, .stride = 1};

static struct record_op op_at(uint64_t order, uint64_t name, const struct record_dep *dep)
{
	return (struct record_op){.number = order,
				  .name = name,
				  .order = order,
				  .done_order = order + 2,
				  .due_ns = 1000 + order,
				  .release_ns = 2000 + order,
				  .n_deps = dep != NULL,
				  .deps = dep,
				  .of = &world,
				  .comm = 1};
}

static struct record_point point_at(uint64_t order, uint64_t name, const struct record_dep *dep)
{
	return (struct record_point){.name = name,
				     .order = order,
				     .n_deps = dep != NULL,
				     .deps = dep};
}

static struct rows_graph make(struct record *rec)
{
	struct err err = {""};
	struct rows_graph g;

	rec->header.world_size = 2;
	assert_int_equal(rows_graph_make(rec, &g, &err), 0);
	return g;
}

/* Rows come in nboxd's order, whatever the order in the file. */
static void test_order(void **state)
{
	const struct record_dep on_point = own(7);
	struct record_op ops[] = {op_at(1, 8, &on_point)};
	struct record_point points[] = {point_at(2, 9, NULL), point_at(0, 7, NULL)};
	struct record rec = {.ops = ops, .points = points, .n_ops = 1, .n_points = 2};
	struct rows_graph g = make(&rec);

	(void)state;
	assert_int_equal(g.n, 3);
	assert_false(g.rows[0].is_op);
	assert_int_equal(g.rows[0].index, 1);
	assert_true(g.rows[1].is_op);
	assert_int_equal(g.deps[g.rows[1].first_dep].row, 0);
	assert_int_equal(g.rows[2].number, 3);
	rows_graph_deinit(&g);
}

/* A captured graph's names come again: they mean the last row that had them. */
static void test_names_again(void **state)
{
	const struct record_dep first = own(UINT64_C(1) << 63 | 1);
	struct record_point points[] = {point_at(0, first.name, NULL), point_at(1, 5, &first),
					point_at(2, first.name, NULL), point_at(3, 6, &first)};
	struct record rec = {.points = points, .n_points = 4};
	struct rows_graph g = make(&rec);

	(void)state;
	assert_int_equal(g.deps[g.rows[1].first_dep].row, 0);
	assert_int_equal(g.deps[g.rows[3].first_dep].row, 2);
	rows_graph_deinit(&g);
}

/* What nboxd took an op's gate to open at: when it was due until DONE came, then when it had. */
static void test_gate(void **state)
{
	const struct record_dep on_op = own(1);
	struct record_op ops[] = {op_at(0, 1, NULL)};
	struct record_point points[] = {point_at(1, 2, &on_op), point_at(2, 3, &on_op)};
	struct record rec = {.ops = ops, .points = points, .n_ops = 1, .n_points = 2};
	struct rows_graph g = make(&rec);

	(void)state;
	assert_int_equal(g.deps[g.rows[1].first_dep].open_ns, 1000);
	assert_int_equal(g.deps[g.rows[2].first_dep].open_ns, 2000);
	rows_graph_deinit(&g);
}

/* A row without a known dep follows what came last at its rank; an op, the one before it in its
 * communicator. */
static void test_without_deps(void **state)
{
	const struct record_dep unknown = own(99);
	struct record_op ops[] = {op_at(0, 1, NULL), op_at(1, 2, &unknown)};
	struct record_point points[] = {point_at(2, 3, &unknown)};
	struct record rec = {.ops = ops, .points = points, .n_ops = 2, .n_points = 1};
	struct rows_graph g;

	(void)state;
	points[0].world_rank = 1; /* the first one of its rank waits for nobody */
	g = make(&rec);
	assert_int_equal(g.rows[1].n_deps, 0);
	assert_int_equal(g.rows[1].latest.row, 0);
	assert_int_equal(g.rows[1].n_waits, 2);
	assert_int_equal(g.rows[2].latest.row, ROWS_NONE);
	assert_int_equal(g.rows[2].n_waits, 0);
	rows_graph_deinit(&g);
}

/* A point that came before the op's last post had: nobody knew the end, and the point went on from
 * the arrival. */
static void test_op_not_over(void **state)
{
	struct record_op ops[] = {op_at(0, 1, NULL), op_at(2, 1, NULL)};
	struct record_point points[] = {point_at(1, 2, NULL)};
	struct record rec = {.ops = ops, .points = points, .n_ops = 2, .n_points = 1};
	struct rows_graph g;

	(void)state;
	ops[1].world_rank = 1;
	ops[1].number = ops[0].number;
	g = make(&rec);
	assert_int_equal(g.rows[1].latest.row, 0);
	assert_int_equal(g.rows[1].latest.open_ns, 0);
	assert_true(g.followers[g.rows[0].first_follower].is_early);
	rows_graph_deinit(&g);
	/* had it come behind */
	points[0].order = 3;
	g = make(&rec);
	assert_int_not_equal(g.rows[2].latest.open_ns, 0);
	assert_false(g.followers[g.rows[0].first_follower].is_early);
	rows_graph_deinit(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),       cmocka_unit_test(test_names_again),
		cmocka_unit_test(test_gate),        cmocka_unit_test(test_without_deps),
		cmocka_unit_test(test_op_not_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
