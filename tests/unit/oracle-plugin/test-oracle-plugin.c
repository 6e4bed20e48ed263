/* Plays NCCL: opens libnbox-oracle.so, takes its tables by their names, and calls what they hold in
 * NCCL's order. Each test has a copy of its own that has seen nothing. */
#include "cmocka-all.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "nccl-plugin/net.h"
#include "nccl-plugin/tuner.h"
#include "oracle-plugin/oracle-plugin.h"

#define FN(name) __typeof__(name) *name

static const char *path;
static char logged[512];
static int n_logged;

struct plugin {
	void *library;
	FN(nbox_oracle_set_devices);
	FN(nbox_oracle_tables);
	FN(nbox_oracle_table);
	FN(nbox_oracle_constants);
	FN(nbox_oracle_stop_ops);
	FN(nbox_oracle_counts);
};

static void keep_log(int level, unsigned long subsystems, const char *file, int line,
		     const char *format, ...) __attribute__((format(printf, 5, 6)));

static void keep_log(int level, unsigned long subsystems, const char *file, int line,
		     const char *format, ...)
{
	va_list args;

	assert_true(level == PLUGIN_LEVEL_WARN && subsystems == PLUGIN_NET && file && line > 0);
	va_start(args, format);
	vsnprintf(logged, sizeof(logged), format, args);
	va_end(args);
	n_logged++;
}

static void *symbol(const struct plugin *p, const char *name)
{
	void *found = dlsym(p->library, name);

	assert_non_null(found);
	return found;
}

static int load(void **state)
{
	static struct plugin p;

	p.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!p.library)
		fail_msg("%s", dlerror());
	p.nbox_oracle_set_devices = symbol(&p, "nbox_oracle_set_devices");
	p.nbox_oracle_tables = symbol(&p, "nbox_oracle_tables");
	p.nbox_oracle_table = symbol(&p, "nbox_oracle_table");
	p.nbox_oracle_constants = symbol(&p, "nbox_oracle_constants");
	p.nbox_oracle_stop_ops = symbol(&p, "nbox_oracle_stop_ops");
	p.nbox_oracle_counts = symbol(&p, "nbox_oracle_counts");
	n_logged = 0;
	*state = &p;
	return 0;
}

static int unload(void **state)
{
	const struct plugin *p = *state;

	return dlclose(p->library);
}

static const struct nbox_oracle_device two_ports[] = {
	{"mlx5_0", "/sys/devices/pci0000:00/0000:01:00.0", 7, 1, 200000, 1.5F, 131072, true},
	{"mlx5_1", NULL, 7, 2, 100000, 0, 65536, false},
};

static void set_two(const struct plugin *p, enum nbox_oracle_fusing fusing)
{
	assert_int_equal(p->nbox_oracle_set_devices(two_ports, 2, fusing), 0);
}

/* What versions have alike, of @net; init has been called. @listens: handle and listener. */
#define CONNECT_ALL(net, listened, connected)                                                     \
	do {                                                                                      \
		unsigned char handle[NET_HANDLE_BYTES];                                           \
		void *listener = NULL, *sender = NULL, *receiver = NULL, *memory = NULL;          \
		void *request = NULL;                                                             \
                                                                                                  \
		memset(handle, 0xa5, sizeof(handle));                                             \
		assert_int_equal(listened, PLUGIN_OK);                                            \
		assert_non_null(listener);                                                        \
		assert_int_equal(handle[NET_HANDLE_BYTES - 1], 0); /* all of it is sent */        \
		memset(handle, 0, sizeof(handle));                 /* a virtual rank's */         \
		assert_int_equal(connected, PLUGIN_OK);                                           \
		assert_int_equal((net)->accept(listener, &receiver, NULL), PLUGIN_OK);            \
		assert_true(sender &&receiver);                                                   \
		assert_int_equal((net)->register_memory(sender, handle, 4 << 20, NET_MEMORY_CUDA, \
							&memory),                                 \
				 PLUGIN_OK);                                                      \
		assert_int_equal((net)->deregister(sender, memory), PLUGIN_OK);                   \
		assert_int_equal((net)->register_dmabuf(receiver, handle, 4 << 20,                \
							NET_MEMORY_CUDA, 0, 3, &memory),          \
				 PLUGIN_OK);                                                      \
		assert_non_null(memory);                                                          \
		assert_int_equal((net)->test(request, NULL, NULL), PLUGIN_INVALID_USAGE);         \
		assert_int_equal((net)->iflush(receiver, 0, NULL, NULL, NULL, &request),          \
				 PLUGIN_INVALID_USAGE);                                           \
		assert_int_equal((net)->deregister(receiver, memory), PLUGIN_OK);                 \
		assert_int_equal((net)->close_sender(sender), PLUGIN_OK);                         \
		assert_int_equal((net)->close_receiver(receiver), PLUGIN_OK);                     \
		assert_int_equal((net)->close_listener(listener), PLUGIN_OK);                     \
	} while (0)

static void check_counts(const struct plugin *p, uint64_t n_inits)
{
	struct nbox_oracle_counts c;

	p->nbox_oracle_counts(&c);
	assert_true(c.n_inits == n_inits && c.n_listens == 1 && c.n_connects == 1 &&
		    c.n_accepts == 1);
	assert_true(c.n_registrations == 2 && c.n_refused == 4 && n_logged == 4);
	assert_true(c.n_open == 0 && c.n_registered == 0);
}

static void check_v9(const struct net_properties_v9 *a, const struct net_properties_v9 *b)
{
	assert_string_equal(a->name, "mlx5_0");
	assert_string_equal(a->pci_path, two_ports[0].pci_path);
	assert_true(a->guid == 7 && a->memory == (NET_MEMORY_HOST | NET_MEMORY_CUDA) &&
		    a->speed_mbps == 200000);
	assert_true(a->port == 1 && a->latency_us == 1.5F && a->n_comms_max == 131072 &&
		    a->n_receives_max == 1);
	assert_true(a->offload == 0 && a->offload_version == 0 && !a->must_flush);
	assert_true(a->fused.n_devices == 1 && a->fused.devices[0] == 0);
	assert_true(a->p2p_bytes_max == NET_BYTES_MAX && a->collective_bytes_max == NET_BYTES_MAX);
	assert_null(b->pci_path);
	assert_true(b->memory == NET_MEMORY_HOST && b->fused.devices[0] == 1 && b->port == 2);
}

static void test_ncclNetPlugin_v8_connects_and_carries_nothing(void **state)
{
	const struct plugin *p = *state;
	const struct net_plugin_v8 *net = symbol(p, "ncclNetPlugin_v8");
	struct net_properties_v8 a, b;
	void *request = NULL;
	int n = -1;

	set_two(p, NBOX_ORACLE_SINGLE);
	assert_string_equal(net->name, NBOX_ORACLE_NET);
	assert_int_equal(net->init(keep_log), PLUGIN_OK);
	assert_int_equal(net->devices(&n), PLUGIN_OK);
	assert_int_equal(n, 2);
	assert_int_equal(net->get_properties(0, &a), PLUGIN_OK);
	assert_int_equal(net->get_properties(1, &b), PLUGIN_OK);
	assert_string_equal(a.name, "mlx5_0");
	assert_string_equal(a.pci_path, two_ports[0].pci_path);
	assert_true(a.guid == 7 && a.memory == (NET_MEMORY_HOST | NET_MEMORY_CUDA) &&
		    a.speed_mbps == 200000);
	assert_true(a.port == 1 && a.latency_us == 1.5F && a.n_comms_max == 131072 &&
		    a.n_receives_max == 1);
	assert_true(a.offload == 0 && a.offload_version == 0 && !b.pci_path);
	assert_int_equal(net->get_properties(2, &b), PLUGIN_INVALID_ARGUMENT);
	assert_int_equal(net->isend(&n, &n, 4, 0, NULL, &request), PLUGIN_INVALID_USAGE);
	assert_non_null(strstr(logged, "isend: nbox oracle moves no data"));
	assert_int_equal(net->irecv(&n, 0, NULL, NULL, NULL, NULL, &request), PLUGIN_INVALID_USAGE);
	assert_non_null(strstr(logged, "irecv: nbox oracle moves no data"));
	CONNECT_ALL(net, net->listen(1, handle, &listener), net->connect(1, handle, &sender, NULL));
	check_counts(p, 1);
}

static void test_ncclNetPlugin_v9_connects_and_carries_nothing(void **state)
{
	const struct plugin *p = *state;
	const struct net_plugin_v9 *net = symbol(p, "ncclNetPlugin_v9");
	struct net_properties_v9 a, b;
	void *request = NULL;

	set_two(p, NBOX_ORACLE_SINGLE);
	assert_string_equal(net->name, NBOX_ORACLE_NET);
	assert_null(net->make_fused);
	assert_int_equal(net->init(keep_log), PLUGIN_OK);
	assert_int_equal(net->get_properties(0, &a), PLUGIN_OK);
	assert_int_equal(net->get_properties(1, &b), PLUGIN_OK);
	check_v9(&a, &b);
	assert_int_equal(net->isend(&a, &a, 4, 0, NULL, &request), PLUGIN_INVALID_USAGE);
	assert_int_equal(net->irecv(&a, 0, NULL, NULL, NULL, NULL, &request), PLUGIN_INVALID_USAGE);
	CONNECT_ALL(net, net->listen(0, handle, &listener), net->connect(0, handle, &sender, NULL));
	check_counts(p, 1);
}

static void test_ncclNetPlugin_v10_connects_and_carries_nothing(void **state)
{
	const struct plugin *p = *state;
	const struct net_plugin_v10 *net = symbol(p, "ncclNetPlugin_v10");
	struct net_config config = {-1};
	struct net_properties_v9 a, b;
	void *request = NULL;

	set_two(p, NBOX_ORACLE_SINGLE);
	assert_string_equal(net->name, NBOX_ORACLE_NET);
	assert_null(net->make_fused);
	assert_int_equal(net->init(keep_log, NULL), PLUGIN_OK);
	assert_int_equal(net->get_properties(0, &a), PLUGIN_OK);
	assert_int_equal(net->get_properties(1, &b), PLUGIN_OK);
	check_v9(&a, &b);
	assert_int_equal(net->isend(&a, &a, 4, 0, NULL, NULL, &request), PLUGIN_INVALID_USAGE);
	assert_int_equal(net->irecv(&a, 0, NULL, NULL, NULL, NULL, NULL, &request),
			 PLUGIN_INVALID_USAGE);
	CONNECT_ALL(net, net->listen(0, handle, &listener),
		    net->connect(0, &config, handle, &sender, NULL));
	check_counts(p, 1);
}

static void test_ncclNetPlugin_v11_connects_and_carries_nothing(void **state)
{
	const struct plugin *p = *state;
	const struct net_plugin_v11 *net = symbol(p, "ncclNetPlugin_v11");
	struct net_config config = {-1};
	struct net_properties_v11 a, b;
	void *context[2] = {NULL, NULL}, *request = NULL;
	int n = -1;

	set_two(p, NBOX_ORACLE_SINGLE);
	assert_string_equal(net->name, NBOX_ORACLE_NET);
	assert_true(!net->make_fused && !net->set_attributes);
	for (int i = 0; i < 2; i++) /* two communicators */
		assert_int_equal(net->init(&context[i], 99, &config, keep_log, NULL), PLUGIN_OK);
	assert_int_equal(net->devices(&n), PLUGIN_OK);
	assert_int_equal(n, 2);
	assert_int_equal(net->get_properties(0, &a), PLUGIN_OK);
	assert_int_equal(net->get_properties(1, &b), PLUGIN_OK);
	check_v9(&a.v9, &b.v9);
	assert_int_equal(a.n_requests_max, 1);
	assert_int_equal(net->isend(&a, &a, 4, 0, NULL, NULL, &request), PLUGIN_INVALID_USAGE);
	assert_int_equal(net->irecv(&a, 0, NULL, NULL, NULL, NULL, NULL, &request),
			 PLUGIN_INVALID_USAGE);
	CONNECT_ALL(net, net->listen(context[0], 0, handle, &listener),
		    net->connect(context[0], 0, handle, &sender, NULL));
	for (int i = 0; i < 2; i++)
		assert_int_equal(net->finalize(context[i]), PLUGIN_OK);
	check_counts(p, 2);
}

static void test_ports_of_a_card_are_fused_where_the_real_network_does(void **state)
{
	const struct plugin *p = *state;
	const struct net_plugin_v9 *v9 = symbol(p, "ncclNetPlugin_v9");
	const struct net_plugin_v10 *v10 = symbol(p, "ncclNetPlugin_v10");
	const struct net_plugin_v11 *net = symbol(p, "ncclNetPlugin_v11");
	struct net_fused of = {2, {0, 1}};
	struct net_properties_v11 both;
	int n = -1, device = -1;

	set_two(p, NBOX_ORACLE_FUSED);
	assert_true(v9->make_fused && v10->make_fused && net->make_fused);
	assert_int_equal(net->make_fused(&device, &of), PLUGIN_OK);
	assert_int_equal(device, 2);
	net->devices(&n);
	assert_int_equal(n, 3);
	assert_int_equal(net->get_properties(device, &both), PLUGIN_OK);
	assert_string_equal(both.v9.name, "mlx5_0+mlx5_1");
	assert_true(both.v9.speed_mbps == 300000 && both.v9.guid == 7 && both.v9.port == 1);
	assert_memory_equal(&both.v9.fused, &of, 3 * sizeof(int));
	of = (struct net_fused){2, {0, 2}}; /* a fused one is no card's */
	assert_int_equal(net->make_fused(&device, &of), PLUGIN_INVALID_USAGE);
	of = (struct net_fused){5, {0, 1}};
	assert_int_equal(net->make_fused(&device, &of), PLUGIN_INVALID_USAGE);
	of = (struct net_fused){2, {-1, 1}};
	assert_int_equal(net->make_fused(&device, &of), PLUGIN_INVALID_USAGE);
	net->devices(&n);
	assert_int_equal(n, 3);
}

static void test_devices_are_checked_and_stay_when_nccl_has_asked(void **state)
{
	static struct nbox_oracle_device many[NBOX_ORACLE_DEVICES_MAX + 1];
	const struct plugin *p = *state;
	const struct net_plugin_v8 *net = symbol(p, "ncclNetPlugin_v8");
	struct nbox_oracle_device wrong = two_ports[0];
	char long_name[257];
	int n = -1;

	for (size_t i = 0; i < NBOX_ORACLE_DEVICES_MAX + 1; i++)
		many[i] = two_ports[0];
	assert_int_equal(p->nbox_oracle_set_devices(many, NBOX_ORACLE_DEVICES_MAX + 1, 0), -E2BIG);
	assert_int_equal(p->nbox_oracle_set_devices(many, NBOX_ORACLE_DEVICES_MAX, 0), 0);
	memset(long_name, 'x', sizeof(long_name));
	long_name[256] = '\0';
	wrong.name = long_name;
	assert_int_equal(p->nbox_oracle_set_devices(&wrong, 1, 0), -ENAMETOOLONG);
	wrong = (struct nbox_oracle_device){.name = "eth0"};
	assert_int_equal(p->nbox_oracle_set_devices(&wrong, 1, 0), -EINVAL);
	wrong = (struct nbox_oracle_device){.name = "", .speed_mbps = 1};
	assert_int_equal(p->nbox_oracle_set_devices(&wrong, 1, 0), -EINVAL);
	net->devices(&n);
	assert_int_equal(n, NBOX_ORACLE_DEVICES_MAX); /* what is refused changes nothing */
	assert_int_equal(p->nbox_oracle_set_devices(two_ports, 2, 0), -EBUSY);
}

static void test_without_devices_it_is_no_network(void **state)
{
	const struct net_plugin_v11 *net = symbol(*state, "ncclNetPlugin_v11");
	int n = -1;

	assert_int_equal(net->devices(&n), PLUGIN_OK);
	assert_int_equal(n, 0);
}

/* A table of NCCL's size, and behind it what is none of it. */
static float costs[PLUGIN_N_ALGORITHMS * PLUGIN_N_PROTOCOLS + 1];

static void make_costs(void)
{
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++)
		costs[i] = i % 5 == 4 ? TUNER_IGNORED : 10.5F * (float)(i + 1);
}

static void check_table(const struct plugin *p, uint64_t number, int version, int n_rows)
{
	struct nbox_oracle_table t;
	float unchanged[sizeof(costs) / sizeof(costs[0])];

	memcpy(unchanged, costs, sizeof(costs));
	make_costs();
	assert_memory_equal(costs, unchanged, sizeof(costs));
	assert_int_equal(p->nbox_oracle_table(number, &t), 0);
	assert_true(t.number == number && t.plugin_version == version && t.n_ranks == 512 &&
		    t.n_nodes == 64);
	assert_true(t.function == PLUGIN_ALLREDUCE && t.bytes == (size_t)8 << 30 && t.n_ops == 1);
	assert_true(t.has_costs && t.n_algorithms == n_rows);
	for (int a = 0; a < PLUGIN_N_ALGORITHMS; a++)
		for (int q = 0; q < PLUGIN_N_PROTOCOLS; q++)
			assert_true(t.us[a][q] == (a < n_rows ? costs[a * PLUGIN_N_PROTOCOLS + q]
							      : TUNER_IGNORED));
	assert_int_equal(p->nbox_oracle_table(number + 1, &t), -ENOENT);
}

static void test_ncclTunerPlugin_v2_keeps_what_it_is_asked(void **state)
{
	const struct plugin *p = *state;
	const struct tuner_plugin_v2 *tuner = symbol(p, "ncclTunerPlugin_v2");
	int algorithm = -1, protocol = -1, n_channels = 0;
	struct nbox_oracle_table t;
	void *context = NULL;

	assert_non_null(tuner->name);
	assert_int_equal(tuner->init(512, 64, keep_log, &context), PLUGIN_OK);
	assert_int_equal(tuner->get_info(context, PLUGIN_ALLGATHER, 4096, 0, 1, 1, &algorithm,
					 &protocol, &n_channels),
			 PLUGIN_OK);
	assert_true(algorithm == -1 && protocol == -1 && n_channels == 0);
	assert_int_equal(p->nbox_oracle_table(0, &t), 0);
	assert_true(t.function == PLUGIN_ALLGATHER && t.bytes == 4096 && t.has_nvls == 1 &&
		    !t.has_collnet);
	assert_true(!t.has_costs && t.plugin_version == 2 && t.n_ranks == 512);
	/* stopped at the second question about an op: 2.21 prints its choice after the first */
	p->nbox_oracle_stop_ops(true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(tuner->get_info(context, PLUGIN_ALLREDUCE, 8, 0, 0, 1, &algorithm,
						 &protocol, &n_channels),
				 i % 2 == 0 ? PLUGIN_OK : PLUGIN_REMOTE_ERROR);
	assert_int_equal(p->nbox_oracle_tables(), 3);
	assert_int_equal(tuner->destroy(context), PLUGIN_OK);
}

static void test_ncclTunerPlugin_v3_keeps_the_costs(void **state)
{
	const struct plugin *p = *state;
	const struct tuner_plugin_v3 *tuner = symbol(p, "ncclTunerPlugin_v3");
	void *context = NULL;
	int n_channels = 0;

	make_costs();
	assert_int_equal(tuner->init(512, 64, keep_log, &context), PLUGIN_OK);
	assert_int_equal(tuner->get_info(context, PLUGIN_ALLREDUCE, (size_t)8 << 30, 1,
					 (float **)(void *)costs, 6, PLUGIN_N_PROTOCOLS,
					 &n_channels), /* 2.22: no PAT */
			 PLUGIN_OK);
	assert_int_equal(n_channels, 0);
	check_table(p, 0, 3, 6);
	assert_int_equal(tuner->destroy(context), PLUGIN_OK);
}

#define ASK(tuner)                                                                                \
	(tuner)->get_info(context, PLUGIN_ALLREDUCE, (size_t)8 << 30, 1, (float **)(void *)costs, \
			  PLUGIN_N_ALGORITHMS, PLUGIN_N_PROTOCOLS, 1, &n_channels)

static void test_ncclTunerPlugin_v4_keeps_the_costs(void **state)
{
	const struct plugin *p = *state;
	const struct tuner_plugin_v4 *tuner = symbol(p, "ncclTunerPlugin_v4");
	struct tuner_constants constants;
	struct tuner_domains domains;
	struct nbox_oracle_table t;
	void *context = NULL;
	int n_channels = 0;

	make_costs();
	assert_int_equal(tuner->init(512, 64, keep_log, &context), PLUGIN_OK);
	assert_int_equal(ASK(tuner), PLUGIN_OK);
	check_table(p, 0, 4, PLUGIN_N_ALGORITHMS);
	assert_int_equal(p->nbox_oracle_table(0, &t), 0);
	assert_true(t.is_registered && t.comm == 0);
	p->nbox_oracle_stop_ops(true);
	assert_int_equal(ASK(tuner), PLUGIN_REMOTE_ERROR);
	check_table(p, 1, 4, PLUGIN_N_ALGORITHMS);
	p->nbox_oracle_stop_ops(false);
	assert_int_equal(ASK(tuner), PLUGIN_OK);
	assert_int_equal(p->nbox_oracle_constants(&constants, &domains), -ENOENT);
	assert_int_equal(tuner->destroy(context), PLUGIN_OK);
}

/* versions 5 and 6, which begin alike */
static void keeps_costs_and_constants(const struct plugin *p, const struct tuner_plugin_v5 *tuner,
				      int version)
{
	static struct tuner_constants constants, got;
	struct tuner_domains domains = {8, 64, 72}, got_domains;
	struct nbox_oracle_table t;
	void *context[2] = {NULL, NULL};
	int n_channels = 0;

	for (size_t i = 0; i < sizeof(constants) / sizeof(double); i++)
		((double *)&constants)[i] = (double)i / 4;
	make_costs();
	for (int i = 0; i < 2; i++)
		assert_int_equal(tuner->init(&context[i], 99, 512, 64, keep_log, &domains,
					     &constants),
				 PLUGIN_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(tuner->get_info(context[i], PLUGIN_ALLREDUCE, (size_t)8 << 30, 1,
						 (float **)(void *)costs, PLUGIN_N_ALGORITHMS,
						 PLUGIN_N_PROTOCOLS, 0, &n_channels),
				 PLUGIN_OK);
	check_table(p, 1, version, PLUGIN_N_ALGORITHMS);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(p->nbox_oracle_table(i, &t), 0);
		assert_true(t.comm == 99 && t.context == i && !t.is_registered);
	}
	assert_int_equal(p->nbox_oracle_constants(&got, &got_domains), 0);
	assert_memory_equal(&got, &constants, sizeof(got));
	assert_memory_equal(&got_domains, &domains, sizeof(domains));
	for (int i = 0; i < 2; i++)
		assert_int_equal(tuner->destroy(context[i]), PLUGIN_OK);
}

static void test_ncclTunerPlugin_v5_keeps_costs_and_constants(void **state)
{
	keeps_costs_and_constants(*state, symbol(*state, "ncclTunerPlugin_v5"), 5);
}

static void test_ncclTunerPlugin_v6_keeps_costs_and_constants(void **state)
{
	const struct tuner_plugin_v6 *tuner = symbol(*state, "ncclTunerPlugin_v6");
	struct tuner_plugin_v5 as_v5 = {tuner->name, tuner->init, tuner->get_info, tuner->destroy};

	assert_null(tuner->get_chunk);
	keeps_costs_and_constants(*state, &as_v5, 6);
}

static void test_a_later_nccl_may_have_more_rows_and_columns(void **state)
{
	const struct tuner_plugin_v5 *tuner = symbol(*state, "ncclTunerPlugin_v5");
	const struct plugin *p = *state;
	struct tuner_constants constants = {0};
	struct tuner_domains domains = {0};
	struct nbox_oracle_table t;
	float wide[9][4];
	void *context = NULL;
	int n_channels = 0;

	for (int a = 0; a < 9; a++)
		for (int q = 0; q < 4; q++)
			wide[a][q] = (float)(10 * a + q);
	assert_int_equal(tuner->init(&context, 1, 16, 2, keep_log, &domains, &constants),
			 PLUGIN_OK);
	assert_int_equal(tuner->get_info(context, PLUGIN_REDUCE, 8, 1, (float **)(void *)wide, 9, 4,
					 0, &n_channels),
			 PLUGIN_OK);
	assert_int_equal(p->nbox_oracle_table(0, &t), 0);
	assert_int_equal(t.n_algorithms, 9);
	for (int a = 0; a < PLUGIN_N_ALGORITHMS; a++)
		for (int q = 0; q < PLUGIN_N_PROTOCOLS; q++)
			assert_true(t.us[a][q] == wide[a][q]);
	tuner->destroy(context);
}

#define N_THREADS 4
#define N_ASKED 600 /* of each; together more than are kept */

static const struct plugin *shared;

static void *ask_often(void *arg)
{
	const struct tuner_plugin_v3 *tuner = dlsym(shared->library, "ncclTunerPlugin_v3");
	size_t n_ranks = *(const size_t *)arg;
	float mine[PLUGIN_N_ALGORITHMS * PLUGIN_N_PROTOCOLS];
	void *context = NULL;
	int n_channels = 0;

	for (size_t i = 0; i < sizeof(mine) / sizeof(mine[0]); i++)
		mine[i] = (float)n_ranks;
	tuner->init(n_ranks, 1, NULL, &context);
	for (size_t i = 0; i < N_ASKED; i++)
		tuner->get_info(context, PLUGIN_ALLREDUCE, i, 1, (float **)(void *)mine,
				PLUGIN_N_ALGORITHMS, PLUGIN_N_PROTOCOLS, &n_channels);
	tuner->destroy(context);
	return NULL;
}

static void test_threads_keep_whole_tables_and_the_newest_stay(void **state)
{
	size_t n_ranks[N_THREADS], next[N_THREADS] = {0};
	pthread_t threads[N_THREADS];
	struct nbox_oracle_table t;

	shared = *state;
	for (size_t i = 0; i < N_THREADS; i++) {
		n_ranks[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &n_ranks[i]), 0);
	}
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(shared->nbox_oracle_tables(), N_THREADS * N_ASKED);
	for (uint64_t i = 0; i < N_THREADS * N_ASKED; i++) {
		int r = shared->nbox_oracle_table(i, &t);

		assert_int_equal(r,
				 i < N_THREADS * N_ASKED - NBOX_ORACLE_TABLES_KEPT ? -ESTALE : 0);
		if (r < 0)
			continue;
		assert_true(t.number == i && t.n_ranks < N_THREADS &&
			    t.us[6][2] == (float)t.n_ranks);
		assert_true(t.bytes >= next[t.n_ranks]); /* each thread's in their order */
		next[t.n_ranks] = t.bytes + 1;
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, load, unload)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_ncclNetPlugin_v8_connects_and_carries_nothing),
		TEST(test_ncclNetPlugin_v9_connects_and_carries_nothing),
		TEST(test_ncclNetPlugin_v10_connects_and_carries_nothing),
		TEST(test_ncclNetPlugin_v11_connects_and_carries_nothing),
		TEST(test_ports_of_a_card_are_fused_where_the_real_network_does),
		TEST(test_devices_are_checked_and_stay_when_nccl_has_asked),
		TEST(test_without_devices_it_is_no_network),
		TEST(test_ncclTunerPlugin_v2_keeps_what_it_is_asked),
		TEST(test_ncclTunerPlugin_v3_keeps_the_costs),
		TEST(test_ncclTunerPlugin_v4_keeps_the_costs),
		TEST(test_ncclTunerPlugin_v5_keeps_costs_and_constants),
		TEST(test_ncclTunerPlugin_v6_keeps_costs_and_constants),
		TEST(test_a_later_nccl_may_have_more_rows_and_columns),
		TEST(test_threads_keep_whole_tables_and_the_newest_stay),
	};

	if (argc != 2)
		return 2;
	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
