/* See launch-options.h. The options are those that the launchers document: torch.distributed.run
 * up to 2.11, accelerate 1.x, DeepSpeed's runner, srun(1), mpirun(1) of Open MPI and mpiexec of
 * Hydra. Of an option that is not in the tables nothing is known but that it stays. */
#include "nbox/run/launcher-options.h"

#include <string.h>

#include "base/cleanup.h"

enum arity { FLAG, VALUE, TWO };

struct option {
	const char *name; /* without dashes; '_' and '-' are the same */
	enum launch_class class;
	enum arity arity;
};

static const struct option torchrun_options[] = {
	{"nnodes", LAUNCH_NODES, VALUE},
	{"nproc-per-node", LAUNCH_PROCS, VALUE},
	{"node-rank", LAUNCH_RANK, VALUE},
	{"rdzv-endpoint", LAUNCH_ADDR, VALUE},
	{"master-addr", LAUNCH_ADDR, VALUE},
	{"local-addr", LAUNCH_ADDR, VALUE},
	{"rdzv-backend", LAUNCH_RDZV, VALUE},
	{"rdzv-id", LAUNCH_RDZV, VALUE},
	{"rdzv-conf", LAUNCH_RDZV, VALUE},
	{"master-port", LAUNCH_RDZV, VALUE},
	{"standalone", LAUNCH_STANDALONE, FLAG},
	{"max-restarts", LAUNCH_KEEP, VALUE},
	{"monitor-interval", LAUNCH_KEEP, VALUE},
	{"start-method", LAUNCH_KEEP, VALUE},
	{"event-log-handler", LAUNCH_KEEP, VALUE},
	{"role", LAUNCH_KEEP, VALUE},
	{"log-dir", LAUNCH_KEEP, VALUE},
	{"redirects", LAUNCH_KEEP, VALUE},
	{"r", LAUNCH_KEEP, VALUE},
	{"tee", LAUNCH_KEEP, VALUE},
	{"t", LAUNCH_KEEP, VALUE},
	{"local-ranks-filter", LAUNCH_KEEP, VALUE},
	{"duplicate-stdout-filters", LAUNCH_KEEP, VALUE},
	{"duplicate-stderr-filters", LAUNCH_KEEP, VALUE},
	{"logs-specs", LAUNCH_KEEP, VALUE},
	{"numa-binding", LAUNCH_KEEP, VALUE},
	{"signals-to-handle", LAUNCH_KEEP, VALUE},
	{"module", LAUNCH_KEEP, FLAG},
	{"m", LAUNCH_KEEP, FLAG},
	{"no-python", LAUNCH_KEEP, FLAG},
	{"run-path", LAUNCH_KEEP, FLAG},
	{"virtual-local-rank", LAUNCH_KEEP, FLAG},
	{"use-env", LAUNCH_KEEP, FLAG},
	{"help", LAUNCH_KEEP, FLAG},
	{NULL, LAUNCH_KEEP, FLAG},
};
static const struct option accelerate_options[] = {
	{"num-machines", LAUNCH_NODES, VALUE},
	{"num-processes", LAUNCH_TOTAL, VALUE},
	{"machine-rank", LAUNCH_RANK, VALUE},
	{"main-process-ip", LAUNCH_ADDR, VALUE},
	{"deepspeed-hostfile", LAUNCH_ADDR, VALUE},
	{"main-process-port", LAUNCH_RDZV, VALUE},
	{"rdzv-backend", LAUNCH_RDZV, VALUE},
	{"rdzv-conf", LAUNCH_RDZV, VALUE},
	{"deepspeed-multinode-launcher", LAUNCH_RDZV, VALUE},
	{"same-network", LAUNCH_RDZV, FLAG},
	{"multi-gpu", LAUNCH_KEEP, FLAG},
	{"cpu", LAUNCH_KEEP, FLAG},
	{"tpu", LAUNCH_KEEP, FLAG},
	{"mps", LAUNCH_KEEP, FLAG},
	{"use-deepspeed", LAUNCH_KEEP, FLAG},
	{"use-fsdp", LAUNCH_KEEP, FLAG},
	{"use-megatron-lm", LAUNCH_KEEP, FLAG},
	{"use-xpu", LAUNCH_KEEP, FLAG},
	{"quiet", LAUNCH_KEEP, FLAG},
	{"q", LAUNCH_KEEP, FLAG},
	{"module", LAUNCH_KEEP, FLAG},
	{"m", LAUNCH_KEEP, FLAG},
	{"no-python", LAUNCH_KEEP, FLAG},
	{"debug", LAUNCH_KEEP, FLAG},
	{"enable-cpu-affinity", LAUNCH_KEEP, FLAG},
	{"standalone", LAUNCH_STANDALONE, FLAG},
	{"h", LAUNCH_KEEP, FLAG},
	{"help", LAUNCH_KEEP, FLAG},
	{NULL, LAUNCH_KEEP, FLAG},
};
static const struct option deepspeed_options[] = {
	{"num-nodes", LAUNCH_NODES, VALUE},
	{"num-gpus", LAUNCH_PROCS, VALUE},
	{"node-rank", LAUNCH_RANK, VALUE},
	{"hostfile", LAUNCH_HOSTFILE, VALUE},
	{"H", LAUNCH_HOSTFILE, VALUE},
	{"master-addr", LAUNCH_ADDR, VALUE},
	{"include", LAUNCH_SLOTS, VALUE},
	{"i", LAUNCH_SLOTS, VALUE},
	{"num-accelerators", LAUNCH_PROCS, VALUE},
	{"exclude", LAUNCH_ADDR, VALUE},
	{"e", LAUNCH_ADDR, VALUE},
	{"launcher", LAUNCH_RDZV, VALUE},
	{"launcher-args", LAUNCH_RDZV, VALUE},
	{"no-ssh", LAUNCH_RDZV, FLAG},
	{"no-ssh-check", LAUNCH_RDZV, FLAG},
	{"force-multi", LAUNCH_RDZV, FLAG},
	{"ssh-port", LAUNCH_RDZV, VALUE},
	{"master-port", LAUNCH_RDZV, VALUE},
	{"save-pid", LAUNCH_KEEP, FLAG},
	{"enable-each-rank-log", LAUNCH_KEEP, VALUE},
	{"autotuning", LAUNCH_KEEP, VALUE},
	{"module", LAUNCH_KEEP, FLAG},
	{"no-python", LAUNCH_KEEP, FLAG},
	{"no-local-rank", LAUNCH_KEEP, FLAG},
	{"bind-cores-to-rank", LAUNCH_KEEP, FLAG},
	{"bind-core-list", LAUNCH_KEEP, VALUE},
	{"venv-script", LAUNCH_KEEP, VALUE},
	{"elastic-training", LAUNCH_KEEP, FLAG},
	{"min-elastic-nodes", LAUNCH_KEEP, VALUE},
	{"max-elastic-nodes", LAUNCH_KEEP, VALUE},
	{"help", LAUNCH_KEEP, FLAG},
	{NULL, LAUNCH_KEEP, FLAG},
};
static const struct option srun_options[] = {
	/* all others take a value */
	{"nodes", LAUNCH_NODES, VALUE},
	{"N", LAUNCH_NODES, VALUE},
	{"ntasks", LAUNCH_TOTAL, VALUE},
	{"n", LAUNCH_TOTAL, VALUE},
	{"ntasks-per-node", LAUNCH_PROCS, VALUE},
	{"nodelist", LAUNCH_ADDR, VALUE},
	{"w", LAUNCH_ADDR, VALUE},
	{"exclude", LAUNCH_ADDR, VALUE},
	{"x", LAUNCH_ADDR, VALUE},
	{"nodefile", LAUNCH_ADDR, VALUE},
	{"F", LAUNCH_ADDR, VALUE},
	{"relative", LAUNCH_RDZV, VALUE},
	{"r", LAUNCH_RDZV, VALUE},
	{"distribution", LAUNCH_RDZV, VALUE},
	{"m", LAUNCH_RDZV, VALUE},
	{"label", LAUNCH_KEEP, FLAG},
	{"l", LAUNCH_KEEP, FLAG},
	{"unbuffered", LAUNCH_KEEP, FLAG},
	{"u", LAUNCH_KEEP, FLAG},
	{"verbose", LAUNCH_KEEP, FLAG},
	{"v", LAUNCH_KEEP, FLAG},
	{"quiet", LAUNCH_KEEP, FLAG},
	{"Q", LAUNCH_KEEP, FLAG},
	{"exclusive", LAUNCH_KEEP, FLAG},
	{"overlap", LAUNCH_KEEP, FLAG},
	{"exact", LAUNCH_KEEP, FLAG},
	{"pty", LAUNCH_KEEP, FLAG},
	{"overcommit", LAUNCH_KEEP, FLAG},
	{"O", LAUNCH_KEEP, FLAG},
	{"oversubscribe", LAUNCH_KEEP, FLAG},
	{"s", LAUNCH_KEEP, FLAG},
	{"no-kill", LAUNCH_KEEP, FLAG},
	{"k", LAUNCH_KEEP, FLAG},
	{"kill-on-bad-exit", LAUNCH_KEEP, FLAG},
	{"K", LAUNCH_KEEP, FLAG},
	{"immediate", LAUNCH_KEEP, FLAG},
	{"I", LAUNCH_KEEP, FLAG},
	{"disable-status", LAUNCH_KEEP, FLAG},
	{"X", LAUNCH_KEEP, FLAG},
	{"preserve-env", LAUNCH_KEEP, FLAG},
	{"E", LAUNCH_KEEP, FLAG},
	{"contiguous", LAUNCH_KEEP, FLAG},
	{"reboot", LAUNCH_KEEP, FLAG},
	{"multi-prog", LAUNCH_KEEP, FLAG},
	{"help", LAUNCH_KEEP, FLAG},
	{"h", LAUNCH_KEEP, FLAG},
	{"version", LAUNCH_KEEP, FLAG},
	{"V", LAUNCH_KEEP, FLAG},
	{NULL, LAUNCH_KEEP, FLAG},
};
static const struct option mpirun_options[] = {
	{"np", LAUNCH_TOTAL, VALUE},
	{"n", LAUNCH_TOTAL, VALUE},
	{"c", LAUNCH_TOTAL, VALUE},
	{"npernode", LAUNCH_PROCS, VALUE},
	{"N", LAUNCH_PROCS, VALUE},
	{"ppn", LAUNCH_PROCS, VALUE},
	{"perhost", LAUNCH_PROCS, VALUE},
	{"host", LAUNCH_HOSTS, VALUE},
	{"H", LAUNCH_HOSTS, VALUE},
	{"hosts", LAUNCH_HOSTS, VALUE},
	{"hostfile", LAUNCH_HOSTFILE, VALUE},
	{"machinefile", LAUNCH_HOSTFILE, VALUE},
	{"f", LAUNCH_HOSTFILE, VALUE},
	{"map-by", LAUNCH_MAP, VALUE},
	{"x", LAUNCH_KEEP, VALUE},
	{"mca", LAUNCH_KEEP, TWO},
	{"gmca", LAUNCH_KEEP, TWO},
	{"prtemca", LAUNCH_KEEP, TWO},
	{"pmixmca", LAUNCH_KEEP, TWO},
	{"env", LAUNCH_KEEP, TWO},
	{"genv", LAUNCH_KEEP, TWO},
	{"genvlist", LAUNCH_KEEP, VALUE},
	{"envlist", LAUNCH_KEEP, VALUE},
	{"wdir", LAUNCH_KEEP, VALUE},
	{"wd", LAUNCH_KEEP, VALUE},
	{"bind-to", LAUNCH_KEEP, VALUE},
	{"rank-by", LAUNCH_KEEP, VALUE},
	{"prefix", LAUNCH_KEEP, VALUE},
	{"output", LAUNCH_KEEP, VALUE},
	{"timeout", LAUNCH_KEEP, VALUE},
	{"path", LAUNCH_KEEP, VALUE},
	{"launcher", LAUNCH_RDZV, VALUE},
	{"iface", LAUNCH_RDZV, VALUE},
	{NULL, LAUNCH_KEEP, FLAG},
};

static const struct launcher {
	enum launch_kind kind;
	const char *program, *program2;
	const char *module, *module2; /* python -m */
	const struct option *options;
} launchers[] = {
	{LAUNCH_TORCHRUN, "torchrun", "torchrun", "torch.distributed.run",
	 "torch.distributed.launch", torchrun_options},
	{LAUNCH_ACCELERATE, "accelerate", "accelerate", "accelerate.commands.launch",
	 "accelerate.commands.accelerate_cli", accelerate_options},
	{LAUNCH_DEEPSPEED, "deepspeed", "ds", "deepspeed", "deepspeed.launcher.runner",
	 deepspeed_options},
	{LAUNCH_SRUN, "srun", "srun", "", "", srun_options},
	{LAUNCH_MPIRUN, "mpirun", "mpiexec", "", "", mpirun_options},
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* --- which launcher, and where its options begin ---------------------------------- */

static const struct launcher *by_program(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++)
		if (strcmp(base_name(word), launchers[i].program) == 0 ||
		    strcmp(base_name(word), launchers[i].program2) == 0)
			return &launchers[i];
	return NULL;
}

static const struct launcher *by_module(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++)
		if (strcmp(word, launchers[i].module) == 0 ||
		    strcmp(word, launchers[i].module2) == 0)
			return &launchers[i];
	return NULL;
}

/* `env A=1 torchrun`, `numactl -N 0 torchrun`, `nsys profile -o x torchrun`: the first word that is
 * a launcher or python. 0: words[0] is what is run. */
static size_t skip_wrapper(char *const *words)
{
	static const char *const wrappers[] = {"env",    "numactl", "taskset", "nice",
					       "ionice", "chrt",    "time",    "timeout",
					       "stdbuf", "setsid",  "nsys",    "ncu",
					       "uv",     "conda",   "mamba",   "micromamba",
					       "pixi",   "poetry",  "pipenv"};
	bool is_wrapper = false;

	for (size_t i = 0; i < ARRAY_SIZE(wrappers); i++)
		is_wrapper |= strcmp(base_name(words[0]), wrappers[i]) == 0;
	for (size_t i = 1; is_wrapper && words[i]; i++)
		if (!strchr(words[i], '=') &&
		    (by_program(words[i]) || strncmp(base_name(words[i]), "python", 6) == 0))
			return i;
	return 0;
}

const struct launcher *launcher_find(char *const *words, size_t *ret_at)
{
	const struct launcher *l;
	size_t i = 0;

	i = skip_wrapper(words);
	l = by_program(words[i]);
	if (!l && strncmp(base_name(words[i]), "python", 6) == 0) {
		for (i++; words[i] && words[i][0] == '-' && strcmp(words[i], "-m") != 0; i++)
			if ((strcmp(words[i], "-W") == 0 || strcmp(words[i], "-X") == 0) &&
			    words[i + 1])
				i++;
		if (words[i] && strcmp(words[i], "-m") == 0)
			i++;
		if (!words[i])
			return NULL;
		l = strcmp(words[i - 1], "-m") == 0 ? by_module(words[i]) : by_program(words[i]);
	}
	if (!l)
		return NULL;
	i++;
	/* `accelerate test` and the like start nothing */
	if (l->kind == LAUNCH_ACCELERATE && strcmp(words[i - 1], launchers[1].module) != 0) {
		if (!words[i] || strcmp(words[i], "launch") != 0)
			return NULL;
		i++;
	}
	*ret_at = i;
	return l;
}

/* --- one option ------------------------------------------------------------------------ */

static bool same_name(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i]))
			return false;
	return true;
}

/* The exact name; for argparse also an abbreviation that fits one option only. */
static const struct option *find_option(const struct launcher *l, const char *name, size_t len,
					bool is_long)
{
	const struct option *only = NULL;
	unsigned int n = 0;

	for (const struct option *o = l->options; o->name; o++) {
		size_t full = strlen(o->name);

		if (full == len && same_name(o->name, name, len))
			return o;
		if (is_long && len > 2 && full > len && same_name(o->name, name, len)) {
			only = o;
			n++;
		}
	}
	return n == 1 && l->kind != LAUNCH_MPIRUN ? only : NULL;
}

static bool looks_like_script(const char *word)
{
	size_t len = strlen(word);

	return (len > 3 && strcmp(word + len - 3, ".py") == 0) ||
	       (len > 3 && strcmp(word + len - 3, ".sh") == 0);
}

bool launcher_take(const struct launcher *l, char *const *words, struct launch_found *ret)
{
	const char *word = words[0], *name, *eq;
	const struct option *o;
	enum arity arity;
	bool is_long;
	size_t len;

	if (word[0] != '-' || !word[1])
		return false;
	*ret = (struct launch_found){LAUNCH_KEEP, NULL, 1};
	is_long = word[1] == '-';
	name = word + 1 + is_long;
	eq = strchr(name, '=');
	len = eq ? (size_t)(eq - name) : strlen(name);
	if (!len)
		return false; /* "--" */
	/* -N64 */
	if (!is_long && l->kind == LAUNCH_SRUN && len > 1) {
		o = find_option(l, name, 1, false);
		ret->class = o ? o->class : LAUNCH_KEEP;
		ret->value = !o || o->arity == VALUE ? name + 1 : NULL;
		return true;
	}
	o = find_option(l, name, len, is_long);
	ret->class = o ? o->class : LAUNCH_KEEP;
	if (eq) {
		ret->value = eq + 1;
		return true;
	}
	if (o)
		arity = o->arity;
	else if (l->kind == LAUNCH_SRUN)
		arity = VALUE;
	else if (l->kind == LAUNCH_MPIRUN)
		arity = FLAG;
	else /* an option of a version that we do not know */
		arity = words[1] && words[1][0] != '-' && !looks_like_script(words[1]) ? VALUE
										       : FLAG;
	for (int i = 0; i < (int)arity && words[ret->n_words]; i++) {
		if (i == 0)
			ret->value = words[ret->n_words];
		ret->n_words++;
	}
	return true;
}

enum launch_kind launcher_kind(const struct launcher *l)
{
	return l->kind;
}

const char *launcher_name(const struct launcher *l)
{
	return l->program;
}
