/* See serve.h. */
#include "bootstrap/serve/serve.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bootstrap/serve/address.h"
#include "bootstrap/serve/link.h"

#define N_CONNECTIONS 4096
#define SILENCE_NS (30 * NS_PER_S)

/* --- the machine's sink ------------------------------------------------------------ */

static int on_port(void *sink, unsigned port, uint8_t ret_address[NCCL_ADDRESS_BYTES],
		   struct err *err)
{
	struct bootstrap_serve *s = sink;
	struct serve_port *p;
	int r;

	LL_SEARCH_SCALAR(s->ports, p, number, port);
	if (!p) {
		r = port_open(&s->env, port, &p, err);
		if (r < 0)
			return r;
		LL_PREPEND(s->ports, p);
	}
	memcpy(ret_address, p->address, NCCL_ADDRESS_BYTES);
	return 0;
}

static int on_port_once(void *sink, struct bootstrap_conn *c,
			uint8_t ret_address[NCCL_ADDRESS_BYTES], struct err *err)
{
	struct bootstrap_serve *s = sink;
	struct serve_port *p;
	int r = port_open(&s->env, 0, &p, err);

	if (r < 0)
		return r;
	if (link_await(s, c, p) < 0) {
		port_free(p);
		return err_set(err, ENOMEM, "bootstrap: out of memory");
	}
	memcpy(ret_address, p->address, NCCL_ADDRESS_BYTES);
	return 0;
}

static int on_dial(void *sink, struct bootstrap_conn *c, const uint8_t address[NCCL_ADDRESS_BYTES],
		   struct err *err)
{
	return link_dial(sink, c, address, err);
}

static void on_wake(void *sink, struct bootstrap_conn *c)
{
	(void)sink;
	link_queue(bootstrap_conn_sink(c));
}

static void on_hang_up(void *sink, struct bootstrap_conn *c, bool is_now)
{
	struct serve_link *l = bootstrap_conn_sink(c);

	(void)sink;
	l->is_hung_up = true;
	l->is_hung_up_now = is_now;
	link_queue(l);
}

static void on_refused(void *sink, struct bootstrap_conn *c, const char *sentence)
{
	struct bootstrap_serve *s = sink;

	(void)c;
	if (s->told.refused)
		s->told.refused(s->told_ctx, sentence);
}

static void on_failed(void *sink, struct bootstrap_comm *comm, const char *sentence)
{
	struct bootstrap_serve *s = sink;

	s->told.failed(s->told_ctx, comm, sentence);
}

static int on_votes(void *sink, struct bootstrap_comm *parent, int32_t *color, int32_t *key,
		    struct err *err)
{
	struct bootstrap_serve *s = sink;

	if (!s->told.votes)
		return err_set(err, EOPNOTSUPP, "nobody here knows how virtual ranks split");
	return s->told.votes(s->told_ctx, parent, color, key, err);
}

static void on_child(void *sink, struct bootstrap_comm *parent, struct bootstrap_comm *child)
{
	struct bootstrap_serve *s = sink;

	if (s->told.child)
		s->told.child(s->told_ctx, parent, child);
}

static void on_record(void *sink, struct bootstrap_comm *comm, const char *what, uint32_t rank,
		      const uint8_t *record, size_t bytes)
{
	struct bootstrap_serve *s = sink;

	if (s->told.record)
		s->told.record(s->told_ctx, comm, what, rank, record, bytes);
}

static const struct bootstrap_sink machine_sink = {
	.port = on_port,
	.port_once = on_port_once,
	.dial = on_dial,
	.wake = on_wake,
	.hang_up = on_hang_up,
	.refused = on_refused,
	.failed = on_failed,
	.votes = on_votes,
	.child = on_child,
	.record = on_record,
};

static int random_magic(void *ctx, uint64_t *ret)
{
	(void)ctx;
	return getrandom(ret, sizeof(*ret), 0) == sizeof(*ret) ? 0 : -EIO;
}

/* --- life -------------------------------------------------------------------------- */

static void on_turn(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	links_turn(ctx);
}

static void on_clock(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	links_tick(ctx);
}

/* Half of the process's descriptors stay for what it opens itself. */
static unsigned n_allowed(unsigned wanted)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 < wanted)
		return (unsigned)(files.rlim_cur / 2);
	return wanted;
}

int bootstrap_serve_new(struct event_base *base, const struct sockaddr *address,
			const struct bootstrap_serve_limits *limits,
			const struct bootstrap_told *told, void *ctx, struct bootstrap_serve **ret,
			struct err *err)
{
	struct bootstrap_serve *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "bootstrap: out of memory");
	s->env.base = base;
	s->env.taken = link_taken;
	s->env.refused = link_refused;
	s->env.ctx = s;
	s->limits = limits ? *limits : (struct bootstrap_serve_limits){N_CONNECTIONS, SILENCE_NS};
	s->limits.n_connections = n_allowed(s->limits.n_connections);
	s->told = *told;
	s->told_ctx = ctx;
	s->env.reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (address_set(s->env.address, address) < 0) {
		bootstrap_serve_free(s);
		return err_set(err, EAFNOSUPPORT,
			       "bootstrap: real ranks need an IPv4 or IPv6 address to connect to");
	}
	address_set_port(s->env.address, 0);
	s->machine = bootstrap_new(&machine_sink, s, random_magic);
	s->turn = event_new(base, -1, 0, on_turn, s);
	s->clock = evtimer_new(base, on_clock, s);
	if (!s->machine || !s->turn || !s->clock) {
		bootstrap_serve_free(s);
		return err_set(err, ENOMEM, "bootstrap: out of memory");
	}
	*ret = s;
	return 0;
}

void bootstrap_serve_free(struct bootstrap_serve *s)
{
	struct serve_port *p, *next;

	if (!s)
		return;
	links_close(s);
	bootstrap_free(s->machine);
	LL_FOREACH_SAFE(s->ports, p, next)
		port_free(p);
	if (s->turn)
		event_free(s->turn);
	if (s->clock)
		event_free(s->clock);
	closep(&s->env.reserve);
	free(s);
}

struct bootstrap *bootstrap_serve_bootstrap(struct bootstrap_serve *s)
{
	return s->machine;
}
