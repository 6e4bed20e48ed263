/* rdma links over a real device, or soft-RoCE in the virtual machine: the conversations of shm and
 * tcp links, and a few ends. NBOX_TEST_RDMA is an address of the device, without rdma: and port;
 * without it the tests are skipped. */
#include "conversation.h"

#include "links/rdma/options.h"
#include "links/rdma/verbs.h"

static char addr[128];

/* --- the real libraries, counting what they gave and did not get back ------------------------- */

static const struct verbs *real;
static _Atomic long n_held;

#define GIVES(type, name, params, ...)                \
	static type name params                       \
	{                                             \
		type given = real->name(__VA_ARGS__); \
		n_held += given != NULL;              \
		return given;                         \
	}
#define TAKES(name, type)                 \
	static int name(type *taken)      \
	{                                 \
		n_held--;                 \
		return real->name(taken); \
	}

/* clang-format off */
GIVES(struct ibv_mr *, reg_mr, (struct ibv_pd *pd, void *p, size_t n, int access), pd, p, n, access)
GIVES(struct ibv_qp *, create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *attr), pd, attr)
GIVES(struct ibv_cq *, create_cq,
      (struct ibv_context *c, int n, void *ctx, struct ibv_comp_channel *ch, int vector),
      c, n, ctx, ch, vector)
GIVES(struct ibv_pd *, alloc_pd, (struct ibv_context *c), c)
TAKES(dereg_mr, struct ibv_mr)
TAKES(destroy_qp, struct ibv_qp)
TAKES(destroy_cq, struct ibv_cq)
TAKES(dealloc_pd, struct ibv_pd)
/* clang-format on */

static int count_what_is_held(void **state)
{
	static struct verbs counting;
	struct err err;

	(void)state;
	assert_int_equal(verbs_get(&real, &err), 0);
	counting = *real;
	counting.reg_mr = reg_mr;
	counting.dereg_mr = dereg_mr;
	counting.create_qp = create_qp;
	counting.destroy_qp = destroy_qp;
	counting.create_cq = create_cq;
	counting.destroy_cq = destroy_cq;
	counting.alloc_pd = alloc_pd;
	counting.dealloc_pd = dealloc_pd;
	verbs_replace(&counting);
	return 0;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_conversation_polling(void **state)
{
	(void)state;
	converse(addr, 100, 0, 0, 0);
}

static void a_conversation_sleeping(void **state)
{
	(void)state;
	converse(addr, 150, 100, 100, 0);
}

static void a_conversation_with_holds(void **state)
{
	(void)state;
	converse(addr, 150, 90, 70, 20);
}

static void a_conversation_over_several_queue_pairs(void **state)
{
	struct rdma_options o;

	(void)state;
	rdma_options_init(&o);
	o.qps = 3;
	rdma_options_use(&o);
	converse(addr, 100, 100, 100, 0);
	o.qps = 1;
	rdma_options_use(&o);
}

static void nobody_there_is_a_sentence(void **state)
{
	struct err err = {""};
	char closed[160];
	struct peer p;

	(void)state;
	peer_init(&p, 1);
	snprintf(closed, sizeof(closed), "%.*s:1", (int)(strlen(addr) - 2), addr);
	assert_true(link_connect(closed, 5000, &peer_events, &p, &p.link, &err) < 0);
	fprintf(stderr, "# %s\n", err.text);
	assert_non_null(strstr(err.text, "nobody listens there"));
}

static void all_is_given_back(void **state)
{
	(void)state;
	assert_int_equal(n_held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_conversation_sleeping),
		cmocka_unit_test(a_conversation_with_holds),
		cmocka_unit_test(a_conversation_over_several_queue_pairs),
		cmocka_unit_test(a_conversation_polling),
		cmocka_unit_test(nobody_there_is_a_sentence),
		cmocka_unit_test(all_is_given_back),
	};

	if (!getenv("NBOX_TEST_RDMA")) {
		printf("1..0 # SKIP NBOX_TEST_RDMA names no address of an RDMA device\n");
		return 0;
	}
	snprintf(addr, sizeof(addr), "rdma:%s:0", getenv("NBOX_TEST_RDMA"));
	return cmocka_run_group_tests(tests, count_what_is_held, NULL);
}
