/* Connections of the rdma link that fail (fake-verbs.h): strangers, silence, too little of
 * something. Both ends say why. */
#include "rdma-ends.h"

static void garbage_is_refused(void **state)
{
	struct err why;
	struct ends e;
	int r;

	(void)state;
	fake_faults.corrupt_hello = true;
	assert_int_equal(try_connect(&e, &r, &why), -ECONNREFUSED);
	assert_non_null(strstr(e.err.text, "took our hello for garbage"));
	assert_int_equal(r, -EPROTO);
	assert_non_null(strstr(why.text, "no hello of nbox"));
	ends_close(&e);
}

static void another_version_is_refused(void **state)
{
	struct err why;
	struct ends e;
	int r;

	(void)state;
	fake_faults.hello_version = 9;
	assert_int_equal(try_connect(&e, &r, &why), -ECONNREFUSED);
	assert_non_null(strstr(e.err.text, "another version"));
	assert_int_equal(r, -EPROTONOSUPPORT);
	assert_non_null(strstr(why.text, "speaks version 9"));
	ends_close(&e);
}

static void no_answer_is_a_timeout(void **state)
{
	struct err why;
	struct ends e;
	int r;

	(void)state;
	fake_faults.drop_answer = true;
	assert_int_equal(try_connect_for(&e, 500, &r, &why), -ETIMEDOUT);
	assert_non_null(strstr(e.err.text, "device fake0 port 1, QP "));
	assert_non_null(strstr(e.err.text, "the request is not answered in time"));
	ends_close(&e);
}

static void nobody_listens_is_a_sentence(void **state)
{
	struct err err;
	struct peer p;

	(void)state;
	peer_init(&p, 1);
	assert_int_equal(link_connect("rdma:127.0.0.1:9", 2000, &peer_events, &p, &p.link, &err),
			 -ECONNREFUSED);
	assert_non_null(strstr(err.text, "nobody listens there"));
}

/* The last word of the connection is lost: the first piece says as much. */
static void a_first_piece_confirms_a_connection(void **state)
{
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	fake_faults.drop_establish = true;
	ends_open(&e);
	send_n(&e.b, &sent, 2, 8);
	move(&e, 50);
	assert_int_equal(e.a.n_frames, 2);
	ends_close(&e);
}

static void too_little_memory_names_the_limit(void **state)
{
	struct err why;
	struct ends e;
	int r;

	(void)state;
	fake_faults.reg_errno = ENOMEM;
	assert_true(try_connect(&e, &r, &why) < 0);
	assert_non_null(strstr(e.err.text, "cannot be registered"));
	ends_close(&e);
}

/* The ring could be registered, bodies cannot: the link ends, and says what to do. */
static void a_body_that_cannot_be_registered_ends_the_link(void **state)
{
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	ends_open(&e);
	fake_faults.reg_errno = ENOMEM;
	send_n(&e.b, &sent, 1, 1 << 20);
	until_closed(&e, &e.b);
	expect_end(&e.b, -ENOMEM, "cannot be registered");
	ends_close(&e);
}

static void a_device_without_resources_is_a_sentence(void **state)
{
	struct err why;
	struct ends e;
	int r;

	(void)state;
	fake_faults.create_qp_errno = ENOSPC;
	try_connect(&e, &r, &why);
	assert_non_null(strstr(e.err.text, "device fake0 gives no queue pair"));
	ends_close(&e);
	fake_reset();
	fake_faults.alloc_pd_errno = ENOMEM;
	try_connect(&e, &r, &why);
	assert_non_null(strstr(e.err.text, "gives no protection domain"));
	ends_close(&e);
	fake_reset();
	fake_faults.channel_errno = ENODEV;
	assert_int_equal(listener_open(ADDR, &e.l, &why), -ENODEV);
	assert_non_null(strstr(why.text, access("/sys/class/infiniband", F_OK)
						 ? "no RDMA device was found"
						 : "rdma cannot be used here"));
}

/* Links beyond the completion queue: it grows, and where it cannot, one is refused. */
static void the_completion_queue_grows_with_the_links(void **state)
{
	struct ends e[8];
	struct listener *l;
	struct err err;
	int i, r = 0;

	(void)state;
	fake_faults.cq_most = 1024;
	assert_int_equal(listener_open(ADDR, &l, &err), 0);
	for (i = 0; i < 8; i++) {
		ends_init(&e[i]);
		e[i].l = l;
		r = ends_meet(&e[i], connect_b, &err);
		if (r)
			break;
	}
	assert_true(i > 3 && i < 8);
	assert_non_null(strstr(err.text, "no room for another link in the completion queue"));
	assert_non_null(strstr(e[i].err.text, "no resources for another link"));
	for (; i >= 0; i--) {
		peer_deinit(&e[i].a);
		peer_deinit(&e[i].b);
	}
	listener_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(garbage_is_refused),
		T(another_version_is_refused),
		T(no_answer_is_a_timeout),
		T(nobody_listens_is_a_sentence),
		T(a_first_piece_confirms_a_connection),
		T(too_little_memory_names_the_limit),
		T(a_body_that_cannot_be_registered_ends_the_link),
		T(a_device_without_resources_is_a_sentence),
		T(the_completion_queue_grows_with_the_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
