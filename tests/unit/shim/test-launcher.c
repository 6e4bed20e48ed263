/* What the workers of each launcher see, as a table. What was rewritten once stays so, and other
 * processes are not touched. */
#include <stdbool.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "shim/job/launcher.h"

#define VARS_MAX 96

/* An environment of our own. */
struct vars {
	char text[VARS_MAX][256];
	size_t n;
};

static char *find(struct vars *v, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < v->n; i++)
		if (!strncmp(v->text[i], name, len) && v->text[i][len] == '=')
			return v->text[i];
	return NULL;
}

static const char *get(void *ctx, const char *name)
{
	char *entry = find(ctx, name);

	return entry ? strchr(entry, '=') + 1 : NULL;
}

static void put(struct vars *v, const char *name, const char *value)
{
	char copy[256];
	char *entry = find(v, name);

	if (!entry) {
		assert_true(v->n < VARS_MAX);
		entry = v->text[v->n++];
	}
	snprintf(copy, sizeof(copy), "%s=%s", name, value);
	memcpy(entry, copy, sizeof(copy));
}

/* "A=1 B=2 ..." */
static void put_all(struct vars *v, const char *line)
{
	char copy[2048], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		char *eq = strchr(w, '=');

		*eq = 0;
		put(v, w, eq + 1);
	}
}

static char *const python[] = {(char *)"/usr/bin/python3", (char *)"-u", (char *)"train.py", NULL};

static void decide(struct vars *v, int argc, char *const *argv, struct launcher_plan *plan)
{
	struct launcher_input in = {get, v, argc, argv, "/opt/nbox/libnbox.so"};

	memset(plan, 0xff, sizeof(*plan)); /* all of it must be set */
	launcher_decide(&in, plan);
}

static bool find_place(struct vars *v, int argc, char *const *argv, struct launcher_place *ret)
{
	struct launcher_input in = {get, v, argc, argv, NULL};

	return launcher_find(&in, ret);
}

static void apply(struct vars *v, const struct launcher_plan *plan)
{
	for (uint32_t i = 0; i < plan->n; i++)
		put(v, plan->sets[i].name,
		    plan->sets[i].text ? plan->sets[i].text : plan->sets[i].value);
}

#define TORCHRUN8                                                                            \
	"LOCAL_RANK=3 RANK=3 GROUP_RANK=0 ROLE_RANK=3 ROLE_NAME=default LOCAL_WORLD_SIZE=8 " \
	"WORLD_SIZE=8 GROUP_WORLD_SIZE=1 ROLE_WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 "           \
	"MASTER_PORT=29500 TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_MAX_RESTARTS=0 "        \
	"TORCHELASTIC_RUN_ID=none TORCHELASTIC_USE_AGENT_STORE=True "                        \
	"TORCH_NCCL_ASYNC_ERROR_HANDLING=1 OMP_NUM_THREADS=1 "

static const struct {
	const char *what, *env, *expected;
	enum launcher_source source;
} cases[] = {
	{"torchrun, static, node 0 of 64", TORCHRUN8 "NBOX_NODES=64",
	 "RANK=3 WORLD_SIZE=512 GROUP_RANK=0 GROUP_WORLD_SIZE=64 ROLE_RANK=3 ROLE_WORLD_SIZE=512 "
	 "LOCAL_RANK=3 LOCAL_WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 NBOX_WORLD=512 "
	 "TORCH_NCCL_RANKS_PER_ROOT=2147483647 TORCH_DIST_INIT_BARRIER=0 TORCH_GLOO_LAZY_INIT=1 "
	 "TORCHELASTIC_USE_AGENT_STORE=True VLLM_NCCL_SO_PATH=/opt/nbox/libnbox.so",
	 LAUNCHER_TORCH},
	{"last node, store of nboxd",
	 TORCHRUN8 "NBOX_NODES=64 NBOX_AS_NODE=last NBOX_STORE=127.0.0.1:4711",
	 "RANK=507 WORLD_SIZE=512 GROUP_RANK=63 ROLE_RANK=507 MASTER_ADDR=127.0.0.1 MASTER_PORT=4711 "
	 "TORCHELASTIC_RESTART_COUNT=0",
	 LAUNCHER_TORCH},
	{"node 5", TORCHRUN8 "NBOX_NODES=64 NBOX_AS_NODE=5", "RANK=43 GROUP_RANK=5 LOCAL_RANK=3",
	 LAUNCHER_TORCH},
	{"--standalone of 2.4: the store would be in rank 0",
	 TORCHRUN8 "NBOX_NODES=2 NBOX_STORE=[::1]:99 TORCHELASTIC_USE_AGENT_STORE=False",
	 "MASTER_ADDR=::1 MASTER_PORT=99 TORCHELASTIC_USE_AGENT_STORE=True", LAUNCHER_TORCH},
	{"after a restart by the agent",
	 TORCHRUN8 "NBOX_NODES=2 NBOX_STORE=h:99 TORCHELASTIC_RESTART_COUNT=2",
	 "TORCHELASTIC_RESTART_COUNT=2 MASTER_ADDR=h", LAUNCHER_TORCH},
	{"--virtual-local-rank", TORCHRUN8 "NBOX_NODES=2 NBOX_AS_NODE=1 LOCAL_RANK=0",
	 "RANK=11 LOCAL_RANK=0", LAUNCHER_TORCH},
	{"two agents with 4 ranks each",
	 TORCHRUN8
	 "NBOX_NODES=16 NBOX_AS_NODE=last LOCAL_WORLD_SIZE=4 RANK=5 LOCAL_RANK=1 GROUP_RANK=1 GROUP_WORLD_SIZE=2 ROLE_RANK=5",
	 "RANK=61 WORLD_SIZE=64 GROUP_RANK=15 GROUP_WORLD_SIZE=16 ROLE_RANK=61", LAUNCHER_TORCH},
	{"the world alone", TORCHRUN8 "NBOX_WORLD=512", "RANK=3 WORLD_SIZE=512 GROUP_WORLD_SIZE=64",
	 LAUNCHER_TORCH},
	{"a nested launcher's workers: the inherited NBOX_WORLD does not hide them",
	 TORCHRUN8 "NBOX_NODES=64 NBOX_WORLD=512", "RANK=3 WORLD_SIZE=512", LAUNCHER_TORCH},
	{"DETAIL would make a gloo group beside each",
	 TORCHRUN8 "NBOX_NODES=2 TORCH_DISTRIBUTED_DEBUG=DETAIL", "TORCH_DISTRIBUTED_DEBUG=INFO",
	 LAUNCHER_TORCH},
	{"other levels stay", TORCHRUN8 "NBOX_NODES=2 TORCH_DISTRIBUTED_DEBUG=OFF",
	 "TORCH_DISTRIBUTED_DEBUG=OFF", LAUNCHER_TORCH},
	{"only some ranks of a node are real",
	 TORCHRUN8 "NBOX_NODES=2 NBOX_GPUS_PER_NODE=16 NBOX_REAL=8-15",
	 "RANK=11 WORLD_SIZE=32 GROUP_RANK=0", LAUNCHER_TORCH},
	{"deepspeed's own launcher",
	 "MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 WORLD_SIZE=4 CROSS_RANK=0 CROSS_SIZE=1 LOCAL_SIZE=4 RANK=2 "
	 "LOCAL_RANK=2 NBOX_NODES=8 NBOX_AS_NODE=1 NBOX_STORE=127.0.0.1:5",
	 "RANK=6 WORLD_SIZE=32 CROSS_RANK=1 CROSS_SIZE=8 LOCAL_SIZE=4 LOCAL_RANK=2 MASTER_ADDR=127.0.0.1 "
	 "MASTER_PORT=5 TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RESTART_COUNT=0",
	 LAUNCHER_TORCH},
	{"srun",
	 "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=4 SLURM_NPROCS=4 SLURM_NODEID=0 SLURM_NNODES=1 "
	 "SLURM_JOB_NUM_NODES=1 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=4 NBOX_NODES=16 "
	 "NBOX_AS_NODE=3 NBOX_STORE=h:1",
	 "SLURM_PROCID=13 SLURM_LOCALID=1 SLURM_NTASKS=64 SLURM_NPROCS=64 SLURM_NODEID=3 SLURM_NNODES=16 "
	 "SLURM_JOB_NUM_NODES=16 SLURM_STEP_NUM_TASKS=64 NBOX_WORLD=64 MASTER_ADDR=h MASTER_PORT=1",
	 LAUNCHER_SLURM},
	{"srun on two machines",
	 "SLURM_PROCID=9 SLURM_LOCALID=1 SLURM_NTASKS=16 SLURM_NODEID=1 SLURM_NNODES=2 "
	 "SLURM_STEP_TASKS_PER_NODE=8(x2) NBOX_NODES=4",
	 "SLURM_PROCID=9 SLURM_NTASKS=32 SLURM_NODEID=1 SLURM_NNODES=4", LAUNCHER_SLURM},
	{"srun, then torchrun: RANK is the source, SLURM_ stays",
	 TORCHRUN8 "NBOX_NODES=2 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1 SLURM_NNODES=1",
	 "RANK=3 WORLD_SIZE=16 SLURM_NTASKS=1 SLURM_NNODES=1", LAUNCHER_TORCH},
	{"srun, and a wrapper script that exports RANK",
	 "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=4 RANK=1 WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1 NBOX_NODES=2",
	 "RANK=1 WORLD_SIZE=8 SLURM_NTASKS=4", LAUNCHER_TORCH},
	{"mpirun of Open MPI; PMIX_RANK is MPI_Init's",
	 "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 "
	 "PMIX_RANK=1 PMIX_NAMESPACE=x NBOX_NODES=4 NBOX_AS_NODE=last",
	 "OMPI_COMM_WORLD_RANK=7 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=1",
	 LAUNCHER_OMPI},
	{"MVAPICH2",
	 "MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=2 MV2_COMM_WORLD_LOCAL_RANK=0 "
	 "MV2_COMM_WORLD_LOCAL_SIZE=2 NBOX_NODES=4",
	 "MV2_COMM_WORLD_RANK=0 MV2_COMM_WORLD_SIZE=8", LAUNCHER_MV2},
	{"Hydra: its variables belong to MPI_Init, RANK is added",
	 "PMI_RANK=1 PMI_SIZE=2 PMI_FD=7 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 NBOX_NODES=4 NBOX_AS_NODE=1",
	 "PMI_RANK=1 PMI_SIZE=2 RANK=3 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", LAUNCHER_PMI},
	{"PMI_RANK by hand", "PMI_RANK=1 PMI_SIZE=2 LOCAL_RANK=1 NBOX_NODES=4",
	 "PMI_RANK=1 PMI_SIZE=8", LAUNCHER_PMI},
};

static void check(struct vars *v, const char *what, const char *expected)
{
	struct vars want = {.n = 0};

	put_all(&want, expected);
	for (size_t i = 0; i < want.n; i++) {
		char name[64];
		const char *has;

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(want.text[i], "="), want.text[i]);
		has = get(v, name);
		if (!has || strcmp(has, strchr(want.text[i], '=') + 1) != 0)
			fail_msg("%s: %s is %s, not %s", what, name, has ? has : "unset",
				 strchr(want.text[i], '=') + 1);
	}
}

static void each_launchers_workers_are_renumbered(void **state)
{
	static struct launcher_plan plan;
	static struct vars v, before;
	struct launcher_place place;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		v.n = 0;
		put_all(&v, cases[i].env);
		before = v;
		assert_true(find_place(&v, 3, python, &place));
		assert_int_equal(place.source, cases[i].source);
		assert_false(place.is_rewritten);
		decide(&v, 3, python, &plan);
		if (plan.error)
			fail_msg("%s: %s", cases[i].what, plan.problem.text);
		assert_int_equal(plan.source, cases[i].source);
		assert_true(plan.n > 0 && plan.n < LAUNCHER_SETS_MAX - 8);
		assert_memory_equal(&before, &v, sizeof(v)); /* no side effect */
		apply(&v, &plan);
		check(&v, cases[i].what, cases[i].expected);
		assert_true(!find_place(&v, 3, python, &place) || place.is_rewritten);
		/* a spawned child sees that: nothing is left to do */
		decide(&v, 3, python, &plan);
		if (plan.n || plan.error)
			fail_msg("%s: not idempotent: %s", cases[i].what,
				 plan.n ? plan.sets[0].name : "error");
		/* switched off */
		v = before;
		put(&v, "NBOX_ENABLE", "0");
		decide(&v, 3, python, &plan);
		assert_int_equal(plan.n, 0);
		assert_int_equal(plan.source, LAUNCHER_NONE);
		assert_false(find_place(&v, 3, python, &place));
	}
}

static void without_a_world_nothing_is_changed(void **state)
{
	static struct launcher_plan plan;
	static struct vars v;

	(void)state;
	v.n = 0;
	put_all(&v, TORCHRUN8 "NBOX_ADDR=shm:/x NBOX_TOKEN=t");
	decide(&v, 3, python, &plan);
	assert_int_equal(plan.n, 0);
	assert_int_equal(plan.error, 0);
}

/* An agent lacks some of a worker's variables; programs around srun's and mpirun's workers have all
 * of them. */
static void a_process_that_is_no_worker_is_left_alone(void **state)
{
	static const char *const agents[] = {
		"NBOX_NODES=64",
		"NBOX_NODES=64 RANK=1 WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1", /* a pod's: no
										    LOCAL_RANK */
		"NBOX_NODES=64 RANK=blue WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1 LOCAL_RANK=0",
		"NBOX_NODES=64 RANK=4 WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1 LOCAL_RANK=0",
		"NBOX_NODES=64 RANK=0 WORLD_SIZE=4 LOCAL_RANK=0",
		"NBOX_NODES=64 RANK= WORLD_SIZE=4 MASTER_ADDR=h MASTER_PORT=1 LOCAL_RANK=0",
	};
	static char *const programs[][6] = {
		{(char *)"bash", (char *)"-c", (char *)"torchrun --nnodes $SLURM_NNODES", NULL},
		{(char *)"-bash", NULL},
		{(char *)"/bin/sh", (char *)"run.sh", NULL},
		{(char *)"srun", (char *)"-n2", (char *)"python", NULL},
		{(char *)"/usr/bin/mpirun", NULL},
		{(char *)"/opt/py/bin/python3.11", (char *)"/opt/py/bin/torchrun", (char *)"t.py",
		 NULL},
		{(char *)"python", (char *)"-u", (char *)"-m", (char *)"torch.distributed.run",
		 (char *)"t.py", NULL},
		{(char *)"python", (char *)"-X", (char *)"dev", (char *)"deepspeed", NULL},
		{NULL},
	};
	static struct launcher_plan plan;
	static struct vars v;
	struct launcher_place place;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(agents); i++) {
		v.n = 0;
		put_all(&v, agents[i]);
		decide(&v, 3, python, &plan);
		if (plan.n || plan.error || find_place(&v, 3, python, &place))
			fail_msg("%s: %s", agents[i],
				 plan.n ? plan.sets[0].name : plan.problem.text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		int argc = 0;

		while (programs[i][argc])
			argc++;
		v.n = 0;
		put_all(&v, "SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2 OMPI_COMM_WORLD_RANK=0 "
			    "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 NBOX_NODES=4");
		decide(&v, argc, programs[i], &plan);
		if (programs[i][0] ? plan.n != 0 : plan.n == 0)
			fail_msg("%s: %u variables", programs[i][0] ? programs[i][0] : "(no name)",
				 plan.n);
	}
}

/* A process that multiprocessing spawned meets others at an address of its own, where nobody serves
 * a store. */
static void a_spawned_rank_does_not_wait_for_a_store(void **state)
{
	static char *const child[] = {(char *)"python", (char *)"-c",
				      (char *)"from multiprocessing.spawn import spawn_main",
				      (char *)"--multiprocessing-fork", NULL};
	static const struct {
		const char *env, *agent_store;
	} spawned[] = {
		{"RANK=1 LOCAL_RANK=1 WORLD_SIZE=8 LOCAL_WORLD_SIZE=2 ", "False"},
		{"RANK=0 LOCAL_RANK=0 WORLD_SIZE=8 LOCAL_WORLD_SIZE=1 ",
		 "True"}, /* --procs 1: it is a rank */
		{"RANK=1 LOCAL_RANK=1 WORLD_SIZE=8 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none ",
		 "True"},
	};
	static struct launcher_plan plan;
	static struct vars v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(spawned); i++) {
		v.n = 0;
		put_all(&v, "NBOX_NODES=4 NBOX_WORLD=8 NBOX_STORE=h:1 MASTER_ADDR=h MASTER_PORT=1");
		put_all(&v, spawned[i].env);
		decide(&v, 4, child, &plan);
		apply(&v, &plan);
		assert_string_equal(get(&v, "TORCHELASTIC_USE_AGENT_STORE"),
				    spawned[i].agent_store);
		decide(&v, 3, python, &plan);
		apply(&v, &plan);
		assert_string_equal(get(&v, "TORCHELASTIC_USE_AGENT_STORE"), "True");
	}
}

static void a_world_that_cannot_be_changes_nothing(void **state)
{
	static const struct {
		const char *env, *says;
	} bad[] = {
		{TORCHRUN8 "NBOX_NODES=many", "NBOX_NODES=many"},
		{TORCHRUN8 "NBOX_NODES=0", "NBOX_NODES=0"},
		{TORCHRUN8 "NBOX_NODES=65536", "more than 65536"},
		{TORCHRUN8 "NBOX_NODES=4 NBOX_AS_NODE=4", "NBOX_AS_NODE: there is no node 4"},
		{TORCHRUN8 "NBOX_NODES=4 NBOX_AS_NODE=middle", "first, last, or 0 to 3"},
		{TORCHRUN8 "NBOX_NODES=4 NBOX_GPUS_PER_NODE=4", "NBOX_GPUS_PER_NODE is 4"},
		{TORCHRUN8 "NBOX_NODES=4 NBOX_GPUS_PER_NODE=x", "NBOX_GPUS_PER_NODE=x"},
		{TORCHRUN8 "NBOX_WORLD=12", "NBOX_WORLD=12"},
		{TORCHRUN8 "NBOX_NODES=4 NBOX_REAL=0-3", "names 4 ranks"},
		{TORCHRUN8 "NBOX_NODES=1 NBOX_REAL=0-7,99", "NBOX_REAL"},
		{TORCHRUN8 "NBOX_NODES=4 NBOX_STORE=host", "NBOX_STORE=host is no HOST:PORT"},
		{TORCHRUN8 "NBOX_NODES=1 LOCAL_WORLD_SIZE=4", "2 real nodes do not fit"},
		{TORCHRUN8 "NBOX_NODES=1 LOCAL_WORLD_SIZE=3", "no multiple of 3"},
	};
	static struct launcher_plan plan;
	static struct vars v;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		v.n = 0;
		put_all(&v, bad[i].env);
		decide(&v, 3, python, &plan);
		assert_true(plan.error < 0);
		assert_int_equal(plan.n, 0); /* half a rewriting is none */
		if (!strstr(plan.problem.text, bad[i].says))
			fail_msg("'%s' does not say '%s'", plan.problem.text, bad[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_launchers_workers_are_renumbered),
		cmocka_unit_test(without_a_world_nothing_is_changed),
		cmocka_unit_test(a_process_that_is_no_worker_is_left_alone),
		cmocka_unit_test(a_spawned_rank_does_not_wait_for_a_store),
		cmocka_unit_test(a_world_that_cannot_be_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
