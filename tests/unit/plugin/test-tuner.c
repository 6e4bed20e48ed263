/* Plays NCCL against libnbox.so's tuner (shim/plugin/tuner.c), by the documented tables of each
 * version, and nboxd's answers. */
#include "cmocka-all.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nccl-plugin/tuner.h"
#include "schedule/coll.h"
#include "shim/gate/cuda-runtime.h"
#include "shim/job/env.h"
#include "shim/plugin/plugin.h"
#include "shim/plugin/room.h"
#include "shim/progress/known.h"
#include "shim/progress/note.h"
#include "shim/progress/session.h"
#include "shim/progress/tune.h"

extern struct tuner_plugin_v3 ncclTunerPlugin_v3;
extern struct tuner_plugin_v4 ncclTunerPlugin_v4;
extern struct tuner_plugin_v5 ncclTunerPlugin_v5;
extern struct tuner_plugin_v6 ncclTunerPlugin_v6;

/* --- what the tuner stands on ------------------------------------------------------------ */

static struct {
	bool is_open, is_host;
	struct wire_welcome welcome;
	struct env env;
	struct wire_took says; /* nboxd, of all */
	bool is_silent;        /* nboxd does not answer */
	bool is_early;         /* it has just answered the same question of another thread */
	_Atomic int n_asked;
	struct wire_tune asked; /* the last one */
	char note[WIRE_TEXT_MAX], log[256];
} g;

bool room_is_open(void)
{
	return g.is_open;
}

const struct wire_welcome *session_welcome(void)
{
	return &g.welcome;
}

const struct env *env_get(void)
{
	return &g.env;
}

bool cuda_runtime_is_host(void)
{
	return g.is_host;
}

static void *answer(void *arg)
{
	struct wire_tune m = g.asked;

	(void)arg;
	m.bytes++; /* of another question */
	m.took = (struct wire_took){PLUGIN_TREE, PLUGIN_LL, 31, 0};
	tune_on_answer(&m);
	m.bytes--;
	m.took = g.says;
	m.n_of_comm = 7;
	tune_on_answer(&m);
	return NULL;
}

int known_send(struct comm *c, enum wire_type type, const void *body, size_t bytes)
{
	static pthread_t thread;

	assert_null(c);
	if (type == WIRE_NOTE) {
		assert_int_equal(bytes, sizeof(struct wire_text));
		strcpy(g.note, ((const struct wire_text *)body)->text);
		return 0;
	}
	assert_int_equal(type, WIRE_TUNE);
	assert_int_equal(bytes, sizeof(g.asked));
	memcpy(&g.asked, body, bytes);
	if (g.is_early) {
		answer(NULL);
		memcpy(&g.asked, body, bytes);
		g.n_asked++;
		return 0;
	}
	g.n_asked++;
	if (!g.is_silent) { /* as the progress thread */
		assert_int_equal(pthread_create(&thread, NULL, answer, NULL), 0);
		pthread_detach(thread);
	}
	return 0;
}

static void log_line(int level, unsigned long subsystems, const char *file, int line,
		     const char *format, ...) __attribute__((format(printf, 5, 6)));

static void log_line(int level, unsigned long subsystems, const char *file, int line,
		     const char *format, ...)
{
	va_list ap;

	(void)level, (void)subsystems, (void)file, (void)line;
	va_start(ap, format);
	vsnprintf(g.log, sizeof(g.log), format, ap);
	va_end(ap);
}

/* --- NCCL ----------------------------------------------------------------------------------- */

struct nccl {
	int version;
	void *context;
	float costs[PLUGIN_N_ALGORITHMS][PLUGIN_N_PROTOCOLS];
	int n_channels;
};

static void open_tuner(struct nccl *n, int version, size_t n_ranks, size_t n_nodes)
{
	struct tuner_domains domains = {(int)n_nodes, 1, 1};
	struct tuner_constants constants = {.base_us = {{0}}};
	void **context = &n->context;
	int r;

	*n = (struct nccl){.version = version};
	if (version == 3)
		r = ncclTunerPlugin_v3.init(n_ranks, n_nodes, log_line, context);
	else if (version == 4)
		r = ncclTunerPlugin_v4.init(n_ranks, n_nodes, log_line, context);
	else if (version == 5)
		r = ncclTunerPlugin_v5.init(context, 7, n_ranks, n_nodes, log_line, &domains,
					    &constants);
	else
		r = ncclTunerPlugin_v6.init(context, 7, n_ranks, n_nodes, log_line, &domains,
					    &constants);
	assert_int_equal(r, PLUGIN_OK);
}

static void close_tuner(struct nccl *n)
{
	assert_int_equal(ncclTunerPlugin_v6.destroy(n->context), PLUGIN_OK);
}

/* Rings and trees in LL and Simple. */
static int ask(struct nccl *n, int function, size_t bytes)
{
	const int a = PLUGIN_N_ALGORITHMS, p = PLUGIN_N_PROTOCOLS;
	float **costs = (float **)n->costs;

	for (int i = 0; i < a; i++)
		for (int k = 0; k < p; k++)
			n->costs[i][k] = i > PLUGIN_RING || k == PLUGIN_LL128 ? TUNER_IGNORED : 5;
	n->n_channels = 0;
	if (n->version == 3)
		return ncclTunerPlugin_v3.get_info(n->context, function, bytes, 1, costs, a, p,
						   &n->n_channels);
	if (n->version == 4)
		return ncclTunerPlugin_v4.get_info(n->context, function, bytes, 1, costs, a, p, 0,
						   &n->n_channels);
	if (n->version == 5)
		return ncclTunerPlugin_v5.get_info(n->context, function, bytes, 1, costs, a, p, 0,
						   &n->n_channels);
	return ncclTunerPlugin_v6.get_info(n->context, function, bytes, 1, costs, a, p, 0,
					   &n->n_channels);
}

/* How many entries are no more as ask() has them. */
static int n_changed(const struct nccl *n)
{
	int count = 0;

	for (int i = 0; i < PLUGIN_N_ALGORITHMS; i++)
		for (int k = 0; k < PLUGIN_N_PROTOCOLS; k++)
			count += n->costs[i][k] != TUNER_IGNORED && n->costs[i][k] != 5;
	return count;
}

static void is_left(const struct nccl *n)
{
	assert_int_equal(n_changed(n), 0);
	assert_int_equal(n->n_channels, 0);
}

static int begin(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	g.is_open = true;
	g.welcome.tunes = 1;
	g.env.timeout_ns = 60 * NS_PER_S;
	g.says = (struct wire_took){PLUGIN_TREE, PLUGIN_SIMPLE, 4, 0};
	return 0;
}

/* --- tests --------------------------------------------------------------------------------- */

static void nccl_takes_what_nboxd_says(void **state)
{
	static const struct {
		int function;
		uint32_t kind;
	} kinds[] = {{PLUGIN_ALLREDUCE, COLL_ALLREDUCE},
		     {PLUGIN_ALLGATHER, COLL_ALLGATHER},
		     {PLUGIN_REDUCESCATTER, COLL_REDUCESCATTER},
		     {PLUGIN_BROADCAST, COLL_BROADCAST},
		     {PLUGIN_REDUCE, COLL_REDUCE}};
	struct nccl n;

	(void)state;
	for (int version = 3; version <= 6; version++) {
		open_tuner(&n, version, 16, 8);
		assert_non_null(n.context);
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			assert_int_equal(ask(&n, kinds[i].function, 1 << 20), PLUGIN_OK);
			assert_true(n.costs[PLUGIN_TREE][PLUGIN_SIMPLE] == 0);
			assert_int_equal(n_changed(&n), 1);
			assert_int_equal(n.n_channels, 4);
			assert_int_equal(g.asked.kind, kinds[i].kind);
			assert_int_equal(g.asked.n_ranks, 16);
			assert_int_equal(g.asked.n_nodes, 8);
			assert_int_equal(g.asked.bytes, 1 << 20);
		}
		close_tuner(&n);
	}
	assert_string_equal(g.note, "");
}

static void an_answer_is_asked_for_once(void **state)
{
	struct nccl n;

	(void)state;
	open_tuner(&n, 5, 16, 8);
	for (int round = 0; round < 3; round++)
		for (size_t bytes = 4; bytes <= 16; bytes += 4) {
			g.says.n_channels = (uint32_t)bytes;
			assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, bytes), PLUGIN_OK);
			assert_int_equal(n.n_channels, bytes);
		}
	assert_int_equal(g.n_asked, 4);
	/* more sizes than are kept: each answer is of its own question */
	for (size_t bytes = 1; bytes <= 2000; bytes++) {
		g.says.n_channels = (uint32_t)(bytes % 30 + 1);
		assert_int_equal(ask(&n, PLUGIN_REDUCE, bytes), PLUGIN_OK);
		assert_int_equal(n.n_channels, bytes % 30 + 1);
	}
	close_tuner(&n);
}

static void what_the_file_does_not_have_is_left_to_nccl(void **state)
{
	struct nccl n;

	(void)state;
	g.says = (struct wire_took){.n_channels = 0};
	open_tuner(&n, 5, 16, 8);
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_OK);
	is_left(&n);
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE + 1, 8), PLUGIN_OK); /* no kind of the file's */
	is_left(&n);
	assert_int_equal(g.n_asked, 1);
	assert_string_equal(g.note, "");
	close_tuner(&n);
}

/* Without full mode, a file or a second rank nothing is asked. */
static void without_a_file_nothing_is_asked(void **state)
{
	struct nccl n;

	(void)state;
	for (int how = 0; how < 3; how++) {
		begin(NULL);
		g.is_open = how != 0;
		g.welcome.tunes = how != 1;
		for (int version = 3; version <= 6; version++) {
			open_tuner(&n, version, how == 2 ? 1 : 16, 1);
			assert_null(n.context);
			assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_OK);
			is_left(&n);
			close_tuner(&n);
		}
		assert_int_equal(g.n_asked, 0);
	}
}

static void ll128_is_for_kernels_of_a_cpu(void **state)
{
	struct nccl n;

	(void)state;
	g.says = (struct wire_took){PLUGIN_RING, PLUGIN_LL128, 3, 0};
	g.is_host = true;
	open_tuner(&n, 5, 16, 8);
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_OK);
	assert_true(n.costs[PLUGIN_RING][PLUGIN_LL128] == 0);
	assert_int_equal(n.n_channels, 3);
	assert_string_equal(g.note, "");
	g.is_host = false;
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_OK);
	is_left(&n);
	assert_non_null(strstr(g.note, "cannot be told to take ring LL128 here, as the decision "
				       "file says of AllReduce of 8 bytes"));
	assert_non_null(strstr(g.note, "where a GPU's LL128 is not safe"));
	/* said once */
	g.note[0] = '\0';
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 16), PLUGIN_OK);
	assert_string_equal(g.note, "");
	close_tuner(&n);
}

static void what_full_mode_does_not_have_is_left_to_nccl(void **state)
{
	struct nccl n;

	(void)state;
	g.is_host = true;
	open_tuner(&n, 5, 16, 8);
	for (uint32_t a = PLUGIN_RING + 1; a < PLUGIN_N_ALGORITHMS; a++) {
		g.says = (struct wire_took){a, PLUGIN_SIMPLE, 3, 0};
		assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8 + a), PLUGIN_OK);
		is_left(&n);
	}
	close_tuner(&n);
}

/* Its answer is one to all who ask the same, also while they do. */
static void an_answer_to_another_does_not_change_what_is_asked(void **state)
{
	struct nccl n;

	(void)state;
	g.is_early = true;
	open_tuner(&n, 5, 16, 8);
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_OK);
	assert_int_equal(n.n_channels, 4);
	assert_int_equal(g.n_asked, 1);
	assert_int_equal(g.asked.took.n_channels, 0);
	assert_int_equal(g.asked.n_of_comm, 0);
	close_tuner(&n);
}

/* No rank may choose by itself what others are told. */
static void without_an_answer_the_call_fails(void **state)
{
	struct nccl n;

	(void)state;
	g.is_silent = true;
	g.env.timeout_ns = NS_PER_MS;
	open_tuner(&n, 5, 16, 8);
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_SYSTEM_ERROR);
	assert_non_null(strstr(g.log, "nboxd did not answer within NBOX_INIT_TIMEOUT"));
	g.is_silent = false;
	g.env.timeout_ns = 60 * NS_PER_S;
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_OK); /* that was not kept */
	assert_int_equal(n.n_channels, 4);
	tune_lost(); /* for good */
	g.is_silent = true;
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 16), PLUGIN_SYSTEM_ERROR);
	assert_non_null(strstr(g.log, "the link to nboxd is lost"));
	assert_int_equal(ask(&n, PLUGIN_ALLREDUCE, 8), PLUGIN_OK); /* it is known */
	close_tuner(&n);
}

/* Not where NCCL has a tuner of the user's. */
static void a_communicator_has_the_channels_of_the_file(void **state)
{
	struct comm c = {.n_ranks = 16, .ready = {.ranks_per_node = 2}};
	uint32_t n = 1;
	struct err err;

	(void)state;
	setenv("NCCL_NET_PLUGIN", "/opt/libnbox.so", 1);
	setenv("NCCL_TUNER_PLUGIN", "/opt/libnbox.so", 1);
	assert_int_equal(plugin_channels(&c, &n, &err), 0);
	assert_int_equal(n, 7);
	assert_int_equal(g.asked.n_ranks, 16);
	assert_int_equal(g.asked.n_nodes, 8);
	setenv("NCCL_TUNER_PLUGIN", "/opt/own.so", 1);
	assert_int_equal(plugin_channels(&c, &n, &err), 0);
	assert_int_equal(n, 0);
	setenv("NCCL_TUNER_PLUGIN", "/opt/libnbox.so", 1);
	g.welcome.tunes = 0;
	assert_int_equal(plugin_channels(&c, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(g.n_asked, 1);
	g.welcome.tunes = 1;
	g.is_silent = true;
	g.env.timeout_ns = NS_PER_MS;
	assert_true(plugin_channels(&c, &n, &err) < 0);
	unsetenv("NCCL_NET_PLUGIN");
	unsetenv("NCCL_TUNER_PLUGIN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nccl_takes_what_nboxd_says, begin),
		cmocka_unit_test_setup(an_answer_is_asked_for_once, begin),
		cmocka_unit_test_setup(what_the_file_does_not_have_is_left_to_nccl, begin),
		cmocka_unit_test_setup(without_a_file_nothing_is_asked, begin),
		cmocka_unit_test_setup(ll128_is_for_kernels_of_a_cpu, begin),
		cmocka_unit_test_setup(what_full_mode_does_not_have_is_left_to_nccl, begin),
		cmocka_unit_test_setup(a_communicator_has_the_channels_of_the_file, begin),
		cmocka_unit_test_setup(an_answer_to_another_does_not_change_what_is_asked, begin),
		cmocka_unit_test_setup(without_an_answer_the_call_fails, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
