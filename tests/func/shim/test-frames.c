/* What libnbox.so says to nboxd, frame by frame: nboxd is this process, the worker another run of
 * this program, with libnbox.so preloaded. No wait depends on how fast either is: each waits for
 * the other's word.
 *
 *   test-frames                  all tests
 *   test-frames job PART         the worker (below)
 *   test-frames clean FD,FD,...  a program that the worker starts: has it descriptors that are not
 * among these? */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
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
static void say(const char *word)
{
	CHECK(write(1, word, strlen(word)) == (ssize_t)strlen(word), "stdout");
}

static void wait_for_go(void)
{
	char byte;

	CHECK(read(0, &byte, 1) == 1, "stdin");
}

static void all_reduce(ncclComm_t comm)
{
	static float *buf;

	if (!buf)
		CUDA(cudaMalloc((void **)&buf, sizeof(*buf)));
	NCCL(ncclAllReduce(buf, buf, 1, ncclFloat, ncclSum, comm, NULL));
}

static void list_fds(char *list, size_t size)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	size_t used = 0;

	CHECK(d, "/proc/self/fd");
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d))
			used += (size_t)snprintf(list + used, size - used, "%s,", e->d_name);
	closedir(d);
}

static int is_clean(const char *before)
{
	char now[1024] = ",", line[1100];

	alarm(120);
	list_fds(now + 1, sizeof(now) - 1);
	for (char *p = now + 1, *end; (end = strchr(p, ',')); p = end + 1) {
		snprintf(line, sizeof(line), ",%.*s,", (int)(end - p), p);
		if (!strstr(before, line)) {
			snprintf(line, sizeof(line), "leak%s\n", now);
			say(line);
			return 1;
		}
	}
	say("clean\n");
	pause();
	return 0;
}

/* Two children that outlive the worker: one of a fork, and one that runs a program. */
static void have_children(const char *before)
{
	char program[] = "/proc/self/exe", clean[] = "clean", list[1024], word[64];
	char *argv[] = {program, clean, list, NULL};
	pid_t forked, spawned;

	snprintf(list, sizeof(list), "%s", before);
	forked = fork();
	if (!forked) {
		alarm(120);
		for (;;)
			pause();
	}
	CHECK(forked > 0 && !posix_spawn(&spawned, program, NULL, NULL, argv, environ), "children");
	snprintf(word, sizeof(word), "children %d %d\n", (int)forked, (int)spawned);
	say(word);
}

static int run_job(const char *part)
{
	char before[1024] = ",";
	ncclComm_t comm = NULL;
	ncclUniqueId id = id_of("frames");

	n = WORLD;
	list_fds(before + 1, sizeof(before) - 1);
	if (!strcmp(part, "late")) {
		NCCL_FAILS(ncclCommInitRank(&comm, n, id, 0), ncclSystemError);
		say("given up\n");
		wait_for_go();
		return 0;
	}
	if (!strcmp(part, "crossing")) { /* either may be first */
		say(ncclCommInitRank(&comm, n, id, 0) == ncclSuccess ? "made\n" : "given up\n");
		NCCL(ncclCommDestroy(comm));
		wait_for_go();
		return 0;
	}
	NCCL(ncclCommInitRank(&comm, n, id, 0));
	if (!strcmp(part, "children")) {
		have_children(before);
		wait_for_go();
		return 1;
	}
	all_reduce(comm);
	if (!strcmp(part, "abort")) {
		wait_for_go();
		NCCL(ncclCommAbort(comm));
		CUDA(cudaStreamSynchronize(NULL));
		return 0;
	}
	CUDA(cudaStreamSynchronize(NULL));
	wait_for_go();
	all_reduce(comm);
	CUDA(cudaStreamSynchronize(NULL));
	NCCL(ncclCommDestroy(comm));
	return 0;
}

/* --- nboxd ------------------------------------------------------------------------------ */

static char dir[64];
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
			struct wire_done done;
			struct wire_ping ping;
			struct wire_text text;
			char bytes[1024];
		};
	} frames[512]; /* a ping a second */
	unsigned int n;
} g;

/* The clock of this host, as it was at @ns of the worker's. */
static uint64_t daemon_clock(uint64_t ns)
{
	return ns + g.ahead_ns + (uint64_t)(int64_t)(g.drift * (double)(ns - g.since_ns));
}

static void reply(enum wire_type type, uint64_t seq, const void *body, uint64_t bytes)
{
	struct wire_hdr h;

	wire_hdr_init(&h, type, bytes);
	h.comm = type == WIRE_WELCOME || type == WIRE_PING ? 0 : COMM;
	h.seq = seq;
	assert_int_equal(link_send_copy(g.link, &h, body), 0);
}

static int on_header(void *owner, struct link *l, const struct wire_hdr *h, void **ret_body)
{
	(void)owner, (void)l, (void)h, (void)ret_body;
	return 0;
}

static int on_frame(void *owner, struct link *l, const struct wire_hdr *h, const void *body)
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

static void on_sent(void *owner, struct link *l, uint64_t cookie)
{
	(void)owner, (void)l, (void)cookie;
}

static void on_closed(void *owner, struct link *l, int code, const char *why)
{
	(void)owner, (void)l, (void)code, (void)why;
	g.is_closed = true;
}

static const struct link_events events = {on_header, on_frame, on_sent, on_closed};

/* The link and the worker's words, a moment long. */
static void move(void)
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

static unsigned int count(enum wire_type type)
{
	unsigned int of_type = 0;

	for (unsigned int i = 0; i < g.n; i++)
		of_type += g.frames[i].hdr.type == type;
	return of_type;
}

/* Return: the index of the @nth frame of @type, from 0; waits for it. */
static unsigned int frame(enum wire_type type, unsigned int nth)
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

static void wait_for_word(const char *word)
{
	uint64_t until = clock_now_ns() + WAIT_NS;

	while (!strstr(g.words, word) && clock_now_ns() < until)
		move();
	if (!strstr(g.words, word))
		fail_msg("the worker did not say '%s' but: %s", word, g.words);
}

static void let_go(void)
{
	assert_int_equal(write(g.in, "x", 1), 1);
}

static pid_t spawn(const char *part, int in, int out)
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
static void start_drifting(const char *part, bool is_same_clock, double drift)
{
	struct wire_welcome welcome = {.world = WORLD,
				       .n_nodes = WORLD,
				       .gpus_per_node = 1,
				       .n_real = 1,
				       .data = DATA_NONE,
				       .same_clock = is_same_clock};
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

static void start(const char *part, bool is_same_clock)
{
	start_drifting(part, is_same_clock, 0);
}

static void answer_init(void)
{
	struct {
		struct wire_comm_ready m;
		struct wire_member member;
	} body = {.m = {.cookie = g.frames[frame(WIRE_COMM_INIT, 0)].init.cookie,
			.n_ranks = WORLD,
			.n_real = 1,
			.gpus_per_node = WORLD,
			.stride = 1,
			.ranks_per_node = 1,
			.channels = 1,
			.chunk_bytes = 65536}};

	memset(body.m.data, DATA_NONE, sizeof(body.m.data));
	reply(WIRE_COMM_READY, 0, &body, sizeof(body));
}

/* Op @seq takes @takes_ns. Return: its ARRIVE. */
static struct wire_arrive answer_op(unsigned int seq, uint64_t takes_ns)
{
	struct wire_arrive a = g.frames[frame(WIRE_ARRIVE, seq)].arrive;
	struct wire_release r = {.start_ns = a.arrive_ns,
				 .end_ns = a.arrive_ns + takes_ns,
				 .number = seq};

	reply(WIRE_RELEASE, seq, &r, sizeof(r));
	return a;
}

static void end(int want)
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
static int clean_up(void **state)
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

#define T(test) cmocka_unit_test_teardown(test, clean_up)

/* --- tests ------------------------------------------------------------------------------ */

/* Else nboxd would wait for this member in each op of the others. */
static void an_answer_after_the_timeout_is_given_back(void **state)
{
	(void)state;
	start("late", true);
	frame(WIRE_COMM_INIT, 0);
	wait_for_word("given up\n");
	answer_init();
	assert_int_equal(g.frames[frame(WIRE_COMM_FREE, 0)].hdr.comm, COMM);
	let_go();
	end(0);
}

/* The answer names so many members that the worker's wait ends while it looks at them. It gives the
 * communicator back whether it has taken it or has given up. */
static void an_answer_that_crosses_the_timeout_is_given_back_once(void **state)
{
	const uint32_t many = 16384;
	const size_t bytes = sizeof(struct wire_comm_ready) + many * sizeof(struct wire_member);
	CLEANUP(freep) struct wire_comm_ready *m = calloc(1, bytes);
	struct wire_member *members = (struct wire_member *)(void *)(m + 1);

	(void)state;
	assert_non_null(m);
	start("crossing", true);
	*m = (struct wire_comm_ready){.cookie = g.frames[frame(WIRE_COMM_INIT, 0)].init.cookie,
				      .n_ranks = many,
				      .n_real = many,
				      .gpus_per_node = 8,
				      .stride = 1,
				      .ranks_per_node = 1,
				      .channels = 1,
				      .chunk_bytes = 65536};
	memset(m->data, DATA_NONE, sizeof(m->data));
	for (uint32_t i = 0; i < many; i++)
		members[i] = (struct wire_member){.rank = i, .world_rank = i};
	clock_sleep_until_ns(clock_now_ns() + 400 * NS_PER_MS);
	reply(WIRE_COMM_READY, 0, m, bytes);
	assert_int_equal(g.frames[frame(WIRE_COMM_FREE, 0)].hdr.comm, COMM);
	let_go();
	end(0);
	assert_int_equal(count(WIRE_COMM_FREE), 1);
}

/* The other members wait for this one. */
static void an_abort_in_an_op_is_sent_to_nboxd(void **state)
{
	unsigned int i;

	(void)state;
	start("abort", true);
	answer_init();
	frame(WIRE_ARRIVE, 0);
	let_go();
	i = frame(WIRE_ABORT, 0);
	assert_int_equal(g.frames[i].hdr.comm, COMM);
	assert_int_equal(g.frames[i].text.code, ECONNABORTED);
	assert_string_equal(g.frames[i].text.text, "aborted by ncclCommAbort");
	assert_true(frame(WIRE_COMM_FREE, 0) > i);
	end(0);
}

static void on_one_machine_no_clock_is_measured(void **state)
{
	struct wire_arrive a;
	uint64_t before_ns;

	(void)state;
	before_ns = clock_now_ns();
	start("one-clock", true);
	answer_init();
	a = answer_op(0, 0);
	assert_in_range(a.arrive_ns, before_ns, clock_now_ns());
	frame(WIRE_DONE, 0);
	before_ns = clock_now_ns();
	let_go();
	a = answer_op(1, 0);
	assert_in_range(a.arrive_ns, before_ns, clock_now_ns());
	assert_int_equal(count(WIRE_PING), 0);
	end(0);
}

/* The two clocks are an hour apart here. */
static void on_two_machines_all_times_are_nboxds(void **state)
{
	uint64_t before_ns, wrong_ns;
	struct wire_arrive a;
	struct wire_done done;

	(void)state;
	before_ns = clock_now_ns();
	start("two-clocks", false);
	frame(WIRE_PING, 7);
	wrong_ns = clock_now_ns() - before_ns; /* no ping took longer */
	answer_init();
	a = answer_op(0, 50 * NS_PER_MS);
	assert_in_range(a.arrive_ns, before_ns + AHEAD_NS - wrong_ns, clock_now_ns() + AHEAD_NS);
	done = g.frames[frame(WIRE_DONE, 0)].done;
	assert_in_range(done.clock_error_ns, 1, wrong_ns + (clock_now_ns() - before_ns) / 1000);
	assert_int_equal(done.due_ns, a.arrive_ns + 50 * NS_PER_MS);
	assert_in_range(done.release_ns, done.due_ns, clock_now_ns() + AHEAD_NS);
	let_go();
	answer_op(1, 0);
	end(0);
}

/* nboxd's clock gains, or loses, 3 ms in 6 s. The worker's arrival lies between what came before
 * and after it, and its gate does not open early, but for what it says that its clock may be wrong.
 */
static void followed(const char *part, double drift)
{
	const uint64_t takes_ns = 200 * NS_PER_MS;
	uint64_t before_ns, after_ns, over_ns, begin_ns = clock_now_ns();
	struct wire_arrive a;
	struct wire_done done;

	start_drifting(part, false, drift);
	answer_init();
	answer_op(0, takes_ns);
	frame(WIRE_DONE, 0);
	while (clock_now_ns() < begin_ns + 6 * NS_PER_S)
		move();
	before_ns = daemon_clock(clock_now_ns());
	let_go();
	a = answer_op(1, takes_ns);
	after_ns = daemon_clock(clock_now_ns());
	done = g.frames[frame(WIRE_DONE, 1)].done;
	over_ns = daemon_clock(clock_now_ns());
	assert_in_range(a.arrive_ns, before_ns - done.clock_error_ns,
			after_ns + done.clock_error_ns);
	assert_int_equal(done.due_ns, a.arrive_ns + takes_ns);
	assert_true(done.release_ns >= done.due_ns);
	assert_true(over_ns >= done.due_ns - done.clock_error_ns);
	end(0);
	assert_in_range(count(WIRE_PING), 8 + 5,
			8 + 8 + (clock_now_ns() - begin_ns) / NS_PER_S); /* none every moment */
}

static void a_clock_that_gains_is_followed(void **state)
{
	(void)state;
	followed("gains", 480e-6);
}

static void a_clock_that_loses_is_followed(void **state)
{
	(void)state;
	followed("loses", -480e-6);
}

static void compute_time_is_from_gate_to_arrival(void **state)
{
	struct wire_arrive a[2];
	struct wire_done done;

	(void)state;
	start("compute", true);
	answer_init();
	a[0] = answer_op(0, NS_PER_MS);
	assert_int_equal(a[0].compute_ns, 0);
	done = g.frames[frame(WIRE_DONE, 0)].done;
	let_go();
	a[1] = answer_op(1, 0);
	assert_true(a[1].arrive_ns > done.release_ns);
	assert_int_equal(a[1].compute_ns, a[1].arrive_ns - done.release_ns);
	end(0);
}

/* The worker is killed, its children live. */
static void children_do_not_keep_the_link_open(void **state)
{
	(void)state;
	start("children", true);
	answer_init();
	wait_for_word("children ");
	wait_for_word("\n");
	assert_int_equal(sscanf(strstr(g.words, "children "), "children %d %d", &g.children[0],
				&g.children[1]),
			 2);
	wait_for_word("clean\n");
	kill(g.pid, SIGKILL);
	end(SIGKILL);
	assert_int_equal(kill(g.children[0], 0) | kill(g.children[1], 0), 0);
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/nbox-frames-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		T(an_answer_after_the_timeout_is_given_back),
		T(an_answer_that_crosses_the_timeout_is_given_back_once),
		T(an_abort_in_an_op_is_sent_to_nboxd),
		T(on_one_machine_no_clock_is_measured),
		T(on_two_machines_all_times_are_nboxds),
		T(a_clock_that_gains_is_followed),
		T(a_clock_that_loses_is_followed),
		T(compute_time_is_from_gate_to_arrival),
		T(children_do_not_keep_the_link_open),
	};

	if (argc == 3 && !strcmp(argv[1], "job"))
		return run_job(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "clean"))
		return is_clean(argv[2]);
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
