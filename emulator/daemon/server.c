/* The loop; see server.h.
 *
 * A round: every link moves what it can (the first one changes from round to round),
 * the engine releases what is due, who is over is removed. Then, if a frame moved
 * within the last --poll, or a message is due very soon, the next round follows at
 * once; else all links are armed and libevent sleeps until one of them, a signal or
 * the timer wakes it. The timer is early by the slack of the clock: the last part
 * is polled, so that a message is not late by a wake-up. Without exchange nothing
 * leaves nboxd at an op's end, and nobody spins for it. */
#include "daemon/server.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/addr-file.h"
#include "daemon/comm.h"
#include "daemon/groups.h"
#include "daemon/op.h"
#include "daemon/places.h"
#include "daemon/results.h"
#include "daemon/store-server.h"
#include "daemon/worker.h"
#include "links/rdma-options.h"

#define TICK_NS (50 * NS_PER_MS)
#define POLLS_A_LOOK 8 /* rounds without sleep between two looks at libevent */
#define ACCEPTS_A_LOOK 64
#define LEFT_NS (2 * NS_PER_S) /* server_end_when_left() */
#define NOBODY_NS (60 * NS_PER_S)
#define STRANGERS_TOLD 8
#define STRANGERS_NS (10 * NS_PER_S)

void server_warn(struct server *s, const char *fmt, ...)
{
	char text[1536];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	s->n_warnings++;
	log_warn("%s", text);
}

void server_warn_stranger(struct server *s, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (s->n_strangers++ == 0)
		s->strangers_ns = clock_now_ns();
	if (s->n_strangers > STRANGERS_TOLD) {
		s->n_warnings++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	server_warn(s, "%s", text);
}

static void tell_strangers(struct server *s, uint64_t now_ns)
{
	if (!s->n_strangers || now_ns < s->strangers_ns + STRANGERS_NS)
		return;
	if (s->n_strangers > STRANGERS_TOLD)
		log_warn("%u more connections were refused or broke before they showed the token",
			 s->n_strangers - STRANGERS_TOLD);
	s->n_strangers = 0;
}

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
		server_warn(s, "%s", err.text);
	else if (r < 0 && r != -EAGAIN)
		server_warn_stranger(s, "cannot accept a link: %s", err.text[0] ? err.text : strerror(-r));
}

static void on_signal(evutil_socket_t number, short what, void *ctx)
{
	struct server *s = ctx;

	(void)what;
	s->stop_signal = (int)number;
}

/* Being awake is all that is wanted: the round does the rest. */
static void on_wake(evutil_socket_t fd, short what, void *ctx)
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
	s->timer_event = evtimer_new(s->base, on_wake, s);
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
		r = rdma_options_set(&o, config_options[id].variable + strlen("NBOX_IB_"),
				     config_text(c, id), err);
		if (r < 0)
			return err_prefix(err, r, "%s", config_where(c, id, 0, where, sizeof(where)));
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

static void close_listeners(struct server *s)
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
		if (snprintf(buf, size, "%s/%s", dir, places[i]) < (int)size && access(buf, X_OK) == 0)
			return buf;
	}
	return NULL;
}

static int open_engine(struct server *s, struct err *err)
{
	const struct config *c = s->config;
	char dir[PATH_MAX + 64];
	const char *const dirs[] = {model_dir(dir, sizeof(dir)), NULL};
	int r = delay_open(c->model, c->what_ifs, c->n_what_ifs, dirs, c->seed, &s->delay, err);

	if (r == 0)
		r = delay_check_world(s->delay, c->world, err);
	if (r < 0)
		return err_prefix(err, r, "model");
	if (solver_new(&c->topology, s->delay, &s->solver) < 0 ||
	    engine_new(&op_sink, s, &s->engine) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (c->exchange == EXCHANGE_PAYLOAD && payload_map(&s->payload, c->chunk_bytes) < 0)
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
	s->cluster = (struct cluster){.topology = &c->topology, .real = c->real,
				      .n_real = c->n_real, .layouts = c->layouts,
				      .n_layouts = c->n_layouts};
	for (size_t i = 0; i < c->n_what_ifs; i++)
		if (strstr(c->what_ifs[i], "rank="))
			s->cluster.ranks_matter = true;
	places_raise_limit();
	s->start_ns = clock_now_ns();
	s->next_due_ns = UINT64_MAX;
	read_boot_id(s->boot_id);
	s->players = calloc(c->n_real, sizeof(*s->players));
	r = s->players && failures_init(s) == 0 ? open_engine(s, err) :
						  err_set(err, ENOMEM, "out of memory");
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
		r = results_open(c, s->start_ns, &s->record, err);
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
	if (!s)
		return NULL;
	s->is_stopping = true;
	ended_close(s); /* first: nbox sees by it that a job that fails now does so for want of us */
	if (s->has_addr_file)
		addr_file_remove(s->config->out);
	while (s->workers)
		worker_remove(s->workers);
	gather_free_all(s);
	while (s->comms)
		comm_free(s->comms);
	store_server_close(s->store);
	groups_free(s->groups);
	close_listeners(s);
	event_freep(&s->timer_event);
	event_freep(&s->term_event);
	event_freep(&s->int_event);
	free(s->listening);
	if (s->base)
		event_base_free(s->base);
	engine_free(s->engine);
	solver_free(s->solver);
	delay_free(s->delay);
	record_close(s->record);
	payload_unmap(&s->payload);
	failures_deinit(s);
	notes_deinit(s);
	launched_deinit(s);
	free(s->players);
	free(s);
	return NULL;
}

/* --- the loop --------------------------------------------------------------------- */

static void remove_over(struct server *s, uint64_t now_ns)
{
	struct worker *w, *next;

	DL_FOREACH_SAFE(s->workers, w, next)
		if (worker_is_over(w, now_ns))
			worker_remove(w);
}

/* Every link once, beginning with another one each time. Links are added only by
 * libevent's callbacks and removed only by remove_over(). */
static bool move_links(struct server *s)
{
	struct worker *first = s->turn ? s->turn : s->workers, *w = first;
	bool moved = false;

	if (!first)
		return false;
	do {
		moved = worker_progress(w) || moved;
		w = w->next ? w->next : s->workers;
	} while (w != first);
	s->turn = first->next;
	return moved;
}

/* A program that spawns its own ranks believes in a world and a store of its own, and may wait there for ever:
 * said once, of jobs of nbox run, which begin with nboxd. */
static void tell_silence(struct server *s, uint64_t now_ns)
{
	bool is_used = s->last_comm || s->n_gathers ||
		       (s->store && store_server_counts(s->store).store.n_requests);

	if (s->is_silence_told || is_used || !s->ended.event || now_ns < s->start_ns + SERVER_SILENCE_NS)
		return;
	s->is_silence_told = true;
	server_warn(s, "%llu s, and no communicator and no request to the store yet: a program that gives ranks to "
		    "processes of its own (mp.spawn, Ray) must believe in %u nodes by its own arguments and meet at this "
		    "store: --procs 1, and --store HOST:PORT as it sets MASTER_ADDR and MASTER_PORT; or start it with "
		    "torchrun; any other job goes on", (unsigned long long)(SERVER_SILENCE_NS / NS_PER_S),
		    s->config->topology.n_nodes);
}

/* Deadlines of HELLO, of gathers and of ops. */
static void tick(struct server *s, uint64_t now_ns)
{
	bool has_hello = false;
	uint64_t failure_ns = failures_tick(s, now_ns);
	uint64_t store_ns;
	struct worker *w;

	DL_FOREACH(s->workers, w) {
		if (w->state != WORKER_HELLO)
			continue;
		has_hello = true;
		if (now_ns >= w->deadline_ns)
			worker_refuse(w, ETIMEDOUT, "said no HELLO within %llu s",
				      (unsigned long long)(SERVER_HELLO_NS / NS_PER_S));
	}
	launched_tick(s, now_ns);
	gather_tick(s, now_ns);
	op_tick(s, now_ns);
	tell_strangers(s, now_ns);
	tell_silence(s, now_ns);
	s->tick_ns = now_ns + (has_hello || s->n_gathers || s->n_open_ops ? TICK_NS : NS_PER_S);
	if (failure_ns < s->tick_ns)
		s->tick_ns = failure_ns;
	store_ns = s->store ? store_server_tick(s->store, now_ns) : UINT64_MAX;
	if (store_ns < s->tick_ns)
		s->tick_ns = store_ns;
	if (s->record && record_flush(s->record) < 0) {
		server_warn(s, "cannot write the record (%s); it ends here", strerror(errno));
		s->record = record_close(s->record);
	}
}

static void begin_stop(struct server *s)
{
	struct worker *w;

	log_info("ends: %s", s->stop_signal ? strsignal(s->stop_signal) : "the last worker has left");
	s->is_stopping = true;
	s->stop_ns = clock_now_ns() + SERVER_DRAIN_NS;
	close_listeners(s);
	store_server_stop_listening(s->store);
	DL_FOREACH(s->workers, w)
		worker_refuse(w, ECANCELED, "nboxd was told to end (%s)", strsignal(s->stop_signal));
}

void server_end_when_left(struct server *s)
{
	s->is_once = true;
	s->left_ns = clock_now_ns();
}

/* Fewer links than real ranks: some process drives several, or others are still to come. */
static bool is_left(struct server *s, uint64_t now_ns)
{
	if (s->n_workers) {
		s->left_ns = now_ns;
		return false;
	}
	if (s->n_workers_max >= s->cluster.n_real)
		return true;
	return now_ns - s->left_ns >= (s->n_workers_max ? LEFT_NS : NOBODY_NS);
}

/* Return: true when all links may be slept on. */
static bool arm_links(struct server *s)
{
	struct worker *w;

	DL_FOREACH(s->workers, w) {
		short poll_events, events;

		if (w->state == WORKER_CLOSED)
			return false;
		if (!link_arm(w->link))
			return false;
		poll_events = link_poll_events(w->link);
		events = (short)((poll_events & POLLIN ? EV_READ : 0) | (poll_events & POLLOUT ? EV_WRITE : 0));
		if (w->event && w->armed_events == events)
			continue;
		if (w->event)
			event_free(w->event);
		w->event = NULL;
		w->armed_events = events;
		if (!events)
			continue;
		w->event = event_new(s->base, link_fd(w->link), (short)(events | EV_PERSIST), on_wake, s);
		if (!w->event || event_add(w->event, NULL) < 0)
			return false;
	}
	return true;
}

static void sleep_until(struct server *s, uint64_t due_ns)
{
	uint64_t now = clock_now_ns(), wait_us;
	struct timeval tv;

	if (due_ns <= now)
		return;
	wait_us = (due_ns - now) / NS_PER_US;
	tv = (struct timeval){.tv_sec = (time_t)(wait_us / 1000000),
			      .tv_usec = (suseconds_t)(wait_us % 1000000)};
	if (evtimer_add(s->timer_event, &tv) < 0)
		return;
	event_base_loop(s->base, EVLOOP_ONCE);
	evtimer_del(s->timer_event);
}

/* Not longer than --poll, and only where frames have been coming that fast. */
static bool is_worth_polling(const struct server *s, uint64_t now_ns)
{
	uint64_t budget = spin_budget_ns(&s->spin);

	if (now_ns - s->active_ns < (budget < s->config->poll_ns ? budget : s->config->poll_ns))
		return true;
	return s->config->exchange != EXCHANGE_NONE && s->next_due_ns != UINT64_MAX &&
	       s->next_due_ns < now_ns + clock_slack_ns();
}

static uint64_t wake_time(const struct server *s)
{
	uint64_t due = s->next_due_ns, slack = clock_slack_ns();

	if (due != UINT64_MAX && s->config->exchange != EXCHANGE_NONE)
		due = due > slack ? due - slack : 0;
	return due < s->tick_ns ? due : s->tick_ns;
}

/* One round. Return: true when something moved. */
static bool round_once(struct server *s, uint64_t now_ns)
{
	uint64_t sent = s->n_messages_out;
	bool moved = move_links(s);

	s->next_due_ns = engine_advance(s->engine, clock_now_ns());
	/* What the engine released goes out in this round, not in the next one. */
	if (s->n_messages_out != sent)
		moved = move_links(s) || moved;
	if (now_ns >= s->tick_ns)
		tick(s, now_ns);
	remove_over(s, now_ns);
	return moved;
}

int server_run(struct server *s, struct err *err)
{
	bool was_moving = false;
	unsigned polls = 0;

	(void)err;
	while (!(s->is_stopping && (!s->workers || clock_now_ns() >= s->stop_ns))) {
		uint64_t now_ns = clock_now_ns();
		bool moved = round_once(s, now_ns);

		if (moved) {
			if (!was_moving)
				spin_learn(&s->spin, now_ns - s->active_ns);
			s->active_ns = clock_now_ns();
		}
		was_moving = moved;
		if (!s->is_stopping && (s->stop_signal || (s->is_once && is_left(s, now_ns)))) {
			begin_stop(s);
			continue; /* nobody may be left to wait for */
		}
		if (moved || is_worth_polling(s, clock_now_ns())) {
			if (++polls % POLLS_A_LOOK == 0)
				event_base_loop(s->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
			else if (!moved)
				sched_yield();
			continue;
		}
		if (s->is_stopping && s->tick_ns > s->stop_ns)
			s->tick_ns = s->stop_ns;
		if (arm_links(s))
			sleep_until(s, wake_time(s));
		else
			event_base_loop(s->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
	return 0;
}
