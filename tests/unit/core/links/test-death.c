/* Bad peers: killed at any moment, sending garbage, writing over the words of the shared rings,
 * never reading. In each case on_closed comes once with a sentence, the frames before it are whole,
 * and no descriptor stays. */
#include "folder.h"
#include "peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

static unsigned int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

typedef void (*child_fn)(const char *addr, uint64_t seed);

static pid_t start_child(child_fn fn, const char *addr, uint64_t seed)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fn(addr, seed);
	_exit(0);
}

/* Runs @fn as the peer of a link and waits for the end. @kill_after: how long the
 * peer lives once we have its link, or 0: until it ends by itself. */
static void with_peer(const char *addr, child_fn fn, uint64_t seed, uint64_t kill_after_us,
		      int we_send, struct peer *p)
{
	static unsigned char out[300000];
	unsigned int before = count_descriptors();
	struct listener *l = NULL;
	struct wire_hdr h;
	struct err err;
	uint64_t due_ns, kill_ns;
	pid_t child;

	peer_init(p, 1);
	assert_int_equal(listener_open(addr, &l, &err), 0);
	child = start_child(fn, listener_addr(l), seed);
	p->link = accept_one(l, p);
	kill_ns = clock_now_ns() + kill_after_us * NS_PER_US;
	due_ns = clock_now_ns() + 200 * NS_PER_S;
	while (!p->n_closed && clock_now_ns() < due_ns) {
		if (kill_after_us && clock_now_ns() >= kill_ns) {
			kill(child, SIGKILL);
			kill_after_us = 0;
		}
		if (we_send && link_queued_bytes(p->link) < 1000000) {
			wire_hdr_init(&h, WIRE_MESSAGE, rng_u64(&p->rng) % sizeof(out));
			link_send(p->link, &h, out, p->n_sent + 0);
			p->next_cookie = p->n_sent; /* of no interest here */
		}
		peer_wait(p, !kill_after_us && rng_u64(&p->rng) % 2);
		p->next_cookie = p->n_sent;
		if (we_send)
			p->bad = 0;
	}
	waitpid(child, NULL, 0);
	assert_int_equal(p->n_closed, 1);
	assert_true(p->why[0] != '\0');
	assert_false(p->bad);
	assert_true(link_progress(p->link) < 0);
	assert_int_equal(p->n_closed, 1);
	assert_int_equal(link_queued_bytes(p->link), 0);
	peer_deinit(p);
	listener_free(l);
	assert_int_equal(count_descriptors(), before);
}

/* Sends frames for ever, and receives. */
static void chatter(const char *addr, uint64_t seed)
{
	static unsigned char out[300000];
	struct peer p;
	struct wire_hdr h;
	uint64_t i = 0;

	peer_init(&p, seed);
	if (link_connect(addr, 60000, &peer_events, &p, &p.link, NULL))
		_exit(1);
	while (!p.n_closed) {
		if (p.n_sent == i) {
			uint64_t bytes = rng_u64(&p.rng) % (i % 5 ? 300 : sizeof(out));

			wire_hdr_init(&h, WIRE_MESSAGE, bytes);
			h.index = i;
			peer_fill(out, bytes, 1, i);
			link_send(p.link, &h, out, i++);
		}
		link_progress(p.link);
	}
}

static void a_killed_peer_is_told_once(void **state)
{
	uint64_t seed;
	struct peer p;

	(void)state;
	for (seed = 1; seed <= 60; seed++) {
		with_peer(seed % 2 ? shm_addr : "tcp:127.0.0.1:0", chatter, seed,
			  1 + seed * 7919 % 15000, seed % 4 < 2, &p);
		assert_true(p.closed_code <= 0);
	}
}

/* A frame that is cut off after its header and some of its body. */
static void cut_off(const char *addr, uint64_t seed)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	unsigned char bytes[200];
	struct wire_hdr h;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)atoi(strrchr(addr, ':') + 1));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		_exit(1);
	wire_hdr_init(&h, WIRE_MESSAGE, 1000);
	memcpy(bytes, &h, sizeof(h));
	peer_fill(bytes + sizeof(h), sizeof(bytes) - sizeof(h), 1, 0);
	if (write(fd, bytes, 1 + seed % (sizeof(bytes) - 1)) < 0)
		_exit(1);
}

static void a_frame_that_is_cut_off_is_told(void **state)
{
	uint64_t seed;
	struct peer p;

	(void)state;
	for (seed = 0; seed < 199; seed += 11) {
		with_peer("tcp:127.0.0.1:0", cut_off, seed, 0, 0, &p);
		assert_int_equal(p.closed_code, -ECONNRESET);
		assert_non_null(strstr(p.why, "ended in the middle of a"));
		assert_int_equal(p.n_frames, 0);
	}
}

/* Sends 0xff until the other end takes no more. */
static void flood(const char *addr, uint64_t seed)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	static unsigned char ff[1 << 20];
	int i;

	(void)seed;
	signal(SIGPIPE, SIG_IGN);
	memset(ff, 0xff, sizeof(ff));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)atoi(strrchr(addr, ':') + 1));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		_exit(1);
	/* our side closes at the first header, and later the socket */
	for (i = 0; i < 4; i++)
		if (send(fd, ff, sizeof(ff), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
}

static void a_flood_of_garbage_closes_the_link(void **state)
{
	struct peer p;

	(void)state;
	with_peer("tcp:127.0.0.1:0", flood, 0, 0, 0, &p);
	assert_int_equal(p.closed_code, -EPROTO);
	assert_non_null(strstr(p.why, "not a frame of nbox"));
}

/* Writes random values over all words of the rings while it chats: the peer of the
 * worst intentions. Any outcome is right but a crash, a hang, or a second end. */
static void scribbler(const char *addr, uint64_t seed)
{
	static unsigned char out[70000];
	unsigned long first = 0, last;
	struct peer p;
	struct wire_hdr h;
	char line[512];
	FILE *maps;
	int i;

	peer_init(&p, seed);
	if (link_connect(addr, 60000, &peer_events, &p, &p.link, NULL))
		_exit(1);
	maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "nbox-link") && sscanf(line, "%lx-%lx", &first, &last) == 2)
			break;
	if (!first)
		_exit(1);
	fclose(maps);
	for (i = 0; i < 2000 && !p.n_closed; i++) {
		volatile uint64_t *words = (volatile uint64_t *)first;
		uint64_t at = rng_u64(&p.rng) % (768 / 8);

		wire_hdr_init(&h, WIRE_MESSAGE, rng_u64(&p.rng) % sizeof(out));
		link_send(p.link, &h, out, (uint64_t)i);
		link_progress(p.link);
		if (rng_u64(&p.rng) % 100 >= seed % 50)
			continue;
		switch (rng_u64(&p.rng) % 4) {
		case 0:
			words[at] = rng_u64(&p.rng);
			break;
		case 1:
			words[at & ~15u] += rng_u64(&p.rng) % 100000;
			break;
		case 2:
			words[at & ~15u] -= rng_u64(&p.rng) % 100000;
			break;
		default: /* bytes of the ring itself */
			((volatile unsigned char *)first)[4096 + rng_u64(&p.rng) % (8u << 20)] ^= 1;
		}
	}
}

static void a_scribbling_peer_is_cut_off(void **state)
{
	uint64_t seed;
	struct peer p;

	(void)state;
	for (seed = 1; seed <= 40; seed++)
		with_peer(shm_addr, scribbler, seed, 0, 1, &p);
}

/* Connects and says nothing; then goes. A link that sends to it fills up and
 * stands still without harm. */
static void deaf(const char *addr, uint64_t seed)
{
	struct peer p;

	peer_init(&p, seed);
	if (link_connect(addr, 60000, &peer_events, &p, &p.link, NULL))
		_exit(1);
	usleep(20000);
}

static void a_deaf_peer_that_dies_is_told(void **state)
{
	struct peer p;

	(void)state;
	with_peer(shm_addr, deaf, 1, 0, 1, &p);
	with_peer("tcp:127.0.0.1:0", deaf, 1, 0, 1, &p);
}

/* While a link is held and its peer gone, its owner can sleep. The last frames of the peer come
 * after the resume. */
static void last_words(const char *addr, uint64_t seed)
{
	struct wire_hdr h;
	struct peer p;
	int i;

	peer_init(&p, seed);
	if (link_connect(addr, 60000, &peer_events, &p, &p.link, NULL))
		_exit(1);
	wire_hdr_init(&h, WIRE_MESSAGE, 0);
	for (i = 0; i < 3; i++) {
		h.index = (uint64_t)i;
		link_send(p.link, &h, NULL, (uint64_t)i);
	}
	while (link_queued_bytes(p.link))
		link_progress(p.link);
	link_free(p.link);
}

static void last_words_are_heard(void **state)
{
	const char *addrs[] = {shm_addr, "tcp:127.0.0.1:0"};
	struct listener *l;
	struct pollfd pfd;
	struct peer p;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		pid_t child;

		peer_init(&p, 1);
		p.hold_percent = 100;
		assert_int_equal(listener_open(addrs[i], &l, NULL), 0);
		child = start_child(last_words, listener_addr(l), 1);
		p.link = accept_one(l, &p);
		while (!p.n_holds)
			link_progress(p.link);
		waitpid(child, NULL, 0);
		assert_int_equal(link_progress(p.link), 0);
		assert_true(link_arm(p.link));
		pfd.fd = link_fd(p.link);
		pfd.events = link_poll_events(p.link);
		assert_int_equal(poll(&pfd, 1, 30), 0); /* the owner does not spin */
		p.hold_percent = 0;
		link_resume(p.link);
		while (!p.n_closed)
			peer_wait(&p, 1);
		assert_int_equal(p.n_frames, 3);
		assert_int_equal(p.closed_code, 0);
		assert_false(p.bad);
		peer_deinit(&p);
		listener_free(l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_peer_is_told_once),
		cmocka_unit_test(a_frame_that_is_cut_off_is_told),
		cmocka_unit_test(a_flood_of_garbage_closes_the_link),
		cmocka_unit_test(a_scribbling_peer_is_cut_off),
		cmocka_unit_test(a_deaf_peer_that_dies_is_told),
		cmocka_unit_test(last_words_are_heard),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
