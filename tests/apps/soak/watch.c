/* Watches which call each thread is in. A thread of its own looks at them all, on a clock that
 * stands still while the processes of this run wait for a core, so that a call which is slow
 * because the machine is busy does not count as hung. A tenth of the wall clock always counts, so
 * that a call which spins for ever is found too. */
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

#define TICK_US 50000
#define MAX_WATCHES 64
#define MAX_PIDS 32

struct watch {
	_Atomic(const char *) call; /* NULL: none */
	_Atomic double since_s;
	_Atomic int step;
	_Atomic int rank, lane, lap;
	atomic_bool is_used;
};

static struct watch watches[MAX_WATCHES];
static _Atomic double now_s;

double watch_now_s(void)
{
	return atomic_load(&now_s);
}

static double wall_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double delay_of(int pid)
{
	char path[320];
	double sum = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		unsigned long long ran, waited;
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.20s/schedstat", pid, e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%llu %llu", &ran, &waited) == 2)
			sum += (double)waited / 1e9;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return sum;
}

/* How long the threads of this run, by the list that scripts/soak wrote, have waited for a
 * core in all. */
static double delay_s(void)
{
	static int pids[MAX_PIDS];
	static int n_pids;
	char path[4096];
	double sum = 0;

	if (!n_pids && job.dir) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/pids", job.dir);
		f = fopen(path, "re");
		while (f && n_pids < MAX_PIDS && fscanf(f, "%d", &pids[n_pids]) == 1)
			n_pids++;
		if (f)
			fclose(f);
	}
	if (!n_pids)
		return delay_of((int)getpid());
	for (int i = 0; i < n_pids; i++)
		sum += delay_of(pids[i]);
	return sum;
}

static void say_all(double now)
{
	for (int i = 0; i < MAX_WATCHES; i++) {
		struct watch *w = &watches[i];
		const char *call = atomic_load(&w->call);

		if (!atomic_load(&w->is_used))
			continue;
		fprintf(stderr, "soak: rank %d lane %d lap %d step %d: %s%s for %.1f s\n",
			atomic_load(&w->rank), atomic_load(&w->lane), atomic_load(&w->lap),
			atomic_load(&w->step), call ? "in " : "in no call", call ? call : "",
			call ? now - atomic_load(&w->since_s) : 0.0);
	}
}

static void *watch_main(void *arg)
{
	double wall = wall_s(), delay = 0, now = 0;
	bool was_slow = false, has_said = false;

	(void)arg;
	for (;;) {
		double next, oldest = 0;

		usleep(TICK_US);
		next = wall_s();
		for (int i = 0; i < MAX_WATCHES; i++) {
			const char *call = atomic_load(&watches[i].call);
			double age = now - atomic_load(&watches[i].since_s);

			if (call && age > oldest)
				oldest = age;
		}
		if (oldest > 1) { /* reading everybody's counters costs something */
			double all = delay_s(), starved = was_slow ? all - delay : 0;
			double most = 0.9 * (next - wall);

			now += next - wall - (starved < 0 ? 0 : starved > most ? most : starved);
			delay = all;
		} else {
			now += next - wall < 0.1 ? next - wall : 0.1;
		}
		was_slow = oldest > 1;
		wall = next;
		atomic_store(&now_s, now);
		if (oldest > job.bound_s && !has_said) {
			has_said = true;
			say_all(now);
			fprintf(stderr, "soak: stuck: a call is not over after %.0f s\n",
				job.bound_s);
		}
		/* time for who started us to look at the processes; nobody: ends by itself */
		if (oldest > job.bound_s + 20)
			_exit(3);
	}
	return NULL;
}

void watch_start(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &attr, watch_main, NULL))
		DIE(NULL, "no thread");
	pthread_attr_destroy(&attr);
}

struct watch *watch_new(const struct lane *l)
{
	for (int i = 0; i < MAX_WATCHES; i++) {
		bool no = false;

		if (!atomic_compare_exchange_strong(&watches[i].is_used, &no, true))
			continue;
		atomic_store(&watches[i].rank, l ? l->me : -1);
		atomic_store(&watches[i].lane, l ? l->number : -1);
		atomic_store(&watches[i].lap, l ? l->lap : -1);
		return &watches[i];
	}
	DIE(l, "too many threads");
}

void watch_free(struct watch *w)
{
	atomic_store(&w->call, NULL);
	atomic_store(&w->is_used, false);
}

void watch_enter(struct watch *w, const char *call, int step)
{
	atomic_store(&w->since_s, watch_now_s());
	atomic_store(&w->step, step);
	atomic_store(&w->call, call);
}

void watch_leave(struct watch *w)
{
	atomic_store(&w->call, NULL);
}
