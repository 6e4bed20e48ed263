/* See link-bench.h.
 *
 *   latency    half of a round trip of a message that is echoed
 *   bandwidth  batches of messages one way, as many on their way as the window
 *              allows; the receiver acknowledges the last of a batch; the median
 *              batch counts, so that one that was interrupted does not
 *
 * What it does not do: several links at once, or two machines. */
#include "nbox/doctor/link-bench.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/spin.h"
#include "links/endpoint.h"

#define BATCHES 15
#define IN_FLIGHT 32 /* sends that are not through */
#define PATIENCE_NS (30 * NS_PER_S)
#define SLEEP_MS 100
#define LEAST 5 /* round trips, also when time is up */

/* What the receiver does with a message: wire_hdr.index. */
enum { KEEP, ECHO, ACK };

struct end {
	struct link *link;
	enum link_bench_wait wait;
	struct spin spin;
	unsigned char *body; /* received ones, all in one place */
	uint64_t n_received, n_sent;
	int closed, code;
	struct err err;
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

static void on_closed(void *owner, struct link *l, int r, const char *why)
{
	struct end *e = owner;

	(void)l;
	e->code = err_set(&e->err, r ? -r : EPIPE, "%s", why);
	e->closed = 1;
}

static int send_one(struct end *e, const void *body, uint64_t bytes, uint64_t index)
{
	struct wire_hdr h;

	wire_hdr_init(&h, WIRE_MESSAGE, bytes);
	h.index = index;
	return link_send(e->link, &h, body, 0);
}

/* Another one for each row, so that what is left of one is no echo of the next. */
static void fill(unsigned char *body, size_t n, size_t row)
{
	for (size_t i = 0; i < n; i++)
		body[i] = (unsigned char)((i + 1) * (2 * row + 3) >> 3 ^ (row + 1) * 0x5b ^ i);
}

static int answer(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct end *e = owner;

	(void)l;
	(void)body;
	if (h->index == KEEP)
		return 0;
	return send_one(e, e->body, h->index == ECHO ? h->body_bytes : 0, KEEP);
}

/* Moves frames that can be moved, else waits for some in the way that @e says. */
static void step(struct end *e)
{
	uint64_t start_ns, budget_ns;
	struct pollfd p;

	if (link_progress(e->link) || e->wait == LINK_BENCH_POLL)
		return;
	start_ns = clock_now_ns();
	budget_ns = e->wait == LINK_BENCH_SPIN ? spin_budget_ns(&e->spin) : 0;
	while (budget_ns && clock_now_ns() - start_ns < budget_ns) {
		if (link_progress(e->link)) {
			spin_learn(&e->spin, clock_now_ns() - start_ns);
			return;
		}
		sched_yield();
	}
	if (e->closed || !link_arm(e->link))
		return;
	p = (struct pollfd){.fd = link_fd(e->link), .events = link_poll_events(e->link)};
	poll(&p, 1, SLEEP_MS);
	spin_learn(&e->spin, clock_now_ns() - start_ns);
}

/* --- the process that answers --------------------------------------------------------- */

/* Connects and answers until the link closes. @from: a socket to the measuring process, which sends
 * the address; what goes wrong is written back. */
static int serve(int from, enum link_bench_wait wait, size_t max_bytes)
{
	static const struct link_events answering = {on_header, answer, on_sent, on_closed};
	struct end e = {.wait = wait, .body = calloc(1, max_bytes)};
	struct err err = {"out of memory"};
	char addr[256] = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (read(from, addr, sizeof(addr) - 1) <= 0)
		return 1;
	if (!e.body || link_connect(addr, 10000, &answering, &e, &e.link, &err)) {
		send(from, err.text, strlen(err.text), MSG_NOSIGNAL);
		return 1;
	}
	while (!e.closed)
		step(&e);
	link_free(e.link);
	free(e.body);
	return 0;
}

/* --- the process that measures --------------------------------------------------------- */

static int lost(const struct end *e, struct err *err)
{
	if (e->closed)
		return err_set(err, -e->code, "the link broke during the self-test: %s",
			       e->err.text);
	return err_set(err, ETIMEDOUT, "nothing came through for %llu s",
		       (unsigned long long)(PATIENCE_NS / NS_PER_S));
}

static int not_sent(const struct end *e, int r, struct err *err)
{
	if (e->closed)
		return lost(e, err);
	return err_set(err, -r, "a message cannot be sent: %s", strerror(-r));
}

static int until_received(struct end *e, uint64_t n, struct err *err)
{
	uint64_t due_ns = clock_now_ns() + PATIENCE_NS;
	unsigned int turns = 0;

	while (e->n_received < n) {
		step(e);
		if (e->closed || (++turns % 64 == 0 && clock_now_ns() > due_ns))
			return lost(e, err);
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static uint64_t clamp(uint64_t n, uint64_t least, uint64_t most)
{
	return n < least ? least : n > most ? most : n;
}

static int measure_latency(const struct link_bench *b, struct end *e, const void *body,
			   struct link_bench_row *row, struct err *err)
{
	uint64_t most = clamp(b->budget_bytes / row->bytes / 4, LEAST, b->most), n = 0;
	uint64_t warm = most / 10 + 2, begin_ns = clock_now_ns(), start_ns;
	CLEANUP(freep) double *us = malloc(most * sizeof(*us));
	int r = us ? 0 : err_set(err, ENOMEM, "out of memory");

	for (uint64_t i = 0; !r && n < most; i++) {
		start_ns = clock_now_ns();
		if (n >= LEAST && start_ns - begin_ns > b->limit_ns)
			break;
		r = send_one(e, body, row->bytes, ECHO);
		r = r ? not_sent(e, r, err) : until_received(e, e->n_received + 1, err);
		if (r)
			break;
		if (i >= warm || clock_now_ns() - begin_ns > b->limit_ns / 2)
			us[n++] = (double)(clock_now_ns() - start_ns) / 2e3;
	}
	if (r)
		return r;
	qsort(us, n, sizeof(*us), by_value);
	row->p50_us = us[n / 2];
	row->p99_us = us[n * 99 / 100];
	row->n_round_trips = n;
	return 0;
}

/* One batch of @n messages. */
static int run_batch(struct end *e, const void *body, uint64_t bytes, uint64_t n,
		     double *ret_seconds, struct err *err)
{
	uint64_t start_ns = clock_now_ns(), sent = e->n_sent, acked = e->n_received;
	int r;

	for (uint64_t i = 0; i < n; i++) {
		while (i - (e->n_sent - sent) >= IN_FLIGHT) {
			step(e);
			if (e->closed || clock_now_ns() - start_ns > PATIENCE_NS)
				return lost(e, err);
		}
		r = send_one(e, body, bytes, i == n - 1 ? ACK : KEEP);
		if (r)
			return not_sent(e, r, err);
	}
	r = until_received(e, acked + 1, err);
	if (!r)
		*ret_seconds = (double)(clock_now_ns() - start_ns) / 1e9;
	return r;
}

static int measure_bandwidth(const struct link_bench *b, struct end *e, const void *body,
			     struct link_bench_row *row, struct err *err)
{
	uint64_t n = clamp(b->budget_bytes / row->bytes / BATCHES, 4, b->most);
	uint64_t begin_ns = clock_now_ns();
	double seconds[BATCHES], s;
	int i, r = 0;

	for (i = 0; i < BATCHES && !r; i++) {
		if (i >= 3 && clock_now_ns() - begin_ns > b->limit_ns)
			break;
		r = run_batch(e, body, row->bytes, n, &seconds[i], err);
		/* a slow link: shorter batches, the first one does not count */
		if (!r && i == 0 && n > 4 && seconds[0] * 5e9 > (double)b->limit_ns) {
			n = clamp((uint64_t)((double)n * (double)b->limit_ns / (seconds[0] * 5e9)),
				  4, n);
			begin_ns = clock_now_ns();
			i = -1;
		}
	}
	if (r)
		return r;
	qsort(seconds, (size_t)i, sizeof(*seconds), by_value);
	s = seconds[i / 2];
	row->gbytes_per_s = (double)(n * row->bytes) / s / 1e9;
	row->messages_per_s = (double)n / s;
	return 0;
}

/* It is still to be waited for. */
static bool has_ended(pid_t child)
{
	siginfo_t info = {.si_pid = 0};

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

/* @to: the child, which may have said why it cannot come. */
static int accept_peer(struct listener *l, struct end *e, pid_t child, int to, struct err *err)
{
	static const struct link_events events = {on_header, on_frame, on_sent, on_closed};
	uint64_t due_ns = clock_now_ns() + 10 * NS_PER_S;
	struct pollfd p = {.fd = listener_fd(l), .events = POLLIN};
	char why[ERR_TEXT_MAX];
	int r;

	while ((r = link_accept(l, &events, e, &e->link, err)) == -EAGAIN) {
		if (clock_now_ns() > due_ns || has_ended(child)) {
			ssize_t got = recv(to, why, sizeof(why) - 1, MSG_DONTWAIT);

			why[got > 0 ? got : 0] = '\0';
			return err_set(err, ETIMEDOUT,
				       "the other process could not connect to %s%s%s",
				       listener_addr(l), got > 0 ? ": " : "", why);
		}
		poll(&p, 1, SLEEP_MS);
	}
	return r;
}

static int measure(const struct link_bench *b, struct listener *l, pid_t child, int to,
		   size_t max_bytes, struct link_bench_row *rows, size_t n, struct err *err)
{
	struct end e = {.wait = b->wait, .body = malloc(max_bytes)};
	CLEANUP(freep) unsigned char *body = malloc(max_bytes);
	const char *addr = listener_addr(l);
	int r = 0;

	if (!e.body || !body)
		r = err_set(err, ENOMEM, "out of memory");
	else if (send(to, addr, strlen(addr), MSG_NOSIGNAL) < 0)
		r = err_set(err, errno, "the other process: %s", strerror(errno));
	else
		r = accept_peer(l, &e, child, to, err);
	if (!r)
		memset(e.body, 0, max_bytes);
	for (size_t i = 0; i < n && !r; i++) {
		fill(body, rows[i].bytes, i);
		r = measure_latency(b, &e, body, &rows[i], err);
		if (!r && memcmp(e.body, body, rows[i].bytes) != 0)
			r = err_set(err, EBADMSG, "a body of %llu bytes came back changed",
				    (unsigned long long)rows[i].bytes);
		if (!r)
			r = measure_bandwidth(b, &e, body, &rows[i], err);
	}
	link_free(e.link);
	free(e.body);
	return r;
}

int link_bench_run(const struct link_bench *b, struct link_bench_row *rows, size_t n,
		   struct err *err)
{
	struct listener *l = NULL;
	size_t max_bytes = 1;
	int fds[2], r;
	pid_t child;

	for (size_t i = 0; i < n; i++)
		if (rows[i].bytes > max_bytes)
			max_bytes = rows[i].bytes;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		return err_set(err, errno, "socketpair: %s", strerror(errno));
	/* before anything of the link is there: the child has nothing of it to inherit */
	child = fork();
	if (child < 0) {
		r = err_set(err, errno, "fork: %s", strerror(errno));
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	if (child == 0) {
		close(fds[1]);
		_exit(serve(fds[0], b->wait, max_bytes));
	}
	close(fds[0]);
	r = listener_open(b->addr, &l, err);
	if (!r)
		r = measure(b, l, child, fds[1], max_bytes, rows, n, err);
	listener_free(l);
	close(fds[1]);
	if (r)
		kill(child, SIGKILL);
	waitpid(child, NULL, 0); /* its link is closed, so it ends */
	return r;
}
