/* How a rank finds the others: it makes an id, connects to the id's root and checks in. Plain
 * sockets on the caller's thread; every wait has a bound. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "standins/nccl/boot-root.h"
#include "standins/nccl/boot.h"
#include "standins/nccl/debug.h"

/* NCCL's own: the magic of all ids that come from NCCL_COMM_ID */
#define COMMON_MAGIC UINT64_C(0x0280028002800280)
#define CONNECT_S 60    /* until a root that is to appear is given up */
#define CHECK_IN_S 1800 /* until the last rank must have come */

static ncclResult_t listen_on(struct sockaddr_in *addr, int *ret_fd)
{
	CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(*addr);
	int one = 1;

	if (fd < 0)
		return fail(ncclSystemError, "socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)addr, sizeof(*addr)) || listen(fd, 4096) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		return fail(ncclSystemError, "cannot listen on %s:%d: %s",
			    inet_ntoa(addr->sin_addr), ntohs(addr->sin_port), strerror(errno));
	*ret_fd = steal_fd(&fd);
	return ncclSuccess;
}

ncclResult_t boot_make_id(ncclUniqueId *ret)
{
	struct boot_id id;
	ncclResult_t r;
	int fd;

	memset(&id, 0, sizeof(id));
	r = boot_common_id(false, &id);
	if (r == ncclInProgress) {
		if (boot_random(&id.magic, sizeof(id.magic)))
			return fail(ncclSystemError, "no random numbers");
		r = settings_interface(&id.addr);
		if (!r)
			r = listen_on(&id.addr, &fd);
		if (!r)
			r = boot_root_start(fd, id.magic);
	}
	if (r)
		return r;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &id, sizeof(id));
	return ncclSuccess;
}

ncclResult_t boot_common_id(bool is_root, struct boot_id *ret)
{
	const char *s = getenv("NCCL_COMM_ID");
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
	CLEANUP(freep) char *host = NULL;
	struct boot_id id;
	ncclResult_t r;
	char *colon;
	int fd, e;

	if (!s || !*s)
		return ncclInProgress;
	host = strdup(s);
	colon = host ? strrchr(host, ':') : NULL;
	if (!colon)
		return fail(ncclInvalidArgument, "NCCL_COMM_ID=%s: host:port is expected", s);
	*colon = 0;
	e = getaddrinfo(host, colon + 1, &hints, &found);
	if (e)
		return fail(ncclInvalidArgument, "NCCL_COMM_ID=%s: %s", s, gai_strerror(e));
	memset(&id, 0, sizeof(id));
	id.magic = COMMON_MAGIC;
	memcpy(&id.addr, found->ai_addr, sizeof(id.addr));
	freeaddrinfo(found);
	if (is_root) {
		r = listen_on(&id.addr, &fd);
		if (!r)
			r = boot_root_start(fd, id.magic);
		if (r)
			return r;
	}
	*ret = id;
	return ncclSuccess;
}

static int try_connect(const struct sockaddr_in *addr, uint64_t until_ns, const _Atomic bool *abort,
		       int *ret_fd)
{
	CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(int);
	int r, e = 0, one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) && errno != EINPROGRESS)
		return -errno;
	r = boot_wait_fd(fd, POLLOUT, until_ns, abort);
	if (r)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) || e)
		return e ? -e : -errno;
	*ret_fd = steal_fd(&fd);
	return 0;
}

ncclResult_t boot_connect(const struct boot_id *id, const _Atomic bool *abort, int *ret_fd,
			  struct sockaddr_in *ret_local)
{
	/* The root of an ordinary id listens before anybody has the id. */
	uint64_t start = clock_now_ns(), wait_ns = NS_PER_MS;
	uint64_t until = start + (id->magic == COMMON_MAGIC ? CONNECT_S : 5) * NS_PER_S;
	socklen_t len = sizeof(*ret_local);
	int fd, r;

	while ((r = try_connect(&id->addr, until, abort, &fd))) {
		if (r == -ECANCELED)
			return fail(ncclInternalError, "aborted while looking for the root");
		if (clock_now_ns() + wait_ns >= until)
			return fail(
				ncclRemoteError,
				"nobody listens for this communicator's id at %s:%d: %s. Did the "
				"process that made the id end? For several hosts set "
				"NCCL_SOCKET_IFNAME or NCCL_COMM_ID",
				inet_ntoa(id->addr.sin_addr), ntohs(id->addr.sin_port),
				strerror(-r));
		clock_sleep_until_ns(clock_now_ns() + wait_ns);
		wait_ns = wait_ns < 100 * NS_PER_MS ? 2 * wait_ns : wait_ns;
	}
	if (settings_has_interface()) {
		ncclResult_t e = settings_interface(ret_local);

		if (e) {
			close(fd);
			return e;
		}
	} else if (getsockname(fd, (struct sockaddr *)ret_local, &len)) {
		r = errno;
		close(fd);
		return fail(ncclSystemError, "getsockname: %s", strerror(r));
	}
	ret_local->sin_port = 0;
	*ret_fd = fd;
	return ncclSuccess;
}

static ncclResult_t explain(int r, const char *what)
{
	if (r == -ECANCELED)
		return fail(ncclInternalError, "aborted while %s", what);
	if (r == -ETIMEDOUT)
		return fail(ncclSystemError, "after %d s still %s", CHECK_IN_S, what);
	return fail(ncclRemoteError, "the communicator's root went away while %s: %s", what,
		    strerror(-r));
}

ncclResult_t boot_check_in(int fd, const struct boot_id *id, const struct peer_info *me,
			   const _Atomic bool *abort, struct peer_info **ret_table,
			   uint8_t ret_magic[16])
{
	static const char waiting[] = "waiting for the other ranks to check in";
	struct boot_hello hello;
	struct boot_reply reply;
	struct peer_info *table;
	uint64_t until = clock_now_ns() + CHECK_IN_S * NS_PER_S;
	int r;

	memset(&hello, 0, sizeof(hello));
	hello.magic = id->magic;
	hello.version = BOOT_VERSION;
	hello.command = BOOT_CHECK_IN;
	hello.info = *me;
	r = boot_transfer(fd, &hello, sizeof(hello), true, until, abort);
	if (!r)
		r = boot_transfer(fd, &reply, sizeof(reply), false, until, abort);
	if (r)
		return explain(r, waiting);
	reply.text[sizeof(reply.text) - 1] = 0;
	if (reply.magic != id->magic || reply.code < 0 || reply.code >= ncclNumResults)
		return fail(ncclInternalError, "what answers at the root is not host NCCL");
	if (reply.code)
		return fail((ncclResult_t)reply.code, "%s", reply.text);
	if (reply.n_ranks != me->n_ranks)
		return fail(ncclInternalError, "the root's table has another size");
	table = calloc(me->n_ranks, sizeof(*table));
	if (!table)
		return fail(ncclSystemError, "out of memory");
	r = boot_transfer(fd, table, me->n_ranks * sizeof(*table), false, until, abort);
	if (r) {
		free(table);
		return explain(r, "receiving the table of ranks");
	}
	memcpy(ret_magic, reply.comm_magic, 16);
	*ret_table = table;
	return ncclSuccess;
}

void boot_dismiss(const struct boot_id *id)
{
	struct boot_hello hello;
	CLEANUP(closep) int fd = -1;

	memset(&hello, 0, sizeof(hello));
	hello.magic = id->magic;
	hello.version = BOOT_VERSION;
	hello.command = BOOT_DISMISS;
	if (!try_connect(&id->addr, clock_now_ns() + NS_PER_S, NULL, &fd))
		boot_write(fd, &hello, sizeof(hello), 1000);
}
