/* See fake-worker.h. */
#include "fake-worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmocka-all.h"
#include "links/endpoint.h"

#define BODY_BYTES (8u << 20)
#define PUMP_NS (240 * NS_PER_S) /* for what never comes; any answer takes far less */

/* --- nboxd ------------------------------------------------------------------- */

static bool read_line(int fd, char *buf, size_t size, int timeout_ms)
{
	size_t n = 0;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	while (n + 1 < size && poll(&p, 1, timeout_ms) == 1) {
		if (read(fd, buf + n, 1) != 1)
			break;
		if (buf[n] == '\n') {
			buf[n] = '\0';
			return true;
		}
		n++;
	}
	buf[n] = '\0';
	return false;
}

void daemon_start(struct daemon *d, const char *const *args)
{
	const char *argv[64] = {getenv("NBOXD")};
	int out[2], err[2], n = 1;
	char line[512];

	assert_non_null(argv[0]);
	while (*args && n < 63)
		argv[n++] = *args++;
	*d = (struct daemon){.pid = -1};
	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(err), 0);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves it running */
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		for (int fd = 3; fd < 256; fd++)
			close(fd);
		setenv("NBOX_MODEL", "none", 0); /* but where @args name one */
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(out[1]);
	close(err[1]);
	d->err_fd = err[0];
	fcntl(d->err_fd, F_SETFL, O_NONBLOCK);
	if (!read_line(out[0], line, sizeof(line), 60000) ||
	    sscanf(line, "nboxd ready %255s store %255s", d->addr, d->store) < 1) {
		daemon_said(d, "");
		fail_msg("nboxd did not get ready: '%s' %s", line, d->log);
	}
	if (strstr(line, " also "))
		snprintf(d->also, sizeof(d->also), "%s", strstr(line, " also ") + 6);
	close(out[0]);
}

void daemon_start_line(struct daemon *d, const char *fmt, ...)
{
	const char *args[64] = {NULL};
	char line[1024], *rest = line;
	va_list ap;

	va_start(ap, fmt);
	assert_true(vsnprintf(line, sizeof(line), fmt, ap) < (int)sizeof(line));
	va_end(ap);
	for (size_t i = 0; i < 63 && (args[i] = strsep(&rest, " ")); i++)
		;
	daemon_start(d, args);
}

bool daemon_said(struct daemon *d, const char *text)
{
	ssize_t n;

	while (d->n_log + 1 < sizeof(d->log) &&
	       (n = read(d->err_fd, d->log + d->n_log, sizeof(d->log) - 1 - d->n_log)) > 0)
		d->n_log += (size_t)n;
	d->log[d->n_log] = '\0';
	return strstr(d->log, text) != NULL;
}

void daemon_will_say(struct daemon *d, const char *text)
{
	for (int i = 0; i < 1200 && !daemon_said(d, text); i++)
		usleep(50000);
	if (!daemon_said(d, text))
		fail_msg("the log lacks '%s': %s", text, d->log);
}

int daemon_wait(struct daemon *d, int seconds)
{
	int status;

	for (int i = 0; i < seconds * 100; i++) {
		if (waitpid(d->pid, &status, WNOHANG) == d->pid) {
			d->pid = -1;
			return status;
		}
		usleep(10000);
	}
	return -1;
}

void daemon_stop(struct daemon *d)
{
	int status;

	kill(d->pid, SIGTERM);
	status = daemon_wait(d, 60);
	daemon_said(d, "");
	if (status != 0)
		fail_msg("nboxd ended with status %d: %s", status, d->log);
	close(d->err_fd);
}

/* --- frames ------------------------------------------------------------------ */

static int fake_on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	struct fake *f = owner;

	(void)l;
	if (h->type == WIRE_MESSAGE && h->body_bytes) {
		assert_true(h->body_bytes <= BODY_BYTES);
		*ret_body = f->body;
	}
	return 0;
}

static void on_ready(struct fake *f, const struct wire_hdr *h, const void *body)
{
	struct fake_ready *r = &f->ready[f->n_ready++];

	assert_true(f->n_ready <= FAKE_READY_MAX);
	memcpy(&r->m, body, sizeof(r->m));
	assert_true(r->m.n_real <= 16);
	memcpy(r->members, (const char *)body + sizeof(r->m), r->m.n_real * sizeof(r->members[0]));
	r->comm = h->comm;
}

static void keep_message(struct fake *f, const struct wire_hdr *h)
{
	if (f->n_kept == f->kept_capacity) {
		f->kept_capacity = f->kept_capacity ? 2 * f->kept_capacity : 64;
		f->kept = realloc(f->kept, f->kept_capacity * sizeof(*f->kept));
		assert_non_null(f->kept);
	}
	f->kept[f->n_kept].peer = h->peer;
	f->kept[f->n_kept].lane = h->lane;
	f->kept[f->n_kept++].index = h->index;
}

static void tell_sent(struct fake *f)
{
	struct err err = {""};

	while (f->n_told < f->n_sent) {
		uint64_t i = f->n_told++ % 65536;

		if (f->player)
			assert_int_equal(player_sent(f->player, f->sent[i].peer, f->sent[i].lane,
						     f->sent[i].index, &err),
					 0);
	}
}

/* Gives the player what it has asked for by now. */
static void deliver_kept(struct fake *f)
{
	struct err err = {""};
	bool again = true;

	tell_sent(f);
	while (again && !f->is_onesided) { /* what is put is counted */
		size_t left = 0;

		again = false;
		for (size_t i = 0; i < f->n_kept; i++) {
			int r = player_received(f->player, f->kept[i].peer, f->kept[i].lane,
						f->kept[i].index, &err);

			assert_true(r >= 0);
			tell_sent(f);
			if (r == 0)
				again = true;
			else
				f->kept[left++] = f->kept[i];
		}
		f->n_kept = left;
	}
}

static int fake_on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct fake *f = owner;
	struct err err = {""};

	(void)l;
	if (h->type != WIRE_MESSAGE)
		assert_int_equal(wire_body_check(h, body, &err), 0);
	f->n[h->type]++;
	f->last[h->type] = *h;
	switch (h->type) {
	case WIRE_WELCOME:
		memcpy(&f->welcome, body, sizeof(f->welcome));
		break;
	case WIRE_COMM_READY:
		on_ready(f, h, body);
		break;
	case WIRE_RELEASE:
		memcpy(&f->release, body, sizeof(f->release));
		f->has_release = true;
		f->released[(f->n[WIRE_RELEASE] - 1) % FAKE_RELEASED_MAX] = h->seq;
		break;
	case WIRE_TUNE:
		memcpy(&f->tune, body, sizeof(f->tune));
		break;
	case WIRE_MOVE:
		memcpy(&f->move, body, sizeof(f->move));
		break;
	case WIRE_ABORT:
		memcpy(&f->abort, body, sizeof(f->abort));
		break;
	case WIRE_ERROR:
		memcpy(&f->error, body, sizeof(f->error));
		break;
	case WIRE_LOCAL_ID:
		memcpy(f->local_id, body, sizeof(f->local_id));
		f->n_aborts_before_id = f->n[WIRE_ABORT];
		break;
	case WIRE_STATUS:
		free(f->status);
		f->status = strndup(body, h->body_bytes);
		break;
	case WIRE_MESSAGE:
		if (f->on_message)
			f->on_message(f, h, body);
		else if (f->welcome.exchange == EXCHANGE_NONE || h->comm != f->comm ||
			 h->seq != f->seq || h->rank != f->rank) {
			snprintf(f->player_error, sizeof(f->player_error), "a message of no op");
		} else if (f->is_payload &&
			   h->body_bytes != sched_message_bytes(&f->sched, h->peer, h->rank,
								h->lane, h->index)) {
			snprintf(f->player_error, sizeof(f->player_error),
				 "a message of wrong size");
		} else {
			keep_message(f, h);
			if (f->player)
				deliver_kept(f);
		}
		break;
	default:
		break;
	}
	return 0;
}

static void fake_on_sent(void *owner, struct link *l, uint64_t cookie)
{
	(void)owner;
	(void)l;
	(void)cookie;
}

static void fake_on_closed(void *owner, struct link *l, int code, const char *why)
{
	struct fake *f = owner;

	(void)l;
	(void)code;
	f->is_closed = true;
	snprintf(f->why_closed, sizeof(f->why_closed), "%s", why ? why : "");
}

static const struct link_events fake_events = {fake_on_header, fake_on_frame, fake_on_sent,
					       fake_on_closed};

const char *test_address(const char *link, const char *dir)
{
	static char text[192];
	static unsigned int n;
	const char *of_device = getenv("NBOX_TEST_RDMA");

	if (of_device)
		snprintf(text, sizeof(text), "rdma:%s:0", of_device);
	else if (strcmp(link, "tcp") == 0)
		snprintf(text, sizeof(text), "tcp:127.0.0.1:0");
	else
		snprintf(text, sizeof(text), "shm:%s/%u.sock", dir, n++);
	return text;
}

void fake_connect_raw(struct fake *f, const char *addr)
{
	struct err err = {""};

	memset(f, 0, sizeof(*f));
	f->body = calloc(1, BODY_BYTES);
	assert_non_null(f->body);
	if (link_connect(addr, 60000, &fake_events, f, &f->link, &err) < 0)
		fail_msg("%s", err.text);
}

void fake_connect(struct fake *f, const char *addr, const char *token)
{
	struct wire_hello hello = {.pid = (uint32_t)getpid(), .host = "fake"};

	fake_connect_raw(f, addr);
	if (!token[0] && getenv("NBOX_TOKEN")) /* that of the daemon */
		token = getenv("NBOX_TOKEN");
	memcpy(hello.token, token, strlen(token));
	hello.now_ns = clock_now_ns();
	fake_send(f, WIRE_HELLO, 0, 0, 0, &hello, sizeof(hello));
}

void fake_close(struct fake *f)
{
	player_free(f->player);
	link_free(f->link);
	free(f->body);
	free(f->status);
	free(f->kept);
	f->kept = NULL;
	f->n_kept = f->kept_capacity = 0;
	f->link = NULL;
	f->player = NULL;
	f->body = NULL;
	f->status = NULL;
}

void fake_send(struct fake *f, enum wire_type type, uint32_t comm, uint32_t rank, uint64_t seq,
	       const void *body, uint64_t n)
{
	struct wire_hdr h;

	wire_hdr_init(&h, type, n);
	h.comm = comm;
	h.rank = rank;
	h.seq = seq;
	link_send_copy(f->link, &h, body);
	if (!f->is_closed)
		link_progress(f->link);
}

void fake_init(struct fake *f, uint8_t id, uint32_t n_ranks, uint32_t rank, uint32_t world_rank)
{
	struct wire_comm_init m = {.n_ranks = n_ranks,
				   .rank = rank,
				   .world_rank = world_rank,
				   .cookie = id};

	memset(m.id, id, sizeof(m.id));
	fake_send(f, WIRE_COMM_INIT, 0, 0, 0, &m, sizeof(m));
}

/* --- ops --------------------------------------------------------------------- */

static int play_send(void *owner, uint32_t peer, uint16_t lane, uint64_t index, const void *src,
		     uint64_t bytes)
{
	struct fake *f = owner;
	struct wire_hdr h;

	(void)src;
	wire_hdr_init(&h, WIRE_MESSAGE, f->is_payload ? bytes : 0);
	h.comm = f->comm;
	h.rank = f->rank;
	h.seq = f->seq;
	h.peer = peer;
	h.lane = lane;
	h.index = index;
	assert_true(f->n_sent - f->n_told < 65536);
	f->sent[f->n_sent % 65536].peer = peer;
	f->sent[f->n_sent % 65536].lane = lane;
	f->sent[f->n_sent % 65536].index = index;
	f->n_sent++;
	return link_send(f->link, &h, f->is_payload && bytes ? f->body : NULL, 0);
}

static int play_post(void *owner, uint32_t peer, uint16_t lane, uint64_t index, void *dst,
		     uint64_t bytes)
{
	(void)owner;
	(void)peer;
	(void)lane;
	(void)index;
	(void)dst;
	(void)bytes;
	return 0;
}

/* Forgets the op before, says ARRIVE, and plays @f->sched. */
static void start_op(struct fake *f, const struct fake_ready *ready, uint64_t seq,
		     const void *arrive, size_t bytes)
{
	static const struct player_io io = {play_send, play_post};
	struct err err = {""};

	f->comm = ready->comm;
	f->rank = ready->m.rank;
	f->seq = seq;
	f->has_release = false;
	f->player = player_free(f->player);
	f->is_payload = f->welcome.exchange == EXCHANGE_PAYLOAD;
	if (sched_init(&f->sched, &err) < 0)
		fail_msg("%s", err.text);
	/* answers may come before the player is there: they are kept for it */
	fake_send(f, WIRE_ARRIVE, f->comm, f->rank, seq, arrive, bytes);
	if (f->welcome.exchange != EXCHANGE_NONE)
		assert_int_equal(player_start(&f->player, &f->sched, f->rank, NULL, &io, f), 0);
}

static void fill_sched(struct fake *f, const struct fake_ready *ready, uint32_t kind)
{
	f->sched = (struct sched){.kind = (enum coll_kind)kind,
				  .algo = (enum sched_algo)ready->m.algo[kind],
				  .n_ranks = ready->m.n_ranks,
				  .ranks_per_node = ready->m.ranks_per_node,
				  .n_channels = ready->m.channels,
				  .elem_bytes = 4,
				  .chunk_bytes = ready->m.chunk_bytes};
}

void fake_arrive(struct fake *f, const struct fake_ready *ready, uint64_t seq, uint32_t kind,
		 uint64_t count, uint32_t root)
{
	f->arrive = (struct wire_arrive){.arrive_ns = clock_now_ns() + (uint64_t)f->skew_ns,
					 .count = count,
					 .kind = kind,
					 .dtype = COLL_FLOAT32,
					 .flags = f->is_undecided ? WIRE_ARRIVE_UNDECIDED : 0,
					 .root = root};
	if (!f->is_undecided)
		f->arrive.took = f->took;
	fill_sched(f, ready, kind);
	f->sched.root = root;
	f->sched.bytes = count * 4;
	start_op(f, ready, seq, &f->arrive, sizeof(f->arrive));
}

void fake_arrive_p2p(struct fake *f, const struct fake_ready *ready, uint64_t number,
		     const struct wire_p2p *calls, uint32_t n)
{
	struct {
		struct wire_arrive arrive;
		struct wire_p2p calls[FAKE_CALLS_MAX];
	} body = {.arrive = {.arrive_ns = clock_now_ns(),
			     .kind = COLL_SENDRECV,
			     .dtype = COLL_FLOAT32,
			     .n_p2p = n,
			     .flags = f->is_onesided ? WIRE_ARRIVE_ONESIDED : 0}};

	assert_true(n <= FAKE_CALLS_MAX);
	f->arrive = body.arrive;
	fill_sched(f, ready, COLL_SENDRECV);
	f->player = player_free(f->player); /* before its calls change */
	for (uint32_t i = 0; i < n; i++) {
		body.calls[i] = calls[i];
		f->calls[i] = (struct sched_p2p){.peer = calls[i].peer,
						 .is_send = calls[i].is_send,
						 .bytes = calls[i].bytes};
		if (f->is_onesided && !calls[i].is_send)
			f->calls[i].bytes = 0; /* the player does not wait */
	}
	f->sched.p2p = f->calls;
	f->sched.n_p2p = n;
	f->sched.p2p_rank = ready->m.rank;
	start_op(f, ready, WIRE_SEQ_P2P | number, &body, sizeof(body.arrive) + n * sizeof(*calls));
}

bool fake_op_is_over(struct fake *f)
{
	struct wire_done done = {.clock_error_ns = f->clock_error_ns};

	if (f->seq == UINT64_MAX)
		return true;
	if (f->player)
		deliver_kept(f);
	if (f->player_error[0])
		fail_msg("rank %u: %s", f->rank, f->player_error);
	if (!f->has_release || (f->player && !player_done(f->player)))
		return false;
	if (clock_now_ns() < f->release.end_ns || f->n_kept < f->release.n_messages)
		return false;
	f->n_kept -= f->release.n_messages;
	done.due_ns = f->release.end_ns;
	done.release_ns = f->release.end_ns; /* no gate opens late here */
	if (f->player) {
		done.n_sent = player_n_sent(f->player);
		done.n_received = player_n_received(f->player);
	}
	fake_send(f, WIRE_DONE, f->comm, f->rank, f->seq, &done, sizeof(done));
	if (f->n_kept)
		fail_msg("rank %u: %zu messages too many", f->rank, f->n_kept);
	f->seq = UINT64_MAX;
	return true;
}

/* --- waiting ----------------------------------------------------------------- */

bool fakes_pump(struct fake *f, size_t n, bool (*until)(void *ctx), void *ctx)
{
	uint64_t end = clock_now_ns() + PUMP_NS;
	bool done = until(ctx);

	while (!done && clock_now_ns() < end) {
		bool moved = false;

		for (size_t i = 0; i < n; i++)
			if (f[i].link && !f[i].is_closed && link_progress(f[i].link) != 0)
				moved = true;
		done = until(ctx);
		if (!moved && !done)
			usleep(200);
	}
	for (size_t i = 0; i < n; i++) /* what the last step queued */
		if (f[i].link && !f[i].is_closed)
			link_progress(f[i].link);
	return done;
}

struct wanted {
	struct fake *f;
	size_t n;
	enum wire_type type;
	unsigned count;
};

static bool got(void *ctx)
{
	struct wanted *w = ctx;

	for (size_t i = 0; i < w->n; i++)
		if (w->f[i].n[w->type] < w->count)
			return false;
	return true;
}

bool fakes_got(struct fake *f, size_t n, enum wire_type type, unsigned count)
{
	struct wanted w = {f, n, type, count};
	bool all = fakes_pump(f, n, got, &w);

	for (size_t i = 0; i < n && !all; i++)
		print_message(
			"of %u frames of type %d, fake %zu got %u; %s%s; last error '%s', last abort '%s'\n",
			count, (int)type, i, f[i].n[type], f[i].is_closed ? "closed: " : "open",
			f[i].why_closed, f[i].error.text, f[i].abort.text);
	return all;
}

static bool closed(void *ctx)
{
	struct wanted *w = ctx;

	for (size_t i = 0; i < w->n; i++)
		if (!w->f[i].is_closed)
			return false;
	return true;
}

bool fakes_closed(struct fake *f, size_t n)
{
	struct wanted w = {f, n, 0, 0};

	return fakes_pump(f, n, closed, &w);
}

static bool over(void *ctx)
{
	struct wanted *w = ctx;
	bool all = true;

	for (size_t i = 0; i < w->n; i++)
		all = fake_op_is_over(&w->f[i]) && all;
	return all;
}

bool fakes_ops_over(struct fake *f, size_t n)
{
	struct wanted w = {f, n, 0, 0};

	return fakes_pump(f, n, over, &w);
}
