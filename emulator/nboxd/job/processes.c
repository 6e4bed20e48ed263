/* See launched.h. What a process was started with is in /proc/PID/environ, unless it wrote
 * something else there (as setproctitle does): then nothing is concluded while it is a child of the
 * agent. */
#include "nboxd/job/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/host-facts.h"
#include "base/log.h"
#include "nboxd/comm/gather-private.h"
#include "nboxd/job/exited.h"
#include "nboxd/job/proc-env.h"
#include "nboxd/loop/worker.h"
#include "nboxd/server.h"
#include "nboxd/store/server.h"

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

/* Another job's agent, whose workers may have been started with the same values. Not one of whose
 * children ours is: who has lost its parent becomes a child of nbox run. */
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

/* A process of the job on this machine; 0: none. */
static pid_t somebody(const struct server *s)
{
	struct host_facts h;
	struct worker *w;

	host_facts_read(&h);
	DL_FOREACH(s->workers, w)
		if (w->state == WORKER_READY && w->is_same_clock &&
		    strncmp(w->host, h.host, sizeof(w->host) - 1) == 0)
			return (pid_t)w->pid;
	return s->store ? (pid_t)store_server_waiting_pid(s->store) : 0;
}

/* Since when the oldest wait is; UINT64_MAX: nobody waits. */
static uint64_t waits_since_ns(const struct server *s)
{
	uint64_t since_ns = s->store ? store_server_waits_since_ns(s->store) : UINT64_MAX;
	const struct gather *g;

	DL_FOREACH(s->gathers, g)
		if (g->first_ns < since_ns)
			since_ns = g->first_ns;
	return since_ns;
}

static bool is_missing(const struct server *s, size_t i)
{
	return !s->players[i] && ended_code(s, s->cluster.real[i]) == ENDED_NOT;
}

static void count(struct server *s, const struct look *l)
{
	struct launched *la = &s->launched;

	la->n_gone = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		struct launched_misses *m = &la->misses[i];

		if (l->is_alive[i] || !is_missing(s, i))
			m->n = 0;
		else if (!l->is_unclear && m->n < MISSES_GONE && m->n++ == 0)
			m->first_ns = l->begun_ns;
		la->n_gone += m->n == MISSES_GONE;
	}
}

/* Everything that is not known for sure ends it without a word. Return: when to look again. */
static uint64_t look(struct server *s)
{
	struct look l = {.begun_ns = clock_now_ns(), .n = (uint32_t)s->cluster.n_real};
	CLEANUP(freep) bool *is_alive = calloc(l.n, sizeof(*is_alive));
	pid_t pid = somebody(s);
	struct proc_env e;

	if (!s->launched.misses)
		s->launched.misses = calloc(l.n, sizeof(*s->launched.misses));
	if (!is_alive || !s->launched.misses)
		return clock_now_ns() + WAIT_NS;
	l.is_alive = is_alive;
	l.is_unclear = !pid || proc_env_read(pid, &e) < 0 || !take_values(&e, &l);
	l.agent = l.is_unclear ? 0 : proc_agent(pid);
	if (!l.agent || look_at_all(&l) < 0)
		l.is_unclear = true;
	s->launched.agent = l.agent;
	count(s, &l);
	log_debug("%u real ranks have no process any more", s->launched.n_gone);
	return clock_now_ns() + (l.is_again ? AGAIN_NS : WAIT_NS);
}

void launched_tick(struct server *s, uint64_t now_ns)
{
	uint64_t since_ns = waits_since_ns(s);
	bool any = false;

	if (since_ns == UINT64_MAX || now_ns < since_ns + WAIT_NS) { /* begin anew */
		launched_deinit(s);
		return;
	}
	/* local ranks are ranks where they are of one node */
	if (now_ns < s->launched.next_ns || s->cluster.n_real > s->config->topology.gpus_per_node)
		return;
	for (size_t i = 0; i < s->cluster.n_real; i++)
		any = any || is_missing(s, i);
	if (!any)
		return;
	s->launched.next_ns = look(s);
}

bool launched_is_gone(const struct server *s, int64_t world_rank, uint64_t since_ns)
{
	for (size_t i = 0; s->launched.n_gone && i < s->cluster.n_real; i++)
		if (s->cluster.real[i] == world_rank)
			return s->launched.misses[i].n == MISSES_GONE && is_missing(s, i) &&
			       s->launched.misses[i].first_ns >= since_ns;
	return false;
}

void launched_deinit(struct server *s)
{
	free(s->launched.misses);
	s->launched.misses = NULL;
	s->launched.n_gone = 0;
}
