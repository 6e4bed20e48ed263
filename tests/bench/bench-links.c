/* Latency and bandwidth of links between two processes that poll, 8 B to 16 MB.
 *
 *   latency    half of a round trip of a message that is echoed
 *   bandwidth  batches of messages one way, as many on their way as the window
 *              allows; the receiver acknowledges the last of a batch; the median
 *              batch counts, so that one that was interrupted does not. GB are 10^9
 *              bytes of bodies.
 *
 * usage: bench-links [--json FILE] [--quick] */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/link.h"

#define MAX_BYTES (16u << 20)
#define BATCHES 15
#define IN_FLIGHT 32 /* sends that are not through */

struct end {
	struct link *link;
	unsigned char *body; /* received ones, all in one place */
	uint64_t n_received, n_sent;
	int closed;
};

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	struct end *e = owner;

	(void)l;
	(void)h;
	*ret_body = e->body;
	return 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct end *e = owner;

	(void)l;
	(void)h;
	(void)body;
	e->n_received++;
	return 0;
}

static void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	struct end *e = owner;

	(void)l;
	(void)cookie;
	e->n_sent++;
}

static void on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct end *e = owner;

	(void)l;
	if (code)
		fprintf(stderr, "bench-links: %s\n", why);
	e->closed = 1;
}

static const struct link_events events = {on_header, on_frame, on_sent, on_closed};

/* index: 0 keep, 1 echo, 2 acknowledge */
enum { KEEP, ECHO, ACK };

static void send_one(struct end *e, const void *body, uint64_t bytes, uint64_t index)
{
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.index = index;
	if (link_send(e->link, &h, body, 0)) {
		fprintf(stderr, "bench-links: cannot send\n");
		exit(1);
	}
}

/* --- the other process -------------------------------------------------------------- */

static int answer(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct end *e = owner;

	(void)l;
	(void)body;
	if (h->index != KEEP)
		send_one(e, e->body, h->index == ECHO ? h->body_bytes : 0, KEEP);
	return 0;
}

static int serve(const char *addr)
{
	static const struct link_events answering = {on_header, answer, on_sent, on_closed};
	struct end e = {.body = malloc(MAX_BYTES)};
	struct err err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!e.body || link_connect(addr, 5000, &answering, &e, &e.link, &err)) {
		fprintf(stderr, "bench-links: %s\n", err.text);
		return 1;
	}
	memset(e.body, 1, MAX_BYTES);
	while (!e.closed)
		link_progress(e.link);
	link_free(e.link);
	free(e.body);
	return 0;
}

/* --- measuring ------------------------------------------------------------------------ */

struct row {
	const char *link;
	uint64_t bytes;
	double p50_us, p99_us, gbytes_per_s, messages_per_s;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void until_received(struct end *e, uint64_t n)
{
	while (e->n_received < n && !e->closed)
		link_progress(e->link);
	if (e->closed)
		exit(1);
}

static void measure_latency(struct end *e, const void *body, struct row *r, uint64_t n)
{
	double *us = malloc(n * sizeof(*us));
	uint64_t i, start_ns, warm = n / 10 + 2;

	if (!us)
		exit(1);
	for (i = 0; i < warm + n; i++) {
		start_ns = clock_now_ns();
		send_one(e, body, r->bytes, ECHO);
		until_received(e, e->n_received + 1);
		if (i >= warm)
			us[i - warm] = (double)(clock_now_ns() - start_ns) / 2e3;
	}
	qsort(us, n, sizeof(*us), by_value);
	r->p50_us = us[n / 2];
	r->p99_us = us[n * 99 / 100];
	free(us);
}

/* Seconds for a batch of @n messages. */
static double run_batch(struct end *e, const void *body, uint64_t bytes, uint64_t n)
{
	uint64_t i, start_ns, sent = e->n_sent, acked = e->n_received;

	start_ns = clock_now_ns();
	for (i = 0; i < n; i++) {
		while (i - (e->n_sent - sent) >= IN_FLIGHT && !e->closed)
			link_progress(e->link);
		send_one(e, body, bytes, i == n - 1 ? ACK : KEEP);
	}
	until_received(e, acked + 1);
	return (double)(clock_now_ns() - start_ns) / 1e9;
}

static void measure_bandwidth(struct end *e, const void *body, struct row *r, uint64_t n)
{
	double seconds[BATCHES], s;
	int i;

	for (i = 0; i < BATCHES; i++)
		seconds[i] = run_batch(e, body, r->bytes, n);
	qsort(seconds, BATCHES, sizeof(*seconds), by_value);
	s = seconds[BATCHES / 2];
	r->gbytes_per_s = (double)(n * r->bytes) / s / 1e9;
	r->messages_per_s = (double)n / s;
}

static struct link *accept_peer(struct listener *l, struct end *e)
{
	struct link *link = NULL;
	struct err err;
	int rc;

	do
		rc = link_accept(l, &events, e, &link, &err);
	while (rc == -EAGAIN);
	if (rc) {
		fprintf(stderr, "bench-links: %s\n", err.text);
		exit(1);
	}
	return link;
}

static uint64_t clamp(uint64_t n, uint64_t least, uint64_t most)
{
	return n < least ? least : n > most ? most : n;
}

static int bench(const char *kind, const char *addr, int is_quick, struct row *rows)
{
	struct end e = {.body = malloc(MAX_BYTES)};
	unsigned char *body = malloc(MAX_BYTES);
	struct listener *l = NULL;
	struct err err;
	uint64_t bytes, budget = is_quick ? 64u << 20 : 1u << 30;
	int n = 0;
	pid_t child;

	if (!e.body || !body || listener_open(addr, &l, &err)) {
		fprintf(stderr, "bench-links: %s\n", l ? "no memory" : err.text);
		exit(1);
	}
	memset(body, 1, MAX_BYTES);
	memset(e.body, 1, MAX_BYTES);
	child = fork();
	if (child == 0)
		_exit(serve(listener_addr(l)));
	e.link = accept_peer(l, &e);
	for (bytes = 8; bytes <= MAX_BYTES; bytes *= bytes < 64 ? 8 : bytes < 1024 ? 16 : 4) {
		struct row *r = &rows[n++];

		*r = (struct row){.link = kind, .bytes = bytes};
		measure_latency(&e, body, r, clamp(budget / bytes / 4, 20, is_quick ? 2000 : 50000));
		measure_bandwidth(&e, body, r, clamp(budget / bytes / BATCHES, 4, is_quick ? 2000 : 50000));
		printf("%-5s %10llu %12.2f %12.2f %12.3f %14.0f\n", r->link,
		       (unsigned long long)r->bytes, r->p50_us, r->p99_us, r->gbytes_per_s,
		       r->messages_per_s);
		fflush(stdout);
	}
	link_free(e.link);
	listener_free(l);
	waitpid(child, NULL, 0);
	free(e.body);
	free(body);
	return n;
}

static int write_json(const char *path, const struct row *rows, int n)
{
	FILE *f = fopen(path, "w");
	struct utsname u;
	int i;

	if (!f) {
		fprintf(stderr, "bench-links: %s: %s\n", path, strerror(errno));
		return 1;
	}
	uname(&u);
	fprintf(f, "{\"name\": \"links\", \"host\": {\"machine\": \"%s\", \"kernel\": \"%s\", "
		   "\"cores\": %ld}, \"rows\": [",
		u.machine, u.release, sysconf(_SC_NPROCESSORS_ONLN));
	for (i = 0; i < n; i++)
		fprintf(f,
			"%s\n  {\"link\": \"%s\", \"bytes\": %llu, \"latency_us_p50\": %.3f, "
			"\"latency_us_p99\": %.3f, \"gbytes_per_s\": %.4f, \"messages_per_s\": %.0f}",
			i ? "," : "", rows[i].link, (unsigned long long)rows[i].bytes, rows[i].p50_us,
			rows[i].p99_us, rows[i].gbytes_per_s, rows[i].messages_per_s);
	fprintf(f, "\n]}\n");
	return fclose(f) ? 1 : 0;
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/nbox-bench-XXXXXX", addr[64];
	const char *json = NULL;
	struct row rows[64];
	int i, n = 0, is_quick = 0;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json") && i + 1 < argc) {
			json = argv[++i];
		} else if (!strcmp(argv[i], "--quick")) {
			is_quick = 1;
		} else {
			fprintf(stderr, "usage: bench-links [--json FILE] [--quick]\n");
			return 2;
		}
	}
	if (!mkdtemp(folder)) {
		fprintf(stderr, "bench-links: %s: %s\n", folder, strerror(errno));
		return 1;
	}
	snprintf(addr, sizeof(addr), "shm:%s/s", folder);
	printf("%-5s %10s %12s %12s %12s %14s\n", "link", "bytes", "p50 us", "p99 us", "GB/s",
	       "messages/s");
	n += bench("shm", addr, is_quick, rows + n);
	n += bench("tcp", "tcp:127.0.0.1:0", is_quick, rows + n);
	rmdir(folder);
	return json ? write_json(json, rows, n) : 0;
}
