/* See shm.h. A memfd holds two byte rings, one a direction (shm-ring.h). The accepting side makes
 * the memfd, seals its size and hands it over the unix socket on which the two sides met. Nothing
 * has a name in /dev/shm.
 *
 * That socket stays, for two purposes. It is the bell: a side that goes to sleep says so in a
 * flag in the ring, and its peer then sends one byte, so that writing needs no system call while
 * both sides poll. And it is the sign of life: its end means that the peer is gone; bytes that lie
 * in the ring are still delivered.
 *
 * A side does not trust its peer with its memory. It counts its own bytes in private memory. It
 * loads the peer's count once for each check and use, and cuts off a peer that claims more than the
 * ring's size. The seals keep the peer from shrinking the memfd. The peer may change bytes in the
 * ring at any time, so a side copies them out before it looks at them. */
#include "links/shm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "links/kind.h"
#include "links/link.h"
#include "links/shm-greeting.h"
#include "links/shm-ring.h"
#include "links/wait.h"

#define RING_BYTES (UINT64_C(4) << 20)   /* of the links that we accept */
#define PIECE_BYTES (UINT64_C(64) << 10) /* copied between two updates of a position */

/* A side that does not sleep reads the clock every LOOK_ROUNDS rounds, and looks at the socket if
 * LOOK_NS have passed since it last did. */
#define LOOK_ROUNDS 64
#define LOOK_NS (5 * NS_PER_MS)

struct shm_link {
	struct link link;
	int fd; /* owned */
	bool is_armed, peer_gone;
	uint32_t rounds;
	uint64_t look_ns; /* when to look at the socket again */
	struct ring tx, rx;
	void *area; /* owned mapping */
	size_t area_bytes;
};

static struct shm_link *to_shm(const struct link *l)
{
	/* the cast drops const; callers with a const link only read */
	return container_of((uintptr_t)l, struct shm_link, link);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- the bell ----------------------------------------------------------------- */

/* Wakes the peer. When the socket is full nothing is lost: unread bells wake the peer.
 */
static void ring_bell(struct shm_link *s)
{
	ssize_t n;

	do
		n = send(s->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
}

/* Takes the bells out of the socket and notices its end. */
static void look_at_socket(struct shm_link *s)
{
	char bells[256];
	ssize_t n;
	int i;

	for (i = 0; i < 16 && !s->peer_gone; i++) {
		n = recv(s->fd, bells, sizeof(bells), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN))
			return;
		if (n <= 0)
			s->peer_gone = true;
		else if ((size_t)n < sizeof(bells))
			return;
	}
}

/* --- writing ------------------------------------------------------------------ */

static void publish_tail(struct shm_link *s)
{
	if (ring_publish_tail(&s->tx))
		ring_bell(s);
}

/* Return: bytes; fewer than @n when the ring is full; -EPROTO. */
static int64_t write_some(struct shm_link *s, const char *src, uint64_t n)
{
	struct ring *r = &s->tx;
	uint64_t done = 0, part;

	while (done < n) {
		if (!ring_room(r)) {
			publish_tail(
				s); /* the reader makes room only by reading what is published */
			if (ring_refresh_head(r))
				return -EPROTO;
		}
		part = min_u64(n - done, ring_room(r));
		part = min_u64(part, PIECE_BYTES);
		if (!part)
			break;
		ring_copy_in(r, src + done, part);
		done += part;
		if (r->pos - r->published >= PIECE_BYTES)
			publish_tail(s);
	}
	return (int64_t)done;
}

static ssize_t shm_write(struct link *l, const struct iovec *iov, int n_iov)
{
	struct shm_link *s = to_shm(l);
	ssize_t total = 0;
	int64_t n;
	int i;

	if (s->peer_gone)
		return -EPIPE;
	for (i = 0; i < n_iov; i++) {
		n = write_some(s, iov[i].iov_base, iov[i].iov_len);
		if (n < 0)
			return -EPROTO;
		total += n;
		if ((size_t)n < iov[i].iov_len)
			break;
	}
	publish_tail(s);
	return total;
}

/* --- reading ------------------------------------------------------------------ */

static void publish_head(struct shm_link *s)
{
	if (ring_publish_head(&s->rx))
		ring_bell(s);
}

static ssize_t shm_read(struct link *l, void *dst, size_t n)
{
	struct shm_link *s = to_shm(l);
	struct ring *r = &s->rx;
	/* Read before the ring: if the peer is gone now, the ring holds all that it wrote. The
	 * peer's socket closes after its last store, and the kernel's locks order both for a
	 * process that sees the end. */
	bool was_gone = s->peer_gone;
	uint64_t done = 0, part;

	while (done < n) {
		if (!ring_filled(r) && ring_refresh_tail(r))
			return -EPROTO;
		part = min_u64(min_u64(n - done, ring_filled(r)), PIECE_BYTES);
		if (!part)
			break;
		ring_copy_out(r, dst ? (char *)dst + done : NULL, part);
		done += part;
		if (r->pos - r->published >= PIECE_BYTES)
			publish_head(s);
	}
	return done || !was_gone ? (ssize_t)done : IO_END;
}

/* --- rounds and sleep ----------------------------------------------------------- */

static void shm_begin(struct link *l)
{
	struct shm_link *s = to_shm(l);
	uint64_t now_ns;

	if (s->is_armed) {
		s->is_armed = false;
		ring_disarm_reader(&s->rx);
		ring_disarm_writer(&s->tx);
		look_at_socket(s);
		return;
	}
	if (++s->rounds < LOOK_ROUNDS)
		return;
	s->rounds = 0;
	now_ns = clock_now_ns();
	if (now_ns >= s->look_ns) {
		s->look_ns = now_ns + LOOK_NS;
		look_at_socket(s);
	}
}

static void shm_end(struct link *l)
{
	publish_head(to_shm(l));
}

static bool shm_arm(struct link *l, bool want_read, bool want_write)
{
	struct shm_link *s = to_shm(l);

	if (!want_read) /* the owner holds the link back: look only whether the peer is gone */
		look_at_socket(s);
	s->is_armed = true;
	if (want_read && (!ring_arm_reader(&s->rx) || s->peer_gone))
		return false;
	if (want_write && !s->peer_gone && !ring_arm_writer(&s->tx))
		return false;
	return true;
}

static int shm_fd(const struct link *l)
{
	return to_shm(l)->peer_gone ? -1 : to_shm(l)->fd;
}

static short shm_poll_events(const struct link *l, bool want_read, bool want_write)
{
	(void)l;
	(void)want_read;
	(void)want_write;
	return POLLIN; /* bells ring for both */
}

static void shm_free(struct link *l)
{
	struct shm_link *s = to_shm(l);

	munmap(s->area, s->area_bytes);
	close(s->fd);
	free(s);
}

static const struct link_ops shm_ops = {
	.kind = "shm",
	.write = shm_write,
	.read = shm_read,
	.begin = shm_begin,
	.end = shm_end,
	.arm = shm_arm,
	.fd = shm_fd,
	.poll_events = shm_poll_events,
	.free = shm_free,
};

/* --- meeting -------------------------------------------------------------------- */

static void name_peer(int fd, char *buf, size_t size)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		snprintf(buf, size, "shm:?");
	else
		snprintf(buf, size, "shm:pid %d", (int)cred.pid);
}

/* @mem stays the caller's. @write_ring: the ring that we write. */
static int shm_link_new(int fd, int mem, uint64_t ring_bytes, unsigned int write_ring,
			const struct link_events *ev, void *owner, struct link **ret)
{
	CLEANUP(freep) struct shm_link *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->area_bytes = shm_area_bytes(ring_bytes);
	s->area = mmap(NULL, s->area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	if (s->area == MAP_FAILED)
		return -errno;
	ring_init(&s->tx, s->area, write_ring, ring_bytes);
	ring_init(&s->rx, s->area, !write_ring, ring_bytes);
	link_init(&s->link, &shm_ops, ev, owner);
	name_peer(fd, s->link.peer, sizeof(s->link.peer));
	s->fd = fd;
	*ret = &s->link;
	(void)steal_ptr(s);
	return 0;
}

int shm_link_accept(int fd, const struct link_events *ev, void *owner, struct link **ret,
		    struct err *err)
{
	CLEANUP(closep) int mem = shm_make_memory(RING_BYTES);
	struct link *l;
	int r;

	if (mem < 0)
		return err_set(err, -mem, "no shared memory for a link: %s", strerror(-mem));
	r = shm_link_new(fd, mem, RING_BYTES, 0, ev, owner, &l);
	if (r)
		return err_set(err, -r, "shared memory for a link cannot be mapped: %s",
			       strerror(-r));
	r = shm_send_greeting(fd, mem, RING_BYTES);
	if (r) {
		to_shm(l)->fd = -1; /* still the caller's */
		link_free(l);
		return err_set(err, -r, "a process that connected has gone: %s", strerror(-r));
	}
	*ret = l;
	return 0;
}

int shm_link_join(int fd, uint64_t due_ns, const struct link_events *ev, void *owner,
		  struct link **ret, struct err *err)
{
	CLEANUP(closep) int mem = -1;
	struct shm_greeting g = {0};
	int r;

	r = link_wait_fd(fd, POLLIN, due_ns);
	if (r == -ETIMEDOUT)
		return err_set(err, ETIMEDOUT, "it accepts nobody; is it stopped or overloaded?");
	if (!r)
		r = shm_receive_greeting(fd, &g, &mem);
	if (r == -EPROTO)
		return err_set(err, EPROTO, "what listens there is not nboxd");
	if (r)
		return err_set(err, -r, "it closed the connection: %s", strerror(-r));
	if (g.version != WIRE_VERSION)
		return err_set(err, EPROTO,
			       "it speaks version %u of the protocol, this is version %u; use "
			       "nboxd and libnbox.so of one build",
			       g.version, WIRE_VERSION);
	if (!shm_memory_is_sound(mem, g.ring_bytes))
		return err_set(err, EPROTO, "its shared memory is not as it should be");
	r = shm_link_new(fd, mem, g.ring_bytes, 1, ev, owner, ret);
	if (r)
		return err_set(err, -r, "its shared memory cannot be mapped: %s", strerror(-r));
	return 0;
}
