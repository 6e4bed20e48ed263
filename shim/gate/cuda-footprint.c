/* See cuda-footprint.h. */
#include "shim/gate/cuda-footprint.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "schedule/coll.h"

#define MAX_DEVICES 64
#define CTAS_MAX 1024
#define THREAD_BYTES 16
#define OUT_OF_MEMORY ((CUresult)2) /* CUDA_ERROR_OUT_OF_MEMORY */

/* NCCL uses sends and receives for a collective that has no kernel of its own. */
enum { NAME_SENDRECV = 5, NAMES };
static const char *const names[NAMES] = {"AllReduce", "AllGather", "ReduceScatter",
					 "Broadcast", "Reduce",    "SendRecv"};

static unsigned int ctas;
static struct {
	pthread_mutex_t lock;
	struct {
		CUfunction functions[NAMES];
		CUdeviceptr buf; /* for good */
	} devices[MAX_DEVICES];
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* %s: the name. One thread of a block looks at the word, which is in the host's memory, and at the
 * time. All threads move THREAD_BYTES, then look at what that thread saw. */
static const char kernel[] =
	".visible .entry ncclDevKernel_%s_nbox(\n"
	"	.param .u64 p_word, .param .u64 p_buf, .param .u64 p_hold)\n"
	".maxntid 512, 1, 1\n"
	"{\n"
	"	.reg .pred %%stop, %%other;\n"
	"	.reg .u32 %%thread, %%block, %%width, %%i, %%v, %%a, %%b, %%c, %%d;\n"
	"	.reg .u64 %%word, %%buf, %%hold, %%start, %%now, %%at;\n"
	"	.shared .align 4 .u32 seen;\n"
	"	ld.param.u64 %%word, [p_word];\n"
	"	ld.param.u64 %%buf, [p_buf];\n"
	"	ld.param.u64 %%hold, [p_hold];\n"
	"	cvta.to.global.u64 %%word, %%word;\n"
	"	cvta.to.global.u64 %%buf, %%buf;\n"
	"	mov.u64 %%start, %%globaltimer;\n"
	"	mov.u32 %%thread, %%tid.x;\n"
	"	mov.u32 %%block, %%ctaid.x;\n"
	"	mov.u32 %%width, %%ntid.x;\n"
	"	mad.lo.u32 %%i, %%block, %%width, %%thread;\n"
	"	mul.wide.u32 %%at, %%i, 16;\n"
	"	add.u64 %%at, %%at, %%buf;\n"
	"	setp.ne.u32 %%other, %%thread, 0;\n"
	"again:\n"
	"	@%%other bra together;\n"
	"	ld.relaxed.sys.global.u32 %%v, [%%word];\n"
	"	setp.ge.s32 %%stop, %%v, 1;\n"
	"	mov.u64 %%now, %%globaltimer;\n"
	"	sub.u64 %%now, %%now, %%start;\n"
	"	setp.ge.or.u64 %%stop, %%now, %%hold, %%stop;\n"
	"	selp.u32 %%v, 1, 0, %%stop;\n"
	"	st.shared.u32 [seen], %%v;\n"
	"	@%%stop bra together;\n"
	"	nanosleep.u32 500;\n"
	"together:\n"
	"	ld.volatile.global.v4.u32 {%%a, %%b, %%c, %%d}, [%%at];\n"
	"	st.volatile.global.v4.u32 [%%at], {%%a, %%b, %%c, %%d};\n"
	"	bar.sync 0;\n"
	"	ld.shared.u32 %%v, [seen];\n"
	"	bar.sync 0;\n"
	"	setp.eq.u32 %%stop, %%v, 0;\n"
	"	@%%stop bra again;\n"
	"	ret;\n"
	"}\n";

int cuda_footprint_read(struct err *err)
{
	const char *text = getenv("NBOX_FOOTPRINT");
	uint64_t n;
	int r;

	ctas = 0;
	if (!text || !*text)
		return 0;
	r = units_count(text, &n, err);
	if (r)
		return err_prefix(err, r, "NBOX_FOOTPRINT");
	if (n > CTAS_MAX)
		return err_set(err, EINVAL,
			       "NBOX_FOOTPRINT=%s: at most %d thread blocks; NCCL uses 1 to 32",
			       text, CTAS_MAX);
	ctas = (unsigned int)n;
	return 0;
}

unsigned int cuda_footprint_ctas(void)
{
	return ctas;
}

char *cuda_footprint_ptx(void)
{
	static const char head[] = ".version 6.3\n.target sm_70\n.address_size 64\n";
	size_t size = sizeof(head) + NAMES * (sizeof(kernel) + 16), at;
	char *text = malloc(size);

	if (!text)
		return NULL;
	at = (size_t)snprintf(text, size, "%s", head);
	for (size_t i = 0; i < NAMES; i++)
		at += (size_t)snprintf(text + at, size - at, kernel, names[i]);
	return text;
}

static unsigned int name_of(uint32_t kind)
{
	switch ((enum coll_kind)kind) {
	case COLL_ALLREDUCE:
		return 0;
	case COLL_ALLGATHER:
		return 1;
	case COLL_REDUCESCATTER:
		return 2;
	case COLL_BROADCAST:
		return 3;
	case COLL_REDUCE:
		return 4;
	case COLL_ALLTOALL:
	case COLL_GATHER:
	case COLL_SCATTER:
	case COLL_SENDRECV:
	case COLL_KINDS:
		break;
	}
	return NAME_SENDRECV;
}

/* Under the lock. */
static CUresult load(const struct cuda_driver *d, CUdevice device)
{
	CLEANUP(freep) char *text = cuda_footprint_ptx();
	CUfunction functions[NAMES];
	CUmodule module;
	CUdeviceptr buf;
	char name[48];
	CUresult r = text ? d->ModuleLoadData(&module, text) : OUT_OF_MEMORY;

	for (size_t i = 0; r == CUDA_SUCCESS && i < NAMES; i++) {
		snprintf(name, sizeof(name), "ncclDevKernel_%s_nbox", names[i]);
		r = d->ModuleGetFunction(&functions[i], module, name);
	}
	if (r == CUDA_SUCCESS)
		r = d->MemAlloc(&buf, (size_t)ctas * FOOTPRINT_THREADS * THREAD_BYTES);
	if (r != CUDA_SUCCESS)
		return r;
	for (size_t i = 0; i < NAMES; i++)
		g.devices[device].functions[i] = functions[i];
	g.devices[device].buf = buf;
	return r;
}

CUresult cuda_footprint_launch(const struct cuda_driver *d, CUstream s, uint32_t kind,
			       CUdeviceptr release)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* loading is not captured */
	uint64_t hold_ns = FOOTPRINT_HOLD_NS;
	CUdevice device;
	void *args[3] = {&release, NULL, &hold_ns};
	CUresult r = d->CtxGetDevice(&device);

	if (r != CUDA_SUCCESS)
		return r;
	if (device < 0 || device >= MAX_DEVICES)
		return (CUresult)101; /* CUDA_ERROR_INVALID_DEVICE */
	pthread_mutex_lock(&g.lock);
	if (!g.devices[device].buf) {
		d->ThreadExchangeStreamCaptureMode(&mode);
		r = load(d, device);
		d->ThreadExchangeStreamCaptureMode(&mode);
	}
	pthread_mutex_unlock(&g.lock);
	if (r != CUDA_SUCCESS)
		return r;
	args[1] = &g.devices[device].buf;
	return d->LaunchKernel(g.devices[device].functions[name_of(kind)], ctas, 1, 1,
			       FOOTPRINT_THREADS, 1, 1, 0, s, args, NULL);
}
