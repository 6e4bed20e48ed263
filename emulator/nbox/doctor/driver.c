/* See driver.h. */
#include "nbox/doctor/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "patches/records.h"

#define ASK_MS 20000                   /* a machine of many GPUs may take several seconds */
#define VERSION_LEAST 12000            /* as in libnbox.so */
#define FULL_LEAST NCCL_CODE(2, 23, 0) /* a plug-in is told which op a message is of */
#define WHY_MAX sizeof(((struct driver *)NULL)->why)

/* Both answers go through a pipe in one piece. */
_Static_assert(sizeof(struct driver_nccl) <= 4096 && sizeof(struct driver) <= 4096, "PIPE_BUF");

static void ask_driver(void *answer)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned int), (*version)(int *), (*count)(int *), r;
	struct driver *d = answer;

	if (!lib) {
		snprintf(d->why, sizeof(d->why), "there is no NVIDIA driver here (%s)", dlerror());
		return;
	}
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&version = dlsym(lib, "cuDriverGetVersion");
	*(void **)&count = dlsym(lib, "cuDeviceGetCount");
	if (!init || !version || !count) {
		snprintf(d->why, sizeof(d->why),
			 "libcuda.so.1 is no NVIDIA driver: it has no cuInit");
		return;
	}
	if (version(&d->version))
		d->version = 0;
	r = init(0);
	if (d->version && d->version < VERSION_LEAST)
		snprintf(
			d->why, sizeof(d->why),
			"the NVIDIA driver is of CUDA %d.%d, and the gate needs one of %d.%d at least",
			d->version / 1000, d->version % 1000 / 10, VERSION_LEAST / 1000,
			VERSION_LEAST % 1000 / 10);
	else if (r)
		snprintf(d->why, sizeof(d->why), "the NVIDIA driver does not start (CUDA error %d)",
			 r);
	else if (count(&d->n_devices) || d->n_devices == 0)
		snprintf(d->why, sizeof(d->why), "the NVIDIA driver shows no device");
}

static void ask_nccl(void *answer)
{
	const char *chosen = getenv("NBOX_NCCL");
	struct driver_nccl *n = answer;
	int (*version)(int *);
	Dl_info info;
	void *lib;

	chosen = chosen && chosen[0] ? chosen : NULL;
	lib = dlopen(chosen ? chosen : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	*(void **)&version = lib ? dlsym(lib, "ncclGetVersion") : NULL;
	if (!version || version(&n->version))
		snprintf(n->why, sizeof(n->why), "%s",
			 chosen ? "NBOX_NCCL names no NCCL" : "no libnccl.so.2 on the search path");
	else if (dladdr(*(void **)&version, &info) && info.dli_fname)
		snprintf(n->path, sizeof(n->path), "%s", info.dli_fname);
}

/* @answer: all zero; as @ask left it in the child. @why, in it: also what became of the child. */
static void in_child(void (*ask)(void *answer), void *answer, size_t size, char *why,
		     const char *who)
{
	uint64_t due_ns = clock_now_ns() + ASK_MS * NS_PER_MS, now_ns;
	struct pollfd p;
	int fds[2], r;
	pid_t child;

	if (pipe(fds) < 0) {
		snprintf(why, WHY_MAX, "pipe: %s", strerror(errno));
		return;
	}
	child = fork();
	if (child == 0) {
		ask(answer);
		_exit(write(fds[1], answer, size) != (ssize_t)size);
	}
	close(fds[1]);
	p = (struct pollfd){.fd = fds[0], .events = POLLIN};
	do {
		now_ns = clock_now_ns();
		r = poll(&p, 1, now_ns < due_ns ? (int)((due_ns - now_ns) / NS_PER_MS) + 1 : 0);
	} while (r < 0 && errno == EINTR);
	if (child < 0)
		snprintf(why, WHY_MAX, "fork: %s", strerror(errno));
	else if (r <= 0)
		snprintf(why, WHY_MAX, "%s did not answer within %d s", who, ASK_MS / 1000);
	else if (read(fds[0], answer, size) != (ssize_t)size)
		snprintf(why, WHY_MAX, "%s crashes", who);
	close(fds[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
}

void driver_ask(struct driver *ret)
{
	memset(ret, 0, sizeof(*ret));
	in_child(ask_driver, ret, sizeof(*ret), ret->why, "the NVIDIA driver");
}

void driver_ask_nccl(struct driver_nccl *ret)
{
	memset(ret, 0, sizeof(*ret));
	in_child(ask_nccl, ret, sizeof(*ret), ret->why, "libnccl.so.2");
}

int driver_check(struct err *err)
{
	struct driver d;

	driver_ask(&d);
	return d.why[0] ? err_set(err, ENODEV, "%s", d.why) : 0;
}

int driver_nccl_goes_full(const struct driver_nccl *n, struct err *err)
{
	char why[ERR_TEXT_MAX];

	if (n->version < FULL_LEAST)
		return err_set(
			err, EINVAL,
			"NCCL %d.%d.%d (%.200s): nccl full needs 2.23 or newer, which tells a plug-in "
			"which op a message is of: NBOX_NCCL=PATH names another, or take nccl gate",
			n->version / 10000, n->version / 100 % 100, n->version % 100, n->path);
	if (!nccl_records_find(n->version, false, why, sizeof(why)))
		return err_set(err, EINVAL, "%s, or nccl gate", why);
	return 0;
}
