/* Counts of ops in a world of another size: from one record, from several, declared. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmocka-all.h"

#include "replay/counts.h"

#define OPS_MAX 8

/* A run of rank 0 alone, with ops in the communicator of all. */
struct run {
	struct record_member real;
	struct record_comm comms[2];
	struct record_op ops[OPS_MAX];
	struct record_call calls[OPS_MAX][16];
	struct record rec;
};

static struct run *run_of(struct run *r, uint32_t n_ranks)
{
	*r = (struct run){
		.rec = {.header = {.world_size = n_ranks, .n_nodes = n_ranks, .gpus_per_node = 1}}};
	for (int i = 0; i < 2; i++)
		r->comms[i] = (struct record_comm){.number = 1 + (uint32_t)i,
						   .n_ranks = n_ranks,
						   .stride = 1,
						   .n_real = 1,
						   .real = &r->real};
	r->rec.comms = r->comms;
	r->rec.n_comms = 2;
	r->rec.ops = r->ops;
	return r;
}

static struct record_op *add(struct run *r, uint32_t comm, uint32_t kind, uint64_t count)
{
	struct record_op *op = &r->ops[r->rec.n_ops];

	assert_true(r->rec.n_ops < OPS_MAX);
	*op = (struct record_op){.kind = kind,
				 .count = count,
				 .seq = r->rec.n_ops++,
				 .dtype = COLL_FLOAT32,
				 .comm = comm,
				 .of = &r->comms[comm - 1]};
	return op;
}

/* Sends and receives of @bytes to and from all. */
static void add_all_to_all(struct run *r, uint32_t comm, uint64_t bytes)
{
	struct record_op *op = add(r, comm, COLL_SENDRECV, 0);
	struct record_call *calls = r->calls[op - r->ops];

	for (uint32_t i = 0; i < r->rec.header.world_size; i++) {
		calls[op->n_calls++] = (struct record_call){i, 1, bytes};
		calls[op->n_calls++] = (struct record_call){i, 0, bytes};
	}
	op->calls = calls;
}

static const char *declared_layout; /* NULL: dp and pp=2 */
static uint32_t n_copies;           /* ranks of communicator 2 in the new world; 0: all */

/* The ops of @r, and of @other if it is there, with @n_ranks. Return: as counts_change(). */
static int change(const struct run *r, const struct run *other, const char *declared,
		  uint32_t n_ranks, struct record *ret, struct counts_told *told, struct err *err)
{
	const struct record *const others[] = {other ? &other->rec : NULL};
	const struct membership maps[] = {{n_ranks, 0, 1, NULL},
					  {n_copies ? n_copies : n_ranks, 0, 1, NULL}};
	static struct record_op ops[OPS_MAX];
	struct declared_counts words = {.law = {0}};
	struct world from, to = {.size = n_ranks, .n_nodes = n_ranks};
	struct sizes sizes = {.n = 0};
	struct counts_ask ask = {.rec = &r->rec,
				 .from = &from,
				 .to = &to,
				 .maps = maps,
				 .sizes = &sizes,
				 .declared = &words};
	int e = world_of_record(&r->rec.header, &from, err);
	char layout[32];

	snprintf(layout, sizeof(layout), "dp=%u,pp=2", n_ranks / 2);
	if (e == 0 && from.n_layouts)
		e = layout_parse(declared_layout ? declared_layout : layout, n_ranks,
				 &to.layouts[to.n_layouts++], err);
	memcpy(ops, r->ops, sizeof(ops));
	*ret = (struct record){.ops = ops, .n_ops = r->rec.n_ops};
	if (e == 0 && declared)
		e = declared_parse(declared, &words, err);
	if (e == 0)
		e = sizes_match(&r->rec, others, other != NULL, &sizes, err);
	if (e == 0)
		e = counts_change(&ask, ret, told, err);
	sizes_deinit(&sizes);
	return e;
}

static void drop(struct record *r)
{
	r->ops = NULL; /* the test's */
	record_deinit(r);
}

static void expect(const struct run *r, const struct run *other, const char *declared,
		   uint32_t n_ranks, uint64_t count, enum counts_how how, enum law_kind law)
{
	struct counts_told told;
	struct record out;
	struct err err = {""};

	assert_int_equal(change(r, other, declared, n_ranks, &out, &told, &err), 0);
	if (r->ops[0].kind == COLL_SENDRECV) {
		assert_int_equal(out.ops[0].n_calls, 2 * n_ranks);
		for (uint32_t i = 0; i < out.ops[0].n_calls; i++)
			assert_int_equal(out.ops[0].calls[i].bytes, count);
		assert_int_equal(told.n[how][COLL_ALLTOALL][law], 1);
	} else {
		assert_int_equal(out.ops[0].count, count);
		assert_int_equal(told.n[how][r->ops[0].kind][law], 1);
	}
	drop(&out);
}

static void refuse(const struct run *r, const struct run *other, const char *declared,
		   uint32_t n_ranks, const char *why)
{
	struct counts_told told;
	struct record out;
	struct err err = {""};

	assert_int_equal(change(r, other, declared, n_ranks, &out, &told, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
	drop(&out);
}

/* Of a hybrid of shards and copies: what more shards do to the all-reduces, copies do not say. */
static void test_another_axis(void **state)
{
	struct run few, many;

	(void)state;
	add(run_of(&few, 4), 1, COLL_ALLREDUCE, 1000);
	add(run_of(&many, 8), 1, COLL_ALLREDUCE, 1000);
	snprintf(few.rec.header.layout, sizeof(few.rec.header.layout), "fsdp=2,dp=2");
	snprintf(many.rec.header.layout, sizeof(many.rec.header.layout), "fsdp=2,dp=4");
	declared_layout = "fsdp=2,dp=8";
	expect(&many, &few, NULL, 16, 1000, COUNTS_FITTED, LAW_KEEP);
	declared_layout = "fsdp=8,dp=2";
	expect(&many, &few, NULL, 16, 1000, COUNTS_BEYOND, LAW_KEEP);
	declared_layout = NULL;
}

/* The same from one record: an all-reduce of as much as a reduce-scatter gives is one of shards. */
static void test_copies(void **state)
{
	struct run r, few;
	struct counts_told told;
	struct record out;
	struct err err = {""};

	(void)state;
	add(run_of(&r, 4), 2, COLL_ALLREDUCE, 1000);
	add(&r, 1, COLL_REDUCESCATTER, 500);
	snprintf(r.rec.header.layout, sizeof(r.rec.header.layout), "fsdp=4,dp=2");
	r.rec.header.world_size = r.rec.header.n_nodes = 8;
	r.comms[1].n_ranks = n_copies = 2;
	r.comms[1].axes = 1 << 1;
	declared_layout = "fsdp=8,dp=2";
	expect(&r, NULL, NULL, 16, 1000, COUNTS_ASSUMED, LAW_KEEP);
	r.ops[1].count = 1000; /* maps say that communicator 1 has 16 ranks */
	expect(&r, NULL, NULL, 16, 250, COUNTS_ASSUMED, LAW_TOTAL);
	/* a run of fewer copies says nothing of more shards */
	add(run_of(&few, 4), 2, COLL_ALLREDUCE, 1000);
	add(&few, 1, COLL_REDUCESCATTER, 1000);
	snprintf(few.rec.header.layout, sizeof(few.rec.header.layout), "fsdp=4,dp=1");
	few.comms[1].n_ranks = 1;
	expect(&r, &few, NULL, 16, 250, COUNTS_ASSUMED, LAW_TOTAL);
	r.ops[1].dtype = COLL_FLOAT16;
	expect(&r, NULL, NULL, 16, 1000, COUNTS_ASSUMED, LAW_KEEP);
	/* of activations it says enough: a rank has as many of them as before */
	declared_layout = "fsdp=8,tp=2";
	snprintf(r.rec.header.layout, sizeof(r.rec.header.layout), "fsdp=4,tp=2");
	assert_int_equal(change(&r, NULL, NULL, 16, &out, &told, &err), 0);
	assert_int_equal(out.ops[0].count, 1000);
	assert_int_equal(told.n[COUNTS_ASSUMED][COLL_ALLREDUCE][LAW_KEEP], 0);
	drop(&out);
	declared_layout = NULL;
	n_copies = 0;
}

static void test_one(void **state)
{
	struct run r;

	(void)state;
	add(run_of(&r, 4), 1, COLL_ALLREDUCE, 1000);
	expect(&r, NULL, NULL, 16, 1000, COUNTS_ASSUMED, LAW_KEEP);
	add(run_of(&r, 4), 1, COLL_ALLGATHER, 1000);
	expect(&r, NULL, NULL, 16, 250, COUNTS_ASSUMED, LAW_TOTAL);
	add(run_of(&r, 4), 1, COLL_REDUCESCATTER, 1001);
	expect(&r, NULL, NULL, 16, 251, COUNTS_ASSUMED, LAW_TOTAL);
	add(run_of(&r, 4), 1, COLL_ALLTOALL, 1000);
	refuse(&r, NULL, NULL, 16, "--counts AllToAll=total");
	expect(&r, NULL, "AllToAll=total", 16, 250, COUNTS_DECLARED, LAW_TOTAL);
	expect(&r, NULL, "alltoall=keep", 16, 1000, COUNTS_DECLARED, LAW_KEEP);
	add_all_to_all(run_of(&r, 4), 1, 1000);
	refuse(&r, NULL, NULL, 8, "--counts AllToAll=total");
	expect(&r, NULL, "alltoall=total", 8, 500, COUNTS_DECLARED, LAW_TOTAL);
	/* whole elements */
	expect(&r, NULL, "alltoall=total", 3, 1336, COUNTS_DECLARED, LAW_TOTAL);
	r.calls[0][2].bytes = r.calls[0][3].bytes = 1004;
	refuse(&r, NULL, NULL, 8, "to some ranks goes more");
}

/* Rank 3's expert is idle: nothing goes there, and nothing comes back. */
static void test_idle(void **state)
{
	struct counts_told told;
	struct record out;
	struct err err = {""};
	struct run r, few;

	(void)state;
	add_all_to_all(run_of(&r, 4), 1, 1000);
	r.ops[0].n_calls = 6;
	add_all_to_all(run_of(&few, 2), 1, 2000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(change(&r, i ? &few : NULL, "alltoall=total", 8, &out, &told,
					&err),
				 0);
		assert_int_equal(told.n[COUNTS_DECLARED][COLL_ALLTOALL][LAW_TOTAL], 1);
		assert_int_equal(out.ops[0].n_calls, 12); /* of 8 ranks 3 and 7 are left out */
		for (uint32_t k = 0; k < 12; k++) {
			assert_int_equal(out.ops[0].calls[k].bytes, 500);
			assert_int_equal(out.ops[0].calls[k].peer, k / 2 + (k >= 6));
		}
		drop(&out);
	}
	refuse(&r, NULL, NULL, 8, "an all-to-all that leaves out ranks, --counts AllToAll=total");
	refuse(&r, &few, NULL, 8, "an all-to-all that leaves out ranks, --counts AllToAll=total");
	r.ops[0].n_calls = 4; /* half of them: it may be anything */
	refuse(&r, NULL, "alltoall=total", 8, "whom they go to");
}

static void test_two(void **state)
{
	struct run few, many;

	(void)state;
	add(run_of(&few, 2), 1, COLL_ALLTOALL, 1000);
	add(run_of(&many, 4), 1, COLL_ALLTOALL, 500);
	expect(&many, &few, NULL, 16, 125, COUNTS_FITTED, LAW_TOTAL);
	expect(&many, &few, "alltoall=keep", 16, 500, COUNTS_DECLARED, LAW_KEEP);
	many.ops[0].count = 600; /* 200 + 1600 / n */
	expect(&many, &few, NULL, 16, 300, COUNTS_BEYOND, LAW_FALL);
	expect(&many, &few, NULL, 3, 734, COUNTS_FITTED, LAW_FALL);
	many.ops[0].count = 2000;
	expect(&few, &many, NULL, 16, 8000, COUNTS_FITTED, LAW_GROW);
	/* 250 floats of each rank, filled up */
	add_all_to_all(run_of(&few, 2), 1, 500);
	add_all_to_all(run_of(&many, 4), 1, 252);
	expect(&few, &many, NULL, 8, 128, COUNTS_FITTED, LAW_TOTAL);
	expect(&many, &few, NULL, 8, 128, COUNTS_FITTED, LAW_TOTAL);
}

static void add_send(struct run *r, uint32_t peer, uint64_t bytes)
{
	struct record_op *op = add(r, 1, COLL_SENDRECV, 0);

	r->calls[op - r->ops][op->n_calls++] = (struct record_call){peer, 1, bytes};
	op->calls = r->calls[op - r->ops];
}

static void expect_send(const struct run *r, const struct run *other, uint32_t n_ranks,
			uint32_t peer, uint64_t bytes, enum counts_how how)
{
	struct counts_told told;
	struct record out;
	struct err err = {""};

	assert_int_equal(change(r, other, NULL, n_ranks, &out, &told, &err), 0);
	assert_int_equal(out.ops[0].n_calls, 1);
	assert_int_equal(out.ops[0].calls[0].peer, peer);
	assert_int_equal(out.ops[0].calls[0].bytes, bytes);
	assert_int_equal(told.n[how][COLL_SENDRECV][LAW_KEEP], 1);
	drop(&out);
}

/* To whom one send goes: two records show it, or the layout says it, or nobody does. */
static void test_sends(void **state)
{
	struct run few, many;

	(void)state;
	add_send(run_of(&many, 8), 7, 64);
	refuse(&many, NULL, NULL, 16, "whom they go to then one record does not say");
	add_send(run_of(&few, 4), 3, 64);
	expect_send(&many, &few, 16, 15, 64, COUNTS_FITTED);
	few.calls[0][0].peer = 2;
	refuse(&many, &few, NULL, 16, "neither the records nor a layout");
	/* pipeline stage 1 is half the world away */
	many.calls[0][0].peer = 4;
	snprintf(many.rec.header.layout, sizeof(many.rec.header.layout), "dp=4,pp=2");
	expect_send(&many, NULL, 16, 8, 64, COUNTS_ASSUMED);
	many.calls[0][0].peer = 1; /* along dp */
	refuse(&many, NULL, NULL, 16, "whom they go to then one record does not say");
	/* of two ranks the other is all others, and the next */
	add_send(run_of(&few, 2), 1, 64);
	refuse(&few, NULL, NULL, 4, "whom they go to then one record does not say");
}

/* A communicator of one size in all records: the world is what counts change with, until it has
 * another size itself. */
static void test_world(void **state)
{
	struct run few, many;
	struct counts_told told;
	struct record out;
	struct err err = {""};

	(void)state;
	add(run_of(&few, 2), 1, COLL_ALLREDUCE, 1000);
	add(run_of(&many, 4), 1, COLL_ALLREDUCE, 500);
	many.comms[0].n_ranks = 2;
	assert_int_equal(change(&few, &many, NULL, 2, &out, &told, &err), 0);
	assert_int_equal(out.ops[0].count, 1000);
	drop(&out);
	expect(&few, &many, NULL, 16, 1000, COUNTS_ASSUMED, LAW_KEEP);
	few.comms[0].n_ranks = 4; /* in a world of 8 */
	few.rec.header.world_size = few.rec.header.n_nodes = 8;
	many.comms[0].n_ranks = 4;
	expect(&few, &many, NULL, 4, 500, COUNTS_FITTED, LAW_GROW);
}

/* What a rank does in which communicator. */
static void test_matching(void **state)
{
	struct run a, b;

	(void)state;
	/* communicators in another order */
	add(run_of(&a, 4), 1, COLL_ALLREDUCE, 10);
	add(&a, 2, COLL_ALLTOALL, 20);
	add(run_of(&b, 2), 2, COLL_ALLREDUCE, 10);
	add(&b, 1, COLL_ALLTOALL, 40);
	expect(&a, &b, NULL, 8, 10, COUNTS_FITTED, LAW_KEEP);
	/* one that is only in the first: what its record alone says */
	b.rec.n_ops = 1;
	b.ops[0].comm = 1;
	b.ops[0].of = &b.comms[0];
	refuse(&a, &b, NULL, 8, "--counts AllToAll=total");
	expect(&a, &b, "alltoall=total", 8, 10, COUNTS_FITTED, LAW_KEEP);
	refuse(&b, &a, NULL, 8, "re-time the former, --with the latter");
	/* another job */
	b.ops[0].kind = COLL_BROADCAST;
	a.rec.n_ops = 1;
	refuse(&a, &b, NULL, 8,
	       "op 1 in communicator 1 is AllReduce in the one, and in communicator 1 Broadcast");
	b.ops[0].kind = COLL_ALLREDUCE;
	add(&b, 1, COLL_ALLREDUCE, 10);
	refuse(&a, &b, NULL, 8, "op 2 in communicator 1 is missing");
	/* two that are alike */
	b.rec.n_ops = 1;
	add(&a, 2, COLL_ALLREDUCE, 10);
	refuse(&a, &b, NULL, 8, "which is which");
	/* another rank */
	a.rec.n_ops = 1;
	b.ops[0].world_rank = 1;
	refuse(&a, &b, NULL, 8, "record that with the same ranks");
}

static void test_declared(void **state)
{
	struct declared_counts d = {.law = {0}};
	struct err err = {""};

	(void)state;
	assert_int_equal(declared_parse("alltoall=total,sendrecv=keep", &d, &err), 0);
	assert_int_equal(d.law[COLL_ALLTOALL], LAW_TOTAL);
	assert_int_equal(d.law[COLL_SENDRECV], LAW_KEEP);
	assert_int_equal(declared_parse("alltoall=grow", &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "twice"));
	assert_int_equal(declared_parse("alltoal=total", &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'alltoall'?"));
	assert_int_equal(declared_parse("gather=totl", &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "did you mean 'total'?"));
	assert_int_equal(declared_parse("gather", &d, &err), -EINVAL);
	assert_int_equal(declared_parse("", &d, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_axis), cmocka_unit_test(test_copies),
		cmocka_unit_test(test_one),          cmocka_unit_test(test_idle),
		cmocka_unit_test(test_two),          cmocka_unit_test(test_sends),
		cmocka_unit_test(test_world),        cmocka_unit_test(test_matching),
		cmocka_unit_test(test_declared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
