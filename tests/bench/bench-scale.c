/* How fast and how large: one collective of a whole world, decided by event simulation and by
 * symmetry, side by side, on links of 50 GB/s and 1 us. Each row runs in a process of its own, so
 * that its peak memory is its own; the best of three runs counts where a run is short.
 *
 * bench-scale [--json FILE] [--full]
 *
 * Then what it costs when one rank is late (late-rank.c), and what timelines cost (timelines.c).
 *
 * --full also simulates what takes minutes. The last rows are the work of 1,024 ranks as nboxd
 * does it: solve(), which asks the plug-in alphabeta for each message. The cost of links and
 * processes is not here but in the other benchmarks. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/bound.h"
#include "engine/sim.h"
#include "engine/solve.h"
#include "engine/symmetry.h"
#include "late-rank.h"
#include "timelines.h"

#define LATENCY_NS 1000.0
#define BYTES_PER_NS 50.0
#define SHORT_S 1.0

struct row {
	const char *what;
	uint32_t ranks;
	uint64_t bytes;
	bool by_sim;
	bool by_plugin; /* through solve() and alphabeta.so */
	/* results */
	int r;
	uint64_t messages;
	double seconds, predicted_us, bound_us;
	long rss_bytes;
};

struct cost {
	double flows;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int message_cost(void *ctx, uint32_t src, uint32_t dst, uint16_t lane, uint64_t index,
			uint64_t bytes, struct nbox_delay *ret)
{
	const struct cost *c = ctx;

	(void)src;
	(void)dst;
	(void)lane;
	(void)index;
	ret->latency_ns = LATENCY_NS;
	ret->occupancy_ns = (double)bytes * c->flows / BYTES_PER_NS;
	return 0;
}

static uint32_t all_inter(void *ctx, uint32_t src, uint32_t dst, uint16_t lane)
{
	(void)lane;
	(void)ctx;
	(void)src;
	(void)dst;
	return NBOX_INTER;
}

static const struct topology node = {.n_nodes = 1, .gpus_per_node = 8};

/* The plug-ins of this build: beside tests/ in the build folder. */
static struct delay_chain *open_alphabeta(const char *what_if, const struct topology *t)
{
	char exe[PATH_MAX - 64], dir[PATH_MAX];
	const char *dirs[] = {dir, NULL};
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	struct delay_chain *d;
	struct err err = {""};

	if (n < 0)
		return NULL;
	exe[n] = '\0';
	for (int i = 0; i < 3 && strrchr(exe, '/'); i++)
		*strrchr(exe, '/') = '\0';
	snprintf(dir, sizeof(dir), "%s/delaymodels", exe);
	if (delay_open("alphabeta", NULL, &what_if, what_if != NULL, t, dirs, 0, &d, &err)) {
		fprintf(stderr, "bench-scale: %s\n", err.text);
		return NULL;
	}
	return d;
}

static int solve_once(const struct row *row, const struct sched *s, const struct topology *t,
		      struct delay_chain *d, double *ret_end_ns, struct err *err)
{
	struct membership m = {.n_ranks = row->ranks, .stride = 1};
	struct timing timing = {0};
	int r = solve(s, t, &m, d, NULL, 0, row->by_sim, &timing, err);

	if (r == 0)
		*ret_end_ns = timing.end_ns;
	timing_deinit(&timing);
	return r;
}

static void decide(struct row *row)
{
	bool is_direct = strcmp(row->what, "alltoall") == 0,
	     is_tree = strcmp(row->what, "tree") == 0;
	struct sched s = {
		.kind = is_direct ? COLL_ALLTOALL : COLL_ALLREDUCE,
		.algo = is_direct ? SCHED_DIRECT
			: is_tree ? SCHED_TREE
				  : SCHED_RING,
		.n_ranks = row->ranks,
		.ranks_per_node = 1,
		.n_channels = 1,
		.elem_bytes = 4,
		/* all-to-all: the buffer of a rank, as nccl-tests counts */
		.bytes = is_direct ? row->bytes / row->ranks / 4 * 4 : row->bytes,
	};
	struct topology t = {.n_nodes = row->ranks,
			     .gpus_per_node = 1,
			     .intra = {LATENCY_NS, BYTES_PER_NS},
			     .inter = {LATENCY_NS, BYTES_PER_NS}};
	struct cost cost = {.flows = is_tree ? 4 : 1};
	struct sim_cost sim_cost = {.message = message_cost, .ctx = &cost};
	struct symmetry y = {.s = &s,
			     .cost = &sim_cost,
			     .class_of = all_inter,
			     .n_nodes = row->ranks};
	struct delay_chain *chain = row->by_plugin ? open_alphabeta(NULL, &node) : NULL;
	struct sim_result result = {0};
	double begin, seconds;
	struct err err = {""};

	row->r = row->by_plugin && !chain ? -ENOENT : sched_init(&s, &err);
	row->seconds = 1e30;
	for (int i = 0; i < 3 && row->r == 0; i++) {
		begin = now_s();
		if (chain)
			row->r = solve_once(row, &s, &t, chain,
					    row->by_sim ? &result.end_ns : &y.end_ns, &err);
		else if (row->by_sim)
			row->r = sim_run(&s, &sim_cost, NULL, NULL, &result, &err);
		else
			row->r = symmetry_solve(&y, &err);
		seconds = now_s() - begin;
		row->seconds = seconds < row->seconds ? seconds : row->seconds;
		if (seconds > SHORT_S)
			break;
	}
	if (row->r)
		fprintf(stderr, "bench-scale: %s of %u ranks: %s\n", row->what, row->ranks,
			err.text);
	row->messages = sched_total_messages(&s);
	row->predicted_us = (row->by_sim ? result.end_ns : y.end_ns) / 1e3;
	row->bound_us = bound_of_op(&s, &t, t.n_nodes, s.ranks_per_node > 1) / 1e3;
	delay_free(chain);
}

/* In a child, whose memory ends with it. */
static void decide_apart(struct row *row)
{
	struct row got = *row;
	struct rusage usage;
	int fd[2], status;
	pid_t child;

	row->r = -1;
	fflush(NULL);
	if (pipe(fd) < 0 || (child = fork()) < 0) {
		perror("bench-scale");
		exit(1);
	}
	if (child == 0) {
		decide(&got);
		getrusage(RUSAGE_SELF, &usage);
		got.rss_bytes = usage.ru_maxrss * 1024;
		_exit(write(fd[1], &got, sizeof(got)) == (ssize_t)sizeof(got) ? 0 : 1);
	}
	close(fd[1]);
	if (read(fd[0], &got, sizeof(got)) == (ssize_t)sizeof(got))
		*row = got;
	close(fd[0]);
	waitpid(child, &status, 0);
}

static void print_json_row(FILE *f, const struct row *r, bool is_first)
{
	fprintf(f,
		"%s\n  {\"what\": \"%s-%s%s\", \"ranks\": %u, \"bytes\": %llu, \"messages\": %llu, "
		"\"seconds\": %.9f, \"messages_per_s\": %.0f, \"predicted_us\": %.6f, "
		"\"bound_us\": %.6f, \"rss_bytes\": %ld}",
		is_first ? "" : ",", r->what, r->by_sim ? "simulation" : "symmetry",
		r->by_plugin ? "-alphabeta" : "", r->ranks, (unsigned long long)r->bytes,
		(unsigned long long)r->messages, r->seconds, (double)r->messages / r->seconds,
		r->predicted_us, r->bound_us, r->rss_bytes);
}

static void print_row(const struct row *sim, const struct row *quick)
{
	printf("%-8s%s %6u %7llu M %11llu ", quick->what, quick->by_plugin ? "*" : " ",
	       quick->ranks, (unsigned long long)quick->bytes >> 20,
	       (unsigned long long)quick->messages);
	if (sim->r == 0)
		printf("%9.4f s %7.2f M/s %6.1f M ", sim->seconds,
		       (double)sim->messages / sim->seconds / 1e6, (double)sim->rss_bytes / 0x1p20);
	else
		printf("%11s %11s %8s ", "-", "-", "-");
	printf("%11.3f ms %6.1f M %15.3f %14.3f ", quick->seconds * 1e3,
	       (double)quick->rss_bytes / 0x1p20, quick->predicted_us, quick->bound_us);
	if (sim->r == 0)
		printf("%9.1e\n", sim->predicted_us / quick->predicted_us - 1);
	else
		printf("%9s\n", "-");
	fflush(stdout);
}

static FILE *open_json(const char *path)
{
	struct utsname u;
	FILE *f = fopen(path, "w");

	if (!f) {
		fprintf(stderr, "bench-scale: cannot write %s: %s\n", path, strerror(errno));
		exit(1);
	}
	uname(&u);
	fprintf(f,
		"{\"name\": \"scale\", \"host\": {\"kernel\": \"%s %s\", \"machine\": \"%s\", "
		"\"cores\": %ld}, \"rows\": [",
		u.sysname, u.release, u.machine, sysconf(_SC_NPROCESSORS_ONLN));
	return f;
}

struct output {
	FILE *json; /* or NULL */
	bool has_rows;
	uint64_t most; /* messages to simulate */
};

/* One collective of one world, both ways. Return: 0 or 1. */
static int compare(struct output *out, struct row quick)
{
	struct row sim = quick;

	decide_apart(&quick);
	sim.by_sim = true;
	sim.r = -1;
	/* all-to-all has a state of 250 bytes a pair of ranks */
	if (quick.messages <= out->most && (strcmp(quick.what, "alltoall") || quick.ranks <= 1024))
		decide_apart(&sim);
	if (quick.r)
		return 1;
	print_row(&sim, &quick);
	if (out->json && sim.r == 0) {
		print_json_row(out->json, &sim, !out->has_rows);
		out->has_rows = true;
	}
	if (out->json)
		print_json_row(out->json, &quick, !out->has_rows);
	out->has_rows = true;
	return 0;
}

static int all_rows(struct output *out)
{
	static const char *const whats[] = {"ring", "tree", "alltoall"};
	static const uint32_t ranks[] = {64, 256, 1024, 8192, 65536};
	static const uint64_t sizes[] = {1 << 20, 64 << 20, 1 << 30};
	int r = 0;

	printf("one collective, all ranks, 50 GB/s and 1 us a link; * through the plug-in "
	       "alphabeta\n"
	       "%-9s %6s %9s %11s %11s %11s %8s %14s %8s %15s %14s %9s\n",
	       "what", "ranks", "bytes", "messages", "simulated", "rate", "memory", "by symmetry",
	       "memory", "predicted us", "bound us", "differ");
	for (size_t w = 0; w < ARRAY_SIZE(whats); w++)
		for (size_t n = 0; n < ARRAY_SIZE(ranks); n++)
			for (size_t b = 0; b < ARRAY_SIZE(sizes); b++)
				r |= compare(out, (struct row){.what = whats[w],
							       .ranks = ranks[n],
							       .bytes = sizes[b]});
	for (size_t w = 0; w < ARRAY_SIZE(whats); w++)
		r |= compare(out, (struct row){.what = whats[w],
					       .ranks = 1024,
					       .bytes = 1 << 30,
					       .by_plugin = true});
	return r;
}

int main(int argc, char **argv)
{
	struct output out = {.most = 20 * 1000 * 1000};
	struct delay_chain *late;
	const char *json = NULL;
	int r;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
			json = argv[++i];
		} else if (strcmp(argv[i], "--full") == 0) {
			out.most = 200 * 1000 * 1000;
		} else {
			fprintf(stderr, "usage: bench-scale [--json FILE] [--full]\n");
			return 2;
		}
	}
	if (json)
		out.json = open_json(json);
	r = all_rows(&out);
	late = open_alphabeta(NULL, &node);
	r |= !late || late_rank_rows(late, out.json, out.most);
	delay_free(late);
	r |= timelines_rows(open_alphabeta, out.json);
	if (out.json) {
		fprintf(out.json, "\n]}\n");
		if (fclose(out.json) != 0)
			return 1;
	}
	return r;
}
