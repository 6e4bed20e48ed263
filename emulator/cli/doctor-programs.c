/* nbox doctor: cores, nbox's own parts, what there is of CUDA and NCCL. NVIDIA's
 * libraries are only asked for their versions, in a child: opening them may start
 * threads, and a broken one must not take the doctor with it. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/doctor.h"
#include "cli/paths.h"

#define PROGRAMS "nbox"
#define GPUS "GPU"
#define ASK_MS 20000

static void find_parts(struct doctor *d)
{
	struct paths p;
	struct err err = { "" };

	if (paths_find(&p, PATHS_MODELS | PATHS_RUN, &err) < 0) {
		doctor_add(d, DOCTOR_WRONG, PROGRAMS, "parts", "%s", err.text);
		return;
	}
	doctor_add(d, access(p.nboxd, X_OK) == 0 ? DOCTOR_OK : DOCTOR_WRONG, PROGRAMS, "nboxd", "%s%s", p.nboxd,
		   access(p.nboxd, X_OK) == 0 ? "" : ": cannot be executed");
	doctor_add(d, DOCTOR_OK, PROGRAMS, "libnbox.so", "%s", p.shim);
	doctor_add(d, DOCTOR_OK, PROGRAMS, "delay models", "%s", p.models);
	if (paths_find(&p, PATHS_HOST, &err) < 0)
		doctor_add(d, DOCTOR_NOTE, PROGRAMS, "stand-ins", "%s", err.text);
	else
		doctor_add(d, DOCTOR_OK, PROGRAMS, "stand-ins", "host CUDA runtime and host NCCL in %s", p.hostgpu);
}

static void count_cores(struct doctor *d)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;
	json_t *f;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	f = doctor_add(d, n > 1 ? DOCTOR_OK : DOCTOR_NOTE, PROGRAMS, "cores", "%ld%s", n,
		       n > 1 ? "" : ": nboxd and the job take turns on it; gates will open late");
	if (f)
		json_object_set_new(f, "cores", json_integer(n));
}

/* What the child found; written over a pipe in one piece. */
struct versions {
	int has_driver, driver, n_devices, error;
	int has_nccl, nccl;
	char nccl_path[PATH_MAX / 2];
};

static void *symbol(void *library, const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

static void ask_driver(struct versions *v)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned int), (*version)(int *), (*count)(int *);

	*(void **)&init = symbol(lib, "cuInit");
	*(void **)&version = symbol(lib, "cuDriverGetVersion");
	*(void **)&count = symbol(lib, "cuDeviceGetCount");
	v->has_driver = init && version && count;
	if (!v->has_driver)
		return;
	version(&v->driver);
	v->error = init(0);
	if (!v->error)
		v->error = count(&v->n_devices);
}

static void ask_nccl(struct versions *v)
{
	const char *chosen = getenv("NBOX_NCCL");
	void *lib = dlopen(chosen && chosen[0] ? chosen : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	int (*version)(int *);
	Dl_info info;

	*(void **)&version = symbol(lib, "ncclGetVersion");
	v->has_nccl = version && version(&v->nccl) == 0;
	if (v->has_nccl && dladdr(*(void **)&version, &info) && info.dli_fname)
		snprintf(v->nccl_path, sizeof(v->nccl_path), "%s", info.dli_fname);
}

/* Return: 0; negative errno: the child crashed or hung. */
static int ask_versions(struct versions *ret)
{
	struct versions v;
	struct pollfd p;
	int fds[2], status = 0, r;
	pid_t child;

	memset(&v, 0, sizeof(v));
	if (pipe(fds) < 0)
		return -errno;
	child = fork();
	if (child == 0) {
		ask_driver(&v);
		ask_nccl(&v);
		_exit(write(fds[1], &v, sizeof(v)) != sizeof(v));
	}
	close(fds[1]);
	p = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	r = child < 0 ? -EAGAIN : poll(&p, 1, ASK_MS) > 0 ? 0 : -ETIMEDOUT;
	if (!r && read(fds[0], &v, sizeof(v)) != sizeof(v))
		r = -EPIPE;
	close(fds[0]);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
	if (!r)
		*ret = v;
	return r;
}

static void find_gpus(struct doctor *d)
{
	bool is_asked = strcmp(d->device, "cuda") == 0, is_host = strcmp(d->device, "host") == 0;
	bool has_node = access("/dev/nvidiactl", F_OK) == 0;
	enum doctor_level bad = is_asked || (has_node && !is_host) ? DOCTOR_WRONG : DOCTOR_NOTE;
	struct versions v;
	int r;

	memset(&v, 0, sizeof(v));
	r = ask_versions(&v);
	d->is_cuda = is_asked || (has_node && !is_host);
	if (r < 0)
		doctor_add(d, bad, GPUS, "CUDA driver", "%s while asking for versions",
			   r == -ETIMEDOUT ? "libcuda.so.1 or libnccl.so.2 hung" :
					     "libcuda.so.1 or libnccl.so.2 crashed");
	else if (!v.has_driver)
		doctor_add(d, bad, GPUS, "CUDA driver", "none (libcuda.so.1 is not found)%s",
			   is_asked ? "" : ": jobs run on the CPU");
	else if (v.error || v.n_devices == 0)
		doctor_add(d, bad, GPUS, "CUDA driver", "version %d.%d, but %s (CUDA error %d)%s", v.driver / 1000,
			   v.driver % 1000 / 10, v.error ? "it does not start" : "it shows no device", v.error,
			   is_asked ? "" : ": jobs run on the CPU");
	else
		doctor_add(d, DOCTOR_OK, GPUS, "CUDA driver", "version %d.%d, %d device%s", v.driver / 1000,
			   v.driver % 1000 / 10, v.n_devices, v.n_devices == 1 ? "" : "s");
	if (r == 0 && v.has_nccl)
		doctor_add(d, DOCTOR_OK, GPUS, "NCCL", "%d.%d.%d, %s", v.nccl / 10000, v.nccl / 100 % 100,
			   v.nccl % 100, v.nccl_path);
	else if (r == 0)
		doctor_add(d, d->is_cuda || getenv("NBOX_NCCL") ? DOCTOR_WRONG : DOCTOR_NOTE, GPUS, "NCCL",
			   "%s; %s", getenv("NBOX_NCCL") ? "NBOX_NCCL names no NCCL" :
							 "no libnccl.so.2 on the search path",
			   d->is_cuda ? "set NBOX_NCCL to its path (programs that bring their own need nothing)" :
					"host NCCL takes its place");
}

void doctor_programs(struct doctor *d)
{
	count_cores(d);
	find_parts(d);
	find_gpus(d);
}
