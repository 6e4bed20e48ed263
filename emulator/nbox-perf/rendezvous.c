/* See rendezvous.h. */
#include "nbox-perf/rendezvous.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 300
#define OLD_S 60 /* a file from before this long before our start is another run's */

static char own_path[4096]; /* rank 0's, while there is one to remove */

void rendezvous_end(void)
{
	if (*own_path)
		unlink(own_path);
	*own_path = 0;
}

static const char *default_path(char *buffer, size_t size)
{
	const char *port = getenv("MASTER_PORT"), *dir = getenv("TMPDIR");

	snprintf(buffer, size, "%s/nccl-id.%s.%ld", dir && *dir ? dir : "/tmp",
		 port && *port ? port : "none", (long)getsid(0));
	return buffer;
}

/* Under another name first: a reader sees all of it or nothing. */
static int publish(const char *path, const ncclUniqueId *id)
{
	char other[4096 + 32];
	ssize_t n;
	int fd;

	snprintf(other, sizeof(other), "%s.%ld", path, (long)getpid());
	fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		goto failed;
	n = write(fd, id, sizeof(*id));
	close(fd);
	if (n != (ssize_t)sizeof(*id) || rename(other, path) != 0)
		goto failed;
	snprintf(own_path, sizeof(own_path), "%s", path);
	atexit(rendezvous_end);
	return 0;
failed:
	fprintf(stderr, "rendezvous: cannot write %s: %s\n", path, strerror(errno));
	unlink(other);
	return -1;
}

static int await(const char *path, ncclUniqueId *id)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	time_t start = time(NULL);
	struct stat st;
	ssize_t n;
	int fd;

	while (time(NULL) < start + PATIENCE_S) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			n = fstat(fd, &st) == 0 && st.st_mtime >= start - OLD_S
				    ? read(fd, id, sizeof(*id))
				    : 0;
			close(fd);
			if (n == (ssize_t)sizeof(*id))
				return 0;
		}
		nanosleep(&pause, NULL);
	}
	fprintf(stderr, "rendezvous: no id from rank 0 in %s after %d s\n", path, PATIENCE_S);
	return -1;
}

int rendezvous(int rank, const char *path, ncclUniqueId *ret_id)
{
	const char *comm_id = getenv("NCCL_COMM_ID");
	int by_address = comm_id && *comm_id;
	char buffer[4096];
	ncclResult_t r;

	if (!path)
		path = default_path(buffer, sizeof(buffer));
	if (!by_address && rank > 0)
		return await(path, ret_id);
	if (!by_address)
		unlink(path);
	r = ncclGetUniqueId(ret_id);
	if (r != ncclSuccess) {
		fprintf(stderr, "rendezvous: ncclGetUniqueId: %s\n", ncclGetErrorString(r));
		return -1;
	}
	return by_address ? 0 : publish(path, ret_id);
}
