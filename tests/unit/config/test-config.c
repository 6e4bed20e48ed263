/* Configuration: tables of good and bad inputs with their exact sentences,
 * precedence, and that the effective configuration gives the same again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "config/config.h"
#include "schedule/schedule.h"

struct bad {
	const char *yaml, *want;
};

static const struct bad bad_files[] = {
	{"modle: ring\n", "f:1:1: unknown key 'modle'; did you mean 'model'?"},
	{"cluster:\n  nodse: 2\n", "f:2:3: unknown key 'cluster.nodse'; did you mean 'nodes'?"},
	{"nodes: 2\n", "f:1:1: unknown key 'nodes'; did you mean 'cluster.nodes'?"},
	{"zzz: 2\n",
	 "f:1:1: unknown key 'zzz'; there are: cluster, network, layout, classes, with, model, what_if, alltoall, steps, "
	 "scenario, expect, nccl, exchange, data, data_for, split, schedule, link, store, metrics, seed, out, "
	 "log, tuning"},
	{"model: ring\nmodel: tree\n", "f:2:1: key 'model' is here a second time"},
	{"cluster: {nodes: 2}\ncluster: {nodes: 3}\n",
	 "f:2:1: key 'cluster' is here a second time"},
	{"cluster:\n  nodes: 2\n  nodes: 2\n", "f:3:3: key 'cluster.nodes' is here a second time"},
	{"cluster:\n  nodes: -2\n", "f:2:10: nodes: "},
	{"cluster:\n  nodes: 2x\n", "f:2:10: nodes: "},
	{"cluster:\n  nodes: 1.5\n", "f:2:10: nodes: "},
	{"cluster:\n  nodes: 0\n", "f:2:10: nodes must be 1 to 65536, not 0"},
	{"cluster:\n  gpus_per_node: 0\n", "f:2:18: gpus-per-node must be 1 to 65536, not 0"},
	{"cluster:\n  nodes: 65536\n",
	 "f:2:10: 65536 nodes x 8 gpus per node are more than 65536 ranks"},
	{"cluster: {nodes: 2, gpus_per_node: 4, world: 9}\n",
	 "f:1:46: a world of 9 contradicts 2 nodes x 4 gpus per node = 8 (f:1:18)"},
	{"cluster: {gpus_per_node: 4, world: 9}\n",
	 "f:1:36: a world of 9 is no multiple of 4 gpus per node (f:1:26)"},
	{"cluster:\n  nodes: 2\n  gpus_per_node: 4\n  real: 7-8\n",
	 "f:4:9: real ranks '7-8' are outside the world of 8 (2 nodes x 4, f:2:10)"},
	{"cluster:\n  real: 0-3,2\n", "f:2:9: real: '0-3,2' names rank 2 twice"},
	{"cluster:\n  nodes: 64\nlayout:\n  - tp=8,pp=4,dp=32\n",
	 "f:4:5: layout: the axes make 1024 ranks, but the world has 512; dp=16 would fit"},
	{"cluster: {nodes: 4, as_node: 4}\n",
	 "f:1:30: there is no node 4 among 4 nodes: they are counted from 0"},
	{"cluster: {nodes: 4, as_node: lasst}\n",
	 "f:1:30: 'lasst' is no node: first, last, or a number from 0; did you mean 'last'?"},
	{"cluster:\n  real: 0-7\n  as_node: last\n",
	 "f:3:12: as-node says which ranks are real, and so does f:2:9: give one of them"},
	{"cluster: {real: [0, 1]}\n",
	 "f:1:17: cluster.real: one text is expected, such as \"0-7\" or \"0,8\""},
	{"cluster: 3\n", "f:1:10: cluster: keys are expected under it"},
	{"network:\n  inter: {latency: 5}\n", "f:2:20: inter-latency: "},
	{"network:\n  inter: {latency: 5 us}\n", "f:2:20: inter-latency: "},
	{"network:\n  inter: {bandwidth: 400}\n", "f:2:22: inter-bandwidth: "},
	{"network:\n  inter: {bandwidth: 400GB}\n", "f:2:22: inter-bandwidth: "},
	{"cluster: {reduce_bandwidth: 0GB/s}\n",
	 "f:1:29: reduce-bandwidth: '0GB/s' is zero; a bandwidth must be more"},
	{"exchange: message\n", "f:1:11: unknown exchange 'message'; did you mean 'messages'?"},
	{"exchange: msgs\n", "f:1:11: unknown exchange 'msgs'; did you mean 'messages'?"},
	{"exchange: all\n", "f:1:11: unknown exchange 'all'; "},
	{"exchange: Messages\n", "f:1:11: unknown exchange 'Messages'; did you mean 'messages'?"},
	{"exchange: [none]\n", "f:1:11: exchange: one value is expected here"},
	{"exchange:\n", "f:1:10: exchange: no value"},
	{"cluster:\n\tnodes: 4\n", "f:2:1: line 2 is indented with a tab; YAML wants spaces"},
	{"cluster:\n  nodes: 4\n\tgpus_per_node: 2\n",
	 "f:3:1: line 3 is indented with a tab; YAML wants spaces"},
	{"cluster:\n  nodes: 4\n  \tgpus_per_node: 2\n",
	 "f:3:3: line 3 is indented with a tab; YAML wants spaces"},
	{"what_if:\n\t- add:delay=1ms\n",
	 "f:2:1: line 2 is indented with a tab; YAML wants spaces"},
	{"link: {kind: roce}\n", "f:1:14: unknown link 'roce'; did you mean 'rdma'? "},
	{"link: {kind: Ethernet}\n", "f:1:14: unknown link 'Ethernet'; did you mean 'tcp'? "},
	{"exchange: ~\n", "f:1:11: exchange: no value"},
	{"exchange: !!str none\n", "f:1:11: exchange: tags (!) and anchors (&) are not taken here"},
	{"cluster: &a {nodes: 4}\n", "f:1:10: tags (!) and anchors (&) are not taken here"},
	{"what_if: !!seq []\n", "f:1:10: tags (!) and anchors (&) are not taken here"},
	{"exchange: &a none\ndata: *a\n",
	 "f:1:11: exchange: tags (!) and anchors (&) are not taken here"},
	{"data: *a\n", "f:1:7: aliases (*name) are not taken here"},
	{"model: \"a\\0b\"\n", "f:1:8: model: a control character in the text"},
	{"model: \"\"\n", "f:1:8: no model is named; `nbox models` lists them"},
	{"data_for: {allgater: fill}\n", "f:1:22: 'allgater' is no kind of collective, and no axis "
					 "of the declared layout; did you mean 'allgather'?"},
	{"data_for: {dp: fill}\n",
	 "f:1:16: 'dp' is no kind of collective, and no axis of the declared "
	 "layout (there is none: --layout)"},
	{"data_for: {allgather: fil}\n",
	 "f:1:23: unknown data policy 'fil'; did you mean 'fill'? "},
	{"data_for: {allgather: fill, AllGather: none}\n", "f:1:40: a second policy for the same; "
							   "there was 'allgather=fill' before"},
	{"layout: ['tp=2,dp=8']\ndata_for: {dp/alreduce: fill}\n", "f:2:25: unknown collective "
								   "'alreduce'; did you mean "
								   "'allreduce'?"},
	{"what_if: [fail]\n", "f:1:11: 'fail': say when: either time=TIME or after=OPS, such as "
			      "fail:rank=17,time=30s"},
	{"what_if: ['fail:time=3s']\n", "f:1:11: 'fail:time=3s': time=TIME needs the rank=RANK "
					"or node=NODE that is gone"},
	{"what_if: ['fail:rank=99,time=3s']\n", "f:1:11: 'fail:rank=99,time=3s': rank=99 is "
						"outside the world of 16 ranks (0 to 15)"},
	{"what_if: ['fail:node=2,time=3s']\n", "f:1:11: 'fail:node=2,time=3s': node=2 is "
					       "outside the cluster of 2 nodes (0 to 1)"},
	{"what_if: ['fail:node=1,rank=1,time=3s']\n",
	 "f:1:11: 'fail:node=1,rank=1,time=3s': "
	 "rank=1 and node=1 exclude each other: use two what-ifs"},
	{"what_if: ['fail:rank=1,5,time=3s']\n",
	 "f:1:11: 'fail:rank=1,5,time=3s': '5' is no key=value; "
	 "several ranks are written with +, such as rank=1+5"},
	{"what_if: ['fail:rank=1,rank=2,time=3s']\n", "f:1:11: 'fail:rank=1,rank=2,time=3s': "
						      "'rank' is given twice"},
	{"what_if: ['fail:rank=3-1,time=3s']\n", "f:1:11: 'fail:rank=3-1,time=3s': rank: '3-1' has "
						 "a range that runs backwards"},
	{"what_if: ['fail:op=allredcue,after=3']\n", "f:1:11: 'fail:op=allredcue,after=3': "
						     "unknown collective 'allredcue'; did you "
						     "mean 'allreduce'?"},
	{"what_if: ['fail:rnak=1,after=3']\n", "f:1:11: 'fail:rnak=1,after=3': unknown "
					       "key 'rnak'; did you mean 'rank'?"},
	{"what_if: add\n", "f:1:10: what_if: a list is expected: [\"add\"]"},
	{"what_if:\n  - add: 3\n", "f:2:5: what_if: texts are expected in this list; put \"...\" "
				   "around one that has a colon and a blank"},
	{"schedule:\n  algo: {alreduce: ring}\n",
	 "f:2:20: unknown collective 'alreduce'; did you mean 'allreduce'?"},
	{"schedule:\n  algo: {allreduce: rnig}\n",
	 "f:2:21: unknown algorithm 'rnig'; did you mean 'ring'?"},
	{"schedule:\n  algo: {alltoall: tree}\n", "f:2:20: "},
	{"schedule:\n  algo: {allreduce: ring, all_reduce: tree}\n",
	 "f:2:39: a second algorithm for AllReduce; there was 'allreduce=ring' before"},
	{"schedule:\n  algo: ring\n",
	 "f:2:9: schedule.algo: a mapping is expected, such as {allreduce: tree}"},
	{"data_for: identity\n",
	 "f:1:11: data_for: a mapping is expected, such as {allgather: identity}"},
	{"schedule:\n  channels: 0\n", "f:2:13: channels must be 1 to 1024, not 0"},
	{"schedule:\n  chunk: 1048576\n", "f:2:10: chunk: "},
	{"schedule:\n  chunk: 1B\n", "f:2:10: chunk must be 16B to 1GiB, not 1B"},
	{"link:\n  addr: tpc:1.2.3.4:5\n",
	 "f:2:9: 'tpc:1.2.3.4:5' is no address: shm:/path, tcp:host:port "
	 "or rdma:host:port; did you mean 'tcp:'?"},
	{"link:\n  addr: tcp:0.0.0.0:5000\n",
	 "f:2:9: tcp:0.0.0.0:5000 can be reached from other hosts, that needs a token: set NBOX_TOKEN "
	 "for nboxd and the workers, or use tcp:127.0.0.1:port"},
	{"link:\n  addr: tcp:127.example.org:5000\n",
	 "f:2:9: tcp:127.example.org:5000 can be reached from other hosts, that needs a token: set NBOX_TOKEN "
	 "for nboxd and the workers, or use tcp:127.0.0.1:port"},
	{"link:\n  addr: tcp:localhost:70000\n", "f:2:9: '70000' is no port (0 to 65535; 0: any)"},
	{"link:\n  addr: tcp:localhost\n", "f:2:9: 'tcp:localhost' is no tcp:host:port"},
	{"link:\n  addr: shm:x.sock\n", "f:2:9: 'shm:x.sock': the path must begin with / (or be an "
					"abstract @name)"},
	{"link:\n  addr: shm:@\n",
	 "f:2:9: 'shm:@': the path must begin with / (or be an abstract @name)"},
	{"link:\n  addr: [shm:/x.sock, rdma:10.0.0.1]\n",
	 "f:2:23: 'rdma:10.0.0.1' is no rdma:host:port"},
	{"link:\n  kind: rdma\n  addr: [shm:/x.sock, tcp:localhost:0]\n",
	 "f:3:10: shm:/x.sock contradicts link rdma (f:2:9); an address alone says which link it is"},
	{"link:\n  kind: tcp\n  addr: shm:/x.sock\n",
	 "f:3:9: shm:/x.sock contradicts link tcp (f:2:9); an address alone says which link it is"},
	{"link:\n  token: 012345678901234567890123456789012\n",
	 "f:2:10: a token has 1 to 32 bytes, not 33"},
	{"tuning:\n  payload_work: none\n",
	 "f:2:17: payload-work means nothing without exchange payload "
	 "(it is none, default exchange)"},
	{"tuning:\n  payload_memory: host\n",
	 "f:2:19: payload-memory means nothing without exchange payload "
	 "(it is none, default exchange)"},
	{"exchange: payload\nlink: {addr: \"shm:@x\"}\ntuning:\n  payload_memory: device\n",
	 "f:4:19: payload-memory device needs link rdma (workers use shm:@x)"},
	{"tuning:\n  timeout: 10ms\n", "f:2:12: timeout must be at least 1s, not 10ms"},
	{"tuning:\n  poll: 2s\n", "f:2:9: poll may be at most 1s, not 2s"},
	{"tuning: {settle: 2s, timeout: 1s}\n", "f:1:18: settle must not be longer than timeout"},
	{"store: 127.0.0.1\n", "f:1:8: '127.0.0.1' is no HOST:PORT, such as 127.0.0.1:0, nor none"},
	{"store: \":0\"\n", "f:1:8: ':0' is no HOST:PORT, such as 127.0.0.1:0, nor none"},
	{"store: localhost:70000\n", "f:1:8: '70000' is no port (0 to 65535; 0: any)"},
	{"metrics: 10.0.0.1:9464\n",
	 "f:1:10: 10.0.0.1:9464 can be reached from other hosts, that needs a token: set NBOX_TOKEN, or use "
	 "127.0.0.1:PORT"},
	{"seed: -1\n", "f:1:7: seed: "},
	{"out: \"\"\n", "f:1:6: no directory is named"},
	{"- a\n", "f:1:1: keys are expected here, such as cluster:, model:, exchange:"},
	{"", "f:1:1: the file is empty"},
	{"model: ring\n---\nmodel: tree\n", "f:2:1: a second document in one file"},
	{"[a]: 3\n", "f:1:1: a key is expected here"},
	{"model: [\n", "f:"},
	{"\tmodel: ring\n", "f:1:1: line 1 is indented with a tab; YAML wants spaces"},
	{"model: \xff\n", "f: byte 7: "},
};

static void a_bad_file_is_refused_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_files); i++) {
		const struct bad *b = &bad_files[i];
		size_t n = strlen(b->want);
		struct err err = {""};
		struct config *c;
		int r;

		assert_int_equal(config_new(&c), 0);
		r = config_parse(c, "f", b->yaml, strlen(b->yaml), &err);
		if (r == 0)
			r = config_finish(c, &err);
		/* Sentences of units/ are its own test's business: a prefix is enough. */
		if (r != -EINVAL || strncmp(err.text, b->want, n) != 0 ||
		    (b->want[n - 1] != ' ' && b->want[n - 1] != ':' && err.text[n]))
			fail_msg("case %zu:\n%s\ngot:  %s\nwant: %s", i, b->yaml, err.text,
				 b->want);
		config_free(c);
	}
}

static const char full[] =
	"# comment\n"
	"cluster:\n  nodes: 64\n  gpus_per_node: 8\n  real: \"0-7\"\n  reduce_bandwidth: 6GB/s\n"
	"network:\n  intra: {latency: 1.5us, bandwidth: 450GB/s}\n"
	"  inter:\n    latency: 5us\n    bandwidth: 400Gbps\n"
	"model: ring:bw=50GB/s\n"
	"what_if:\n  - add:delay=5ms,on=allreduce\n  - \"slow:rank=3\"\n"
	"  - fail:rank=1,time=1.5s\n  - fail:op=alltoall,after=7\n"
	"  - fail:rank=500-511+2,after=1\n  - fail:node=63,after=1\n"
	"exchange: payload\ndata: fill\nsplit: node\n"
	"schedule:\n  algo: {allreduce: tree, Broadcast: chain}\n  channels: 2\n  chunk: 512KiB\n"
	"link: {kind: tcp, addr: \"tcp:0.0.0.0:7000\", token: secret}\n"
	"store: \"[::1]:29500\"\nseed: 18446744073709551615\nout: some/dir\nlog: INFO\n"
	"tuning: {poll: 10us, payload_work: none, payload_memory: host, settle: 1s, timeout: 60s}\n";

static void check_full(const struct config *c)
{
	char text[256], cut[16];

	assert_int_equal(c->world, 512);
	assert_int_equal(c->n_real, 8);
	assert_int_equal(c->real[7], 7);
	assert_true(c->topology.intra.latency_ns == 1500 && c->topology.intra.bytes_per_ns == 450);
	assert_true(c->topology.inter.latency_ns == 5000 && c->topology.inter.bytes_per_ns == 50);
	assert_true(c->topology.reduce_bytes_per_ns == 6);
	assert_string_equal(c->model, "ring:bw=50GB/s");
	assert_int_equal(c->n_what_ifs, 2);
	assert_string_equal(c->what_ifs[0], "add:delay=5ms,on=allreduce");
	assert_string_equal(c->what_ifs[1], "slow:rank=3");
	assert_int_equal(c->n_failures, 4);
	assert_int_equal(c->failures[0].n_ranks, 1);
	assert_int_equal(c->failures[0].ranks[0], 1);
	assert_float_equal(c->failures[0].at.x, 1500000000, 0);
	assert_true(c->failures[0].at.is_given && !c->failures[0].at.is_steps);
	assert_int_equal(c->failures[1].kind, COLL_ALLTOALL);
	assert_int_equal(c->failures[1].after, 7);
	assert_int_equal(c->failures[1].n_ranks, 0);
	assert_int_equal(c->failures[2].n_ranks, 13);
	assert_int_equal(c->failures[2].ranks[0], 2);
	assert_int_equal(c->failures[2].ranks[12], 511);
	assert_int_equal(c->failures[3].n_ranks, 8);
	assert_int_equal(c->failures[3].ranks[0], 504);
	assert_string_equal(
		config_model(c, text, sizeof(text)),
		"ring:bw=50GB/s + add:delay=5ms,on=allreduce + slow:rank=3 + fail:rank=1,time=1.5s"
		" + fail:op=alltoall,after=7 + fail:rank=500-511+2,after=1 + fail:node=63,after=1");
	assert_string_equal(config_model(c, cut, sizeof(cut)), "ring:bw=50GB/s ");
	assert_int_equal(c->exchange, EXCHANGE_PAYLOAD);
	assert_int_equal(c->data, DATA_FILL);
	assert_int_equal(c->split, SPLIT_NODE);
	assert_int_equal(c->algo[COLL_ALLREDUCE], SCHED_TREE);
	assert_int_equal(c->algo[COLL_BROADCAST], SCHED_CHAIN);
	assert_int_equal(c->algo[COLL_ALLGATHER], SCHED_RING);
	assert_int_equal(c->channels, 2);
	assert_int_equal(c->chunk_bytes, 512 << 10);
	assert_string_equal(c->addr, "tcp:0.0.0.0:7000");
	assert_string_equal(c->store, "[::1]:29500");
	assert_true(c->seed == UINT64_MAX);
	assert_string_equal(c->out, "some/dir");
	assert_int_equal(c->log_level, 2);
	assert_int_equal(c->poll_ns, 10000);
	assert_int_equal(c->payload_work, WORK_NONE);
	assert_int_equal(c->payload_memory, MEMORY_HOST);
	assert_true(c->settle_ns == 1000000000 && c->timeout_ns == 60000000000);
}

static void what_is_written_gives_the_same_configuration(void **state)
{
	struct config *c, *again;
	struct err err = {""};
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	(void)state;
	assert_int_equal(config_new(&c), 0);
	assert_int_equal(config_parse(c, "f", full, strlen(full), &err), 0);
	if (config_finish(c, &err) < 0)
		fail_msg("%s", err.text);
	check_full(c);
	assert_memory_equal(c->token, "secret\0", 7);
	assert_int_equal(config_parse(c, "g", full, strlen(full), &err), -EINVAL);
	assert_string_equal(err.text, "g: a second cluster file; f was read before");
	/* What was in force, written and read again, is in force again; no secret. */
	f = open_memstream(&text, &n);
	assert_int_equal(config_write(c, f), 0);
	fclose(f);
	assert_null(strstr(text, "secret\""));
	assert_int_equal(config_new(&again), 0);
	if (config_parse(again, "effective", text, n, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	assert_int_equal(config_set(again, CONFIG_TOKEN, SOURCE_FLAG, "secret"), 0);
	/* nor where this run's results lie: the next one's lie elsewhere */
	assert_non_null(strstr(text, "\n# out: \"some/dir\""));
	assert_int_equal(config_set(again, CONFIG_OUT, SOURCE_FLAG, "some/dir"), 0);
	if (config_finish(again, &err) < 0)
		fail_msg("%s", err.text);
	check_full(again);
	free(text);
	config_free(again);
	config_free(c);
}

static void defaults_are_complete(void **state)
{
	struct config *c, *again;
	struct err err = {""};
	char *text = NULL;
	size_t n = 0;
	FILE *f;

	(void)state;
	unsetenv("XDG_RUNTIME_DIR");
	assert_int_equal(config_new(&c), 0);
	assert_int_equal(config_finish(c, &err), 0);
	assert_int_equal(c->world, 16);
	assert_int_equal(c->n_real, 8);
	assert_int_equal(strncmp(c->addr, "shm:/tmp/nboxd-", 15), 0);
	assert_null(c->out);
	f = open_memstream(&text, &n);
	assert_int_equal(config_write(c, f), 0);
	fclose(f);
	assert_int_equal(config_new(&again), 0);
	assert_int_equal(config_parse(again, "e", text, n, &err), 0);
	/* The world may still be changed by a flag, and its link too. */
	config_set(again, CONFIG_LINK, SOURCE_FLAG, "tcp");
	if (config_finish(again, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(again->addr, "tcp:127.0.0.1:0");
	assert_int_equal(again->n_real, 8);
	assert_int_equal(again->real[0], 0);
	config_set(again, CONFIG_AS_NODE, SOURCE_FLAG, "last");
	assert_int_equal(config_finish(again, &err), 0);
	assert_true(again->n_real == 8 && again->real[0] == 8 && again->real[7] == 15);
	free(text);
	config_free(again);
	config_free(c);
}

/* An address names its link, also in the file that nbox run writes for nboxd. */
static void an_address_names_its_link(void **state)
{
	static const struct {
		const char *link, *addrs[2], *first;
	} cases[] = {
		{NULL, {"tcp:127.0.0.1:7"}, "tcp:127.0.0.1:7"},
		{NULL, {"rdma:auto:0"}, "rdma:auto:0"},
		{NULL, {"shm:@x"}, "shm:@x"},
		{NULL, {"tcp:127.0.0.1:7", "shm:@x"}, "tcp:127.0.0.1:7"},
		{NULL, {"rdma:auto:0", "rdma:127.0.0.1:7"}, "rdma:auto:0"},
		{"shm", {"tcp:127.0.0.1:7", "shm:@x"}, "shm:@x"},
		{"rdma", {"tcp:127.0.0.1:7", "rdma:auto:0"}, "rdma:auto:0"},
	};
	struct config *c, *again;
	struct err err = {""};
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(config_new(&c), 0);
		if (cases[i].link)
			config_set(c, CONFIG_LINK, SOURCE_FLAG, cases[i].link);
		for (size_t k = 0; k < 2 && cases[i].addrs[k]; k++)
			assert_int_equal(config_set(c, CONFIG_ADDR, SOURCE_FLAG, cases[i].addrs[k]),
					 0);
		if (config_finish(c, &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(c->addr, cases[i].first);
		f = open_memstream(&text, &size);
		assert_int_equal(config_write(c, f), 0);
		fclose(f);
		assert_int_equal(config_new(&again), 0);
		assert_int_equal(config_parse(again, "e", text, size, &err), 0);
		if (config_finish(again, &err) < 0)
			fail_msg("%s", err.text);
		assert_string_equal(again->addr, cases[i].first);
		assert_int_equal(again->n_addrs, c->n_addrs);
		free(text);
		config_free(again);
		config_free(c);
	}
}

static void layouts_may_be_several(void **state)
{
	static const char text[] = "cluster:\n  nodes: 64\n"
				   "layout:\n  - tp=8,pp=4,dp=16\n  - ep=64,dp=8,order=dp-ep\n";
	struct err err = {""};
	struct config *c;

	(void)state;
	assert_int_equal(config_new(&c), 0);
	assert_int_equal(config_parse(c, "f", text, strlen(text), &err), 0);
	assert_int_equal(config_finish(c, &err), 0);
	assert_int_equal(c->n_layouts, 2);
	assert_int_equal(c->layouts[0].axis[2].stride, 32);
	assert_int_equal(c->layouts[1].axis[1].stride, 8);
	config_free(c);
}

static void unknown_variables_are_refused(void **state)
{
	static const struct {
		const char *entry, *want;
	} bad[] = {
		{"NBOX_MODLE=ring", "variable NBOX_MODLE is unknown; did you mean 'NBOX_MODEL'?"},
		{"NBOX_BANANAS_ARE_YELLOW=1",
		 "variable NBOX_BANANAS_ARE_YELLOW is unknown; nbox run --help lists the "
		 "variables; unset it"},
		{"NBOX_NODE=2", "variable NBOX_NODE is unknown; did you mean 'NBOX_NODES'?"},
		{"NBOX_INIT_TIMEOUT=5",
		 "NBOX_INIT_TIMEOUT: '5' has no unit; units of a time: ns us ms s"},
		{"NBOX_FOOTPRINT=many",
		 "NBOX_FOOTPRINT: 'many' is no count: write decimal digits only"},
		{"NBOX_DEVICE=gpu", "NBOX_DEVICE: 'gpu' is none of auto, host, cuda"},
		{"NBOX_ENABLE=no", "NBOX_ENABLE: 'no' is none of 0 and 1"},
	};
	struct err err = {""};
	struct config *c;

	(void)state;
	assert_int_equal(config_new(&c), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char entry[64], *vars[] = {(char *)"NBOX_SEED=2", entry, NULL};

		snprintf(entry, sizeof(entry), "%s", bad[i].entry);

		assert_int_equal(config_environment(c, vars, &err), -EINVAL);
		assert_string_equal(err.text, bad[i].want);
	}
	config_free(c);
}

/* Two words for one thing: a flag's goes before a file's, whichever it is. */
static void the_flag_goes_before_the_file_whichever_word_it_uses(void **state)
{
	static const struct {
		const char *file, *text;
		enum option_id flag;
		uint32_t first;
	} cases[] = {{"real: 0", "last", CONFIG_AS_NODE, 6},
		     {"as_node: last", "1", CONFIG_REAL, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {""};
		struct config *c;
		char file[96];

		snprintf(file, sizeof(file), "cluster: {nodes: 4, gpus_per_node: 2, %s}\n",
			 cases[i].file);
		assert_int_equal(config_new(&c), 0);
		assert_int_equal(config_set(c, cases[i].flag, SOURCE_FLAG, cases[i].text), 0);
		assert_int_equal(config_parse(c, "f", file, strlen(file), &err), 0);
		if (config_finish(c, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(c->real[0], cases[i].first);
		config_free(c);
	}
}

static void flags_go_before_variables_before_files(void **state)
{
	char *argv[] = {(char *)"x", (char *)"--nodes=3",   (char *)"--what-if",
			(char *)"a", (char *)"--what-if=b", (char *)"--other",
			NULL};
	char *vars[] = {(char *)"NBOX_NODES=5", (char *)"NBOX_GPUS_PER_NODE=4",
			(char *)"NBOX_WHAT_IF=c;d", (char *)"NBOX_NCCL=/x",
			/* others' and the shim's: near to one of ours, and known */
			(char *)"NBOX_INIT_TIMEOUT=9s", (char *)"NBOX_HOST_DEVICES=8",
			(char *)"NBOX_SEED=", (char *)"NBOX_DEBUG=info", (char *)"PATH=/bin",
			(char *)"NBOX_TEST_ANYTHING=1", (char *)"NBOX_MODLE=", (char *)"NBOXES=1",
			NULL};
	struct option_word w;
	struct err err = {""};
	struct config *c;
	int i = 1;

	(void)state;
	assert_int_equal(config_new(&c), 0);
	/* Against the order of precedence on purpose: it must not matter. */
	while (i < 5) {
		assert_int_equal(option_take(COMMAND_RUN, 6, argv, &i, &w, &err), 0);
		assert_int_equal(config_take(c, &w, &err), 0);
	}
	assert_int_equal(option_take(COMMAND_RUN, 6, argv, &i, &w, &err), -EINVAL);
	assert_int_equal(config_environment(c, vars, &err), 0);
	assert_int_equal(config_parse(c, "f", full, strlen(full), &err), 0);
	if (config_finish(c, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(c->topology.n_nodes, 3);
	assert_int_equal(c->topology.gpus_per_node, 4);
	assert_int_equal(c->n_what_ifs, 2);
	assert_string_equal(c->what_ifs[0], "a");
	assert_string_equal(c->what_ifs[1], "b");
	assert_string_equal(c->model, "ring:bw=50GB/s");
	assert_int_equal(c->log_level, 2);
	config_free(c);
}

static void an_unknown_flag_suggests_another(void **state)
{
	char *argv[] = {(char *)"x", (char *)"--nodes", NULL};
	struct option_word w;
	struct err err = {""};
	struct config *c;
	int i = 1;

	(void)state;
	assert_int_equal(config_new(&c), 0);
	assert_int_equal(option_take(COMMAND_RUN, 2, (char *[]){(char *)"x", (char *)"y"}, &i, &w,
				     &err),
			 OPTION_NONE);
	assert_int_equal(option_take(COMMAND_RUN, 2, argv, &i, &w, &err), -EINVAL);
	assert_string_equal(err.text, "--nodes: needs a value: --nodes N");
	assert_int_equal(option_unknown(COMMAND_RUN, "--modle=3", &err), -EINVAL);
	assert_string_equal(err.text, "unknown option '--modle'; did you mean '--model'?");
	option_unknown(COMMAND_RUN, "--jsn", &err);
	assert_string_equal(err.text, "unknown option '--jsn'; did you mean '--json'?");
	option_unknown(COMMAND_NBOXD, "--dryrun", &err);
	assert_string_equal(err.text, "unknown option '--dryrun'; see --help");
	option_unknown(COMMAND_RUN, "--zzzzzzzz", &err);
	assert_string_equal(err.text, "unknown option '--zzzzzzzz'; see --help");
	config_set(c, CONFIG_NODES, SOURCE_FLAG, "many");
	assert_int_equal(config_finish(c, &err), -EINVAL);
	assert_int_equal(strncmp(err.text, "--nodes: 'many' is no count", 27), 0);
	config_set(c, CONFIG_NODES, SOURCE_FLAG, "4");
	config_set(c, CONFIG_WORLD, SOURCE_VARIABLE, "31");
	assert_int_equal(config_finish(c, &err), -EINVAL);
	assert_string_equal(err.text,
			    "NBOX_WORLD: a world of 31 contradicts 4 nodes x 8 gpus per node "
			    "= 32 (--nodes)");
	config_free(c);
	assert_int_equal(config_file(NULL, "/no/such/file", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such/file: cannot read the cluster file"));
}

/* Names are unique, each has a variable and a key, and every default is good. */
static void the_table_names_each_option_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < CONFIG_OPTIONS; i++) {
		const struct option *o = &options[i];

		assert_true(o->name && o->variable && o->key && o->help && o->arg);
		assert_int_equal(strncmp(o->variable, "NBOX_", 5), 0);
		assert_int_equal(o->kind == KIND_CHOICE, o->choices != NULL);
		for (size_t k = 0; k < i; k++) {
			assert_string_not_equal(o->name, options[k].name);
			assert_string_not_equal(o->variable, options[k].variable);
			assert_string_not_equal(o->key, options[k].key);
		}
	}
}

/* The most exact policy holds, whatever the order. */
static void the_most_exact_data_policy_holds(void **state)
{
	static const char text[] =
		"layout: ['tp=2,pp=2,dp=4']\ndata: identity\ndata_for:\n  dp/allreduce: mirror\n"
		"  allreduce: none\n  dp: fill\n  tp+pp: none\n  world/broadcast: mirror\n";
	static const struct {
		const char *axes;
		bool is_world;
		uint32_t kind, want;
	} cases[] = {
		{"dp", false, COLL_ALLREDUCE, DATA_MIRROR},
		{"dp", false, COLL_ALLGATHER, DATA_FILL},
		{"tp", false, COLL_ALLREDUCE, DATA_NONE},
		{"tp", false, COLL_ALLGATHER, DATA_IDENTITY},
		{"tp+pp", false, COLL_ALLGATHER, DATA_NONE},
		{"pp+tp", false, COLL_ALLREDUCE, DATA_NONE},
		{"tp+dp", false, COLL_ALLGATHER, DATA_IDENTITY},
		{"", false, COLL_BROADCAST, DATA_IDENTITY},
		{"", true, COLL_BROADCAST, DATA_MIRROR},
		{"tp+pp+dp", true, COLL_BROADCAST, DATA_MIRROR},
	};
	struct err err = {""};
	struct config *c;

	(void)state;
	assert_int_equal(config_new(&c), 0);
	if (config_parse(c, "f", text, strlen(text), &err) || config_finish(c, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t data[COLL_KINDS];

		data_for_resolve(c->data_for, c->n_data_for, c->data, cases[i].axes,
				 cases[i].is_world, data);
		if (data[cases[i].kind] != cases[i].want)
			fail_msg("case %zu: %s on '%s': %s", i, coll_kind_name(cases[i].kind),
				 cases[i].axes, wire_data_name(data[cases[i].kind]));
	}
	config_free(c);
}

/* All axes of a layout together are the world, whose communicator is known by no axis. */
static void all_axes_together_are_the_world(void **state)
{
	static const struct {
		const char *text;
		uint32_t want;
	} cases[] = {
		{"layout: ['dp=16']\ndata_for: {dp: fill}\n", DATA_FILL},
		{"layout: ['tp=1,dp=16']\ndata_for: {dp: fill}\n", DATA_FILL},
		{"layout: ['tp=2,dp=8']\ndata_for: {dp+tp: fill}\n", DATA_FILL},
		{"layout: ['tp=2,dp=8']\ndata_for: {dp: fill, tp: none}\n", DATA_MIRROR},
		{"layout: ['tp=2,dp=8', 'ep=16']\ndata_for: {ep: fill}\n", DATA_FILL},
		{"layout: ['tp=2,dp=8', 'ep=4,edp=4']\ndata_for: {dp+ep: fill}\n", DATA_MIRROR},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t data[COLL_KINDS];
		struct err err = {""};
		struct config *c;

		assert_int_equal(config_new(&c), 0);
		if (config_parse(c, "f", cases[i].text, strlen(cases[i].text), &err) ||
		    config_finish(c, &err))
			fail_msg("case %zu: %s", i, err.text);
		data_for_resolve(c->data_for, c->n_data_for, c->data, "", true, data);
		if (data[COLL_ALLREDUCE] != cases[i].want)
			fail_msg("case %zu: %s", i, wire_data_name(data[COLL_ALLREDUCE]));
		config_free(c);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_axes_together_are_the_world),
		cmocka_unit_test(the_most_exact_data_policy_holds),
		cmocka_unit_test(a_bad_file_is_refused_with_its_place),
		cmocka_unit_test(what_is_written_gives_the_same_configuration),
		cmocka_unit_test(defaults_are_complete),
		cmocka_unit_test(an_address_names_its_link),
		cmocka_unit_test(layouts_may_be_several),
		cmocka_unit_test(flags_go_before_variables_before_files),
		cmocka_unit_test(the_flag_goes_before_the_file_whichever_word_it_uses),
		cmocka_unit_test(unknown_variables_are_refused),
		cmocka_unit_test(an_unknown_flag_suggests_another),
		cmocka_unit_test(the_table_names_each_option_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
