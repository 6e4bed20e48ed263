/* Lines that people type, and what is left of them on one machine. */
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "nbox/run/launcher-line.h"

#define PORT 4242

static const char *variables; /* "A=1 B=2" */

static const char *get(const char *name)
{
	static char value[64];
	const char *at = variables ? strstr(variables, name) : NULL;

	if (!at || at[strlen(name)] != '=')
		return NULL;
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at + strlen(name) + 1, " "),
		 at + strlen(name) + 1);
	return value;
}

struct words {
	char text[1024];
	char *list[64];
};

static char **split(struct words *w, const char *line)
{
	size_t n = 0;
	char *save = NULL;

	snprintf(w->text, sizeof(w->text), "%s", line);
	for (char *p = strtok_r(w->text, " ", &save); p; p = strtok_r(NULL, " ", &save))
		w->list[n++] = p;
	w->list[n] = NULL;
	return w->list;
}

static const struct {
	const char *line;
	uint32_t nodes, gpus; /* what the options say; 0: nothing */
	enum launcher_kind kind;
	uint32_t n_nodes, n_procs; /* what the line says */
	int64_t node_rank;
	const char *local; /* NULL: the line as it is */
	const char *variables;
} cases[] = {
	{"./train --nnodes 4", 0, 0, LAUNCHER_NONE, 0, 0, -1, NULL, NULL},
	{"python train.py -N 4", 0, 0, LAUNCHER_NONE, 0, 0, -1, NULL, NULL},
	{"python -m torch.nothing", 0, 0, LAUNCHER_NONE, 0, 0, -1, NULL, NULL},
	{"numactl -N 0 python train.py", 0, 0, LAUNCHER_NONE, 0, 0, -1, NULL, NULL},
	{"python train.py --launcher torchrun", 0, 0, LAUNCHER_NONE, 0, 0, -1, NULL, NULL},
	{"nsys profile -o x torchrun --nproc-per-node=2 t.py", 0, 0, LAUNCHER_TORCHRUN, 0, 2, -1,
	 NULL, NULL},
	{"uv run torchrun --nnodes 4 t.py", 0, 0, LAUNCHER_TORCHRUN, 4, 1, -1,
	 "uv run torchrun --master-addr=127.0.0.1 --master-port=4242 t.py", NULL},
	{"env", 0, 0, LAUNCHER_NONE, 0, 0, -1, NULL, NULL},
	{"accelerate config", 0, 0, LAUNCHER_NONE, 0, 0, -1, NULL, NULL},

	{"torchrun --nproc-per-node=8 t.py", 64, 0, LAUNCHER_TORCHRUN, 0, 8, -1, NULL, NULL},
	{"torchrun t.py --nproc-per-node=8 --nnodes=4", 0, 0, LAUNCHER_TORCHRUN, 0, 1, -1, NULL,
	 NULL},
	{"torchrun --nproc_per_node gpu t.py", 0, 4, LAUNCHER_TORCHRUN, 0, 4, -1, NULL, NULL},
	{"torchrun --nproc-per-node=auto t.py", 0, 0, LAUNCHER_TORCHRUN, 0, 3, -1, NULL, NULL},
	{"torchrun --nproc 2 t.py", 0, 0, LAUNCHER_TORCHRUN, 0, 2, -1, NULL,
	 NULL}, /* an abbreviation */
	{"torchrun --standalone --nproc-per-node=2 -m pkg.train --nnodes 9", 0, 0,
	 LAUNCHER_TORCHRUN, 0, 2, -1, NULL, NULL},
	{"torchrun --nnodes=1 --nproc-per-node=2 t.py", 0, 0, LAUNCHER_TORCHRUN, 1, 2, -1, NULL,
	 NULL},
	{"/opt/bin/torchrun --nnodes=64 --node-rank=3 --rdzv-backend=c10d --rdzv-endpoint=h:29500 "
	 "--rdzv-id=7 --nproc-per-node=8 --max-restarts 2 t.py --nnodes 3",
	 0, 0, LAUNCHER_TORCHRUN, 64, 8, 3,
	 "/opt/bin/torchrun --master-addr=127.0.0.1 --master-port=4242 --nproc-per-node=8 --max-restarts 2 "
	 "t.py --nnodes 3",
	 NULL},
	{"env A=1 -u B python3 -u -X dev -m torch.distributed.run --nnodes 2 --master_addr h --master_port 1 t.py",
	 0, 0, LAUNCHER_TORCHRUN, 2, 1, -1,
	 "env A=1 -u B python3 -u -X dev -m torch.distributed.run --master-addr=127.0.0.1 --master-port=4242 t.py",
	 NULL},
	{"python /opt/bin/torchrun --nnodes 2 --standalone t.py", 0, 0, LAUNCHER_TORCHRUN, 2, 1, -1,
	 "python /opt/bin/torchrun --standalone t.py", NULL},
	{"torchrun --from-the-future 7 --nnodes=2 t.py", 0, 0, LAUNCHER_TORCHRUN, 2, 1, -1,
	 "torchrun --master-addr=127.0.0.1 --master-port=4242 --from-the-future 7 t.py", NULL},
	{"torchrun --from-the-future t.py --nnodes=2", 0, 0, LAUNCHER_TORCHRUN, 0, 1, -1, NULL,
	 NULL},
	{"torchrun t.py", 0, 0, LAUNCHER_TORCHRUN, 8, 4, 2,
	 "torchrun --master-addr=127.0.0.1 --master-port=4242 t.py",
	 "PET_NNODES=8 PET_NPROC_PER_NODE=4 PET_NODE_RANK=2"},

	{"accelerate launch --num_processes 8 t.py", 64, 0, LAUNCHER_ACCELERATE, 0, 8, -1, NULL,
	 NULL},
	{"accelerate launch --num_machines 64 --num_processes 512 --machine_rank 0 --main_process_ip h "
	 "--main_process_port 1 --mixed_precision bf16 --multi_gpu t.py --x 1",
	 0, 0, LAUNCHER_ACCELERATE, 64, 8, 0,
	 "accelerate launch --num_machines=1 --machine_rank=0 --num_processes=8 --main_process_port=4242 "
	 "--mixed_precision bf16 --multi_gpu t.py --x 1",
	 NULL},
	{"accelerate launch --num_processes=512 t.py", 64, 8, LAUNCHER_ACCELERATE, 0, 8, -1,
	 "accelerate launch --num_machines=1 --machine_rank=0 --num_processes=8 --main_process_port=4242 t.py",
	 NULL},
	{"python -m accelerate.commands.launch --num_machines 2 --num_processes 4 t.py", 0, 0,
	 LAUNCHER_ACCELERATE, 2, 2, -1,
	 "python -m accelerate.commands.launch --num_machines=1 --machine_rank=0 --num_processes=2 "
	 "--main_process_port=4242 t.py",
	 NULL},

	{"deepspeed --num_gpus 8 t.py --deepspeed ds.json", 0, 0, LAUNCHER_DEEPSPEED, 0, 8, -1,
	 NULL, NULL},
	{"deepspeed --include localhost:0,2 t.py", 0, 0, LAUNCHER_DEEPSPEED, 0, 2, -1, NULL, NULL},
	{"deepspeed --include=a:0,1@b:0,1 --num_nodes 2 t.py", 0, 2, LAUNCHER_DEEPSPEED, 2, 2, -1,
	 "deepspeed --hostfile=/dev/null --num_nodes=1 --num_gpus=2 --master_addr=127.0.0.1 --master_port=4242 t.py",
	 NULL},
	{"deepspeed --hostfile HOSTFILE --num_gpus=8 --master_port 5 t.py --deepspeed ds.json", 0,
	 0, LAUNCHER_DEEPSPEED, 3, 8, -1,
	 "deepspeed --hostfile=/dev/null --num_nodes=1 --num_gpus=8 "
	 "--master_addr=127.0.0.1 --master_port=4242 t.py --deepspeed ds.json",
	 NULL},

	{"srun -N64 --ntasks-per-node=8 -p gpu --export=ALL -l python t.py -N 3", 0, 0,
	 LAUNCHER_SRUN, 64, 8, -1,
	 "srun --nodes=1 --ntasks=8 --ntasks-per-node=8 --nodelist=here -p gpu --export=ALL -l python t.py -N 3",
	 NULL},
	{"srun -n 16 --nodes 4 -w n[1-4] python t.py", 0, 0, LAUNCHER_SRUN, 4, 4, -1,
	 "srun --nodes=1 --ntasks=4 --ntasks-per-node=4 --nodelist=here python t.py", NULL},
	{"srun python t.py", 0, 0, LAUNCHER_SRUN, 4, 8, -1,
	 "srun --nodes=1 --ntasks=8 --ntasks-per-node=8 --nodelist=here python t.py",
	 "SLURM_NNODES=4 SLURM_NTASKS=32 SLURM_NTASKS_PER_NODE=8"},
	{"srun -n8 python t.py", 0, 0, LAUNCHER_SRUN, 0, 8, -1, NULL, "SLURM_NTASKS_PER_NODE=2"},

	{"mpirun -np 8 -x PATH ./t -n 3", 64, 0, LAUNCHER_MPIRUN, 0, 8, -1, NULL, NULL},
	{"mpirun -np 16 -H a:4,b:4,c:4,d:4 --mca btl self -x A python t.py", 0, 0, LAUNCHER_MPIRUN,
	 4, 4, -1, "mpirun -np 4 --mca btl self -x A python t.py", NULL},
	{"mpiexec -n 512 python t.py", 64, 8, LAUNCHER_MPIRUN, 0, 8, -1,
	 "mpiexec -np 8 python t.py", NULL},
	{"mpirun --map-by ppr:2:node --hostfile HOSTFILE python t.py", 0, 0, LAUNCHER_MPIRUN, 3, 2,
	 -1, "mpirun -np 2 python t.py", NULL},
};

/* The words are joined again, HOSTFILE is a file with three machines. */
static void a_line_for_a_cluster_becomes_one_for_this_machine(void **state)
{
	char path[] = "/tmp/hostfile-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "# ours\na slots=8\n\nb slots=8\n  c slots=8\n") > 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(freep) char **argv = NULL;
		CLEANUP(freep) char *changed = NULL;
		struct launcher_line l;
		struct words w;
		struct err err = {""};
		char joined[1024] = "";
		uint32_t n = 0;

		variables = cases[i].variables;
		split(&w, cases[i].line);
		for (char **p = w.list; *p; p++)
			if (strcmp(*p, "HOSTFILE") == 0)
				*p = path;
		if (launcher_line_read(w.list, get, &l, &err) < 0)
			fail_msg("%s: %s", cases[i].line, err.text);
		if (l.kind != cases[i].kind)
			fail_msg("%s: kind %d", cases[i].line, l.kind);
		if (l.kind == LAUNCHER_NONE)
			continue;
		if (launcher_line_procs(&l, cases[i].nodes, cases[i].gpus, 3, &n, &err) < 0)
			fail_msg("%s: %s", cases[i].line, err.text);
		if (n != cases[i].n_procs || l.n_nodes != cases[i].n_nodes ||
		    l.node_rank != cases[i].node_rank)
			fail_msg("%s: %u processes, %u nodes, rank %lld", cases[i].line, n,
				 l.n_nodes, (long long)l.node_rank);
		assert_int_equal(launcher_line_local(&l, n, PORT, "here", &argv, &changed), 0);
		for (char **p = argv; *p; p++) {
			strncat(joined, *p, sizeof(joined) - strlen(joined) - 2);
			if (p[1])
				strcat(joined, " ");
		}
		if (strcmp(joined, cases[i].local ? cases[i].local : cases[i].line) != 0)
			fail_msg("%s\nbecame %s", cases[i].line, joined);
		assert_int_equal(changed != NULL, cases[i].local != NULL);
		launcher_line_deinit(&l);
	}
	variables = NULL;
	unlink(path);
}

static void a_number_that_is_none_is_refused(void **state)
{
	static const struct {
		const char *line, *says;
	} bad[] = {
		{"torchrun --nnodes=x t.py", "torchrun: --nnodes: 'x'"},
		{"torchrun --nproc-per-node t.py", "--nproc-per-node: 't.py'"},
		{"torchrun --nnodes", "--nnodes: ''"},
		{"srun -N t python", "srun: -N: 't'"},
		{"mpirun -np -4 t", "mpirun: -np: '-4'"},
	};
	struct launcher_line l;
	struct words w;
	struct err err;
	uint32_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(launcher_line_read(split(&w, bad[i].line), get, &l, &err) < 0);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: %s", bad[i].line, err.text);
	}
	assert_int_equal(launcher_line_read(
				 split(&w,
				       "accelerate launch --num_machines 3 --num_processes 8 t.py"),
				 get, &l, &err),
			 0);
	assert_true(launcher_line_procs(&l, 0, 0, 0, &n, &err) < 0);
	launcher_line_deinit(&l);
	assert_int_equal(launcher_line_read(split(&w, "mpirun ./t"), get, &l, &err), 0);
	assert_true(launcher_line_procs(&l, 0, 0, 0, &n, &err) < 0); /* cores are no answer */
	launcher_line_deinit(&l);
	assert_int_equal(launcher_line_read(split(&w, "torchrun --nnodes 1:4 t.py"), get, &l, &err),
			 0);
	assert_true(l.is_range && l.n_nodes == 4);
	launcher_line_deinit(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_for_a_cluster_becomes_one_for_this_machine),
		cmocka_unit_test(a_number_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
