/* See unix.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/peer.h"
#include "links/unix.h"

#define RETRY_NS (5 * NS_PER_MS)
#define LOCK_NS NS_PER_S

/* link_addr_parse() checked the length. "@name" is an abstract name. */
static socklen_t unix_addr(const char *path, struct sockaddr_un *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	strncpy(ret->sun_path, path, sizeof(ret->sun_path) - 1);
	if (path[0] != '@')
		return sizeof(*ret);
	ret->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
}

static int unix_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static void nap(uint64_t ns)
{
	struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};

	nanosleep(&ts, NULL);
}

static int try_connect(int fd, const struct sockaddr_un *a, socklen_t len)
{
	return connect(fd, (const struct sockaddr *)a, len) ? -errno : 0;
}

int unix_connect(const char *path, uint64_t due_ns, int *ret_fd, struct err *err)
{
	struct sockaddr_un a;
	socklen_t len = unix_addr(path, &a);
	CLEANUP(closep) int fd = unix_socket();
	int r;

	if (fd < 0)
		return err_set(err, -fd, "no socket: %s", strerror(-fd));
	for (;;) {
		r = try_connect(fd, &a, len);
		/* EAGAIN: the listener's queue is full; there is nothing to poll for */
		if ((r != -EAGAIN && r != -EINTR) || clock_now_ns() >= due_ns)
			break;
		nap(RETRY_NS);
	}
	if (r == -ENOENT || r == -ECONNREFUSED)
		return err_set(err, -r, "nobody listens there; is nboxd running?");
	if (r == -EAGAIN)
		return err_set(err, ETIMEDOUT, "it accepts nobody; is it stopped or overloaded?");
	if (r)
		return err_set(err, -r, "%s", strerror(-r));
	r = peer_check(fd, err);
	if (r)
		return r;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Locks the folder of @path, so that two listeners that start at once do not both find a dead
 * socket and remove each other's. The lock leaves no file behind. Some network file systems cannot
 * lock a folder: then go on without. Return: descriptor or -1. */
static int lock_folder(const char *path)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uint64_t due_ns = clock_now_ns() + LOCK_NS;
	int fd;

	snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || clock_now_ns() >= due_ns) {
			close(fd);
			return -1;
		}
		nap(RETRY_NS);
	}
	return fd;
}

/* Somebody listens there: @probe is connected to him, or could not be. */
static int refuse_taken(const char *path, int probe, struct err *err)
{
	struct err who = {""};

	if (peer_check(probe, &who) == -EACCES)
		return err_set(err, EADDRINUSE, "shm:%s: %s", path, who.text);
	return err_set(err, EADDRINUSE,
		       "another nboxd listens at shm:%s; stop it or choose another --addr", path);
}

/* Something is at @path: removes it if it is a socket without a listener. */
static int clear_path(const char *path, const struct sockaddr_un *a, struct err *err)
{
	CLEANUP(closep) int probe = unix_socket();
	struct stat st;
	int r;

	if (probe < 0)
		return err_set(err, -probe, "no socket: %s", strerror(-probe));
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, EEXIST,
			       "%s exists and is not a socket; remove it or choose another --addr",
			       path);
	r = try_connect(probe, a, sizeof(*a));
	if (r == -ECONNREFUSED)
		return unlink(path) && errno != ENOENT
			       ? err_set(err, errno, "the dead socket %s cannot be removed: %s",
					 path, strerror(errno))
			       : 0;
	if (r && r != -EAGAIN && r != -EINPROGRESS)
		return err_set(err, -r, "%s: %s", path, strerror(-r));
	return refuse_taken(path, probe, err);
}

/* An abstract name is no file: nothing is left of it when its process is killed,
 * and nothing of a dead one is ever in the way. */
static int listen_abstract(const char *path, const struct sockaddr_un *a, socklen_t len,
			   int *ret_fd, struct err *err)
{
	CLEANUP(closep) int fd = unix_socket();
	int r;

	if (fd < 0)
		return err_set(err, -fd, "no socket: %s", strerror(-fd));
	r = bind(fd, (const struct sockaddr *)a, len);
	if (r && errno == EADDRINUSE) {
		try_connect(fd, a, len);
		return refuse_taken(path, fd, err);
	}
	if (r || listen(fd, SOMAXCONN))
		return err_set(err, errno, "cannot listen at shm:%s: %s", path, strerror(errno));
	*ret_fd = steal_fd(&fd);
	return 0;
}

int unix_listen(const char *path, int *ret_fd, struct unix_name *ret_name, struct err *err)
{
	struct sockaddr_un a;
	socklen_t len = unix_addr(path, &a);
	CLEANUP(closep) int fd = unix_socket();
	CLEANUP(closep) int lock = -1;
	struct stat st;
	int r;

	if (path[0] == '@')
		return listen_abstract(path, &a, len, ret_fd, err);
	if (fd < 0)
		return err_set(err, -fd, "no socket: %s", strerror(-fd));
	lock = lock_folder(path);
	fchmod(fd, 0600); /* before bind(): the file is made with this mode */
	r = bind(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	if (r == -EADDRINUSE) {
		r = clear_path(path, &a, err);
		if (r)
			return r;
		r = bind(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	}
	if (r)
		return err_set(err, -r, "cannot listen at shm:%s: %s", path, strerror(-r));
	if (lstat(path, &st) || listen(fd, SOMAXCONN)) {
		r = -errno;
		unlink(path);
		return err_set(err, -r, "cannot listen at shm:%s: %s", path, strerror(-r));
	}
	ret_name->dev = st.st_dev;
	ret_name->ino = st.st_ino;
	*ret_fd = steal_fd(&fd);
	return 0;
}

void unix_unlisten(const char *path, const struct unix_name *name)
{
	struct stat st;

	if (path[0] != '@' && !lstat(path, &st) && st.st_dev == name->dev && st.st_ino == name->ino)
		unlink(path);
}
