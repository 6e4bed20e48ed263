/* The life of an rdma link (fake-verbs.h): silent peers, a failing completion queue, descriptors in
 * a forked child, the wait at the end. */
#include "rdma-ends.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOUND_NS (60 * NS_PER_S)

/* The device reports neither an answer nor an error of a send. After 5 s and the time of all
 * retries, not before, the link's own bound ends it. */
static void a_bound_ends_what_a_device_never_gives_up(void **state)
{
	static const struct {
		uint32_t timeout, retry_count, ticks;
	} cases[] = {
		{1, 0, 11},
		{20, 3, 78}, /* 4 tries of up to 4 x 4.096 us x 2^20: 67 s more */
		{14, 7, 13}, /* 8 x 0.27 s */
		{18, 7, 44}, /* the defaults: 8 x 4.3 s */
	};
	struct rdma_options o = use_options();
	char words[80];
	struct ends e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		o.timeout = cases[i].timeout;
		o.retry_count = cases[i].retry_count;
		rdma_options_use(&o);
		fake_faults.is_vanishing = false;
		ends_open(&e);
		until_up(&e);
		fake_faults.is_vanishing = true;
		for (uint32_t n = 1; n < cases[i].ticks; n++) {
			tick(&e.a);
			tick(&e.b);
		}
		assert_int_equal(e.a.n_closed + e.b.n_closed, 0);
		tick(&e.a);
		tick(&e.b);
		snprintf(words, sizeof(words),
			 "has not answered for %u s: its host or port is down", cases[i].ticks);
		expect_end(&e.a, -ETIMEDOUT, words);
		expect_end(&e.b, -ETIMEDOUT, words);
		ends_close(&e);
	}
}

/* An idle peer, or one whose process is stopped, lives: its device answers for it. */
static void an_idle_peer_lives(void **state)
{
	struct rdma_options o = use_options();
	uint64_t sent = 0;
	struct ends e;

	(void)state;
	o.timeout = 1;
	o.retry_count = 0;
	rdma_options_use(&o);
	ends_open(&e);
	until_up(&e);
	for (int i = 0; i < 100; i++)
		tick(&e.b);
	assert_int_equal(e.b.n_closed, 0);
	send_n(&e.b, &sent, 3, 8);
	move(&e, 50);
	assert_int_equal(e.a.n_closed + e.b.n_closed, 0);
	assert_int_equal(e.a.n_frames, 3);
	ends_close(&e);
}

/* A completion queue that can neither be read nor slept upon: each end says so. */
static void a_completion_queue_that_fails_ends_its_links(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e);
	move(&e, 5);
	fake_faults.poll_fails = true;
	until_closed(&e, &e.b);
	until_closed(&e, &e.a);
	expect_end(&e.a, -EIO, "the completion queue cannot be read any more (ibv_poll_cq: -1)");
	expect_end(&e.b, -EIO, "the completion queue cannot be read any more (ibv_poll_cq: -1)");
	ends_close(&e);
	fake_reset();

	ends_open(&e);
	move(&e, 5);
	fake_faults.notify_fails = true;
	assert_false(link_arm(e.b.link));
	assert_false(link_arm(e.a.link));
	until_closed(&e, &e.b);
	until_closed(&e, &e.a);
	expect_end(&e.a, -EIO,
		   "takes no request for events (ibv_req_notify_cq: Input/output error)");
	expect_end(&e.b, -EIO,
		   "takes no request for events (ibv_req_notify_cq: Input/output error)");
	ends_close(&e);
	fake_reset();

	/* while the end waits for an answer */
	uint64_t sent = 0;

	ends_open(&e);
	move(&e, 5);
	fake_faults.is_vanishing = true;
	send_n(&e.b, &sent, 1, 8);
	link_progress(e.b.link);
	fake_faults.notify_fails = fake_faults.poll_fails = true;
	ends_close(&e);
}

/* --- what a fork inherits ----------------------------------------------------------------- */

#define FDS 1024
struct fds {
	bool is_open[FDS];
};

static struct fds now_open(void)
{
	struct fds f;

	for (int fd = 0; fd < FDS; fd++)
		f.is_open[fd] = fcntl(fd, F_GETFD) >= 0;
	return f;
}

static int waits_for(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};

	return poll(&p, 1, ms) == 1 ? p.revents : 0;
}

/* Return: the child, which has closed @fds and stays until @gate closes. */
static pid_t forked_child(const int *fds, int n, int gate[2])
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC) | pipe2(gate, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(60);
		close(gate[1]);
		for (int i = 0; i < n; i++)
			close(fds[i]);
		if (write(ready[1], "x", 1) == 1)
			_exit(read(gate[0], &c, 1) != 0);
		_exit(1);
	}
	assert_true(waits_for(ready[0], POLLIN, 20000) & POLLIN);
	close(ready[0]);
	close(ready[1]);
	close(gate[0]);
	return pid;
}

static void a_forked_child_can_close_all_descriptors(void **state)
{
	int fds[32], n, n_a, gate[2], status, lifelines[2];
	struct fds before, after;
	struct ends e;
	pid_t pid;

	(void)state;
	ends_open(&e); /* the connection manager's own, for good */
	ends_close(&e);
	before = now_open();
	ends_open(&e);
	after = now_open();
	n_a = link_all_fds(e.a.link, fds, 16);
	n = n_a + link_all_fds(e.b.link, fds + n_a, 16);
	assert_int_equal(n, 2 * 7);
	for (int i = 0; i < n; i++) {
		assert_in_range(fds[i], 0, FDS - 1);
		assert_true(after.is_open[fds[i]] && !before.is_open[fds[i]]);
		after.is_open[fds[i]] = false; /* none twice */
	}
	/* apart from the fake's ends of its pipes */
	lifelines[0] = fake_lifeline(rdma_of(e.a.link)->dev->ctx);
	lifelines[1] = fake_lifeline(rdma_of(e.b.link)->dev->ctx);
	for (int fd = 0; fd < FDS; fd++)
		if (after.is_open[fd] && !before.is_open[fd] && fd != lifelines[0] &&
		    fd != lifelines[1])
			assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_WRONLY);
	fds[20] = -7;
	for (int most = 0; most <= 7; most++) {
		int got = link_all_fds(e.b.link, fds + 20 - most, most);

		assert_true(got >= 0 && got <= most);
		assert_int_equal(fds[20], -7);
	}

	n_a = link_all_fds(e.a.link, fds, 16);
	n = n_a + link_all_fds(e.b.link, fds + n_a, 16);
	pid = forked_child(fds, n, gate);
	lifelines[0] = dup(lifelines[0]);
	lifelines[1] = dup(lifelines[1]);
	assert_int_equal(waits_for(lifelines[0], POLLIN, 0) | waits_for(lifelines[1], POLLIN, 0),
			 0);
	ends_close(&e);
	assert_true(waits_for(lifelines[0], POLLIN, 0) & POLLHUP);
	assert_true(waits_for(lifelines[1], POLLIN, 0) & POLLHUP);
	close(lifelines[0]);
	close(lifelines[1]);
	close(gate[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- the end ---------------------------------------------------------------------------- */

static void *release_later(void *unused)
{
	(void)unused;
	usleep(20000);
	fake_release_held();
	return NULL;
}

/* The last frames are not lost with their queue pair: link_free() waits for the answer ... */
static void the_last_words_arrive(void **state)
{
	struct rdma_options o = use_options();
	pthread_t thread;
	uint64_t sent = 0;
	struct ends e;
	int i;

	(void)state;
	o.qps = 2;
	rdma_options_use(&o);
	/* as slow as the machine is: the wait has a bound */
	for (i = 0; i < 20; i++) {
		ends_open(&e);
		e.a.discard_percent = 100;
		move(&e, 10);
		fake_faults.hold_odd_qps = true;
		sent = 0;
		for (int k = 0; k < 4; k++) {
			send_n(&e.b, &sent, 1, 100);
			link_progress(e.b.link);
		}
		pthread_create(&thread, NULL, release_later, NULL);
		e.b.link = link_free(e.b.link);
		pthread_join(thread, NULL);
		fake_faults.hold_odd_qps = false;
		while (!e.a.n_closed)
			peer_wait(&e.a, 1);
		assert_false(e.a.bad);
		ends_close(&e);
		if (e.a.n_frames == 4)
			break;
	}
	assert_in_range(i, 0, 19);
}

/* ... for a moment: from a peer that has vanished none comes. */
static void a_peer_that_vanished_delays_the_end_for_a_moment(void **state)
{
	uint64_t sent = 0, start_ns;
	struct ends e;

	(void)state;
	ends_open(&e);
	move(&e, 5);
	fake_faults.is_vanishing = true;
	send_n(&e.b, &sent, 3, 100);
	send_n(&e.b, &sent, 3, 100000);
	link_progress(e.b.link);
	start_ns = clock_now_ns();
	e.b.link = link_free(e.b.link);
	assert_true(clock_now_ns() - start_ns >=
		    1270 * NS_PER_MS); /* lost packets could go once more */
	assert_true(clock_now_ns() - start_ns < BOUND_NS);
	ends_close(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_bound_ends_what_a_device_never_gives_up),
		T(an_idle_peer_lives),
		T(a_completion_queue_that_fails_ends_its_links),
		T(a_forked_child_can_close_all_descriptors),
		T(the_last_words_arrive),
		T(a_peer_that_vanished_delays_the_end_for_a_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
