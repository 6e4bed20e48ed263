/* See variables.h. */
#include "base/variables.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"

#define PREFIX "NBOX_"
#define OF_TESTS "NBOX_TEST_"

static const char *const names[] = {
	/* options: config/options.c has what they mean (a unit test compares) */
	"NBOX_NODES", "NBOX_GPUS_PER_NODE", "NBOX_WORLD", "NBOX_REAL", "NBOX_AS_NODE", "NBOX_INTRA_LATENCY",
	"NBOX_INTRA_BANDWIDTH", "NBOX_INTER_LATENCY", "NBOX_INTER_BANDWIDTH", "NBOX_LAYOUT", "NBOX_MODEL",
	"NBOX_WHAT_IF", "NBOX_EXCHANGE", "NBOX_DATA", "NBOX_DATA_FOR", "NBOX_SPLIT", "NBOX_ALGO", "NBOX_CHANNELS",
	"NBOX_CHUNK", "NBOX_LINK", "NBOX_ADDR", "NBOX_TOKEN", "NBOX_STORE", "NBOX_IB_HCA", "NBOX_IB_PORT",
	"NBOX_IB_GID_INDEX", "NBOX_IB_TC", "NBOX_IB_TIMEOUT", "NBOX_IB_RETRY_CNT", "NBOX_IB_MTU", "NBOX_IB_QPS",
	"NBOX_IB_INLINE", "NBOX_IB_RING", "NBOX_IB_MEMORY", "NBOX_IB_RECONNECT", "NBOX_IB_POLL", "NBOX_SEED",
	"NBOX_OUT", "NBOX_DEBUG", "NBOX_POLL", "NBOX_PAYLOAD_WORK", "NBOX_PAYLOAD_MEMORY", "NBOX_SETTLE",
	"NBOX_TIMEOUT",
	/* of nbox, nboxd and the shim */
	"NBOX_CONFIG", "NBOX_DEBUG_FILE", "NBOX_NBOXD", "NBOX_MODEL_PATH", "NBOX_NCCL", "NBOX_DEVICE",
	"NBOX_FOOTPRINT", "NBOX_ASK_PYTHON", "NBOX_ENABLE", "NBOX_INIT_TIMEOUT", "NBOX_CONNECT_TIMEOUT",
	"NBOX_QUIET",
	/* of the stand-ins, emulator/hostgpu */
	"NBOX_HOST_DEVICES", "NBOX_HOST_GPU_MEMORY", "NBOX_HOST_KERNEL_TIME", "NBOX_HOST_STUBS_LOG",
	/* of scripts */
	"NBOX_BUILD", "NBOX_TORCH_ENV", "NBOX_TORCH_PYTHON", "NBOX_TORCH_WHEELS", "NBOX_VM_CACHE", "NBOX_VM_ACCEL",
};

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

bool variable_is_known(const char *entry)
{
	size_t len = name_length(entry);

	if (!strncmp(entry, OF_TESTS, strlen(OF_TESTS)))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], entry, len))
			return true;
	return false;
}

const char *variable_first_unknown(char *const *environment)
{
	for (; environment && *environment; environment++) {
		const char *entry = *environment, *value = entry + name_length(entry);

		/* An empty variable counts as unset, as in most shells' scripts. */
		if (!strncmp(entry, PREFIX, strlen(PREFIX)) && value[0] && value[1] && !variable_is_known(entry))
			return entry;
	}
	return NULL;
}

char *variable_unknown_text(const char *entry, char *buf, size_t size)
{
	char name[64];
	const char *near;

	snprintf(name, sizeof(name), "%.*s", (int)name_length(entry), entry);
	near = units_suggest(name, names, ARRAY_SIZE(names));
	if (near)
		snprintf(buf, size, "%s is unknown; did you mean '%s'?", name, near);
	else
		snprintf(buf, size, "%s is unknown; nbox run --help lists the variables; unset it", name);
	return buf;
}
