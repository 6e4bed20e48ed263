/* See execute.h. */
#include "nbox/run/execute.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "config/addr-file.h"
#include "nbox/run/job.h"
#include "nbox/run/launcher.h"
#include "nbox/run/nboxd-line.h"
#include "nbox/run/nboxd-proc.h"
#include "nbox/run/outcome.h"
#include "nbox/run/plan.h"
#include "nbox/run/preloaded.h"
#include "nbox/run/rank-env.h"
#include "nbox/run/results.h"

#define GRACE_MS 5000 /* between a rank's failure and SIGTERM for the others */
#define LOOK_MS 3000

/* A run that is under way. */
struct running {
	struct run *run;
	struct results results; /* dir "": there is none (--plain) */
	struct nboxd_proc nboxd;
	struct job job;
	char token[WIRE_TOKEN_BYTES + 1];
};

static int fail(const struct run *run, const struct err *err)
{
	fprintf(stderr, "nbox %s: %s\n", run_command(run), err->text);
	return 1;
}

/* --- before it starts ------------------------------------------------------------------------ */

/* What a baseline is compared with, and when it is none. */
static void say_plain(const struct run *run)
{
	uint32_t n = run->is_launcher ? run->n_launcher_ranks : run_count_procs(run);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (n == 0) /* the launcher's own number */
		fprintf(stderr, "nbox run: plain: the command as it is, without nbox\n");
	else if (run->device == RUN_DEVICE_HOST && n > cores)
		fprintf(stderr,
			"nbox run: plain, without nbox: %u processes on %ld cores wait for each "
			"other: their times are no baseline for runs with fewer real ranks\n",
			n, cores);
	else
		fprintf(stderr,
			"nbox run: plain, without nbox: a world of %u rank%s, all real; a baseline "
			"for runs with as many real ranks, such as --nodes 64 --gpus-per-node %u\n",
			n, n == 1 ? "" : "s", n);
}

static void say_before(const struct run *run)
{
	if (run->is_quiet)
		return;
	if (run->changed)
		fprintf(stderr, "nbox run: %s\n", run->changed);
	if (run->warning[0])
		fprintf(stderr, "nbox %s: %s\n", run_command(run), run->warning);
	if (run->nccl_warning[0])
		fprintf(stderr, "nbox %s: %s\n", run_command(run), run->nccl_warning);
	if (run->hint[0])
		fprintf(stderr, "nbox run: %s\n", run->hint);
	if (run->is_plain && !run->printer)
		say_plain(run);
	if (!run->is_plain && run_is_assumed_size(run))
		fprintf(stderr,
			"nbox %s: a cluster of %u nodes, since --nodes is not given; --nodes N for another\n",
			run_command(run), run->config->topology.n_nodes);
}

static int random_token(char *buf, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[12];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -errno;
	for (size_t i = 0; i < sizeof(bytes) && 2 * i + 2 < size; i++) {
		buf[2 * i] = digits[bytes[i] >> 4];
		buf[2 * i + 1] = digits[bytes[i] & 15];
		buf[2 * i + 2] = 0;
	}
	return 0;
}

static int start_ranks(struct running *g, struct err *err)
{
	const struct run *run = g->run;
	struct rank_env e = {.run = run,
			     .nboxd = &g->nboxd,
			     .token = g->token,
			     .n_procs = run_count_procs(run),
			     .port = run_free_port()};
	int r = rank_env_init(&e, err);

	g->job.is_alone = e.n_procs == 1;
	for (; r == 0 && e.proc < e.n_procs; e.proc++)
		r = job_start(&g->job, run->local_command ? run->local_command : run->command,
			      &(struct job_env){rank_env_set, &e}, err);
	if (r < 0)
		job_kill(&g->job, SIGKILL);
	return r;
}

/* The results directory, nboxd, the job's processes. Return: 0; negative errno with the sentence.
 */
static int start(struct running *g, struct err *err)
{
	struct run *run = g->run;
	int r = job_init(&g->job, err);

	if (r == 0 && !run->is_plain) {
		r = results_open(&g->results, run->config->out, err);
		if (r == 0)
			r = results_describe(&g->results, run->argc, run->argv,
					     run->printer ? NULL : run->command, err);
		if (r == 0)
			r = nboxd_line_start(run, &g->results, g->token, &g->nboxd, err);
		if (r == 0)
			log_info("nboxd listens at %s, results go to %s", g->nboxd.addr,
				 g->results.dir);
	}
	if (r == 0 && run->printer && !run->is_plain) /* else the cluster is not played */
		run->printer->head(run->config, run->network);
	return r == 0 ? start_ranks(g, err) : r;
}

/* start() has failed with @r. Return: the exit code. */
static int give_up(struct running *g, int r, const struct err *err)
{
	bool has_run = g->nboxd.pid > 0; /* else the folder may be another run's */

	job_wait(&g->job, NULL, 0, &(struct err){""});
	nboxd_stop(&g->nboxd);
	if (has_run)
		addr_file_remove(g->results.dir);
	fail(g->run, err);
	/* the command itself is wrong, like a wrong option */
	return r == -ENOENT || r == -EACCES ? 2 : 1;
}

/* --- while it runs --------------------------------------------------------------------------- */

static void on_look(void *ctx)
{
	const struct running *g = ctx;
	struct preloaded p;

	preloaded_look(g->nboxd.pid, &p);
	if (p.n_processes && !p.n_with)
		fprintf(stderr,
			"nbox %s: libnbox.so is in none of the job's %u processes (such as pid %d, %s) after %d s: LD_PRELOAD "
			"does not reach them (sudo, a container, a static program, a cleaned environment?), and the job runs "
			"without nbox or waits for ranks that nobody plays\n",
			run_command(g->run), p.n_processes, (int)p.pid, p.command, LOOK_MS / 1000);
}

static void on_end(void *ctx, uint32_t proc, int exit_code)
{
	const struct running *g = ctx;

	nboxd_tell_ended(&g->nboxd, g->run->config->real[proc], exit_code);
}

/* nboxd's end while the job ran, said before anything is done about it. */
static void on_nboxd_end(void *ctx, int exit_code, bool is_running)
{
	const struct running *g = ctx;
	char how[64];

	if (exit_code > 128)
		snprintf(how, sizeof(how), "signal %d, %s", exit_code - 128,
			 strsignal(exit_code - 128));
	else
		snprintf(how, sizeof(how), "exit code %d", exit_code);
	fprintf(stderr, "nbox %s: nboxd ended during the run (%s)%s%s\n", run_command(g->run), how,
		is_running ? ": the job cannot go on without it and is ended" : "",
		exit_code == 128 + SIGKILL
			? "; if nobody here killed it, the kernel may have, for want of memory (see dmesg)"
			: "");
}

/* Until the job and nboxd have ended; says what went wrong. */
static void wait_for_end(struct running *g)
{
	struct run *run = g->run;
	struct job *job = &g->job;
	struct job_also also = {.pid = g->nboxd.pid, .on_end = on_nboxd_end, .ctx = g};
	struct err err = {""};
	bool is_leaving;
	int exit_code;

	job->ctx = g;
	if (!run->is_plain) {
		job->on_look = on_look;
		job->look_ms = LOOK_MS;
	}
	/* a launcher may start a rank again; a process may play several */
	if (!run->is_plain && !run->is_launcher && run_count_procs(run) == run->config->n_real)
		job->on_end = on_end;
	if (job_wait(job, &also, GRACE_MS, &err) < 0)
		fail(run, &err);
	is_leaving = also.has_ended || nboxd_is_leaving(&g->nboxd);
	if (also.has_ended)
		nboxd_gone(&g->nboxd);
	exit_code = also.has_ended ? also.exit_code : nboxd_stop(&g->nboxd);
	if ((is_leaving || exit_code != 0) && job->exit_code == 0) {
		job->exit_code = 1;
		job->failed_proc = JOB_NO_PROC;
	}
	if (is_leaving && !also.has_ended)
		on_nboxd_end(g, exit_code, false);
	if (g->results.dir[0])
		addr_file_remove(g->results.dir); /* killed, nboxd could not do that itself */
	if (!is_leaving && exit_code != 0)
		fprintf(stderr, "nbox %s: nboxd ended with exit code %d\n", run_command(run),
			exit_code);
}

/* Which process failed first, and why perhaps. */
static void say_failure(const struct run *run, const struct job *job)
{
	if (job->exit_code <= 0)
		return;
	if (job->n > 1 && !job->is_interrupted && job->failed_proc != JOB_NO_PROC)
		fprintf(stderr, "nbox %s: process %u of %u (rank %u) failed first (exit code %d)\n",
			run_command(run), job->failed_proc, job->n,
			run->is_plain ? job->failed_proc : run->config->real[job->failed_proc],
			job->exit_code);
	if (run->hint[0]) /* a traceback may have come since the start */
		fprintf(stderr, "nbox run: %s\n", run->hint);
}

int run_execute(struct run *run)
{
	struct running g = {.run = run};
	struct err err = {""};
	int r;

	if (run->is_dry) {
		plan_print(run);
		fflush(stdout);
		if (!run->missing.text[0])
			return 0;
		fail(run, &run->missing);
		return 2;
	}
	say_before(run);
	memcpy(g.token, run->config->token, WIRE_TOKEN_BYTES);
	if (!g.token[0] && random_token(g.token, sizeof(g.token)) < 0)
		return fail(run, &(struct err){"no random numbers for a token"});
	r = start(&g, &err);
	if (r < 0)
		return give_up(&g, r, &err);
	wait_for_end(&g);
	say_failure(run, &g.job);
	if (!run->is_plain && run_outcome(run, &g.results, &g.job.exit_code, &err) < 0) {
		fail(run, &err);
		g.job.exit_code = g.job.exit_code ? g.job.exit_code : 1;
	}
	return g.job.exit_code;
}
