/* nboxd as a whole: where it listens, what it owns, how that is made and goes. The loop:
 * server-loop.c. */
#include "nboxd/server.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/addr-file.h"
#include "config/open-model.h"
#include "engine/delay-network.h"
#include "engine/solver.h"
#include "links/endpoint.h"
#include "links/rdma/options.h"
#include "nboxd/comm/groups.h"
#include "nboxd/job/results.h"
#include "nboxd/loop/capacity.h"
#include "nboxd/loop/warn.h"
#include "nboxd/loop/worker.h"
#include "nboxd/op/op.h"
#include "nboxd/op/run.h"
#include "nboxd/store/server.h"

#define ACCEPTS_A_LOOK 64

const char *server_addr(const struct server *s)
{
	return s->n_listening && s->listening[0].listener ? listener_addr(s->listening[0].listener)
							  : s->config->addr;
}

char *server_more_addrs(const struct server *s, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 1; i < s->n_listening && used < size; i++)
		if (s->listening[i].listener)
			used += (size_t)snprintf(buf + used, size - used, " %s",
						 listener_addr(s->listening[i].listener));
	return buf;
}

char *server_network(const struct server *s, char *buf, size_t size)
{
	const struct delay_network cluster = {
		.intra_latency = config_text(s->config, CONFIG_INTRA_LATENCY),
		.intra_bandwidth = config_text(s->config, CONFIG_INTRA_BANDWIDTH),
		.inter_latency = config_text(s->config, CONFIG_INTER_LATENCY),
		.inter_bandwidth = config_text(s->config, CONFIG_INTER_BANDWIDTH),
	};

	buf[0] = '\0';
	return strcmp(s->config->model, "none") ? delay_network(s->ops.delay, &cluster, buf, size)
						: buf;
}

const char *server_store_addr(const struct server *s)
{
	return s->store ? store_server_addr(s->store) : NULL;
}

/* --- events ---------------------------------------------------------------------- */

static void on_listen(evutil_socket_t fd, short what, void *ctx)
{
	struct listening *at = ctx;
	struct server *s = at->server;
	struct err err = {""};
	int r = 0;

	(void)fd;
	(void)what;
	/* an rdma listener's descriptor is that of its links too: mostly it was one of them */
	for (int i = 0; i < ACCEPTS_A_LOOK && r == 0; i++) {
		r = worker_accept(s, at->listener, &err);
		if (r != -EAGAIN)
			s->tick_ns = 0;
	}
	if (r == LINK_LISTENS_AGAIN || r == -ENODEV)
		warn_run("%s", err.text);
	else if (r < 0 && r != -EAGAIN)
		warn_stranger("cannot accept a link: %s", err.text[0] ? err.text : strerror(-r));
}

static void on_signal(evutil_socket_t number, short what, void *ctx)
{
	struct server *s = ctx;

	(void)what;
	s->stop_signal = (int)number;
}

/* Being awake is all that is wanted: the round does the rest. */
void server_on_wake(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	(void)ctx;
}

static void event_freep(struct event **ev)
{
	if (*ev)
		event_free(*ev);
	*ev = NULL;
}

static int watch(struct event **ev, struct event_base *base, evutil_socket_t fd, short what,
		 event_callback_fn fn, void *ctx)
{
	*ev = event_new(base, fd, what, fn, ctx);
	return *ev && event_add(*ev, NULL) == 0 ? 0 : -ENOMEM;
}

static int open_events(struct server *s)
{
	struct event_config *ec = event_config_new();

	if (!ec)
		return -ENOMEM;
	event_config_set_flag(ec, EVENT_BASE_FLAG_PRECISE_TIMER);
	s->base = event_base_new_with_config(ec);
	event_config_free(ec);
	if (!s->base)
		return -ENOMEM;
	s->timer_event = evtimer_new(s->base, server_on_wake, s);
	if (!s->timer_event ||
	    watch(&s->term_event, s->base, SIGTERM, EV_SIGNAL | EV_PERSIST, on_signal, s) < 0 ||
	    watch(&s->int_event, s->base, SIGINT, EV_SIGNAL | EV_PERSIST, on_signal, s) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_listening; i++) {
		struct listening *at = &s->listening[i];

		if (watch(&at->event, s->base, listener_fd(at->listener), EV_READ | EV_PERSIST,
			  on_listen, at) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* --- addresses -------------------------------------------------------------------- */

/* Of the links that this process opens. */
static int use_rdma_options(const struct config *c, struct err *err)
{
	struct rdma_options o;
	char where[256];
	int r;

	rdma_options_init(&o);
	for (int id = CONFIG_IB_HCA; id <= CONFIG_IB_POLL; id++) {
		if (!config_text(c, id))
			continue;
		r = rdma_options_set(&o, options[id].variable + strlen("NBOX_IB_"),
				     config_text(c, id), err);
		if (r < 0)
			return err_prefix(err, r, "%s",
					  config_where(c, id, 0, where, sizeof(where)));
	}
	rdma_options_use(&o);
	return 0;
}

static int open_listeners(struct server *s, struct err *err)
{
	const struct config *c = s->config;
	int r = use_rdma_options(c, err);

	if (r < 0)
		return r;

	s->listening = calloc(c->n_addrs, sizeof(*s->listening));
	if (!s->listening)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; i < c->n_addrs && r == 0; i++) {
		struct listening *at = &s->listening[i];

		r = listener_open(c->addrs[i], &at->listener, err);
		at->server = s;
		s->n_listening = i + (r == 0);
		if (r == 0 && !c->token[0] && strncmp(listener_addr(at->listener), "rdma:", 5) == 0)
			r = err_set(err, EINVAL,
				    "%s can be reached from other hosts, that needs a token: set "
				    "NBOX_TOKEN for nboxd and the workers",
				    listener_addr(at->listener));
	}
	return r;
}

void server_stop_listening(struct server *s)
{
	for (size_t i = 0; i < s->n_listening; i++) {
		event_freep(&s->listening[i].event);
		s->listening[i].listener = listener_free(s->listening[i].listener);
	}
}

/* --- life ------------------------------------------------------------------------- */

static void read_boot_id(uint8_t ret[16])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char text[64] = "";
	unsigned n = 0;

	if (!f)
		return;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	for (const char *p = text; *p && n < 32; p++) {
		unsigned nibble;

		if (*p >= '0' && *p <= '9')
			nibble = (unsigned)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			nibble = (unsigned)(*p - 'a') + 10;
		else
			continue;
		ret[n / 2] |= (uint8_t)(n % 2 ? nibble : nibble << 4);
		n++;
	}
}

/* The folder of models beside this program, or where it was installed to. */
static const char *model_dir(char *buf, size_t size)
{
	static const char *const places[] = {"delaymodels", "../lib/nbox/delaymodels"};
	char dir[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (n <= 0)
		return NULL;
	dir[n] = '\0';
	*strrchr(dir, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (snprintf(buf, size, "%s/%s", dir, places[i]) < (int)size &&
		    access(buf, X_OK) == 0)
			return buf;
	}
	return NULL;
}

int server_check(const struct config *c, struct err *err)
{
	char dir[PATH_MAX + 64];
	const char *const dirs[] = {model_dir(dir, sizeof(dir)), NULL};
	struct delay_chain *chain = NULL;
	int r = use_rdma_options(c, err);

	if (r == 0)
		r = open_model(c, dirs, &chain, err);
	delay_free(chain);
	return r;
}

static int open_engine(struct server *s, struct err *err)
{
	const struct config *c = s->config;
	char dir[PATH_MAX + 64];
	const char *const dirs[] = {model_dir(dir, sizeof(dir)), NULL};
	int r = open_model(c, dirs, &s->ops.delay, err);

	if (r < 0)
		return r;
	if (delay_warning(s->ops.delay))
		log_info("%s", delay_warning(s->ops.delay));
	if (solver_new(&c->topology, s->ops.delay, &s->ops.solver) < 0 ||
	    engine_new(&op_sink, &s->ops, &s->ops.engine) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (c->exchange == EXCHANGE_PAYLOAD && payload_map(&s->ops.payload, c->chunk_bytes) < 0)
		return err_set(err, ENOMEM, "no memory for messages of %llu bytes",
			       (unsigned long long)c->chunk_bytes);
	return 0;
}

/* For `nbox status`. */
static int write_addr_file(struct server *s, struct err *err)
{
	struct addr_file a = {.pid = (int)getpid()};
	int r;

	if (snprintf(a.addr, sizeof(a.addr), "%s", server_addr(s)) >= (int)sizeof(a.addr))
		return err_set(err, ENAMETOOLONG, "the address is too long for " ADDR_FILE_NAME);
	memcpy(a.token, s->config->token, WIRE_TOKEN_BYTES);
	r = addr_file_write(s->config->out, &a, err);
	s->has_addr_file = r == 0;
	return r;
}

int server_open(const struct config *c, struct server **ret, struct err *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->config = c;
	s->cluster = (struct cluster){.topology = &c->topology,
				      .real = c->real,
				      .n_real = c->n_real,
				      .layouts = c->layouts,
				      .n_layouts = c->n_layouts};
	s->comms = (struct comms){.sink = &op_comm_sink,
				  .server = s,
				  .config = c,
				  .cluster = &s->cluster,
				  .ops = &s->ops};
	s->ops = (struct ops){.config = c,
			      .cluster = &s->cluster,
			      .comms = &s->comms,
			      .failures = &s->failures};
	places_raise_limit();
	s->start_ns = clock_now_ns();
	s->next_due_ns = UINT64_MAX;
	read_boot_id(s->boot_id);
	s->players = calloc(c->n_real, sizeof(*s->players));
	r = s->players && failures_init(&s->failures, &s->comms, &s->tick_ns) == 0
		    ? open_engine(s, err)
		    : err_set(err, ENOMEM, "out of memory");
	/* The address first: a second nboxd must not touch the first one's files. */
	if (r == 0)
		r = open_listeners(s, err);
	if (r == 0 && open_events(s) < 0)
		r = err_set(err, ENOMEM, "cannot set up libevent");
	if (r == 0 && groups_new(&s->groups) < 0)
		r = err_set(err, ENOMEM, "out of memory");
	s->store_hooks = &groups_hooks;
	if (r == 0 && c->store)
		r = store_server_open(s, c->store, &s->store, err);
	if (r == 0 && c->out)
		r = results_open(c, s->start_ns, &s->ops.record, err);
	if (r == 0 && c->out)
		r = write_addr_file(s, err);
	if (r < 0) {
		server_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct server *server_close(struct server *s)
{
	int code;

	if (!s)
		return NULL;
	s->is_stopping = true;
	door_close(s);
	ended_close(
		s); /* first: nbox sees by it that a job that fails now does so for want of us */
	if (s->has_addr_file)
		addr_file_remove(s->config->out);
	while (s->workers)
		worker_remove(s->workers);
	gather_free_all(s);
	while (s->comms.by_number)
		comm_free(s->comms.by_number);
	store_server_close(s->store);
	groups_free(s->groups);
	server_stop_listening(s);
	event_freep(&s->timer_event);
	event_freep(&s->term_event);
	event_freep(&s->int_event);
	free(s->listening);
	if (s->base)
		event_base_free(s->base);
	engine_free(s->ops.engine);
	solver_free(s->ops.solver);
	delay_free(s->ops.delay);
	server_flush_record(s);
	code = record_close(s->ops.record);
	if (code < 0)
		warn_run(
			"the record could not be closed (%s): the last ops may be missing in the results",
			strerror(-code));
	payload_unmap(&s->ops.payload);
	failures_deinit(&s->failures);
	notes_deinit(s);
	launched_deinit(s);
	free(s->players);
	free(s);
	return NULL;
}
