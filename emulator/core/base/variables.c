/* See variables.h. */
#include "base/variables.h"
#include "base/suggest.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"

#define PREFIX "NBOX_"
#define OF_TESTS "NBOX_TEST_"

static const char *const names[] = {
	/* options: config/options.c has what they mean (a unit test compares) */
	"NBOX_NODES",
	"NBOX_GPUS_PER_NODE",
	"NBOX_WORLD",
	"NBOX_REAL",
	"NBOX_AS_NODE",
	"NBOX_INTRA_LATENCY",
	"NBOX_INTRA_BANDWIDTH",
	"NBOX_INTER_LATENCY",
	"NBOX_INTER_BANDWIDTH",
	"NBOX_LAYOUT",
	"NBOX_MODEL",
	"NBOX_WHAT_IF",
	"NBOX_EXCHANGE",
	"NBOX_DATA",
	"NBOX_DATA_FOR",
	"NBOX_SPLIT",
	"NBOX_ALGO",
	"NBOX_CHANNELS",
	"NBOX_CHUNK",
	"NBOX_LINK",
	"NBOX_ADDR",
	"NBOX_TOKEN",
	"NBOX_STORE",
	"NBOX_IB_HCA",
	"NBOX_IB_PORT",
	"NBOX_IB_GID_INDEX",
	"NBOX_IB_TC",
	"NBOX_IB_TIMEOUT",
	"NBOX_IB_RETRY_CNT",
	"NBOX_IB_MTU",
	"NBOX_IB_QPS",
	"NBOX_IB_INLINE",
	"NBOX_IB_RING",
	"NBOX_IB_MEMORY",
	"NBOX_IB_POLL",
	"NBOX_SEED",
	"NBOX_OUT",
	"NBOX_DEBUG",
	"NBOX_POLL",
	"NBOX_PAYLOAD_WORK",
	"NBOX_PAYLOAD_MEMORY",
	"NBOX_SETTLE",
	"NBOX_TIMEOUT",
	/* of nbox, nboxd and the shim */
	"NBOX_CONFIG",
	"NBOX_DEBUG_FILE",
	"NBOX_NBOXD",
	"NBOX_MODEL_PATH",
	"NBOX_NCCL",
	"NBOX_DEVICE",
	"NBOX_FOOTPRINT",
	"NBOX_ASK_PYTHON",
	"NBOX_ENABLE",
	"NBOX_INIT_TIMEOUT",
	"NBOX_CONNECT_TIMEOUT",
	"NBOX_QUIET",
	/* of the stand-ins, emulator/standins */
	"NBOX_HOST_DEVICES",
	"NBOX_HOST_GPU_MEMORY",
	"NBOX_HOST_KERNEL_TIME",
	"NBOX_HOST_STUBS_LOG",
	/* of scripts */
	"NBOX_BUILD",
	"NBOX_TORCH_ENV",
	"NBOX_TORCH_PYTHON",
	"NBOX_TORCH_WHEELS",
	"NBOX_VM_CACHE",
	"NBOX_VM_ACCEL",
};

/* Of those that have no option. */
static const struct {
	const char *name;
	enum { TIME, COUNT, CHOICE } kind;
	const char *choices[4];
} values[] = {
	{"NBOX_INIT_TIMEOUT", TIME, {0}},        {"NBOX_CONNECT_TIMEOUT", TIME, {0}},
	{"NBOX_FOOTPRINT", COUNT, {0}},          {"NBOX_DEVICE", CHOICE, {"auto", "host", "cuda"}},
	{"NBOX_ASK_PYTHON", CHOICE, {"0", "1"}}, {"NBOX_ENABLE", CHOICE, {"0", "1"}},
	{"NBOX_QUIET", CHOICE, {"0", "1"}},
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
		if (!strncmp(entry, PREFIX, strlen(PREFIX)) && value[0] && value[1] &&
		    !variable_is_known(entry))
			return entry;
	}
	return NULL;
}

static int check_choice(const char *text, const char *const *choices, struct err *err)
{
	size_t i;

	for (i = 0; choices[i]; i++)
		if (strcmp(text, choices[i]) == 0)
			return 0;
	return err_set(err, EINVAL, "'%.64s' is none of %s%s%s%s%s", text, choices[0],
		       i > 2 ? ", " : " and ", choices[1], i > 2 ? ", " : "",
		       i > 2 ? choices[2] : "");
}

static int check_value(size_t i, const char *text, struct err *err)
{
	uint64_t n;
	double ns;
	int r = values[i].kind == TIME    ? units_time(text, &ns, err)
		: values[i].kind == COUNT ? units_count(text, &n, err)
					  : check_choice(text, values[i].choices, err);

	return r < 0 ? err_prefix(err, r, "%s", values[i].name) : 0;
}

int variable_check(char *const *environment, struct err *err)
{
	const char *unknown = variable_first_unknown(environment);
	char text[256];
	int r = 0;

	if (unknown)
		return err_set(err, EINVAL, "variable %s",
			       variable_unknown_text(unknown, text, sizeof(text)));
	for (; r == 0 && environment && *environment; environment++) {
		const char *entry = *environment, *value = entry + name_length(entry);

		for (size_t i = 0; r == 0 && value[0] && value[1] && i < ARRAY_SIZE(values); i++)
			if (strlen(values[i].name) == name_length(entry) &&
			    !memcmp(values[i].name, entry, name_length(entry)))
				r = check_value(i, value + 1, err);
	}
	return r;
}

char *variable_unknown_text(const char *entry, char *buf, size_t size)
{
	char name[64];
	const char *near;

	snprintf(name, sizeof(name), "%.*s", (int)name_length(entry), entry);
	near = suggest(name, names, ARRAY_SIZE(names));
	if (near)
		snprintf(buf, size, "%s is unknown; did you mean '%s'?", name, near);
	else
		snprintf(buf, size, "%s is unknown; nbox run --help lists the variables; unset it",
			 name);
	return buf;
}
