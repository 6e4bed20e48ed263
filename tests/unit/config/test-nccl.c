/* nccl full: what it makes of exchange, what it refuses, what workers are told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "config/config.h"

/* A configuration of such a file; @r: what config_finish() returned. */
static struct config *make(const char *yaml, int *r, struct err *err)
{
	struct config *c;

	*err = (struct err){""};
	assert_int_equal(config_new(&c), 0);
	assert_int_equal(config_parse(c, "f", yaml, strlen(yaml), err), 0);
	*r = config_finish(c, err);
	return c;
}

static struct config *make_well(const char *yaml)
{
	struct err err;
	int r;
	struct config *c = make(yaml, &r, &err);

	if (r < 0)
		fail_msg("%s\n%s", yaml, err.text);
	return c;
}

static void exchange_is_of_nccls_messages(void **state)
{
	static const struct {
		const char *yaml;
		uint32_t nccl, exchange, traffic;
	} cases[] = {
		{"data: none\n", NCCL_GATE, EXCHANGE_NONE, EXCHANGE_NONE},
		{"nccl: gate\nexchange: payload\n", NCCL_GATE, EXCHANGE_PAYLOAD, EXCHANGE_NONE},
		{"nccl: full\n", NCCL_FULL, EXCHANGE_NONE, EXCHANGE_PAYLOAD},
		{"nccl: full\nexchange: payload\n", NCCL_FULL, EXCHANGE_NONE, EXCHANGE_PAYLOAD},
		{"nccl: full\nexchange: messages\n", NCCL_FULL, EXCHANGE_NONE, EXCHANGE_MESSAGES},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config *c = make_well(cases[i].yaml), *again;
		CLEANUP(freep) char *text = NULL;
		size_t n;
		FILE *f = open_memstream(&text, &n);

		/* what is written, as for nboxd, is the same again */
		assert_int_equal(config_write(c, f), 0);
		fclose(f);
		again = make_well(text);
		for (int k = 0; k < 2; k++) {
			const struct config *of = k ? again : c;

			assert_int_equal(of->nccl, cases[i].nccl);
			assert_int_equal(of->exchange, cases[i].exchange);
			assert_int_equal(of->traffic, cases[i].traffic);
		}
		config_free(again);
		config_free(c);
	}
}

static void full_has_a_default_of_its_own_that_goes_with_it(void **state)
{
	struct config *c = make_well("nccl: full\n");
	struct err err;

	(void)state;
	config_set(c, CONFIG_NCCL, SOURCE_FLAG, "gate");
	assert_int_equal(config_finish(c, &err), 0);
	assert_int_equal(c->exchange, EXCHANGE_NONE);
	assert_null(c->net_devices);
	config_free(c);
}

#define OTHER_MESSAGES \
	"its times are of other messages than those that NCCL sends with nccl full: take nccl gate"

static void what_cannot_go_with_it_is_refused(void **state)
{
	static const struct {
		const char *yaml, *want;
	} bad[] = {
		{"nccl: ful\n", "f:1:7: unknown nccl 'ful'; did you mean 'full'?"},
		{"nccl: both\n", "f:1:7: unknown nccl 'both'; there are: gate, full"},
		{"nccl: full\nexchange: none\n",
		 "f:2:11: exchange none: with nccl full NCCL's own messages always cross the link, with "
		 "their bytes (payload) or without (messages)"},
		{"nccl: full\ntuning: {payload_work: none}\n",
		 "f:2:24: payload-work means nothing with nccl full (f:1:7): the bytes are NCCL's own"},
		{"nccl: full\ntuning: {payload_memory: host}\n",
		 "f:2:26: payload-memory means nothing with nccl full (f:1:7): the bytes are NCCL's own"},
		{"nccl: full\ncluster: {nodes: 2, gpus_per_node: 4, real: '0-3,5'}\n",
		 "f:2:45: nccl full: 1 of the 4 ranks of node 1 are real; a node is real as a whole or "
		 "not at all, since NCCL joins its GPUs without a network: name 4-7, or let nodes have 1 "
		 "(--gpus-per-node)"},
		{"nccl: full\ndata: fill\n",
		 "f:2:7: data fill with nccl full: NCCL's own messages from virtual ranks carry no "
		 "values of nbox's: take mirror, identity or none"},
		{"nccl: full\ndata_for: {allreduce: identity, allgather: fill}\n",
		 "f:2:44: allgather=fill with nccl full: NCCL's own messages from virtual ranks carry no "
		 "values of nbox's: take mirror, identity or none"},
		{"nccl: full\nwith: [other]\n",
		 "f:2:8: nccl full: ranks of another run have no process whose NCCL could send, and "
		 "their nodes would be virtual: take nccl gate"},
		{"nccl: full\nwhat_if: [add:delay=1ms, onesided]\n",
		 "f:2:26: 'onesided': " OTHER_MESSAGES},
		{"nccl: full\nwhat_if: ['onesided:communicator=ep']\n",
		 "f:2:11: 'onesided:communicator=ep': " OTHER_MESSAGES},
		{"nccl: full\ncluster: {preset: gb200-nvl72, nodes: 36}\n",
		 "f:2:19: nccl full: NVLink joins 18 nodes here, but NCCL's virtual ranks have it inside "
		 "a node only, and NCCL would send by NICs what the cluster sends by NVLink: "
		 "--domain-nodes 1, or nccl gate"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err;
		int r;
		struct config *c = make(bad[i].yaml, &r, &err);

		assert_int_equal(r, -EINVAL);
		assert_string_equal(err.text, bad[i].want);
		config_free(c);
	}
}

static void what_has_no_messages_of_its_own_goes_with_it(void **state)
{
	static const char *const good[] = {
		"nccl: full\ncluster: {nodes: 4, gpus_per_node: 2, real: '2,3,6-7'}\n",
		"nccl: full\ncluster: {nodes: 4, as_node: last}\ndata: identity\n",
		"nccl: full\ncluster: {preset: gb200-nvl72, nodes: 36, domain_nodes: 1}\n",
		"nccl: full\ndata: none\ndata_for: {allreduce: mirror}\n",
		"nccl: full\nwhat_if: [add:delay=1ms, 'slow:node=1', 'jitter:stddev=3%']\n",
		"nccl: full\nlink: {kind: tcp}\nschedule: {algo: {allreduce: tree}}\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		config_free(make_well(good[i]));
}

/* It is not run again, so nothing of it can be refused. */
static void a_former_run_is_read_as_it_is(void **state)
{
	struct err err = {""};
	struct config *c;
	const char yaml[] = "nccl: full\nwith: [other]\n";

	(void)state;
	assert_int_equal(config_new(&c), 0);
	assert_int_equal(config_parse(c, "f", yaml, strlen(yaml), &err), 0);
	c->is_of_run = true;
	config_set(c, CONFIG_REAL, SOURCE_FLAG, "0");
	config_set(c, CONFIG_EXCHANGE, SOURCE_FLAG, "none");
	if (config_finish(c, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(c->nccl, NCCL_FULL);
	config_free(c);
}

/* --- what workers are told ------------------------------------------------------------------- */

struct told {
	char mode[16], devices[512];
};

static int keep(void *ctx, const char *name, const char *value)
{
	struct told *t = ctx;

	if (strcmp(name, "NBOX_NCCL_MODE") == 0)
		snprintf(t->mode, sizeof(t->mode), "%s", value);
	if (strcmp(name, "NBOX_NET_DEVICES") == 0)
		snprintf(t->devices, sizeof(t->devices), "%s", value);
	return 0;
}

static void expect_devices(const char *yaml, const char *mode, const char *devices)
{
	struct config *c = make_well(yaml);
	struct told t = {.mode = ""};

	assert_int_equal(config_worker_env(c, keep, &t), 0);
	assert_string_equal(t.mode, mode);
	assert_string_equal(t.devices, devices);
	config_free(c);
}

static void workers_hear_of_a_nodes_nics(void **state)
{
	(void)state;
	expect_devices("nccl: gate\n", "", "");
	expect_devices("nccl: full\ncluster: {gpus_per_node: 2}\n", "full",
		       "nbox0:400000,nbox1:400000");
	expect_devices("nccl: full\ncluster: {gpus_per_node: 1}\n"
		       "network: {inter: {bandwidth: 100Gbps, latency: 1us}}\n",
		       "full", "nbox0:100000");
	expect_devices("nccl: full\ncluster: {preset: p4d}\n", "full",
		       "nbox0:100000,nbox1:100000,nbox2:100000,nbox3:100000");
	expect_devices("nccl: full\ncluster: {preset: dgx-h100}\nnetwork: {nics: '2x200Gbps'}\n",
		       "full", "nbox0:200000,nbox1:200000");
}

static void a_topology_file_names_them(void **state)
{
	char path[] = "/tmp/nbox-nccl-XXXXXX";
	static const char good[] = "<system><net name=\"mlx5_0\" speed=\"200000\"/>"
				   "<net name=\"mlx5_1\" speed=\"100000\"/></system>";
	static const char bad[] = "<system></system>";
	char want[128];
	struct config *c;
	struct err err;
	int fd = mkstemp(path), r;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, good, sizeof(good) - 1), sizeof(good) - 1);
	setenv("NCCL_TOPO_FILE", path, 1);
	expect_devices("nccl: full\n", "full", "mlx5_0:200000,mlx5_1:100000");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, bad, sizeof(bad) - 1, 0), sizeof(bad) - 1);
	c = make("nccl: full\n", &r, &err);
	assert_int_equal(r, -EINVAL);
	snprintf(want, sizeof(want),
		 "NCCL_TOPO_FILE: %s has no <net>: a node without a NIC has no network", path);
	assert_string_equal(err.text, want);
	config_free(c);
	config_free(make_well("nccl: gate\n"));
	unsetenv("NCCL_TOPO_FILE");
	close(fd);
	unlink(path);
}

static void the_user_may_name_them(void **state)
{
	static const char *const bad[] = {"mlx5_0", "mlx5_0:", ":400",   "a:4x",
					  "a:0",    "a:400,",  "a:400,b"};
	struct err err;
	int r;

	(void)state;
	setenv("NBOX_NET_DEVICES", "a:400,b:100000:/sys/devices/pci0000:00/0000:00:03.0", 1);
	expect_devices("nccl: full\n", "full",
		       "a:400,b:100000:/sys/devices/pci0000:00/0000:00:03.0");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct config *c;

		setenv("NBOX_NET_DEVICES", bad[i], 1);
		c = make("nccl: full\n", &r, &err);
		assert_int_equal(r, -EINVAL);
		assert_non_null(strstr(err.text, "is no NAME:MBPS[:PCIPATH]"));
		config_free(c);
	}
	unsetenv("NBOX_NET_DEVICES");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchange_is_of_nccls_messages),
		cmocka_unit_test(full_has_a_default_of_its_own_that_goes_with_it),
		cmocka_unit_test(what_cannot_go_with_it_is_refused),
		cmocka_unit_test(what_has_no_messages_of_its_own_goes_with_it),
		cmocka_unit_test(a_former_run_is_read_as_it_is),
		cmocka_unit_test(workers_hear_of_a_nodes_nics),
		cmocka_unit_test(a_topology_file_names_them),
		cmocka_unit_test(the_user_may_name_them),
	};

	unsetenv("NCCL_TOPO_FILE");
	unsetenv("NBOX_NET_DEVICES");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
