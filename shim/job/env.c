/* See env.h. */
#include "shim/job/env.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "base/variables.h"
#include "shim/job/launcher.h"
#include "shim/job/raw-line.h"

#define INIT_DEFAULT_NS (600 * NS_PER_S)
#define CONNECT_DEFAULT_NS (30 * NS_PER_S)

extern char **environ;
static struct env the_env;

static const char *get(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

/* The world rank as torchrun, Open MPI, MPICH or Slurm pass it. */
static int read_rank(struct env *e)
{
	static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK",
					    "SLURM_PROCID"};
	uint64_t rank;
	struct err err;

	e->rank = -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = get(names[i]);

		if (!text)
			continue;
		if (units_count(text, &rank, &err) || rank > INT32_MAX)
			return err_set(&e->err, EINVAL, "%s=%s is not a rank", names[i], text);
		e->rank = (int)rank;
		return 0;
	}
	return 0;
}

/* The constructor found no worker here, so it rewrote nothing. */
static int refuse_lonely(struct env *e, const char *wanted)
{
	return err_set(
		&e->err, EINVAL,
		"%s asks for a virtual cluster, but RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and "
		"MASTER_PORT are not all set: start the job with torchrun or with 'nbox run'; NBOX_ENABLE=0 runs "
		"it without",
		wanted);
}

/* Says that the job runs without nbox: once a node, and not again after a restart. A user who has
 * set one of @of_cluster believes that there is a cluster. */
static void tell_unused(void)
{
	static const char *const of_cluster[] = {"NBOX_MODEL", "NBOX_WHAT_IF", "NBOX_GPUS_PER_NODE",
						 "NBOX_REAL",  "NBOX_AS_NODE", "NBOX_LAYOUT"};
	const struct launcher_place *p = launcher_place();
	const char *restarts = get("TORCHELASTIC_RESTART_COUNT");
	size_t i = 0;

	while (i < ARRAY_SIZE(of_cluster) && !get(of_cluster[i]))
		i++;
	if (p->source == LAUNCHER_NONE || p->local_rank || raw_line_is_quiet() ||
	    (restarts && strcmp(restarts, "0") != 0))
		return;
	log_warn("%s %s: the job runs without nbox. Write " RAW_LINE_FILE
		 " here (cluster: {nodes: 64}), or set "
		 "NBOX_CONFIG or NBOX_NODES; NBOX_QUIET=1 or NBOX_ENABLE=0 silences this",
		 i < ARRAY_SIZE(of_cluster) ? of_cluster[i] : "libnbox.so",
		 i < ARRAY_SIZE(of_cluster) ? "is set, but nothing says how many nodes there are"
					    : "is loaded, but no virtual cluster is described");
}

/* @words: "auto, host, device". *ret: the number of the word; stays where the variable is not set.
 */
static int read_word(struct env *e, const char *name, const char *words, int *ret)
{
	const char *text = get(name);
	size_t len = text ? strlen(text) : 0;
	int i = 0;

	for (const char *w = words; text; w += strcspn(w, " ") + 1, i++) {
		size_t n = strcspn(w, ",");

		if (n == len && !memcmp(w, text, n)) {
			*ret = i;
			return 0;
		}
		if (!w[n])
			return err_set(&e->err, EINVAL, "%s=%s: one of %s", name, text, words);
	}
	return 0;
}

/* *ret_ns stays as it is where the variable is not set. */
static int read_time(struct env *e, const char *name, uint64_t *ret_ns)
{
	const char *text = get(name);
	double ns;
	int r = text ? units_time(text, &ns, &e->err) : 0;

	if (r)
		return err_prefix(&e->err, r, "%s", name);
	if (text && !(ns > 0 && ns < 1e18))
		return err_set(&e->err, EINVAL, "%s=%s: out of range", name, text);
	if (text)
		*ret_ns = (uint64_t)ns;
	return 0;
}

/* nbox and nboxd refuse an unknown variable. A running job only gets a warning, from the first
 * worker of each node. */
static void warn_unknown(void)
{
	const char *unknown = variable_first_unknown(environ), *local_rank = get("LOCAL_RANK");
	char text[256];

	if (unknown && (!local_rank || !strcmp(local_rank, "0")))
		log_warn("variable %s", variable_unknown_text(unknown, text, sizeof(text)));
}

static int parse(struct env *e)
{
	const char *enable = get("NBOX_ENABLE"), *token = get("NBOX_TOKEN");
	bool is_off = enable && !strcmp(enable, "0");
	const char *wanted = is_off ? NULL : raw_line_wanted();
	int no_work = 0, ask = 1, full = 0, memory = PAYLOAD_AUTO, r = launcher_problem(&e->err);

	e->addr = get("NBOX_ADDR");
	e->is_virtual = !is_off && (e->addr || wanted || r);
	e->timeout_ns = INIT_DEFAULT_NS;
	e->connect_ns = CONNECT_DEFAULT_NS;
	e->payload_work = e->ask_python = true;
	if (!is_off) /* a misspelt variable asks for nothing, though the user thinks that it does */
		warn_unknown();
	if (!e->is_virtual && !is_off)
		tell_unused();
	if (!e->is_virtual || r)
		return r;
	if (!e->addr)
		return refuse_lonely(e, wanted);
	if (token && strlen(token) > WIRE_TOKEN_BYTES)
		return err_set(&e->err, EINVAL, "NBOX_TOKEN is longer than %d characters",
			       WIRE_TOKEN_BYTES);
	if (token)
		memcpy(e->token, token, strlen(token));
	r = read_time(e, "NBOX_INIT_TIMEOUT", &e->timeout_ns);
	r = r ? r : read_time(e, "NBOX_CONNECT_TIMEOUT", &e->connect_ns);
	r = r ? r : read_word(e, "NBOX_PAYLOAD_WORK", "reduce, none", &no_work);
	r = r ? r : read_word(e, "NBOX_ASK_PYTHON", "0, 1", &ask);
	r = r ? r : read_word(e, "NBOX_NCCL_MODE", "gate, full", &full);
	r = r ? r : read_word(e, "NBOX_PAYLOAD_MEMORY", "auto, host, device", &memory);
	if (r)
		return r;
	e->payload_work = !no_work;
	e->ask_python = ask;
	e->is_full = full;
	e->payload_memory = (enum payload_memory)memory;
	return read_rank(e);
}

static void read_all(void)
{
	log_open();
	the_env.error = parse(&the_env);
	log_set_rank(the_env.is_virtual ? the_env.rank : -1);
}

const struct env *env_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	return &the_env;
}
