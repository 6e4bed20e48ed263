/* See processes.h. What a process was started with is in /proc/PID/environ, unless it wrote
 * something else there (as setproctitle does): then nothing is concluded while it is a child of the
 * agent. */
#include "nboxd/job/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "members/members.h"
#include "nboxd/job/exited.h"
#include "nboxd/job/players.h"
#include "nboxd/job/proc-env.h"

#define WAIT_NS (4 * NS_PER_S) /* before the first look, and between two */
#define AGAIN_NS (500 * NS_PER_MS)
#define MISSES_GONE 2

/* What all workers of one agent were started with alike. */
static const char *const alike[] = {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT",
				    "GROUP_RANK", "LOCAL_WORLD_SIZE"};
#define LOCAL_WORLD_SIZE 4
#define VALUE_MAX 256

struct look {
	uint64_t begun_ns;
	pid_t agent;
	char values[ARRAY_SIZE(alike)][VALUE_MAX];
	uint32_t n;      /* local ranks */
	bool *is_alive;  /* owned; by local rank */
	bool is_unclear; /* some process may be a rank that is missing */
	bool is_again;   /* look again soon */
};

/* Return: false, too, where a process plays several real ranks: then there is none for each. */
static bool take_values(const struct proc_env *e, struct look *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(alike); i++) {
		const char *value = proc_env_get(e, alike[i]);

		if (!value || strlen(value) >= VALUE_MAX)
			return false;
		strcpy(ret->values[i], value);
	}
	return strtoul(ret->values[LOCAL_WORLD_SIZE], NULL, 10) == ret->n;
}

static bool has_values(const struct proc_env *e, const struct look *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(alike); i++) {
		const char *value = proc_env_get(e, alike[i]);

		if (!value || strcmp(value, l->values[i]) != 0)
			return false;
	}
	return true;
}

/* Is @agent another job's, whose workers may have been started with the same values? An agent that
 * ours descends from is not: a process that has lost its parent becomes a child of nbox run. */
static bool is_of_another(const struct look *l, pid_t agent)
{
	char state;
	pid_t pid = l->agent;

	for (int i = 0; i < PROC_PARENTS_MAX && pid > 1; i++, pid = proc_parent(pid, &state))
		if (pid == agent)
			return false;
	return agent != 0;
}

static void look_at(struct look *l, pid_t pid)
{
	struct proc_env e;
	char state = 0;
	pid_t parent = proc_parent(pid, &state);
	const char *local;
	char *end;
	unsigned long n;
	int r;

	if (state == 'D') { /* what it holds may keep a reader of its memory waiting, for ever if it
			       is stuck */
		l->is_unclear = l->is_again = true;
		return;
	}
	r = proc_env_read(pid, &e);
	if (r == -ENOENT || r == -ESRCH)
		return; /* has just ended */
	local = r < 0 ? NULL : proc_env_get(&e, "LOCAL_RANK");
	/* a script between the agent and the job may have changed what it was started with */
	if (local && (has_values(&e, l) || (parent == l->agent && state != 'Z'))) {
		n = strtoul(local, &end, 10);
		if (end != local && !*end && n < l->n && !l->is_alive[n])
			l->is_alive[n] = !is_of_another(l, proc_agent(pid)); /* overwrites e */
		return;
	}
	/* not readable, empty in the middle of an exec(), or written over: all that nbox starts has
	 * NBOX_... */
	if ((r < 0 || !proc_env_has(&e, "NBOX_")) && parent == l->agent && state != 'Z')
		l->is_unclear = true;
}

/* Return: 0; negative errno. */
static int look_at_all(struct look *l)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;

	if (!dir)
		return -errno;
	while ((d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]) && atoi(d->d_name) != getpid())
			look_at(l,
				atoi(d->d_name)); /* nboxd itself may have a worker's environment */
	closedir(dir);
	return 0;
}

static bool is_missing(const struct processes *p, size_t i)
{
	return !p->players->workers[i] &&
	       exited_code(p->exited, p->players->cluster->real[i]) == EXITED_NOT;
}

static void count(struct processes *p, const struct look *l)
{
	p->n_gone = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		struct processes_misses *m = &p->misses[i];

		if (l->is_alive[i] || !is_missing(p, i))
			m->n = 0;
		else if (!l->is_unclear && m->n < MISSES_GONE && m->n++ == 0)
			m->first_ns = l->begun_ns;
		p->n_gone += m->n == MISSES_GONE;
	}
}

/* A look that cannot be sure of everything finds nobody gone. Return: when to look again. */
static uint64_t look(struct processes *p)
{
	struct look l = {.begun_ns = clock_now_ns(), .n = (uint32_t)p->players->cluster->n_real};
	CLEANUP(freep) bool *is_alive = calloc(l.n, sizeof(*is_alive));
	pid_t pid = p->sink->somebody(p->ctx);
	struct proc_env e;

	if (!p->misses)
		p->misses = calloc(l.n, sizeof(*p->misses));
	if (!is_alive || !p->misses)
		return clock_now_ns() + WAIT_NS;
	l.is_alive = is_alive;
	l.is_unclear = !pid || proc_env_read(pid, &e) < 0 || !take_values(&e, &l);
	l.agent = l.is_unclear ? 0 : proc_agent(pid);
	if (!l.agent || look_at_all(&l) < 0)
		l.is_unclear = true;
	p->agent = l.agent;
	count(p, &l);
	log_debug("%u real ranks have no process any more", p->n_gone);
	return clock_now_ns() + (l.is_again ? AGAIN_NS : WAIT_NS);
}

void processes_tick(struct processes *p, uint64_t now_ns)
{
	uint64_t since_ns = p->sink->waits_since_ns(p->ctx);
	size_t n = p->players->cluster->n_real;

	if (since_ns == UINT64_MAX || now_ns < since_ns + WAIT_NS) { /* begin anew */
		processes_deinit(p);
		return;
	}
	/* local ranks are ranks where they are of one node */
	if (now_ns < p->next_ns || n > p->gpus_per_node)
		return;
	for (size_t i = 0; i < n; i++) {
		if (is_missing(p, i)) {
			p->next_ns = look(p);
			return;
		}
	}
}

static bool is_gone(const struct processes *p, int64_t world_rank, uint64_t since_ns)
{
	int i = p->n_gone ? players_index(p->players, world_rank) : -1;

	return i >= 0 && p->misses[i].n == MISSES_GONE && is_missing(p, (size_t)i) &&
	       p->misses[i].first_ns >= since_ns;
}

bool processes_ended(const struct processes *p, int64_t world_rank, uint64_t since_ns)
{
	return exited_code(p->exited, world_rank) != EXITED_NOT || is_gone(p, world_rank, since_ns);
}

bool processes_any_ended(const struct processes *p)
{
	return p->exited->n || p->n_gone;
}

char *processes_ended_text(const struct processes *p, int64_t world_rank, char *buf, size_t size)
{
	int code = exited_code(p->exited, world_rank);

	if (code != EXITED_NOT)
		snprintf(buf, size, "has ended with exit code %d", code);
	else
		snprintf(buf, size, "has ended (its launcher, pid %d, has none for it any more)",
			 (int)p->agent);
	return buf;
}

void processes_deinit(struct processes *p)
{
	free(p->misses);
	p->misses = NULL;
	p->n_gone = 0;
}
