/* See driver.h. */
#include "cli/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK_MS 20000 /* a machine of many GPUs may take several seconds */

struct answer {
	char why[256]; /* "": all is well */
};

static void ask(struct answer *a)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned int), (*count)(int *), code, n = 0;

	if (!lib) {
		snprintf(a->why, sizeof(a->why), "there is no NVIDIA driver here (%s)", dlerror());
		return;
	}
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&count = dlsym(lib, "cuDeviceGetCount");
	if (!init || !count) {
		snprintf(a->why, sizeof(a->why), "libcuda.so.1 is no NVIDIA driver: it has no cuInit");
		return;
	}
	code = init(0);
	if (code)
		snprintf(a->why, sizeof(a->why), "the NVIDIA driver does not start (CUDA error %d)", code);
	else if (count(&n) || n == 0)
		snprintf(a->why, sizeof(a->why), "the NVIDIA driver shows no device");
}

int driver_check(struct err *err)
{
	struct answer a = { "" };
	struct pollfd p;
	int fds[2], r;
	pid_t child;

	if (pipe(fds) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	child = fork();
	if (child == 0) {
		ask(&a);
		_exit(write(fds[1], &a, sizeof(a)) != sizeof(a));
	}
	close(fds[1]);
	p = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	if (child < 0)
		snprintf(a.why, sizeof(a.why), "fork: %s", strerror(errno));
	else if ((r = poll(&p, 1, ASK_MS)) <= 0)
		snprintf(a.why, sizeof(a.why), "the NVIDIA driver did not start within %d s", ASK_MS / 1000);
	else if (read(fds[0], &a, sizeof(a)) != sizeof(a))
		snprintf(a.why, sizeof(a.why), "the NVIDIA driver crashes");
	close(fds[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return a.why[0] ? err_set(err, ENODEV, "%s", a.why) : 0;
}
