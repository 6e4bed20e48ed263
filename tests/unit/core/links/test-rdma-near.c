/* The choice among several rails: over a made-up tree of sysfs, and whole links over two fake
 * devices (fake-verbs.h). */
#include "conversation.h"
#include "fake-verbs.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "links/rdma/address.h"
#include "links/rdma/near.h"
#include "links/rdma/state.h"

#define ADDR "rdma:127.0.0.1:0"

/* Two rails, as sysfs shows them: a GPU and a NIC behind each switch of one root, which
 * also has a NIC of its own; another root with a GPU and a NIC; and a NIC that is no PCI
 * device. */
static const char make_tree[] =
	"cd '%s' && r=devices/pci0000:3a && q=devices/pci0000:ba/0000:ba:00.0/0000:bb:00.0 && "
	"mkdir -p $r/0000:3a:00.0/0000:3b:00.0 $r/0000:3a:00.0/0000:3c:00.0 "
	"$r/0000:3a:01.0/0000:4b:00.0 $r/0000:3a:01.0/0000:4c:00.0 $r/0000:3a:02.0/0000:5c:00.0 "
	"$q devices/pci0000:da/0000:da:01.0/0000:dc:00.0 devices/virtual bus/pci/devices "
	"class/infiniband && ln -s ../../../$q bus/pci/devices/ && "
	"for g in 3a:00.0/0000:3b 3a:01.0/0000:4b; do ln -s ../../../$r/0000:$g:00.0 bus/pci/devices/; done && "
	"nic() { mkdir -p $2/infiniband/$1 && ln -s ../../../$(basename $2) $2/infiniband/$1/device && "
	"ln -s ../../$2/infiniband/$1 class/infiniband/$1; } && "
	"nic fake0 $r/0000:3a:00.0/0000:3c:00.0 && nic fake1 $r/0000:3a:01.0/0000:4c:00.0 && "
	"nic root0 $r/0000:3a:02.0/0000:5c:00.0 && nic far0 devices/pci0000:da/0000:da:01.0/0000:dc:00.0 && "
	"mkdir -p devices/virtual/infiniband/soft0 && "
	"ln -s ../../devices/virtual/infiniband/soft0 class/infiniband/soft0";

static char tree[] = "/tmp/nbox-near-XXXXXX";

static int open_tree(void **state)
{
	char command[2048];

	(void)state;
	memcpy(tree + sizeof(tree) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(tree));
	snprintf(command, sizeof(command), make_tree, tree);
	assert_int_equal(system(command), 0);
	return 0;
}

static int close_tree(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", tree);
	assert_int_equal(system(command), 0);
	return 0;
}

static int setup_rails(void **state)
{
	open_tree(state);
	fake_reset();
	rdma_tick_ms = 1000000;
	verbs_replace(&fake_verbs);
	fake_faults.has_rails = true;
	rdma_near_sysfs = tree;
	return 0;
}

static int teardown_rails(void **state)
{
	struct rdma_options o;

	close_tree(state);
	rdma_options_init(&o);
	rdma_options_use(&o);
	rdma_near(NULL);
	rdma_near_sysfs = "/sys";
	assert_int_equal(fake_leaks(), 0);
	return 0;
}

/* The name that is chosen of a list with blanks between; "=" equal, "?" not known, "!" no id. */
static const char *choice(const char *pci, const char *list)
{
	static char text[128];
	const char *names[8] = {NULL};
	size_t n = 0, best = SIZE_MAX;
	char *rest = NULL;
	int r;

	snprintf(text, sizeof(text), "%s", list);
	for (char *p = strtok_r(text, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
		names[n++] = p;
	r = rdma_near_choose(tree, pci, names, n, &best);
	if (r)
		assert_true(best == SIZE_MAX);
	return r == 0                 ? names[best]
	       : r == RDMA_NEAR_EQUAL ? "="
	       : r == -ENOENT         ? "?"
	       : r == -EINVAL         ? "!"
				      : "bad";
}

static void the_longest_common_path_is_nearest(void **state)
{
	static const char *const cases[][3] = {
		{"0000:3B:00.0", "fake0 fake1", "fake0"},
		{"0000:4b:00.0", "fake0 fake1", "fake1"},
		{"0000:3b:00.0", "far0 soft0 root0 fake1 fake0", "fake0"},
		{"00000000:4B:00.0", "fake0 fake1 root0", "fake1"},
		/* the same root comes before another root, and any root before a device without a
		   place */
		{"0000:3b:00.0", "far0 root0 soft0", "root0"},
		{"0000:3b:00.0", "soft0 far0", "far0"},
		/* equal: both only have the root in common, or not even that */
		{"0000:3b:00.0", "root0 fake1", "="},
		{"0000:BB:00.0", "fake0 far0 root0", "="},
		/* things that are missing */
		{"0000:3b:00.0", "soft0 gone0", "?"},
		{"0000:3b:00.0", "gone0 fake1", "fake1"},
		{"0000:3b:00.0", "", "?"},
		{"0000:3b:00.0", "../infiniband/fake0", "?"},
		{"0000:ee:00.0", "fake0 fake1", "?"},
		{"", "fake0 fake1", "!"},
		{"3b:00.0", "fake0 fake1", "!"},
		{"0000:3b:00.0 ", "fake0 fake1", "!"},
		{"0000:3b:00.", "fake0 fake1", "!"},
		{"../../../etc", "fake0 fake1", "!"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(choice(cases[i][0], cases[i][1]), cases[i][2]);
}

/* Last byte of the address that a link towards @to starts from; 0: the route decides. */
static unsigned int source(const struct rdma_options *o, const char *to)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct sockaddr_storage from;
	struct err err;

	assert_int_equal(inet_pton(AF_INET, to, &at.sin_addr), 1);
	assert_int_equal(rdma_source_address(o, (struct sockaddr *)&at, &from, &err), 0);
	return from.ss_family ? ntohl(((struct sockaddr_in *)&from)->sin_addr.s_addr) & 0xff : 0;
}

static void the_source_address_is_the_nearest_rails(void **state)
{
	struct rdma_options o;
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_storage from;
	struct err err;

	(void)state;
	rdma_options_init(&o);
	assert_int_equal(source(&o, "198.51.100.9"), 0); /* no GPU is known */
	rdma_near("0000:3B:00.0");
	assert_int_equal(source(&o, "198.51.100.9"), 1);
	rdma_near("0000:4B:00.0");
	assert_int_equal(source(&o, "198.51.100.9"), 2);
	assert_int_equal(source(&o, "198.51.101.9"), 0); /* another network */
	assert_int_equal(source(&o, "127.0.0.2"), 0);    /* one address in it */
	assert_int_equal(source(&o, "198.51.100.1"), 0); /* this host */
	assert_int_equal(rdma_source_address(&o, (struct sockaddr *)&six, &from, &err), 0);
	assert_int_equal(from.ss_family, 0);
	fake_faults.rail_is_down = true;
	assert_int_equal(source(&o, "198.51.100.9"), 0);
	fake_faults.rail_is_down = false;
	rdma_near("0000:bb:00.0"); /* equally far */
	assert_int_equal(source(&o, "198.51.100.9"), 0);
	rdma_near("0000:3b:00.0");
	strcpy(o.hca, "fake1"); /* chosen by hand */
	assert_int_equal(source(&o, "198.51.100.9"), 2);
	o.hca[0] = 0;
	o.gid_index = 2;
	rdma_near("0000:4b:00.0");
	assert_int_equal(source(&o, "198.51.100.9"), 1); /* the first that fits, as ever */
}

struct ends {
	struct listener *l;
	struct peer a, b; /* a was accepted, b connected */
	char to[64];
	int r;
	struct err err;
};

static void *connect_b(void *arg)
{
	struct ends *e = arg;

	e->r = link_connect(e->to, 60000, &peer_events, &e->b, &e->b.link, &e->err);
	return NULL;
}

static void ends_close(struct ends *e)
{
	peer_deinit(&e->a);
	peer_deinit(&e->b);
	listener_free(e->l);
}

static void ends_open_over(struct ends *e, const char *pci, const struct rdma_options *o,
			   const char *device)
{
	pthread_t thread;
	struct err err;

	rdma_options_use(o);
	rdma_near(pci);
	memset(e, 0, sizeof(*e));
	peer_init(&e->a, 1);
	peer_init(&e->b, 1);
	assert_int_equal(listener_open(ADDR, &e->l, &err), 0);
	snprintf(e->to, sizeof(e->to), "rdma:198.51.100.9%s", strrchr(listener_addr(e->l), ':'));
	assert_int_equal(pthread_create(&thread, NULL, connect_b, e), 0);
	e->a.link = accept_one(e->l, &e->a);
	pthread_join(thread, NULL);
	assert_int_equal(e->r, 0);
	assert_string_equal(container_of(e->b.link, struct rdma_link, link)->dev->name, device);
}

static void connect_over(const char *pci, const struct rdma_options *o, const char *device)
{
	struct ends e;

	ends_open_over(&e, pci, o, device);
	ends_close(&e);
}

/* The whole way; made by hand comes first. */
static void links_use_the_nearest_rail(void **state)
{
	struct rdma_options o;

	(void)state;
	rdma_options_init(&o);
	connect_over("0000:3B:00.0", &o, "fake0");
	connect_over("0000:4B:00.0", &o, "fake1");
	connect_over(NULL, &o, "fake0");
	strcpy(o.hca, "fake0");
	connect_over("0000:4B:00.0", &o, "fake0");
	strcpy(o.hca, "fake1");
	connect_over("0000:3B:00.0", &o, "fake1");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup_rails, teardown_rails)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_longest_common_path_is_nearest, open_tree,
						close_tree),
		T(the_source_address_is_the_nearest_rails),
		T(links_use_the_nearest_rail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
