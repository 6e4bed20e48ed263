/* The table of options: of each its flag, its variable, its key in the cluster file, its kind and
 * its default. */
#pragma once

#include <stdbool.h>

enum config_id {
	CONFIG_NODES,
	CONFIG_GPUS_PER_NODE,
	CONFIG_WORLD,
	CONFIG_REAL,
	CONFIG_AS_NODE,
	CONFIG_INTRA_LATENCY,
	CONFIG_INTRA_BANDWIDTH,
	CONFIG_INTER_LATENCY,
	CONFIG_INTER_BANDWIDTH,
	CONFIG_LAYOUT,
	CONFIG_MODEL,
	CONFIG_WHAT_IF,
	CONFIG_EXCHANGE,
	CONFIG_DATA,
	CONFIG_DATA_FOR,
	CONFIG_SPLIT,
	CONFIG_ALGO,
	CONFIG_CHANNELS,
	CONFIG_CHUNK,
	CONFIG_LINK,
	CONFIG_ADDR,
	CONFIG_TOKEN,
	CONFIG_IB_HCA,
	CONFIG_IB_PORT,
	CONFIG_IB_GID_INDEX,
	CONFIG_IB_TC,
	CONFIG_IB_TIMEOUT,
	CONFIG_IB_RETRY_CNT,
	CONFIG_IB_MTU,
	CONFIG_IB_QPS,
	CONFIG_IB_INLINE,
	CONFIG_IB_RING,
	CONFIG_IB_MEMORY,
	CONFIG_IB_POLL, /* links/rdma/options.c checks */
	CONFIG_STORE,   /* keys of one group stand together: config_write() */
	CONFIG_SEED,
	CONFIG_OUT,
	CONFIG_LOG,
	CONFIG_POLL,
	CONFIG_PAYLOAD_WORK,
	CONFIG_PAYLOAD_MEMORY,
	CONFIG_SETTLE,
	CONFIG_TIMEOUT,
	CONFIG_OPTIONS
};

enum config_kind {
	KIND_COUNT,
	KIND_SEED,
	KIND_TIME,
	KIND_BYTES,
	KIND_BANDWIDTH,
	KIND_RANKS,
	KIND_TEXT,
	KIND_CHOICE,
	KIND_LIST, /* YAML: a list; flag: repeated; variable: separated by ';' */
	KIND_MAP,  /* a list of KEY=VALUE; YAML: a mapping */
};

struct config_option {
	const char *name;     /* flag without its dashes */
	const char *variable; /* NBOX_... */
	const char *key;      /* place in the YAML file, dots between levels */
	enum config_kind kind;
	const char *default_text; /* NULL: none, or derived; help says what from */
	const char *arg;          /* as shown in the help */
	const char *help;
	const char *const *choices; /* KIND_CHOICE, ends with NULL */
};
extern const struct config_option config_options[CONFIG_OPTIONS]; /* by enum config_id */

/* LIST or MAP: it may be given several times. */
bool option_is_list(enum config_id id);
