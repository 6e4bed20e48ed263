/* What it costs to answer NCCL's bootstrap for ranks that do not exist: 8 real ranks of one node
 * start a communicator (root, contacts, peers, graph). The responder has a process of its own, so
 * its time and its memory are its own; the real ranks are clients of the tests, on threads of this
 * process, and look at nothing that they are told.
 *
 * bench-bootstrap [--json FILE] */
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bootstrap/serve/serve.h"
#include "client.h"
#include "wire.h"

#define N_REAL 8
#define PATIENCE_NS (600 * NS_PER_S)

struct used {
	double cpu_s;
	long rss_kb;   /* the most so far */
	long grown_kb; /* since it began */
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "bench-bootstrap: %s: %s\n", what, why);
	exit(1);
}

static struct used used_now(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (struct used){.cpu_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
				      (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
			     .rss_kb = u.ru_maxrss};
}

/* --- the responder ----------------------------------------------------------------- */

static void on_failed(void *ctx, struct bootstrap_comm *comm, const char *sentence)
{
	(void)ctx;
	(void)comm;
	fail("the communicator failed", sentence);
}

static void on_over(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(ctx);
}

/* Tells the ids at @out, serves until @in is closed, tells what it used. */
static void respond(const struct said_world *w, int in, int out)
{
	static const struct bootstrap_told told = {.failed = on_failed};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct event_base *base = event_base_new();
	struct event *over = event_new(base, in, EV_READ, on_over, base);
	struct used before = used_now(), after;
	struct bootstrap_serve *s;
	struct bootstrap_comm *comm;
	uint8_t id[NCCL_ID_BYTES];
	struct err err = {""};

	if (bootstrap_serve_new(base, (struct sockaddr *)&a, NULL, &told, NULL, &s, &err) < 0 ||
	    bootstrap_comm_make(bootstrap_serve_bootstrap(s), w->records, w->n_ranks, w->node,
				w->template, 1, id, &comm, &err) < 0)
		fail("no communicator", err.text);
	event_add(over, NULL);
	if (write(out, id, sizeof(id)) != sizeof(id))
		fail("write", strerror(errno));
	event_base_dispatch(base);
	after = used_now();
	after.cpu_s -= before.cpu_s;
	after.grown_kb = after.rss_kb - before.rss_kb;
	if (write(out, &after, sizeof(after)) != sizeof(after))
		fail("write", strerror(errno));
}

/* --- the real ranks ---------------------------------------------------------------- */

struct rank {
	const struct said_world *w;
	const uint8_t *id;
	uint32_t rank;
	pthread_t thread;
};

static void *start_up(void *ctx)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rank *r = ctx;
	uint8_t at[NCCL_ADDRESS_BYTES] = {0}, next[NCCL_ADDRESS_BYTES];
	struct client c;

	memcpy(at, &a, sizeof(a));
	client_new(&c, r->w, r->rank, at, clock_now_ns() + PATIENCE_NS);
	c.keeps_nothing = true;
	if (client_check_in(&c, r->id, 1) < 0 || client_answer(&c, next) < 0 ||
	    client_ring(&c, next) < 0 || client_contacts(&c) < 0 || client_peers(&c) < 0 ||
	    client_graph(&c) < 0)
		fail("a rank", wire_error());
	client_free(&c);
	return NULL;
}

struct row {
	const struct nccl_records *records;
	uint32_t n_ranks;
	/* results */
	struct used responder;
	double wall_s;
};

static void run(struct row *row, const struct said_world *w)
{
	struct rank ranks[N_REAL];
	uint8_t id[NCCL_ID_BYTES];
	int to[2], from[2], status;
	uint64_t start_ns;
	pid_t pid;

	if (pipe(to) < 0 || pipe(from) < 0)
		fail("pipe", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		respond(w, to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	if (pid < 0 || read(from[0], id, sizeof(id)) != sizeof(id))
		fail("no responder", strerror(errno));
	start_ns = clock_now_ns();
	for (uint32_t i = 0; i < N_REAL; i++) {
		ranks[i] = (struct rank){.w = w, .id = id, .rank = i};
		if (pthread_create(&ranks[i].thread, NULL, start_up, &ranks[i]))
			fail("no thread", "for a rank");
	}
	for (uint32_t i = 0; i < N_REAL; i++)
		pthread_join(ranks[i].thread, NULL);
	row->wall_s = (double)(clock_now_ns() - start_ns) / 1e9;
	close(to[1]);
	if (read(from[0], &row->responder, sizeof(row->responder)) != sizeof(row->responder))
		fail("no answer", "of the responder");
	close(from[0]);
	waitpid(pid, &status, 0);
}

static void run_row(struct row *row)
{
	uint32_t n = row->n_ranks;
	uint32_t *node = calloc(n, sizeof(*node)), *template = calloc(n, sizeof(*template));
	struct said_world w = {.records = row->records,
			       .n_ranks = n,
			       .node = node,
			       .template = template};

	if (!node || !template)
		fail("no memory", "for the world");
	for (uint32_t r = 0; r < n; r++) {
		node[r] = r / N_REAL;
		template[r] = r % N_REAL;
	}
	if (said_world_init(&w) < 0)
		fail("no memory", "for the world");
	run(row, &w);
	said_world_deinit(&w);
	free(node);
	free(template);
}

/* ----------------------------------------------------------------------------------- */

static double target_s(uint32_t n_ranks)
{
	return n_ranks <= 512 ? 2 : 20;
}

/* The newest with all-gathers both ways, and one way. */
static const struct nccl_records *newest(bool is_both_ways)
{
	size_t n;
	const struct nccl_records *const *all = nccl_records_all(&n);

	while (n--)
		if (all[n]->is_both_ways == is_both_ways)
			return all[n];
	return NULL;
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {512, 4096, 16384};
	FILE *json = NULL;
	const char *comma = "";

	if (argc == 3 && strcmp(argv[1], "--json") == 0)
		json = fopen(argv[2], "w");
	if (argc != 1 && !json) {
		fprintf(stderr, "usage: bench-bootstrap [--json FILE]\n");
		return 2;
	}
	printf("NCCL's bootstrap, %d real ranks, the others played by the responder (targets: 2 s at 512 "
	       "ranks, 20 s, 200 MB)\n%-8s%-12s%8s%12s%16s%16s%12s\n",
	       N_REAL, "NCCL", "all-gathers", "ranks", "wall s", "responder s", "responder MB",
	       "grown MB");
	if (json)
		fprintf(json, "{\"rows\": [");
	for (int is_both_ways = 1; is_both_ways >= 0; is_both_ways--)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct row row = {.records = newest(is_both_ways), .n_ranks = sizes[i]};
			double mb;

			if (!row.records)
				continue;
			run_row(&row);
			mb = (double)row.responder.rss_kb / 1024;
			printf("%-8s%-12s%8u%12.2f%16.2f%16.1f%12.1f%s\n", row.records->name,
			       is_both_ways ? "both ways" : "one way", row.n_ranks, row.wall_s,
			       row.responder.cpu_s, mb, (double)row.responder.grown_kb / 1024,
			       row.responder.cpu_s < target_s(row.n_ranks) && mb < 200
				       ? ""
				       : "  MISSED");
			fflush(stdout);
			if (json)
				fprintf(json,
					"%s\n{\"nccl\": \"%s\", \"ranks\": %u, \"real_ranks\": %d, \"wall_s\": "
					"%.3f, \"responder_s\": %.3f, \"responder_mb\": %.1f, \"grown_mb\": %.1f}",
					comma, row.records->name, row.n_ranks, N_REAL, row.wall_s,
					row.responder.cpu_s, mb,
					(double)row.responder.grown_kb / 1024);
			comma = ",";
		}
	if (json) {
		fprintf(json, "\n]}\n");
		return fclose(json) != 0;
	}
	return 0;
}
