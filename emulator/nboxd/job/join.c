/* See join.h. */
#include "nboxd/job/join.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "nboxd/job/door.h"
#include "nboxd/job/proc-env.h"

#define JOIN_NS (12 * NS_PER_S)
#define ANSWER_MS 5000 /* both together are less than libnbox.so waits */
#define NAP_NS (20 * NS_PER_MS)
#define PORTS_BYTES 16 /* more than the ports that nboxd chooses instead of 0 take */

static const char *get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* --- configuration ------------------------------------------------------------------------ */

static int random_token(char *buf, size_t size)
{
	unsigned char bytes[12];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(buf + 2 * i, size - 2 * i, "%02x", bytes[i]);
	return 0;
}

/* Each attempt of an elastic launcher has results of its own. */
static void results_name(const struct join *j, const struct config *c, char *buf, size_t size)
{
	const char *out = config_text(c, CONFIG_OUT), *attempt = get("TORCHELASTIC_RESTART_COUNT");
	time_t now = time(NULL);
	char stamp[32] = "";
	struct tm tm;

	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
	if (out && attempt && strcmp(attempt, "0") != 0)
		snprintf(buf, size, "%s-restart%s", out, attempt);
	else if (out)
		snprintf(buf, size, "%s", out);
	else
		snprintf(buf, size, "nbox-out/%s-%d", stamp, (int)j->worker);
}

int join_configure(struct join *j, struct config *c)
{
	char out[PATH_MAX], token[32] = "", addr[64], local[16];
	uint32_t number = 0;
	int r = 0;

	j->worker = getppid();
	snprintf(local, sizeof(local), "%u", j->n_local);
	if (j->n_local && !config_is_set(c, CONFIG_GPUS_PER_NODE))
		r = config_set(c, CONFIG_GPUS_PER_NODE, SOURCE_LAUNCHER, local);
	j->is_elsewhere = config_text(c, CONFIG_ADDR) != NULL;
	if (r < 0 || j->is_elsewhere)
		return r;
	results_name(j, c, out, sizeof(out));
	r = config_set(c, CONFIG_OUT, SOURCE_FLAG, out);
	if (r == 0 && !config_text(c, CONFIG_TOKEN))
		r = random_token(token, sizeof(token)) < 0
			    ? -EIO
			    : config_set(c, CONFIG_TOKEN, SOURCE_FLAG, token);
	if (r == 0 && !config_is_set(c, CONFIG_STORE))
		r = config_set(c, CONFIG_STORE, SOURCE_FLAG, "127.0.0.1:0");
	if (r == 0 && !strcmp(config_text(c, CONFIG_LINK), "shm")) {
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
			number = (uint32_t)clock_now_ns();
		snprintf(addr, sizeof(addr), WIRE_ADDR_JOINED "%d-%08x", (int)getpid(), number);
		r = config_set(c, CONFIG_ADDR, SOURCE_FLAG, addr);
	}
	return r;
}

int join_check(const struct join *j, const struct config *c, struct err *err)
{
	char where[256];

	if (config_is_set(c, CONFIG_REAL) && j->n_ranks && j->n_ranks != c->n_real)
		return err_set(
			err, EINVAL,
			"%s: %zu ranks are real, but the launcher started %u: make them equal",
			config_where(c, CONFIG_REAL, 0, where, sizeof(where)), c->n_real,
			j->n_ranks);
	if (!config_is_set(c, CONFIG_REAL) && j->n_local && j->n_local != c->topology.gpus_per_node)
		return err_set(
			err, EINVAL,
			"%s: a node has %u rank%s, but the launcher started %u on this one: make them equal, "
			"or name the ranks that have a process (real: in the cluster file, NBOX_REAL)",
			config_where(c, CONFIG_GPUS_PER_NODE, 0, where, sizeof(where)),
			c->topology.gpus_per_node, c->topology.gpus_per_node == 1 ? "" : "s",
			j->n_local);
	return 0;
}

/* --- the job's name -------------------------------------------------------------------------- */

static uint64_t add_text(uint64_t hash, const char *text) /* FNV-1a */
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

/* What is the same for all workers of a job and another for the next job, as far as launchers say.
 * torchrun's words may be those of the run before: its agent is the one process that started all of
 * them. */
static void door_name(const struct join *j, char *buf, size_t size)
{
	static const char *const names[] = {"MASTER_ADDR",
					    "MASTER_PORT",
					    "TORCHELASTIC_RUN_ID",
					    "TORCHELASTIC_RESTART_COUNT",
					    "SLURM_JOB_ID",
					    "SLURM_STEP_ID",
					    "PMIX_NAMESPACE",
					    "OMPI_MCA_ess_base_jobid",
					    "PMI_ID",
					    "PMI_JOBID"};
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	pid_t agent = get("TORCHELASTIC_RUN_ID") ? proc_agent(j->worker) : 0;
	char text[80] = "";

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		hash = add_text(hash, get(names[i]) ? get(names[i]) : "");
	if (get("TORCHELASTIC_RUN_ID")) /* in a container an agent may be process 1, which
					   proc_agent() does not name */
		snprintf(text, sizeof(text), "%d %llu %llu", (int)agent,
			 agent ? (unsigned long long)proc_start(agent) : 0,
			 (unsigned long long)proc_namespace());
	hash = add_text(hash, text);
	snprintf(buf, size, "nbox-door-%u-%016llx", (unsigned)geteuid(), (unsigned long long)hash);
}

/* --- what a worker is told ----------------------------------------------------------------------
 */

struct text {
	char bytes[DOOR_TEXT_MAX];
	size_t n;
};

static int add_variable(void *ctx, const char *name, const char *value)
{
	struct text *t = ctx;
	size_t room = sizeof(t->bytes) - t->n,
	       n = (size_t)snprintf(t->bytes + t->n, room, "%s=%s", name, value) + 1;

	if (n > room)
		return -E2BIG;
	t->n += n;
	return 0;
}

static int too_long(struct err *err)
{
	return err_set(
		err, E2BIG,
		"what each worker has to be told takes more than %d bytes: shorten NBOX_REAL and the "
		"NBOX_IB_ options (a real rank list may have ranges: 0-7)",
		DOOR_TEXT_MAX);
}

/* @store: NULL: none. */
static int make_text(const struct config *c, const char *addr, const char *store, struct text *ret,
		     struct err *err)
{
	const char *token = config_text(c, CONFIG_TOKEN);
	int r = config_worker_env(c, add_variable, ret);

	if (r == 0)
		r = add_variable(ret, "NBOX_ADDR", addr);
	if (r == 0 && token)
		r = add_variable(ret, "NBOX_TOKEN", token);
	if (r == 0 && store)
		r = add_variable(ret, "NBOX_STORE", store);
	return r < 0 ? too_long(err) : 0;
}

static int say(const char *text, size_t n, struct err *err)
{
	return fwrite(text, 1, n, stdout) == n && fflush(stdout) == 0
		       ? 0
		       : err_set(err, EIO, "cannot write to libnbox.so: %s", strerror(errno));
}

/* --- at the door
 * ----------------------------------------------------------------------------------- */

/* The worker holds the other end of our stdout. While it does, the pid that getppid() gave before
 * is the worker's; a child whose parent has ended is given to another process, for which nboxd
 * would wait as for a worker. */
static bool has_worker_ended(void)
{
	struct pollfd p = {.fd = STDOUT_FILENO};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* Return: 0 the worker was told; -EAGAIN knock again, @err has why; other negative errno with the
 * sentence. */
static int talk(int fd, const struct join *j, struct err *err)
{
	struct door_knock k = {DOOR_MAGIC, j->rank, (int32_t)j->worker, proc_namespace()};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char text[1 + DOOR_TEXT_MAX + 1];
	ssize_t n;

	if (send(fd, &k, sizeof(k), MSG_NOSIGNAL) != sizeof(k))
		return err_set(err, EAGAIN, "nboxd has gone away");
	if (poll(&p, 1, ANSWER_MS) != 1)
		return err_set(err, ETIMEDOUT,
			       "the nboxd of this job does not answer; is it stopped?");
	n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (n < 1)
		return err_set(err, EAGAIN, "nboxd has gone away");
	text[n] = 0;
	if (text[0] == DOOR_COME)
		return say(text + 1, (size_t)n - 1, err);
	return err_set(err, text[0] == DOOR_FAILED ? ECHILD : EAGAIN, "%.400s", text + 1);
}

/* Return: 0; JOIN_HOST in the child; negative errno with the sentence. */
static int become_host(struct join *j, int fd, struct err *err)
{
	int null;
	pid_t pid = fork();

	if (pid < 0)
		return err_set(err, errno, "fork: %s", strerror(errno));
	if (pid > 0)
		return 0;
	setsid(); /* a Ctrl-C is for the job; nboxd ends after it */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0) /* libnbox.so reads to the end of it */
		return err_set(err, errno, "/dev/null: %s", strerror(errno));
	close(null);
	j->door = fd;
	return JOIN_HOST;
}

int join_run(struct join *j, const struct config *c, struct err *err)
{
	uint64_t due_ns = clock_now_ns() + JOIN_NS;
	struct timespec nap = {.tv_nsec = NAP_NS};
	struct text text = {.n = 0};
	char name[96], why[ERR_TEXT_MAX];
	int r, fd;

	r = make_text(c, c->addr, c->store, &text, err);
	if (r == 0 && text.n + PORTS_BYTES > sizeof(text.bytes))
		r = too_long(err);
	if (r < 0 || j->is_elsewhere)
		return r < 0 ? r : say(text.bytes, text.n, err);
	r = -EAGAIN;
	door_name(j, name, sizeof(name));
	while (r == -EAGAIN && clock_now_ns() < due_ns) {
		if (has_worker_ended())
			return err_set(err, EPIPE, "the worker has ended");
		fd = door_connect(name, err);
		if (fd == -ECONNREFUSED) {
			fd = door_bind(name);
			if (fd ==
			    -EADDRINUSE) { /* another process has it, and does not listen yet */
				nanosleep(&nap, NULL);
				continue;
			}
			if (fd < 0)
				return err_set(err, -fd, "cannot bind @%s: %s", name,
					       strerror(-fd));
			r = become_host(j, fd, err);
			if (r != 0)
				return r;
			close(fd);
			r = -EAGAIN;
			continue;
		}
		if (fd < 0)
			return fd;
		r = talk(fd, j, err);
		close(fd);
		if (r == -EAGAIN)
			nanosleep(&nap, NULL);
	}
	if (r != -EAGAIN)
		return r;
	snprintf(why, sizeof(why), "%s", err->text);
	return err_set(err, EBUSY, "%.400s; end it, or start this job with another MASTER_PORT",
		       why);
}

int join_open(const struct join *j, const struct config *c, const char *addr, const char *store,
	      struct door *door, struct loop *loop, struct err *err)
{
	struct text text = {.n = 0};
	int r = make_text(c, addr, store, &text, err);

	if (r == 0 && door_open(door, loop, j->door, text.bytes, text.n) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	return r;
}
