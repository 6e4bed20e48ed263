/* What libnbox.so says to nboxd, frame by frame: nboxd is this process, the worker another run of
 * this program (daemon.h).
 *
 *   test-frames                  all tests
 *   test-frames job PART         the worker (below)
 *   test-frames clean FD,FD,...  a program that the worker starts: has it descriptors that are not
 * among these? */
#include <dirent.h>
#include <spawn.h>

#include "daemon.h"

/* --- the worker ----------------------------------------------------------------------- */

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
	uint64_t before_ns, after_ns, wrong_ns;
	struct wire_arrive a;
	struct wire_done done;

	(void)state;
	before_ns = clock_now_ns();
	start("two-clocks", false);
	frame(WIRE_PING, 7);
	wrong_ns = clock_now_ns() - before_ns; /* no ping took longer */
	answer_init();
	a = answer_op(0, 50 * NS_PER_MS);
	done = g.frames[frame(WIRE_DONE, 0)].done;
	after_ns = clock_now_ns();
	wrong_ns += (after_ns - before_ns) / 1000;
	assert_in_range(done.clock_error_ns, 1, wrong_ns);
	/* the worker's idea of our clock may be ahead of it */
	assert_in_range(a.arrive_ns, before_ns + AHEAD_NS - wrong_ns,
			after_ns + AHEAD_NS + wrong_ns);
	assert_int_equal(done.due_ns, a.arrive_ns + 50 * NS_PER_MS);
	assert_in_range(done.release_ns, done.due_ns, after_ns + AHEAD_NS + wrong_ns);
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
	frame(WIRE_PING, 8 + 5 - 1); /* one a second, of a worker that may have begun late */
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
	assert_in_range(count(WIRE_PING), 1,
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
		T(children_do_not_keep_the_link_open),
	};

	if (argc == 3 && !strcmp(argv[1], "job"))
		return run_job(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "clean"))
		return is_clean(argv[2]);
	return RUN(tests);
}
