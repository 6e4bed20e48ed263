/* See launch.h. */
#include "nbox/sweep/launch.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/plain.h"

#define TASKS_MAX 1000 /* Slurm's own default of MaxArraySize is 1001 */

/* "cd FOLDER && NBOX sweep RUN ... --point ", so that relative names are right elsewhere. */
static int print_line(const struct sweep *s, const struct values *words, const char *between,
		      FILE *to, struct err *err)
{
	char folder[PATH_MAX], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0 || !getcwd(folder, sizeof(folder)))
		return err_set(err, errno, "this folder, or nbox, has no name: %s",
			       strerror(errno));
	self[n] = '\0';
	fputs("cd ", to);
	plain_shell(folder, to);
	fputs(between, to);
	plain_shell(self, to);
	fprintf(to, " %s", s->command);
	for (size_t i = 0; i < words->n; i++) {
		fputc(' ', to);
		plain_shell(words->list[i], to);
	}
	fputs(" --point ", to);
	return 0;
}

int launch_commands(const struct sweep *s, const struct values *words, struct err *err)
{
	struct point_result result;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->grid.n_points; i++) {
		r = point_read(s, i, &result);
		if (r < 0 || result.state == POINT_DONE)
			continue;
		r = print_line(s, words, " && ", stdout, err);
		printf("%zu\n", i);
	}
	return r;
}

/* Return: 0; negative errno with the sentence. */
static int submit(const char *script, struct err *err)
{
	const char *const words[] = {"sbatch", script, NULL};
	int r, status;
	pid_t pid;

	fflush(NULL);
	r = posix_spawnp(&pid, words[0], NULL, NULL, (char *const *)(uintptr_t)words, environ);
	if (r)
		return err_set(err, r, "sbatch: %s; the script is %s: submit it where Slurm is",
			       strerror(r), script);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status == 0 ? 0 : err_set(err, EIO, "sbatch did not take %s", script);
}

int launch_slurm(const struct sweep *s, const struct values *words, struct err *err)
{
	size_t n = s->grid.n_points, n_tasks = n < TASKS_MAX ? n : TASKS_MAX;
	char script[PATH_MAX];
	FILE *to;
	int r;

	snprintf(script, sizeof(script), "%.*s/sweep.sbatch", PATH_MAX - 32, s->dir);
	r = file_create(script, &to, err);
	if (r < 0)
		return r;
	fprintf(to,
		"#!/bin/sh\n"
		"# Written by nbox %s. A point that is complete is not done again.\n"
		"#SBATCH --job-name=nbox-sweep\n"
		"#SBATCH --array=0-%zu\n"
		"#SBATCH --ntasks=1\n"
		"#SBATCH --output=\"%s/slurm-%%a.txt\"\n"
		"point=$SLURM_ARRAY_TASK_ID failed=0\n"
		"while [ \"$point\" -lt %zu ]; do\n\t",
		s->command, n_tasks - 1, s->dir, n);
	r = print_line(s, words, " || exit 1\n\t", to, err);
	fprintf(to,
		"\"$point\" || failed=1\n"
		"\tpoint=$((point + %zu))\n"
		"done\n"
		"exit $failed\n",
		n_tasks);
	if (r < 0) {
		fclose(to);
		return r;
	}
	r = file_finish(to, script, err);
	r = r == 0 ? submit(script, err) : r;
	if (r == 0)
		printf("When its %zu tasks are over, the same command line without --on shows the %s.\n",
		       n_tasks, s->command);
	return r;
}
