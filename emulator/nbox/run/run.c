/* A run, from the results directory to the summary: see run.h. */
#include "nbox/run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "config/addr-file.h"
#include "engine/record.h"
#include "nbox/perf/perf-report.h"
#include "nbox/report/report.h"
#include "nbox/run/job.h"
#include "nbox/run/loader-path.h"
#include "nbox/run/nboxd-proc.h"
#include "nbox/run/preloaded.h"
#include "nbox/run/results.h"
#include "nbox/run/start.h"

#define GRACE_MS 5000 /* between a rank's failure and SIGTERM for the others */

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

/* nboxd's environment: ours without the variables of nbox, since the effective
 * configuration comes to it as a file (and what is unknown was said here), but for
 * those that no file has; and with the token. */
static int nboxd_env(struct job_env *env, const char *token)
{
	static const char *const kept[] = {"NBOX_DEBUG=", "NBOX_DEBUG_FILE=", "NBOX_MODEL_PATH="};
	uint32_t n = 0;
	int r = job_env_init(env);

	for (uint32_t i = 0; i < env->n; i++) {
		bool is_kept = strncmp(env->vars[i], "NBOX_", 5) != 0;

		for (size_t k = 0; k < ARRAY_SIZE(kept); k++)
			is_kept |= strncmp(env->vars[i], kept[k], strlen(kept[k])) == 0;
		if (!is_kept)
			free(env->vars[i]);
		else
			env->vars[n++] = env->vars[i];
	}
	env->n = n;
	env->vars[n] = NULL;
	return r == 0 ? job_env_set(env, "NBOX_TOKEN", "%s", token) : r;
}

static int prepend_path(struct job_env *env, const char *name, const char *path,
			const char *dividers)
{
	char usable[PATH_MAX];
	int code = loader_path(path, dividers, usable, sizeof(usable), NULL);

	return code < 0 ? code : job_env_prepend(env, name, usable);
}

static int set_in_env(void *ctx, const char *name, const char *value)
{
	return job_env_set(ctx, name, "%s", value);
}

static int rank_env(const struct run *r, struct job_env *env, uint32_t proc, uint32_t n_procs,
		    int port, const char *addr, const char *store, const char *token)
{
	const struct config *c = r->config;
	uint32_t gpus = c->topology.gpus_per_node;
	uint32_t rank = r->is_plain ? proc : c->real[proc];
	uint32_t world = r->is_plain ? n_procs : c->world;
	uint32_t local_world = r->is_plain ? n_procs : 0;
	int code = job_env_init(env);

	/* how many of this node's ranks have a process here */
	for (uint32_t i = 0; !r->is_plain && i < n_procs; i++)
		local_world += c->real[i] / gpus == rank / gpus;
	if (r->is_launcher)
		local_world = r->n_launched;
	if (code == 0 && r->device == RUN_DEVICE_HOST) {
		code = prepend_path(env, "LD_LIBRARY_PATH", r->paths.standins, LOADER_LIBRARY_PATH);
		if (code == 0)
			code = job_env_set(env, "NBOX_HOST_DEVICES", "%u",
					   gpus > local_world ? gpus : local_world);
	}
	if (code == 0 && !r->is_plain) {
		code = prepend_path(env, "LD_PRELOAD", r->paths.shim, LOADER_PRELOAD);
		if (code == 0)
			code = job_env_set(env, "NBOX_ADDR", "%s", addr);
		if (code == 0)
			code = job_env_set(env, "NBOX_TOKEN", "%s", token);
		if (code == 0)
			code = job_env_set(env, "NBOX_DEVICE", "%s",
					   r->device == RUN_DEVICE_HOST ? "host" : "cuda");
	}
	if (code == 0 && store && store[0])
		code = job_env_set(env, "NBOX_STORE", "%s", store);
	if (code == 0 && r->is_launcher && !r->is_plain)
		code = run_launch_env(r, env);
	if (code == 0 && !r->is_plain)
		code = config_worker_env(c, set_in_env, env);
	if (code < 0 || r->is_launcher)
		return code;
	/* what torchrun sets, for plain programs */
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{"RANK", rank},
		{"LOCAL_RANK", r->is_plain ? proc : rank % gpus},
		{"WORLD_SIZE", world},
		{"LOCAL_WORLD_SIZE", local_world},
		{"GROUP_RANK", r->is_plain ? 0 : rank / gpus},
		{"GROUP_WORLD_SIZE", r->is_plain ? 1 : c->topology.n_nodes},
		{"MASTER_PORT", (uint32_t)port},
		{"NBOX_WORLD", world}, /* these are the virtual world's already */
	};

	for (size_t i = 0; code == 0 && i < ARRAY_SIZE(numbers); i++)
		code = job_env_set(env, numbers[i].name, "%u", numbers[i].value);
	if (code == 0)
		code = job_env_set(env, "MASTER_ADDR", "127.0.0.1");
	/* Nobody plays rank 0's part of handing out the id, so all make the same one */
	if (code == 0 && !r->is_plain && c->real[0] != 0 && !getenv("NCCL_COMM_ID"))
		code = job_env_set(env, "NCCL_COMM_ID", "127.0.0.1:%d", port);
	return code;
}

static uint32_t count_procs(const struct run *r)
{
	if (r->n_procs)
		return (uint32_t)r->n_procs;
	return r->is_launcher ? 1 : (uint32_t)r->config->n_real;
}

/* Nobody said how large the cluster is. */
static bool is_assumed_size(const struct config *c)
{
	return !config_is_set(c, CONFIG_NODES) && !config_is_set(c, CONFIG_WORLD);
}

static void print_plan(const struct run *r)
{
	const struct config *c = r->config;
	char model[1024];

	printf("world      %u ranks: %u nodes x %u%s\n", c->world, c->topology.n_nodes,
	       c->topology.gpus_per_node,
	       is_assumed_size(c) ? " (the number of nodes is not given: --nodes)" : "");
	printf("real       %zu ranks, the first is %u; %u local processes%s\n", c->n_real,
	       c->real[0], r->is_launcher ? r->n_launched : count_procs(r),
	       r->is_launcher ? ", started by the command" : "");
	printf("model      %s", config_model(c, model, sizeof(model)));
	if (r->warning[0])
		printf("\nwarning    %s", r->warning);
	if (r->hint[0])
		printf("\nwarning    %s", r->hint);
	if (r->network[0])
		printf("\nnetwork    %s", r->network);
	printf("\nexchange   %s over %.*s; data %s; seed %llu\n", wire_exchange_name(c->exchange),
	       (int)strcspn(c->addr, ":"), c->addr, wire_data_name(c->data),
	       (unsigned long long)c->seed);
	for (size_t i = 0; i < c->n_data_for; i++)
		printf("data       %s\n", c->values[CONFIG_DATA_FOR].items[i].text);
	printf("device     %s\n",
	       r->device == RUN_DEVICE_HOST
		       ? "host: no NVIDIA GPU here, stand-ins for CUDA and NCCL run the job on the CPU"
		       : "cuda");
	printf("command   ");
	for (char **w = r->local_command ? r->local_command : r->command; *w; w++)
		printf(" %s", *w);
	if (r->changed)
		printf("\n           (%s)", r->changed);
	printf("\n\nconfiguration:\n");
	config_write(c, stdout);
}

static int write_config(const struct run *r, const struct results *res, char *path, struct err *err)
{
	FILE *f = fopen(results_path(res, "config.yaml", path), "w");
	int code, closed;

	if (!f)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	code = config_write(r->config, f);
	closed = file_close(f);
	code = code < 0 ? code : closed;
	return code < 0 ? err_set(err, -code, "%s: cannot be written: %s", path, strerror(-code))
			: 0;
}

static int start_nboxd(struct run *r, struct results *res, const char *token,
		       struct nboxd_proc *daemon, struct err *err)
{
	char *program = getenv("NBOX_NBOXD"); /* tests run it under valgrind */
	char config[PATH_MAX];
	unsigned int number = 0;
	char addr[256];
	struct job_env env = {0};
	int code = write_config(r, res, config, err);

	if (code < 0)
		return code;
	/* One name a run, unless the user chose the address; an abstract one, of which nothing is
	 * left whoever is killed. Pids of two containers may be equal, hence the number. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		number = (unsigned int)clock_now_ns();
	char *argv[] = {program ? program : r->paths.nboxd,
			(char *)"--config",
			config,
			(char *)"--out",
			res->dir,
			(char *)"--store",
			(char *)(config_is_set(r->config, CONFIG_STORE)
					 ? r->config->values[CONFIG_STORE].items[0].text
					 : "127.0.0.1:0"),
			NULL,
			NULL,
			NULL};

	snprintf(addr, sizeof(addr), "shm:@nbox-%d-%08x", (int)getpid(), number);
	if (!config_is_set(r->config, CONFIG_ADDR) && strncmp(r->config->addr, "shm:", 4) == 0) {
		argv[7] = (char *)"--addr";
		argv[8] = addr;
	} else if (strncmp(r->config->addr, CONFIG_ADDR_AUTO, strlen(CONFIG_ADDR_AUTO)) == 0) {
		argv[7] = (char *)"--addr"; /* the file does not say it */
		argv[8] = (char *)(uintptr_t)r->config->addr;
	}
	code = nboxd_env(&env, token);
	code = code < 0 ? err_set(err, -code, "out of memory")
			: nboxd_start(daemon, argv, &env, err);
	job_env_deinit(&env);
	return code;
}

/* What the user has typed. */
static const char *name_of(const struct run *r)
{
	return r->perf_op ? "perf" : "run";
}

struct told {
	const struct run *run;
	const struct nboxd_proc *daemon;
};

#define LOOK_MS 3000

static void on_look(void *ctx)
{
	const struct told *t = ctx;
	struct preloaded p;

	preloaded_look(t->daemon->pid, &p);
	if (p.n_processes && !p.n_with)
		fprintf(stderr,
			"nbox %s: libnbox.so is in none of the job's %u processes (such as pid %d, %s) after %d s: LD_PRELOAD "
			"does not reach them (sudo, a container, a static program, a cleaned environment?), and the job runs "
			"without nbox or waits for ranks that nobody plays\n",
			name_of(t->run), p.n_processes, (int)p.pid, p.command, LOOK_MS / 1000);
}

static void on_end(void *ctx, uint32_t proc, int exit_code)
{
	const struct told *t = ctx;

	nboxd_tell_ended(t->daemon, t->run->config->real[proc], exit_code);
}

/* nboxd's end while the job ran, said before anything is done about it. */
static void on_nboxd_end(void *ctx, int exit_code, bool is_running)
{
	const struct told *t = ctx;
	char how[64];

	if (exit_code > 128)
		snprintf(how, sizeof(how), "signal %d, %s", exit_code - 128,
			 strsignal(exit_code - 128));
	else
		snprintf(how, sizeof(how), "exit code %d", exit_code);
	fprintf(stderr, "nbox %s: nboxd ended during the run (%s)%s%s\n", name_of(t->run), how,
		is_running ? ": the job cannot go on without it and is ended" : "",
		exit_code == 128 + SIGKILL
			? "; if nobody here killed it, the kernel may have, for want of memory (see dmesg)"
			: "");
}

static int start_ranks(struct run *r, struct job *job, const struct nboxd_proc *daemon,
		       const char *token, struct err *err)
{
	uint32_t n = count_procs(r);
	int port = run_free_port(), code = 0;

	job->is_alone = n == 1;
	for (uint32_t i = 0; code == 0 && i < n; i++) {
		struct job_env env = {0};

		code = rank_env(r, &env, i, n, port, daemon->addr, daemon->store, token);
		if (code < 0)
			err_set(err, -code, "out of memory");
		else
			code = job_start(job, r->local_command ? r->local_command : r->command,
					 &env, err);
		job_env_deinit(&env);
	}
	if (code < 0)
		job_kill(job, SIGKILL);
	return code;
}

static int summarise(struct run *r, const struct results *res, int exit_code, struct err *err)
{
	char path[PATH_MAX];
	struct record rec = {0};
	struct report *rep = NULL;
	struct err why = {""};
	int code = record_load(results_path(res, "record.nbox", path), &rec, err);

	if (code < 0 && !r->json &&
	    !r->perf_op) { /* nothing that was asked for: as with a full disk */
		fprintf(stderr, "nbox run: there is no summary: %s\n", err->text);
		return 0;
	}
	if (code == 0) {
		rep = malloc(sizeof(*rep));
		code = rep ? report_make(&rec, rep) : -ENOMEM;
	}
	if (code == 0)
		snprintf(rep->network, sizeof(rep->network), "%s", r->network);
	if (code == 0)
		report_outcome(rep, exit_code, res->dir);
	if (code == 0 && r->device == RUN_DEVICE_HOST)
		snprintf(rep->device, sizeof(rep->device),
			 WIRE_NOTE_NO_GPU
			 "the job ran on the CPU through the host CUDA runtime and "
			 "host NCCL; its compute times are this CPU's");
	if (code == 0 &&
	    report_write_json(rep, exit_code, results_path(res, "summary.json", path), &why) < 0)
		report_lose(rep, "%s", why.text);
	if (code == 0 && r->perf_op && rec.n_rows) {
		code = perf_print_table(&rec, rep, (enum coll_kind)coll_kind_parse(r->perf_op),
					stdout);
		perf_print_tail(rep, res->dir, stdout);
		fflush(stdout);
	} else if (code == 0 && r->perf_op && exit_code == 0 && !rep->lost[0]) {
		code = err_set(err, EINVAL,
			       "there is nothing to print: a size is that of all ranks' parts, and "
			       "none has an element for each of the %u ranks; take a larger -e",
			       rep->header.world_size);
	}
	if (code == 0 && r->is_quiet && rep->lost[0])
		fprintf(stderr, "nbox %s: NOT WHOLE: %s\n", name_of(r), rep->lost);
	if (code == 0 && !r->is_quiet && !r->perf_op) {
		fflush(stdout);
		report_print(rep, stdout);
		if (!rep->is_empty)
			printf("   results        %s\n", res->dir);
	}
	if (code == 0 && r->json) /* asked for, so that a run without it has failed */
		code = report_write_json(rep, exit_code, r->json, err);
	free(rep);
	record_deinit(&rec);
	return code;
}

static int fail(const char *what, const struct err *err)
{
	fprintf(stderr, "nbox %s: %s\n", what, err->text);
	return 1;
}

/* What a baseline is compared with, and when it is none. */
static void say_plain(const struct run *r)
{
	uint32_t n = r->is_launcher ? r->n_launched : count_procs(r);
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (n == 0) /* the launcher's own number */
		fprintf(stderr, "nbox run: plain: the command as it is, without nbox\n");
	else if (r->device == RUN_DEVICE_HOST && n > cores)
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

int run_execute(struct run *r)
{
	struct nboxd_proc daemon = {0};
	struct results res = {""};
	struct job job;
	struct err err = {""};
	char token[WIRE_TOKEN_BYTES + 1] = "";
	struct job_also also = {0};
	struct told told = {r, &daemon};
	bool is_leaving;
	int code = 0;

	if (r->is_dry) {
		print_plan(r);
		return 0;
	}
	if (r->changed && !r->is_quiet)
		fprintf(stderr, "nbox run: %s\n", r->changed);
	if (r->warning[0] && !r->is_quiet)
		fprintf(stderr, "nbox %s: %s\n", name_of(r), r->warning);
	if (r->hint[0] && !r->is_quiet)
		fprintf(stderr, "nbox run: %s\n", r->hint);
	if (r->is_plain && !r->is_quiet && !r->perf_op)
		say_plain(r);
	if (!r->is_plain && !r->is_quiet && is_assumed_size(r->config))
		fprintf(stderr,
			"nbox %s: a cluster of %u nodes, since --nodes is not given; --nodes N for another\n",
			name_of(r), r->config->topology.n_nodes);
	memcpy(token, r->config->token, WIRE_TOKEN_BYTES);
	if (!token[0] && random_token(token, sizeof(token)) < 0)
		return fail(name_of(r), &(struct err){"no random numbers for a token"});
	code = job_init(&job, &err);
	if (code == 0 && !r->is_plain) {
		code = results_open(&res, r->config->out, &err);
		if (code == 0)
			code = results_describe(&res, r->argc, r->argv,
						r->perf_op ? NULL : r->command, &err);
		if (code == 0)
			code = start_nboxd(r, &res, token, &daemon, &err);
		if (code == 0)
			log_info("nboxd listens at %s, results go to %s", daemon.addr, res.dir);
	}
	if (code == 0 && r->perf_op && !r->is_plain) /* else the cluster is not played */
		perf_print_head(r->config, r->network, stdout);
	if (code == 0)
		code = start_ranks(r, &job, &daemon, token, &err);
	if (code < 0) {
		bool has_run = daemon.pid > 0; /* else the folder may be another run's */

		job_wait(&job, NULL, 0, &(struct err){""});
		nboxd_stop(&daemon);
		if (has_run)
			addr_file_remove(res.dir);
		/* the command itself is wrong, like a wrong option */
		fail(name_of(r), &err);
		return code == -ENOENT || code == -EACCES ? 2 : 1;
	}
	also = (struct job_also){.pid = daemon.pid, .on_end = on_nboxd_end, .ctx = &told};
	job.ctx = &told;
	if (!r->is_plain) {
		job.on_look = on_look;
		job.look_ms = LOOK_MS;
	}
	/* a launcher may start a rank again; a process may play several */
	if (!r->is_plain && !r->is_launcher && count_procs(r) == r->config->n_real)
		job.on_end = on_end;
	code = job_wait(&job, &also, GRACE_MS, &err);
	if (code < 0)
		fail(name_of(r), &err);
	is_leaving = also.has_ended || nboxd_is_leaving(&daemon);
	if (also.has_ended)
		nboxd_gone(&daemon);
	code = also.has_ended ? also.exit_code : nboxd_stop(&daemon);
	if ((is_leaving || code != 0) && job.exit_code == 0) {
		job.exit_code = 1;
		job.failed_proc = JOB_NO_PROC;
	}
	if (is_leaving) {
		if (!also.has_ended)
			on_nboxd_end(&told, code, false);
		code = 0; /* told */
	}
	if (res.dir[0])
		addr_file_remove(res.dir); /* killed, it could not do that itself */
	if (code != 0)
		fprintf(stderr, "nbox %s: nboxd ended with exit code %d\n", name_of(r), code);
	if (job.exit_code > 0 && job.n > 1 && !job.is_interrupted && job.failed_proc != JOB_NO_PROC)
		fprintf(stderr, "nbox %s: process %u of %u (rank %u) failed first (exit code %d)\n",
			name_of(r), job.failed_proc, job.n,
			r->is_plain ? job.failed_proc : r->config->real[job.failed_proc],
			job.exit_code);
	if (job.exit_code > 0 && r->hint[0]) /* a traceback may have come since the start */
		fprintf(stderr, "nbox run: %s\n", r->hint);
	if (!r->is_plain && summarise(r, &res, job.exit_code, &err) < 0) {
		fail(name_of(r), &err);
		job.exit_code = job.exit_code ? job.exit_code : 1;
	}
	return job.exit_code;
}
