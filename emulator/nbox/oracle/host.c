/* See host.h. */
#include "nbox/oracle/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "bootstrap/serve/serve.h"
#include "fabric/read/net-devices.h"
#include "nbox/oracle/child.h"
#include "nbox/oracle/fits.h"

#define WAITS_MAX 200
#define LAST_MAX 220
#define LOG_AT_END 65536

struct oracle_host {
	const struct oracle_request *q;
	struct oracle_child child;
	struct event_base *base;
	struct event *readable, *late;
	struct bootstrap_serve *serve;
	const struct nccl_records *records;
	struct bootstrap_comm *comm; /* that is under way; NULL: none */
	char in[2 * ORACLE_LINE_MAX];
	size_t n_in;
	bool has_ended, is_late;
	char failed[ERR_TEXT_MAX]; /* what the responder said; "": nothing */
	uint8_t *graph;            /* owned; rank 0's record of its graphs; NULL: not yet there */
};

static void on_failed(void *ctx, struct bootstrap_comm *comm, const char *sentence)
{
	struct oracle_host *h = ctx;

	(void)comm;
	snprintf(h->failed, sizeof(h->failed), "%s", sentence);
	event_base_loopbreak(h->base);
}

static void on_record(void *ctx, struct bootstrap_comm *comm, const char *what, uint32_t rank,
		      const uint8_t *record, size_t bytes)
{
	struct oracle_host *h = ctx;

	(void)comm;
	if (rank != 0 || strcmp(what, "graph") != 0 || h->graph)
		return;
	h->graph = malloc(bytes);
	if (h->graph)
		memcpy(h->graph, record, bytes);
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct oracle_host *h = ctx;
	ssize_t n = read(fd, h->in + h->n_in, sizeof(h->in) - 1 - h->n_in);

	(void)what;
	if (n > 0)
		h->n_in += (size_t)n;
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		h->has_ended = true;
	event_base_loopbreak(h->base);
}

static void on_late(evutil_socket_t fd, short what, void *ctx)
{
	struct oracle_host *h = ctx;

	(void)fd;
	(void)what;
	h->is_late = true;
	event_base_loopbreak(h->base);
}

/* What NCCL said last: "; NCCL: ..." or "". */
static const char *last_of_log(const struct oracle_host *h, char *buf, size_t size)
{
	off_t bytes = oracle_child_log_bytes(&h->child);
	CLEANUP(freep) char *text = NULL;
	char last[LAST_MAX];

	buf[0] = 0;
	if (oracle_child_log(&h->child, bytes > LOG_AT_END ? bytes - LOG_AT_END : 0, &text) > 0 &&
	    nccl_log_last(text, last, sizeof(last))[0])
		snprintf(buf, size, "; NCCL's log: %s", last);
	return buf;
}

/* nbox-oracle has ended without an answer. */
static int say_ended(struct oracle_host *h, struct err *err)
{
	char log[LAST_MAX + 32];
	int status;

	event_del(h->readable);
	status = oracle_child_end(&h->child);
	last_of_log(h, log, sizeof(log));
	if (WIFSIGNALED(status))
		return err_set(err, ECHILD, "NCCL ended its process by signal %d (%s)%s",
			       WTERMSIG(status), strsignal(WTERMSIG(status)), log);
	return err_set(err, ECHILD, "nbox-oracle ended with exit code %d before it had answered%s",
		       WEXITSTATUS(status), log);
}

static int say_late(const struct oracle_host *h, const char *what, struct err *err)
{
	char waits[WAITS_MAX] = "", log[LAST_MAX + 32], time[32];

	if (h->comm)
		bootstrap_comm_waits(h->comm, waits, sizeof(waits));
	if (strncmp(what, "world ", 6) == 0)
		what = "made its communicator";
	else if (strncmp(what, "end", 3) == 0)
		what = "ended its communicator";
	else if (strncmp(what, "ask ", 4) == 0)
		what = "told what an op would cost";
	return err_set(err, ETIMEDOUT, "NCCL has not %s within %s (--timeout)%s%s%s", what,
		       units_print_time((double)h->q->timeout_ns, time, sizeof(time)),
		       waits[0] ? ": " : "", waits, last_of_log(h, log, sizeof(log)));
}

/* A process that dies takes its connections with it, which may be noticed first. Return: it has
 * ended. */
static bool ends_soon(struct oracle_host *h)
{
	const struct timeval due = {.tv_sec = 1};

	event_add(h->late, &due);
	while (!h->has_ended && !h->is_late && !memchr(h->in, '\n', h->n_in))
		event_base_dispatch(h->base);
	event_del(h->late);
	return h->has_ended;
}

/* NCCL's own words are often those that it has logged, too. */
static int say_failed(const struct oracle_host *h, const char *why, struct err *err)
{
	char log[LAST_MAX + 32];
	const char *words = strstr(last_of_log(h, log, sizeof(log)), ": ");

	return err_set(err, EIO, "%.300s%s", why, words && strstr(why, words + 2) ? "" : log);
}

/* The next line of nbox-oracle, while this process plays the other ranks. @what: the line that it
 * answers, or what it has not done otherwise.
 * Return: 0; negative errno with the sentence. */
static int hear(struct oracle_host *h, const char *what, char line[ORACLE_LINE_MAX],
		struct err *err)
{
	const struct timeval due = {.tv_sec = (time_t)(h->q->timeout_ns / NS_PER_S),
				    .tv_usec = (suseconds_t)(h->q->timeout_ns % NS_PER_S / 1000)};
	char log[LAST_MAX + 32], *end;
	size_t len;

	event_add(h->late, &due);
	while (!(end = memchr(h->in, '\n', h->n_in)) && !h->has_ended && !h->is_late &&
	       !h->failed[0] && h->n_in < sizeof(h->in) - 1)
		event_base_dispatch(h->base);
	event_del(h->late);
	if (!end && h->failed[0] && !ends_soon(h))
		return err_set(err, EPROTO, "%s%s", h->failed, last_of_log(h, log, sizeof(log)));
	if (!end && h->has_ended)
		return say_ended(h, err);
	if (!end && h->is_late)
		return say_late(h, what, err);
	len = end ? (size_t)(end - h->in) : ORACLE_LINE_MAX;
	if (len >= ORACLE_LINE_MAX)
		return err_set(err, EPROTO, "nbox-oracle said a line that is too long");
	memcpy(line, h->in, len);
	line[len] = 0;
	h->n_in -= len + 1;
	memmove(h->in, h->in + len + 1, h->n_in);
	if (strncmp(line, "failed ", 7) == 0)
		return say_failed(h, line + 7, err);
	return 0;
}

static int ask(struct oracle_host *h, char line[ORACLE_LINE_MAX], struct err *err, const char *fmt,
	       ...) __attribute__((format(printf, 4, 5)));

static int ask(struct oracle_host *h, char line[ORACLE_LINE_MAX], struct err *err, const char *fmt,
	       ...)
{
	char question[ORACLE_LINE_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(question, sizeof(question) - 1, fmt, ap);
	va_end(ap);
	question[n++] = '\n';
	/* one that has ended is noticed by its socket's end */
	(void)!send(h->child.socket, question, (size_t)n, MSG_NOSIGNAL);
	question[n - 1] = 0;
	return hear(h, question, line, err);
}

static int off_script(const char *line, struct err *err)
{
	return err_set(err, EPROTO, "nbox-oracle said '%.60s'", line);
}

static int open_loop(struct oracle_host *h, struct err *err)
{
	static const struct bootstrap_told told = {.failed = on_failed, .record = on_record};
	const struct sockaddr_in here = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	h->base = event_base_new();
	h->readable =
		h->base ? event_new(h->base, h->child.socket, EV_READ | EV_PERSIST, on_readable, h)
			: NULL;
	h->late = h->base ? evtimer_new(h->base, on_late, h) : NULL;
	if (!h->readable || !h->late || event_add(h->readable, NULL) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return bootstrap_serve_new(h->base, (const struct sockaddr *)&here, NULL, &told, h,
				   &h->serve, err);
}

/* The devices of nbox's network are those of the topology. */
static int tell_devices(struct oracle_host *h, struct err *err)
{
	struct net_device devices[NET_DEVICES_MAX];
	char line[ORACLE_LINE_MAX];
	size_t n = 0;
	int r;

	if (h->q->has_own_net)
		return 0;
	if (!h->q->topo)
		return err_set(
			err, EINVAL,
			"--net null has the NICs of --topo FILE: any NCCL program writes that file of its "
			"node with NCCL_TOPO_DUMP_FILE=FILE");
	r = net_devices_read(h->q->topo, devices, &n, err);
	if (r < 0)
		return err_prefix(err, r, "--net null (--net own takes NCCL's)");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = ask(h, line, err, "device %s %" PRIx64 " %d %d %.9g %d %d", devices[i].name,
			devices[i].guid, devices[i].port, devices[i].mbps,
			(double)devices[i].latency_us, devices[i].n_comms, devices[i].has_gdr);
	return r;
}

static int meet(struct oracle_host *h, struct oracle_nccl *ret, struct err *err)
{
	char line[ORACLE_LINE_MAX];
	struct oracle_nccl n = {.version = 0};
	int r = hear(h, "started", line, err);

	if (r < 0)
		return r;
	if (sscanf(line, "ready %d %d %2047[^\t]\t%63[^\n]", &n.version, &n.n_gpus, n.path, n.gpu) <
	    3)
		return off_script(line, err);
	snprintf(n.name, sizeof(n.name), "%d.%d.%d", n.version / 10000, n.version / 100 % 100,
		 n.version % 100);
	h->records = nccl_records_find(n.version, h->q->is_untried_allowed, err->text,
				       sizeof(err->text));
	if (!h->records)
		return -ENOTSUP;
	n.tried = h->records->tried;
	r = tell_devices(h, err);
	if (r == 0)
		*ret = n;
	return r;
}

int oracle_host_new(const struct oracle_request *q, const char *program, const char *plugin,
		    struct oracle_host **ret, struct oracle_nccl *ret_nccl, struct err *err)
{
	struct oracle_host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return err_set(err, ENOMEM, "out of memory");
	h->q = q;
	r = oracle_child_start(&h->child, program, plugin, q, err);
	if (r == 0)
		r = open_loop(h, err);
	if (r == 0)
		r = meet(h, ret_nccl, err);
	*ret = h;
	return r;
}

void oracle_host_free(struct oracle_host *h)
{
	if (!h)
		return;
	if (h->readable)
		event_free(h->readable);
	if (h->late)
		event_free(h->late);
	oracle_child_end(&h->child);
	if (h->child.log > 0)
		close(h->child.log);
	bootstrap_serve_free(h->serve);
	if (h->base)
		event_base_free(h->base);
	free(h->graph);
	free(h);
}

void oracle_host_print_log(const struct oracle_host *h, FILE *to)
{
	CLEANUP(freep) char *text = NULL;
	ssize_t n = h ? oracle_child_log(&h->child, 0, &text) : 0;

	if (n > 0)
		fwrite(text, 1, (size_t)n, to);
}

/* --- a world ------------------------------------------------------------------------- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int make_comm(struct oracle_host *h, const struct oracle_world *w, char *ret_id,
		     struct err *err)
{
	CLEANUP(freep) uint32_t *node = malloc(w->n_ranks * sizeof(*node));
	CLEANUP(freep) uint32_t *template = malloc(w->n_ranks * sizeof(*template));
	uint8_t id[NCCL_ID_BYTES];
	int r;

	if (!node || !template)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < w->n_ranks; i++) {
		node[i] = i / w->gpus_per_node;
		template[i] = i % w->gpus_per_node;
	}
	h->failed[0] = 0;
	r = bootstrap_comm_make(bootstrap_serve_bootstrap(h->serve), h->records, w->n_ranks, node,
				template, 1, id, &h->comm, err);
	for (size_t i = 0; r == 0 && i < sizeof(id); i++)
		snprintf(ret_id + 2 * i, 3, "%02x", id[i]);
	return r;
}

static int read_log(struct oracle_host *h, off_t from, struct oracle_world *w, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	ssize_t n = oracle_child_log(&h->child, from, &text);

	w->log = malloc(sizeof(*w->log));
	if (n < 0 || !w->log)
		return err_set(err, n < 0 ? (int)-n : ENOMEM, "NCCL's log cannot be read: %s",
			       n < 0 ? strerror((int)-n) : "out of memory");
	nccl_log_parse(text, (size_t)n, w->log);
	if (w->n_nodes > 1 && h->graph && w->log->n_graphs &&
	    !graph_record_fits(&h->records->graph, h->graph, w->log))
		return err_set(
			err, EPROTO,
			"this NCCL's records are not as nbox's table %s has them: rank 0 sent other graphs than "
			"it logged (--nccl-log FILE keeps its log)",
			h->records->name);
	return 0;
}

static int initialise(struct oracle_host *h, struct oracle_world *w, struct err *err)
{
	char line[ORACLE_LINE_MAX], id[2 * NCCL_ID_BYTES + 1];
	off_t logged = oracle_child_log_bytes(&h->child);
	int r = make_comm(h, w, id, err);

	if (r < 0)
		return r;
	w->responder_ns = cpu_ns();
	r = ask(h, line, err, "world %u %u %s", w->n_ranks, w->gpus_per_node, id);
	w->responder_ns = cpu_ns() - w->responder_ns;
	if (r == 0 && sscanf(line, "world %" SCNu64 " %" SCNi64 " %" SCNi64, &w->init_ns,
			     &w->rss_bytes, &w->gpu_bytes) != 3)
		r = off_script(line, err);
	return r < 0 ? r : read_log(h, logged, w, err);
}

/* 2.21 tells its tuner no costs: its log has which it takes, and at what cost. */
static int cost_of_log(struct oracle_host *h, off_t from, struct oracle_costs *c, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	const char *at = NULL, *s;
	uint64_t bytes;
	unsigned int algo, proto;
	float us;

	if (oracle_child_log(&h->child, from, &text) >= 0)
		for (s = strstr(text, " Bytes -> Algo "); s; s = strstr(s + 1, " Bytes -> Algo "))
			at = s;
	while (at && at > text && at[-1] != ' ')
		at--;
	if (!at ||
	    sscanf(at, "%" SCNu64 " Bytes -> Algo %u proto %u time %f", &bytes, &algo, &proto,
		   &us) != 4 ||
	    algo >= N_ALGOS || proto >= N_PROTOS)
		return err_set(err, EPROTO,
			       "NCCL has not logged what it takes for %s of %" PRIu64 " bytes",
			       oracle_op_names[c->op], c->bytes);
	c->n_algos = N_ALGOS;
	c->n_protos = N_PROTOS;
	for (int i = 0; i < N_ALGOS * N_PROTOS; i++)
		c->us[i] = -1;
	c->us[algo * N_PROTOS + proto] = us;
	return 0;
}

static int ask_costs(struct oracle_host *h, struct oracle_world *w, struct err *err)
{
	char line[ORACLE_LINE_MAX];
	int r = 0;

	w->costs = calloc(ORACLE_OPS * h->q->n_sizes, sizeof(*w->costs));
	if (!w->costs)
		return err_set(err, ENOMEM, "out of memory");
	for (int op = 0; op < ORACLE_OPS; op++) {
		for (size_t i = 0; h->q->ops[op] && i < h->q->n_sizes; i++) {
			struct oracle_costs *c = &w->costs[w->n_costs];
			off_t logged = oracle_child_log_bytes(&h->child);

			r = ask(h, line, err, "ask %s %" PRIu64, oracle_op_names[op],
				h->q->sizes[i]);
			if (r < 0)
				return r;
			if (strncmp(line, "none ", 5) == 0)
				continue;
			if (oracle_costs_parse(line, c) < 0 || (int)c->op != op)
				return off_script(line, err);
			if (c->n_algos == 0 && (r = cost_of_log(h, logged, c, err)) < 0)
				return r;
			/* two sizes may have as many elements for each rank */
			if (!w->n_costs || c[-1].op != c->op || c[-1].bytes < c->bytes)
				w->n_costs++;
		}
	}
	return 0;
}

int oracle_host_world(struct oracle_host *h, const struct oracle_shape *shape,
		      struct oracle_world *ret, struct err *err)
{
	struct oracle_world w = {.n_nodes = shape->n_nodes,
				 .gpus_per_node = shape->gpus_per_node,
				 .n_ranks = shape->n_nodes * shape->gpus_per_node};
	char line[ORACLE_LINE_MAX];
	uint64_t end_ns;
	int r = initialise(h, &w, err);

	w.ask_ns = clock_now_ns();
	if (r == 0)
		r = ask_costs(h, &w, err);
	w.ask_ns = clock_now_ns() - w.ask_ns;
	if (r == 0)
		r = ask(h, line, err, "end");
	if (r == 0 && sscanf(line, "end %" SCNu64 " %" SCNu64, &end_ns, &w.n_connections) != 2)
		r = off_script(line, err);
	if (h->comm) {
		w.n_transports = bootstrap_comm_transports(h->comm);
		if (r < 0 && w.n_transports && h->q->has_own_net)
			err_prefix(
				err, r,
				"this NCCL connects in its initialisation, which needs --net null and --topo FILE");
		bootstrap_comm_end(h->comm);
		h->comm = NULL;
	}
	if (r < 0) {
		oracle_world_deinit(&w);
		return err_prefix(err, r, "%u ranks on %u nodes", w.n_ranks, w.n_nodes);
	}
	*ret = w;
	return 0;
}

void oracle_world_deinit(struct oracle_world *w)
{
	free(w->log);
	free(w->costs);
	w->log = NULL;
	w->costs = NULL;
}
