/* nbox doctor: cores, nbox's own parts, what there is of CUDA and NCCL. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nbox/doctor/doctor.h"
#include "nbox/doctor/driver.h"
#include "nbox/doctor/paths.h"

#define PROGRAMS "nbox"
#define GPUS "GPU"

static void find_parts(struct doctor *d)
{
	struct paths p;
	struct err err = {""};

	if (paths_find(&p, PATHS_MODELS | PATHS_RUN, &err) < 0) {
		doctor_add(d, DOCTOR_WRONG, PROGRAMS, "parts", "%s", err.text);
		return;
	}
	doctor_add(d, access(p.nboxd, X_OK) == 0 ? DOCTOR_OK : DOCTOR_WRONG, PROGRAMS, "nboxd",
		   "%s%s", p.nboxd, access(p.nboxd, X_OK) == 0 ? "" : ": cannot be executed");
	doctor_add(d, DOCTOR_OK, PROGRAMS, "libnbox.so", "%s", p.shim);
	doctor_add(d, DOCTOR_OK, PROGRAMS, "delay models", "%s", p.models);
	if (paths_find(&p, PATHS_HOST, &err) < 0)
		doctor_add(d, DOCTOR_NOTE, PROGRAMS, "stand-ins", "%s", err.text);
	else
		doctor_add(d, DOCTOR_OK, PROGRAMS, "stand-ins",
			   "host CUDA runtime and host NCCL in %s", p.standins);
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

static void find_gpus(struct doctor *d)
{
	bool is_asked = strcmp(d->device, "cuda") == 0, is_host = strcmp(d->device, "host") == 0;
	bool has_node = access("/dev/nvidiactl", F_OK) == 0;
	enum doctor_level bad = is_asked || (has_node && !is_host) ? DOCTOR_WRONG : DOCTOR_NOTE;
	struct driver v;

	driver_ask(&v);
	d->is_cuda = is_asked || (has_node && !is_host);
	if (v.why[0] && v.version)
		doctor_add(d, bad, GPUS, "CUDA driver", "version %d.%d, but %s%s", v.version / 1000,
			   v.version % 1000 / 10, v.why, d->is_cuda ? "" : ": jobs run on the CPU");
	else if (v.why[0])
		doctor_add(d, bad, GPUS, "CUDA driver", "%s%s", v.why,
			   d->is_cuda ? "" : ": jobs run on the CPU");
	else
		doctor_add(d, DOCTOR_OK, GPUS, "CUDA driver", "version %d.%d, %d device%s",
			   v.version / 1000, v.version % 1000 / 10, v.n_devices,
			   v.n_devices == 1 ? "" : "s");
}

static void find_nccl(struct doctor *d)
{
	const char *chosen = getenv("NBOX_NCCL");
	struct driver_nccl v;

	driver_ask_nccl(&v);
	if (!v.why[0])
		doctor_add(d, DOCTOR_OK, GPUS, "NCCL", "%d.%d.%d, %s%s", v.version / 10000,
			   v.version / 100 % 100, v.version % 100, v.path,
			   driver_nccl_goes_full(&v, NULL) < 0 ? "; not with --nccl full" : "");
	else
		doctor_add(
			d, d->is_cuda || (chosen && chosen[0]) ? DOCTOR_WRONG : DOCTOR_NOTE, GPUS,
			"NCCL", "%s; %s", v.why,
			d->is_cuda
				? "set NBOX_NCCL to its path (programs that bring their own need nothing)"
				: "host NCCL takes its place");
}

void doctor_programs(struct doctor *d)
{
	count_cores(d);
	find_parts(d);
	find_gpus(d);
	find_nccl(d);
}
