/* The NCCL of the tests of --nccl full, with ranks that are all real: each is a process of its own,
 * the bootstrap's responder is here, the network is loop-plugin.c. Every op in every algorithm and
 * protocol gives the right values. */
#include <cmocka-all.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

struct world {
	uint32_t n, gpus;
	int version;
	const char *algorithm, *protocol, *channels, *later, *counts, *ops;
};

static pid_t start(const struct host_comm *c, const struct world *w, uint32_t rank)
{
	char hex[2 * NCCL_ID_BYTES + 1], text[4][16], host[32];
	char path[4096];
	pid_t pid = fork();

	if (pid)
		return pid;
	for (int i = 0; i < NCCL_ID_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", c->ids[i]);
	snprintf(text[0], sizeof(text[0]), "%u", rank);
	snprintf(text[1], sizeof(text[1]), "%u", w->n);
	snprintf(text[2], sizeof(text[2]), "%u", w->gpus);
	snprintf(text[3], sizeof(text[3]), "%d", w->version);
	snprintf(host, sizeof(host), "node%u", rank / w->gpus);
	dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is TAP's */
	alarm(300);                         /* a rank whose peer has failed waits for ever */
	setenv("NCCL_HOSTID", host, 1);
	setenv("FAKE_NCCL_VERSION", text[3], 1);
	setenv("FAKE_NCCL_ALGO", w->algorithm, 1);
	setenv("FAKE_NCCL_PROTO", w->protocol, 1);
	setenv("FAKE_NCCL_CHANNELS", w->channels, 1);
	if (w->later)
		setenv("LOOP_LATER", w->later, 1);
	/* before host NCCL's folder, which the build puts first */
	snprintf(path, sizeof(path), "%s:%s", getenv("PROXY_NCCL"), getenv("LD_LIBRARY_PATH"));
	setenv("LD_LIBRARY_PATH", path, 1);
	execl(getenv("FULL_CHECK"), "full-check", "--id", hex, "--rank", text[0], "--ranks",
	      text[1], "--gpus", text[2], "--counts", w->counts, "--ops", w->ops, (char *)NULL);
	_exit(127);
}

static void run(const struct world *w)
{
	const struct host_places places = {.n_ranks = w->n,
					   .node_size = w->gpus,
					   .n_real_nodes = w->n / w->gpus,
					   .real_node = {0, 1, 2, 3}};
	struct host h;
	struct host_comm c;
	pid_t pids[HOST_RANKS_MAX];
	char why[256];

	printf("# %u ranks, %u a node, %s %s\n", w->n, w->gpus, w->algorithm, w->protocol);
	assert_int_equal(host_start(&h, NULL, NULL), 0);
	assert_int_equal(host_comm_make(&h, nccl_records_find(w->version, true, why, sizeof(why)),
					&places, 1, 1, &c),
			 0);
	for (uint32_t r = 0; r < w->n; r++)
		pids[r] = start(&c, w, r);
	for (uint32_t r = 0; r < w->n; r++) {
		int status;

		assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
		assert_int_equal(status, 0);
	}
	host_comm_end(&c);
	host_stop(&h);
}

static const char *const algorithms[] = {"Ring", "Tree"};
static const char *const protocols[] = {"Simple", "LL", "LL128"};

static void each(struct world w)
{
	for (int a = 0; a < 2; a++)
		for (int p = 0; p < 3; p++) {
			w.algorithm = algorithms[a];
			w.protocol = protocols[p];
			w.ops = a ? "allreduce" : "all";
			run(&w);
		}
}

static void two_nodes_of_one(void **state)
{
	(void)state;
	each((struct world){2, 1, 22809, NULL, NULL, "2", NULL, "1,1000,70001", NULL});
}

static void three_nodes_of_one(void **state)
{
	(void)state;
	each((struct world){3, 1, 22605, NULL, NULL, "4", "7", "1,5,3001", NULL});
}

static void two_nodes_of_two(void **state)
{
	(void)state;
	each((struct world){4, 2, 22707, NULL, NULL, "2", NULL, "1,70001", NULL});
}

static void four_nodes_of_two(void **state)
{
	(void)state;
	each((struct world){8, 2, 23007, NULL, NULL, "4", "5", "1,7,20001", NULL});
}

/* Networks without a parent: what the profiler tells last is of the message. */
static void old_words(void **state)
{
	(void)state;
	each((struct world){3, 1, 22304, NULL, NULL, "2", "5", "1,3001,200001", NULL});
	each((struct world){4, 2, 22501, NULL, NULL, "2", "5", "1,70001", NULL});
}

/* More than the slots of a connection hold. */
static void long_messages(void **state)
{
	(void)state;
	each((struct world){2, 1, 22809, NULL, NULL, "2", NULL, "3000001", NULL});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_nodes_of_one), cmocka_unit_test(three_nodes_of_one),
		cmocka_unit_test(two_nodes_of_two), cmocka_unit_test(four_nodes_of_two),
		cmocka_unit_test(old_words),        cmocka_unit_test(long_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
