/* Starts N processes of one node with the variables that a launcher gives its workers, as its name
 * says: torchrun, accelerate, deepspeed, srun, mpirun (their documents name the variables). As
 * torchrun it starts all again when one fails, as often as --max-restarts says. It knows nothing
 * of nbox, nor of stores: tests of the launchers' side run where there are none of them. Unknown
 * options end it, so that what `nbox run` leaves on the line is seen. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCS_MAX 64

static int n_procs = 1, max_restarts, port = 29500;
static const char *addr = "127.0.0.1";

static enum kind { TORCHRUN, ACCELERATE, DEEPSPEED, SRUN, MPIRUN, KINDS } kind;
static const char *const names[KINDS] = {"torchrun", "accelerate", "deepspeed", "srun", "mpirun"};

static void set(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

static void set_torch(int rank, int attempt)
{
	set("LOCAL_RANK", rank);
	set("RANK", rank);
	set("WORLD_SIZE", n_procs);
	setenv("MASTER_ADDR", addr, 1);
	set("MASTER_PORT", port);
	if (kind == DEEPSPEED) {
		set("LOCAL_SIZE", n_procs);
		set("CROSS_RANK", 0);
		set("CROSS_SIZE", 1);
		return;
	}
	set("GROUP_RANK", 0);
	set("ROLE_RANK", rank);
	setenv("ROLE_NAME", "default", 1);
	set("LOCAL_WORLD_SIZE", n_procs);
	set("GROUP_WORLD_SIZE", 1);
	set("ROLE_WORLD_SIZE", n_procs);
	set("TORCHELASTIC_RESTART_COUNT", attempt);
	set("TORCHELASTIC_MAX_RESTARTS", max_restarts);
	setenv("TORCHELASTIC_RUN_ID", "none", 1);
	setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
}

static void set_srun(int rank)
{
	set("SLURM_PROCID", rank);
	set("SLURM_LOCALID", rank);
	set("SLURM_NTASKS", n_procs);
	set("SLURM_NPROCS", n_procs);
	set("SLURM_STEP_NUM_TASKS", n_procs);
	set("SLURM_STEP_TASKS_PER_NODE", n_procs);
	set("SLURM_NODEID", 0);
	set("SLURM_NNODES", 1);
	set("SLURM_JOB_NUM_NODES", 1);
}

static void set_mpirun(int rank)
{
	set("OMPI_COMM_WORLD_RANK", rank);
	set("OMPI_COMM_WORLD_SIZE", n_procs);
	set("OMPI_COMM_WORLD_LOCAL_RANK", rank);
	set("OMPI_COMM_WORLD_LOCAL_SIZE", n_procs);
	set("PMIX_RANK", rank);
}

static pid_t start(int rank, int attempt, char **argv)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	if (getenv("TORCHRUN_SESSIONS")) /* as PyTorch's does: nobody ends them but the agent */
		setsid();
	else
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (kind == SRUN)
		set_srun(rank);
	else if (kind == MPIRUN)
		set_mpirun(rank);
	else
		set_torch(rank, attempt);
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s: %s\n", names[kind], argv[0], strerror(errno));
	_exit(127);
}

/* One generation. Return: 0, or the code of the first that failed; the others are ended. */
static int run(int attempt, char **argv)
{
	pid_t pids[PROCS_MAX];
	int left = n_procs, r = 0, status;

	for (int i = 0; i < n_procs; i++)
		pids[i] = start(i, attempt, argv);
	while (left > 0) {
		pid_t pid = wait(&status);

		if (pid < 0)
			break;
		for (int i = 0; i < n_procs; i++)
			if (pids[i] == pid)
				pids[i] = 0;
		left--;
		if (r != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			continue;
		r = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		fprintf(stderr, "%s: a worker ended with code %d\n", names[kind], r);
		for (int i = 0; i < n_procs; i++)
			if (pids[i] > 0)
				kill(pids[i], SIGTERM);
	}
	return r;
}

static int option(const char *word, const char *name, const char **ret)
{
	size_t len = strlen(name);

	if (strncmp(word, name, len) != 0 || word[len] != '=')
		return 0;
	*ret = word + len + 1;
	return 1;
}

/* Return: whether it is one of this launcher's own. */
static int take(const char *word)
{
	const char *value;

	if (kind == TORCHRUN && option(word, "--nproc-per-node", &value))
		n_procs = atoi(value);
	else if (kind == TORCHRUN && option(word, "--max-restarts", &value))
		max_restarts = atoi(value);
	else if (kind == ACCELERATE && option(word, "--num_processes", &value))
		n_procs = atoi(value);
	else if (kind == DEEPSPEED && option(word, "--num_gpus", &value))
		n_procs = atoi(value);
	else if (kind == SRUN && option(word, "--ntasks", &value))
		n_procs = atoi(value);
	else if ((kind == TORCHRUN && option(word, "--master-port", &value)) ||
		 (kind == ACCELERATE && option(word, "--main_process_port", &value)) ||
		 (kind == DEEPSPEED && option(word, "--master_port", &value)))
		port = atoi(value);
	else if ((kind == TORCHRUN && option(word, "--master-addr", &value)) ||
		 (kind == DEEPSPEED && option(word, "--master_addr", &value)))
		addr = value;
	else if (kind == SRUN &&
		 (option(word, "--ntasks-per-node", &value) || option(word, "--nodelist", &value)))
		return 1;
	else /* of one machine */
		return (kind == ACCELERATE &&
			(!strcmp(word, "--num_machines=1") || !strcmp(word, "--machine_rank=0"))) ||
		       (kind == DEEPSPEED && (!strcmp(word, "--num_nodes=1") ||
					      !strcmp(word, "--hostfile=/dev/null"))) ||
		       (kind == SRUN && !strcmp(word, "--nodes=1"));
	return 1;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	int i = 1, r = 0;

	while (kind < KINDS && strcmp(name, names[kind]) != 0)
		kind++;
	if (kind == KINDS)
		return 2;
	i += kind == ACCELERATE && argc > 1 && !strcmp(argv[1], "launch");
	if (kind == MPIRUN && argc > 2 && !strcmp(argv[1], "-np")) {
		n_procs = atoi(argv[2]);
		i = 3;
	}
	for (; i < argc && argv[i][0] == '-'; i++)
		if (!take(argv[i])) {
			fprintf(stderr, "%s: %s?\n", name, argv[i]);
			return 2;
		}
	if (i == argc || n_procs < 1 || n_procs > PROCS_MAX)
		return 2;
	for (int attempt = 0; attempt <= max_restarts; attempt++) {
		r = run(attempt, argv + i);
		if (r == 0)
			break;
	}
	return r;
}
