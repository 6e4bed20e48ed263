/* The options of a run, for nboxd and for `nbox run`: one table names each with
 * its flag, its NBOX_ variable, its place in the YAML cluster file, its kind and
 * its default. A value comes from a flag, else a variable, else the file, else the
 * default; where it came from is kept, so that every error says where to look:
 * FILE:LINE:COLUMN, --flag or NBOX_VARIABLE.
 *
 *   config_new() → config_file() → config_environment() → config_take()...
 *   (in any order) → config_finish() → read the fields → config_free()
 *
 * Values are kept as text until config_finish(), which converts them strictly and
 * refuses contradictions. libyaml is used for the structure of the file only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/options.h"
#include "config/classes.h"
#include "config/data-for.h"
#include "config/failure.h"
#include "config/link-change.h"
#include "config/resharding.h"
#include "config/value.h"
#include "fabric/fabric.h"
#include "links/rdma/options.h"
#include "members/split.h"
#include "scenario/expect.h"
#include "scenario/step-count.h"
#include "schedule/coll.h"
#include "topology/topology.h"
#include "wire/wire.h"

#define CONFIG_LAYOUTS_MAX 4
#define CONFIG_EXPECTS_MAX 32
#define CONFIG_NEEDS_STEPS \
	"'%.200s' is in steps, and nothing says what a step is: --steps ops=N,op=KIND; nbox report says what a former run's were"

enum config_payload_work { WORK_REDUCE, WORK_NONE };
enum config_payload_memory { MEMORY_AUTO, MEMORY_HOST, MEMORY_DEVICE };

struct config {
	struct config_value values[CONFIG_OPTIONS];
	char *file;     /* owned; name of the file that was read, or NULL */
	char *scenario; /* the same */
	bool is_of_run; /* @file is a former run's: a scenario takes the place of its what-ifs */

	/* Made by config_finish(). */
	struct topology topology;
	struct fabric *fabric; /* owned; NULL: none is given */
	uint32_t world;
	uint32_t as_node; /* the node that is real, without CONFIG_REAL */
	uint32_t *real;   /* owned, sorted */
	size_t n_real;
	struct layout layouts[CONFIG_LAYOUTS_MAX]; /* of the world, as declared */
	size_t n_layouts;
	struct classes classes;
	const char *model;     /* as typed; borrowed from values, as all texts below */
	const char *links;     /* what messages cost on their path; NULL: as the model has it */
	const char **what_ifs; /* owned list of borrowed texts, innermost first */
	size_t n_what_ifs;
	struct failure *failures; /* owned; what-ifs that are no delays */
	size_t n_failures;
	struct link_change *link_changes; /* owned */
	size_t n_link_changes;
	struct resharding *reshardings; /* owned */
	size_t n_reshardings;
	uint64_t *alltoall; /* owned; what each rank of n_alltoall sends to each; NULL: not given */
	uint32_t n_alltoall;
	struct step_rule steps; /* what a step is */
	struct expect *expects; /* owned; as the items of CONFIG_EXPECT */
	size_t n_expects;
	uint32_t exchange;         /* enum wire_exchange */
	uint32_t nccl;             /* enum wire_nccl */
	uint32_t traffic;          /* NCCL_FULL: enum wire_exchange of NCCL's own messages */
	uint32_t data;             /* enum wire_data */
	struct data_for *data_for; /* owned */
	size_t n_data_for;
	enum split_policy split;
	uint8_t algo[COLL_KINDS];  /* enum sched_algo */
	bool has_algo[COLL_KINDS]; /* not by default */
	uint32_t channels;
	uint64_t chunk_bytes;
	const char **addrs; /* owned list of borrowed texts: where nboxd listens */
	size_t n_addrs;
	char *default_addr;              /* owned; NULL: they were given */
	const char *addr;                /* the first: workers of `nbox run` use it */
	uint8_t token[WIRE_TOKEN_BYTES]; /* zero-padded; all zero: none */
	const char *store;               /* "host:port"; NULL: no TCPStore server */
	const char *metrics;             /* "host:port"; NULL: no metrics are served */
	bool metrics_needs_token;        /* other hosts can reach it */
	uint64_t seed;
	const char *out;   /* NULL: no results directory */
	char *net_devices; /* owned; NBOX_NET_DEVICES of a worker; NULL: not of NCCL_FULL */
	int log_level;     /* enum log_level */
	uint64_t poll_ns, settle_ns, timeout_ns;
	enum config_payload_work payload_work;
	enum config_payload_memory payload_memory;
	struct rdma_options rdma;
};

int config_new(struct config **ret); /* 0 or -ENOMEM; holds the defaults */
struct config *config_free(struct config *c);

/* Sets one option; a flag given again replaces the value, a list grows.
 * Return: 0; -ENOMEM. Conversion errors come from config_finish(). */
int config_set(struct config *c, enum option_id id, enum config_source source, const char *text);

/* Sets what the command line says. Return: 0; -EINVAL an option that is no list a second time;
 * -ENOMEM. */
int config_take(struct config *c, const struct option_word *w, struct err *err);

/* Takes the NBOX_ variables of @environment (as environ). Return: 0; -EINVAL with the
 * sentence: variable_check() refuses one (base/variables.h); -ENOMEM. */
int config_environment(struct config *c, char *const *environment, struct err *err);

/* Reads a cluster file; once. A fabric's file that it names is looked for from its folder. Every
 * error names file, line and column. */
int config_file(struct config *c, const char *path, struct err *err);
int config_parse(struct config *c, const char *name, const char *text, size_t n,
		 struct err *err); /* the same from memory; fuzzed */

/* Adds what the scenario file says to the options, and takes the option away: done by
 * config_finish(). */
int config_scenario(struct config *c, struct err *err);

/* The text of an option, or NULL. */
const char *config_text(const struct config *c, enum option_id id);

/* Converts and checks everything. Return: 0; -EINVAL with the sentence; -ENOMEM. */
int config_finish(struct config *c, struct err *err);

/* "cluster.yaml:3:9", "--nodes", "NBOX_NODES" or "default nodes". Return: @buf. */
char *config_where(const struct config *c, enum option_id id, size_t item, char *buf, size_t size);
/* Times with what-ifs and without may differ. */
static inline bool config_moves_times(const struct config *c)
{
	return c->n_what_ifs || c->n_link_changes || c->n_reshardings;
}
/* "ring + slow:rank=3 + fail:rank=17,time=30s": the model, its what-ifs as the chain has them, and
 * those that are no delays; cut where it is longer. Return: @buf. */
char *config_model(const struct config *c, char *buf, size_t size);
bool config_is_set(const struct config *c, enum option_id id); /* not by default */

#define CONFIG_ADDR_AUTO \
	"shm:@nbox-"          /* what the addresses that nbox chooses by itself begin with */
#define CONFIG_MARK "# nbox " /* what config_write() begins with */
/* Writes the effective configuration as a cluster file: a run with that file is the same run. A
 * remark behind each line says where its value came from. The token is left out. Return: 0; -EIO.
 */
int config_write(const struct config *c, FILE *f);
/* The same for the folder of a run, @dir, which gets a copy of the fabric's file: the run is
 * re-timed from anywhere, and wherever its folder goes. Return: 0; a negative errno. */
int config_write_run(const struct config *c, const char *dir, FILE *f);
/* The variables that a worker's libnbox.so needs, but for where nboxd and its store are: @set is
 * called for each. After config_finish(). Return: 0; what @set returned, if that is not 0. */
typedef int config_set_env(void *ctx, const char *name, const char *value);
int config_worker_env(const struct config *c, config_set_env *set, void *ctx);
/* The options part of @command's --help. @defaults: its values are shown as defaults; NULL: those
 * of the table. */
void config_help(enum command command, FILE *f, const struct config *defaults);
