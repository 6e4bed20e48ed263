/* Starts N processes of one node with the variables that torchrun's agent gives its workers
 * (PyTorch's elastic launcher documents them), and starts all again when one fails, as often as
 * --max-restarts says. It knows nothing of nbox, nor of stores: tests of the launcher's side
 * run where there is no PyTorch. Unknown options end it, so that what `nbox run` leaves on the
 * line is seen. */
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

static void set(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
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
	set("LOCAL_RANK", rank);
	set("RANK", rank);
	set("GROUP_RANK", 0);
	set("ROLE_RANK", rank);
	setenv("ROLE_NAME", "default", 1);
	set("LOCAL_WORLD_SIZE", n_procs);
	set("WORLD_SIZE", n_procs);
	set("GROUP_WORLD_SIZE", 1);
	set("ROLE_WORLD_SIZE", n_procs);
	setenv("MASTER_ADDR", addr, 1);
	set("MASTER_PORT", port);
	set("TORCHELASTIC_RESTART_COUNT", attempt);
	set("TORCHELASTIC_MAX_RESTARTS", max_restarts);
	setenv("TORCHELASTIC_RUN_ID", "none", 1);
	setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
	execvp(argv[0], argv);
	fprintf(stderr, "torchrun: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* One generation. Return: 0, or the code of the first that failed; the others are ended. */
static int run(int attempt, char **argv)
{
	pid_t pids[PROCS_MAX];
	int left = n_procs, code = 0, status;

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
		if (code != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
			continue;
		code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		fprintf(stderr, "torchrun: a worker ended with code %d\n", code);
		for (int i = 0; i < n_procs; i++)
			if (pids[i] > 0)
				kill(pids[i], SIGTERM);
	}
	return code;
}

static int option(const char *word, const char *name, const char **ret)
{
	size_t len = strlen(name);

	if (strncmp(word, name, len) != 0 || word[len] != '=')
		return 0;
	*ret = word + len + 1;
	return 1;
}

int main(int argc, char **argv)
{
	const char *value;
	int i = 1, code = 0;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (option(argv[i], "--nproc-per-node", &value))
			n_procs = atoi(value);
		else if (option(argv[i], "--max-restarts", &value))
			max_restarts = atoi(value);
		else if (option(argv[i], "--master-port", &value))
			port = atoi(value);
		else if (option(argv[i], "--master-addr", &value))
			addr = value;
		else {
			fprintf(stderr, "torchrun: %s?\n", argv[i]);
			return 2;
		}
	}
	if (i == argc || n_procs < 1 || n_procs > PROCS_MAX)
		return 2;
	for (int attempt = 0; attempt <= max_restarts; attempt++) {
		code = run(attempt, argv + i);
		if (code == 0)
			break;
	}
	return code;
}
