/* For tests that are nboxd: the worker is another run of the same program ("job PART"), with
 * libnbox.so preloaded. No wait depends on how fast either is: each waits for the other's word. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmocka-all.h"
#include "job.h"
#include "links/endpoint.h"

#define WAIT_NS (240 * NS_PER_S)
#define WORLD 4
#define COMM 7
#define AHEAD_NS (3600 * NS_PER_S) /* of our clock, where it is another one */

/* --- the worker ----------------------------------------------------------------------- */

/* The test, as nboxd, reads a word from the worker's stdout, and lets the worker go on by a
 * byte. */
static inline void say(const char *word)
{
	CHECK(write(1, word, strlen(word)) == (ssize_t)strlen(word), "stdout");
}

static inline void wait_for_go(void)
{
	char byte;

	CHECK(read(0, &byte, 1) == 1, "stdin");
}

/* --- nboxd ------------------------------------------------------------------------------ */

static char dir[64];
static uint32_t welcome_nccl; /* enum wire_nccl of the next worker */
static struct {
	struct listener *listener;
	struct link *link;
	pid_t pid, children[2]; /* 0: none */
	int in, out;            /* of the worker */
	char words[2048];
	size_t n_words;
	bool is_closed;
	uint64_t ahead_ns; /* our clock is, when the worker comes ... */
	double drift;      /* ... and gains since */
	uint64_t since_ns;
	struct {
		struct wire_hdr hdr;
		union {
			struct wire_hello hello;
			struct wire_comm_init init;
			struct wire_arrive arrive;
			struct wire_point point;
			struct wire_done done;
			struct wire_ping ping;
			struct wire_text text;
			char bytes[1024];
		};
	} frames[512]; /* a ping a second */
	unsigned int n;
} g;

/* The clock of this host, as it was at @ns of the worker's. */
static inline uint64_t daemon_clock(uint64_t ns)
{
	return ns + g.ahead_ns + (uint64_t)(int64_t)(g.drift * (double)(ns - g.since_ns));
}

static inline void reply_in(uint32_t comm, enum wire_type type, uint64_t seq, const void *body,
			    uint64_t bytes)
{
	struct wire_hdr h;

	wire_hdr_init(&h, type, bytes);
	h.comm = comm;
	h.seq = seq;
	assert_int_equal(link_send_copy(g.link, &h, body), 0);
}

static inline void reply(enum wire_type type, uint64_t seq, const void *body, uint64_t bytes)
{
	reply_in(type == WIRE_WELCOME || type == WIRE_PING ? 0 : COMM, type, seq, body, bytes);
}

static inline int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	(void)owner, (void)l, (void)h, (void)ret_body;
	return 0;
}

static inline int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
{
	struct err err;

	(void)owner, (void)l;
	assert_int_equal(wire_body_check(h, body, &err), 0);
	assert_true(g.n < ARRAY_SIZE(g.frames) && h->body_bytes <= sizeof(g.frames[0].bytes));
	g.frames[g.n].hdr = *h;
	if (h->body_bytes)
		memcpy(g.frames[g.n].bytes, body, h->body_bytes);
	if (h->type == WIRE_PING) {
		g.frames[g.n].ping.daemon_ns = daemon_clock(clock_now_ns());
		reply(WIRE_PING, 0, &g.frames[g.n].ping, sizeof(struct wire_ping));
	}
	g.n++;
	return 0;
}

static inline void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	(void)owner, (void)l, (void)cookie;
}

static inline void on_closed(void *owner, struct link *l, int code, const char *why)
{
	(void)owner, (void)l, (void)code, (void)why;
	g.is_closed = true;
}

static const struct link_events events = {on_header, on_frame, on_sent, on_closed};

/* The link and the worker's words, a moment long. */
static inline void move(void)
{
	ssize_t r;

	if (g.link)
		link_progress(g.link);
	while (g.n_words < sizeof(g.words) - 1 &&
	       (r = read(g.out, g.words + g.n_words, sizeof(g.words) - 1 - g.n_words)) > 0)
		g.n_words += (size_t)r;
	g.words[g.n_words] = '\0';
	clock_sleep_until_ns(clock_now_ns() + NS_PER_MS);
}

static inline unsigned int count(enum wire_type type)
{
	unsigned int of_type = 0;

	for (unsigned int i = 0; i < g.n; i++)
		of_type += g.frames[i].hdr.type == type;
	return of_type;
}

/* Return: the index of the @nth frame of @type, from 0; waits for it. */
static inline unsigned int frame(enum wire_type type, unsigned int nth)
{
	uint64_t until = clock_now_ns() + WAIT_NS;

	while (count(type) <= nth && !g.is_closed && clock_now_ns() < until)
		move();
	for (unsigned int i = 0; i < g.n; i++)
		if (g.frames[i].hdr.type == type && nth-- == 0)
			return i;
	fail_msg("no %s of %u frames; the worker said: %s", wire_type_name(type), g.n, g.words);
	return 0;
}

static inline void wait_for_word(const char *word)
{
	uint64_t until = clock_now_ns() + WAIT_NS;

	while (!strstr(g.words, word) && clock_now_ns() < until)
		move();
	if (!strstr(g.words, word))
		fail_msg("the worker did not say '%s' but: %s", word, g.words);
}

static inline void let_go(void)
{
	assert_int_equal(write(g.in, "x", 1), 1);
}

static inline pid_t spawn(const char *part, int in, int out)
{
	char addr[128], preload[512], asan[512];
	const char *options = getenv("ASAN_OPTIONS");
	pid_t parent = getpid(), pid;

	snprintf(addr, sizeof(addr), "NBOX_ADDR=%s", listener_addr(g.listener));
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", getenv("LIBNBOX"));
	/* a sanitized libnbox.so comes before the sanitizer's library */
	snprintf(asan, sizeof(asan), "ASAN_OPTIONS=%s:verify_asan_link_order=0",
		 options ? options : "");
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	dup2(in, 0);
	dup2(out, 1);
	putenv(addr);
	putenv(preload);
	putenv(asan);
	setenv("RANK", "0", 1);
	setenv("NBOX_INIT_TIMEOUT",
	       !strcmp(part, "late")       ? "100ms"
	       : !strcmp(part, "crossing") ? "500ms"
					   : "60s",
	       1);
	execl("/proc/self/exe", "test-frames", "job", part, NULL);
	_exit(127);
}

/* A worker in @part, which has been welcomed, a clock that gains @drift on its own. */
static inline void start_drifting(const char *part, bool is_same_clock, double drift)
{
	struct wire_welcome welcome = {.world = WORLD,
				       .n_nodes = WORLD,
				       .gpus_per_node = 1,
				       .n_real = 1,
				       .exchange = welcome_nccl == NCCL_FULL ? EXCHANGE_MESSAGES
									     : EXCHANGE_NONE,
				       .data = DATA_NONE,
				       .same_clock = is_same_clock,
				       .nccl = welcome_nccl};
	uint64_t until = clock_now_ns() + WAIT_NS;
	char addr[96];
	int in[2], out[2];
	struct err err;

	memset(&g, 0, sizeof(g));
	g.ahead_ns = is_same_clock ? 0 : AHEAD_NS;
	g.drift = drift;
	g.since_ns = clock_now_ns();
	snprintf(addr, sizeof(addr), "shm:%s/%s.sock", dir, part);
	assert_int_equal(listener_open(addr, &g.listener, &err), 0);
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	g.pid = spawn(part, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	g.in = in[1];
	g.out = out[0];
	fcntl(g.out, F_SETFL, O_NONBLOCK);
	while (link_accept(g.listener, &events, NULL, &g.link, &err) == -EAGAIN &&
	       clock_now_ns() < until)
		move();
	if (!g.link)
		fail_msg("no worker came; it said: %s", g.words);
	frame(WIRE_HELLO, 0);
	welcome.now_ns = daemon_clock(clock_now_ns());
	reply(WIRE_WELCOME, 0, &welcome, sizeof(welcome));
}

static inline void start(const char *part, bool is_same_clock)
{
	start_drifting(part, is_same_clock, 0);
}

/* The worker's @nth communicator has number @comm, and begins at world rank @base. */
static inline void answer_init_of(unsigned int nth, uint32_t comm, uint32_t base)
{
	struct {
		struct wire_comm_ready m;
		struct wire_member member;
	} body = {.m = {.cookie = g.frames[frame(WIRE_COMM_INIT, nth)].init.cookie,
			.n_ranks = WORLD,
			.n_real = 1,
			.gpus_per_node = WORLD,
			.base = base,
			.stride = 1,
			.ranks_per_node = 1,
			.channels = 1,
			.chunk_bytes = 65536},
		  .member = {.world_rank = base}};

	memset(body.m.data, DATA_NONE, sizeof(body.m.data));
	reply_in(comm, WIRE_COMM_READY, 0, &body, sizeof(body));
}

static inline void answer_init(void)
{
	answer_init_of(0, COMM, 0);
}

/* The @nth op takes @takes_ns. Return: its ARRIVE. */
static inline struct wire_arrive answer_op(unsigned int nth, uint64_t takes_ns)
{
	unsigned int at = frame(WIRE_ARRIVE, nth);
	const struct wire_hdr *h = &g.frames[at].hdr;
	struct wire_arrive a = g.frames[at].arrive;
	struct wire_release r = {.start_ns = a.arrive_ns,
				 .end_ns = a.arrive_ns + takes_ns,
				 .number = nth};

	reply_in(h->comm, WIRE_RELEASE, h->seq, &r, sizeof(r));
	return a;
}

static inline void end(int want)
{
	uint64_t until = clock_now_ns() + WAIT_NS;
	int status = -1;

	while (!g.is_closed && clock_now_ns() < until)
		move();
	assert_true(g.is_closed);
	while (waitpid(g.pid, &status, WNOHANG) != g.pid && clock_now_ns() < until)
		move();
	if (status != want)
		fail_msg("the worker's status is 0x%x; it said: %s", (unsigned int)status, g.words);
	g.pid = 0;
}

/* Also after a test that failed. */
static inline int clean_up(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		if (g.children[i])
			kill(g.children[i], SIGKILL);
	if (g.pid) {
		kill(g.pid, SIGKILL);
		waitpid(g.pid, NULL, 0);
	}
	link_free(g.link);
	listener_free(g.listener);
	close(g.in);
	close(g.out);
	return 0;
}

static inline int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/nbox-worker-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

#define T(test) cmocka_unit_test_teardown(test, clean_up)
#define RUN(tests) cmocka_run_group_tests(tests, make_dir, remove_dir)
