/* See metrics.h. */
#include "nboxd/metrics.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/plain.h"
#include "nboxd/full/full.h"
#include "nboxd/loop/warn.h"
#include "nboxd/rooms.h"

#define REQUEST_BYTES_MAX 8192
#define SILENT_S 10

struct metrics {
	const struct server *s; /* borrowed */
	struct evhttp *http;    /* owned */
	char addr[300];
};

/* --- the text ---------------------------------------------------------------------- */

static void print_both(FILE *to, const char *name, const char *help, uint64_t in, uint64_t out)
{
	metric_head(to, name, "counter", help);
	fprintf(to, "%s{direction=\"in\"} %llu\n%s{direction=\"out\"} %llu\n", name,
		(unsigned long long)in, name, (unsigned long long)out);
}

static void print_full(const struct full *f, FILE *to)
{
	struct traffic_counts n;

	full_count(f, &n);
	metric_one(to, "nbox_nccl_communicators", "gauge",
		   "Communicators that NCCL has at the virtual size.", (double)full_comms(f));
	print_both(to, "nbox_nccl_messages_total",
		   "Messages of NCCL's own: in from real ranks, out to them.", n.n_arrived,
		   n.n_sent);
	print_both(to, "nbox_nccl_message_bytes_total", "Bytes of their bodies.", n.arrived_bytes,
		   n.sent_bytes);
	metric_one(to, "nbox_nccl_identity_messages_total", "counter",
		   "Of those out: what no real rank's data came into.", (double)n.n_identity);
	metric_one(to, "nbox_nccl_summed_messages_total", "counter",
		   "Of those out: sums of several real nodes' data.", (double)n.n_summed);
	metric_one(to, "nbox_nccl_late_messages_total", "counter",
		   "Of those out: sent after they were due.", (double)n.n_late);
	metric_one(to, "nbox_nccl_late_seconds_total", "counter", "... by so much in all.",
		   (double)n.late_ns / 1e9);
	metric_one(to, "nbox_nccl_waiting_messages", "gauge",
		   "Receives that NCCL has posted and that were not answered.",
		   (double)n.n_waiting);
	metric_one(to, "nbox_nccl_open_flows", "gauge",
		   "What NCCL sends or receives in an op on a channel, and is not through with.",
		   (double)n.n_flows);
}

static void print(const struct server *s, FILE *to)
{
	const struct config *c = s->config;
	char model[512];

	totals_print_cluster(plain_text(config_model(c, model, sizeof(model))), c->world,
			     (uint32_t)c->n_real, c->topology.n_nodes, to);
	totals_print(&s->live.totals, to);
	metric_one(to, "nbox_uptime_seconds", "gauge", "Since nboxd started.",
		   (double)(clock_now_ns() - s->start_ns) / 1e9);
	metric_one(to, "nbox_links", "gauge", "Connections to nboxd.", (double)s->loop.workers.n);
	metric_one(to, "nbox_communicators", "gauge", "Communicators that there are.",
		   (double)s->comms.n);
	metric_one(to, "nbox_open_ops", "gauge", "Ops that have begun and are not over.",
		   (double)s->live.ops.n_open);
	print_both(to, "nbox_messages_total", "Messages of ops over the links.",
		   s->live.n_messages_in, s->live.n_messages_out);
	if (s->full)
		print_full(s->full, to);
	metric_one(to, "nbox_warnings_total", "counter", "Warnings of nboxd.",
		   (double)warn_count());
}

/* --- requests ---------------------------------------------------------------------- */

/* No early end: tells nothing by time. */
static bool is_allowed(const struct metrics *m, struct evhttp_request *req)
{
	static const char bearer[] = "Bearer ";
	const char *given =
		evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
	char token[WIRE_TOKEN_BYTES + 1] = "";
	int difference = 0;

	if (!m->s->config->metrics_needs_token)
		return true;
	if (!given || strncmp(given, bearer, strlen(bearer)) != 0 ||
	    strlen(given) - strlen(bearer) > WIRE_TOKEN_BYTES)
		return false;
	strcpy(token, given + strlen(bearer));
	for (size_t i = 0; i < WIRE_TOKEN_BYTES; i++)
		difference |= m->s->config->token[i] ^ (uint8_t)token[i];
	return difference == 0;
}

static void on_metrics(struct evhttp_request *req, void *ctx)
{
	const struct metrics *m = ctx;
	char *text = NULL;
	size_t n = 0;
	FILE *to;

	if (!is_allowed(m, req)) {
		evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate",
				  "Bearer");
		evhttp_send_reply(req, 401, "Unauthorized", NULL);
		return;
	}
	to = open_memstream(&text, &n);
	if (to)
		print(m->s, to);
	if (!to || fclose(to) != 0 ||
	    evbuffer_add(evhttp_request_get_output_buffer(req), text, n) < 0) {
		evhttp_send_error(req, HTTP_INTERNAL, NULL);
	} else {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
				  METRIC_CONTENT_TYPE);
		evhttp_send_reply(req, HTTP_OK, "OK", NULL);
	}
	free(text);
}

/* --- life -------------------------------------------------------------------------- */

/* Writes to m->addr which port it became. */
static void name_addr(struct metrics *m, const char *host, int n_host, evutil_socket_t fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at = {.any.sa_family = AF_UNSPEC};
	socklen_t n = sizeof(at);

	getsockname(fd, &at.any, &n);
	snprintf(m->addr, sizeof(m->addr), "%.*s:%u", n_host, host,
		 ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port));
}

int metrics_open(struct server *s, struct metrics **ret, struct err *err)
{
	const char *addr = s->config->metrics, *colon = strrchr(addr, ':');
	bool is_v6 = addr[0] == '[';
	char host[256];
	struct evhttp_bound_socket *bound;
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m || !(m->http = evhttp_new(s->loop.base))) {
		free(m);
		return err_set(err, ENOMEM, "out of memory");
	}
	m->s = s;
	evhttp_set_allowed_methods(m->http, EVHTTP_REQ_GET);
	evhttp_set_max_headers_size(m->http, REQUEST_BYTES_MAX);
	evhttp_set_max_body_size(m->http, REQUEST_BYTES_MAX);
	evhttp_set_timeout(m->http, SILENT_S);
	evhttp_set_cb(m->http, "/metrics", on_metrics, m);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - addr) - 2 * is_v6, addr + is_v6);
	errno = 0;
	bound = evhttp_bind_socket_with_handle(m->http, host,
					       (ev_uint16_t)strtoul(colon + 1, NULL, 10));
	if (!bound) {
		int e = errno ? errno : EADDRNOTAVAIL;

		metrics_close(m);
		return err_set(err, e, "metrics %s: cannot listen there: %s", addr, strerror(e));
	}
	name_addr(m, addr, (int)(colon - addr), evhttp_bound_socket_get_fd(bound));
	log_info("metrics: http://%s/metrics", m->addr);
	*ret = m;
	return 0;
}

void metrics_close(struct metrics *m)
{
	if (!m)
		return;
	evhttp_free(m->http);
	free(m);
}

const char *metrics_addr(const struct metrics *m)
{
	return m ? m->addr : NULL;
}
