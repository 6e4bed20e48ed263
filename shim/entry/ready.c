/* See ready.h. */
#include "shim/entry/ready.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "links/rdma/near.h"
#include "shim/entry/versions.h"
#include "shim/gate/device-choose.h"
#include "shim/job/env.h"
#include "shim/job/launcher.h"
#include "shim/job/nccl-variables.h"
#include "shim/plugin/plugin.h"
#include "shim/progress/known.h"
#include "shim/progress/payload-gpu.h"
#include "shim/progress/progress.h"
#include "shim/progress/session.h"
#include "shim/progress/traffic.h"
#include "shim/real/last-error.h"
#include "shim/real/real.h"

ncclResult_t ready_refuse(const char *what, int r, const struct err *err, const char *hint)
{
	static _Atomic bool was_said;

	if (!atomic_exchange(&was_said, true))
		log_error("%s: %s%s", what, err->text, hint);
	return last_error_set(r == -EINVAL ? ncclInvalidUsage : ncclSystemError, "%s: %s", what,
			      err->text);
}

/* Where several NICs reach nboxd, the link takes the one nearest to the GPU of the first
 * communicator. The GPU has to be known before there is a link; where it is not, the route chooses
 * the NIC. Makes no context. */
static void tell_gpu(void)
{
	const struct device *dev;
	char pci[RDMA_PCI_MAX] = "";
	int ordinal = DEVICE_NONE;

	if (strncmp(env_get()->addr, "rdma:", 5) != 0)
		return;
	dev = device_get(NULL); /* what is wrong with it is said after the link */
	if (dev && dev->get(&ordinal))
		ordinal = DEVICE_NONE;
	payload_gpu_is(ordinal);
	if (dev && ordinal != DEVICE_NONE && !dev->pci_id(ordinal, pci, sizeof(pci))) {
		log_debug("rdma: the GPU of this process is %s", pci);
		rdma_near(pci);
	} else {
		log_debug("rdma: the GPU of this process is not known: the route chooses the NIC");
	}
}

static void note(const char *sentence)
{
	struct wire_text text = {.code = ENOTSUP};

	if (!sentence)
		return;
	snprintf(text.text, sizeof(text.text), "%s", sentence);
	known_send(NULL, WIRE_NOTE, &text, sizeof(text));
}

static void note_version(const char *line)
{
	char text[512];

	snprintf(text, sizeof(text), WIRE_NOTE_VERSION "%s", line);
	note(text);
}

/* For the run's summary: what is not as the user asked. For its versions.txt: what the job runs
 * on. */
static void note_run(void)
{
	const struct device *dev = device_chosen();
	int ordinal = DEVICE_NONE;

	note(device_fallback());
	note(launcher_note());
	if (nccl_variables_note()[0])
		note(nccl_variables_note());
	if (dev && dev->get(&ordinal))
		ordinal = DEVICE_NONE;
	versions_tell(ordinal, note_version);
}

/* A variable that a scheduler may decide by. In full mode libnbox.so shuts two ways between nodes,
 * which no scheduler takes there either, and NCCL says itself what it takes by its tuner. */
static bool is_told(const char *v)
{
	return strncmp(v, "NCCL_", 5) == 0 &&
	       !(traffic_is_full() && (strncmp(v, "NCCL_COLLNET_ENABLE=", 20) == 0 ||
				       strncmp(v, "NCCL_MNNVL_ENABLE=", 18) == 0 ||
				       strncmp(v, "NCCL_TUNER_PLUGIN=", 18) == 0));
}

/* Tells nboxd by what its scheduler decides: the version of NCCL that this process has loaded, and
 * NCCL's variables. What another thread of the job adds to them meanwhile may be missing. Without
 * memory the scheduler goes by nboxd's own. */
static void tell_job(void)
{
	char version[32];
	size_t bytes = strlen(versions_nccl(version, sizeof(version))) + 1, at;
	char *body;

	for (char **v = environ; *v; v++)
		if (is_told(*v))
			bytes += strlen(*v) + 1;
	body = malloc(bytes);
	if (!body)
		return;
	at = (size_t)(stpcpy(body, version) - body) + 1;
	for (char **v = environ; *v; v++) {
		size_t length = strlen(*v);

		if (!is_told(*v) || length >= bytes - at)
			continue;
		memcpy(body + at, *v, length);
		body[at + length] = '\0';
		at += length + 1;
	}
	known_send(NULL, WIRE_JOB, body, at);
	free(body);
}

/* What nboxd is told before the first communicator, and NCCL, which has not looked yet. */
static void tell_nboxd(void)
{
	uint32_t gpus = session_welcome()->gpus_per_node;
	int version = 0;

	if (traffic_is_full()) {
		if (real_get()->GetVersion)
			real_get()->GetVersion(&version);
		nccl_variables_set(env_get()->rank >= 0 ? env_get()->rank / (int)gpus : -1, version,
				   session_welcome()->tunes);
		plugin_start();
	}
	note_run();
	tell_job();
}

const struct device *ready_get(const char *what, ncclResult_t *ret)
{
	static pthread_once_t told = PTHREAD_ONCE_INIT, noted = PTHREAD_ONCE_INIT;
	const struct env *env = env_get();
	const struct device *dev = NULL;
	const char *hint = "";
	struct err err = {""};
	int r = env->error;

	if (r) {
		err = env->err;
	} else {
		pthread_once(&told, tell_gpu);
		r = progress_start(&err);
		if (r && !session_was_answered())
			hint = "; start the virtual cluster with 'nbox run' (or nboxd), or unset NBOX_ADDR to run without one";
	}
	if (!r && env->is_full && !traffic_is_full())
		r = err_set(
			&err, EINVAL,
			"NBOX_NCCL_MODE=full, but nboxd runs with --nccl gate: start it with --nccl "
			"full, or unset the variable");
	if (!r) {
		dev = device_get(&err);
		r = dev ? 0 : -ENODEV;
		if (dev)
			pthread_once(&noted, tell_nboxd);
	}
	if (!r)
		return dev;
	*ret = ready_refuse(what, r, &err, hint);
	return NULL;
}
