/* See launcher-options.h. The options are those that the launchers document: torch.distributed.run
 * up to 2.11, accelerate 1.x, DeepSpeed's runner, srun(1), mpirun(1) of Open MPI and mpiexec of
 * Hydra. Of an option that is not in the tables nothing is known but that it stays. */
#include "nbox/run/launcher-options.h"

#include <string.h>

#include "base/cleanup.h"

enum arity { FLAG, VALUE, TWO };

struct option {
	const char *name; /* without dashes; '_' and '-' are the same */
	enum launcher_class class;
	enum arity arity;
};

static const struct option torchrun_options[] = {
	{"nnodes", LAUNCHER_NODES, VALUE},
	{"nproc-per-node", LAUNCHER_PROCS, VALUE},
	{"node-rank", LAUNCHER_RANK, VALUE},
	{"rdzv-endpoint", LAUNCHER_ADDR, VALUE},
	{"master-addr", LAUNCHER_ADDR, VALUE},
	{"local-addr", LAUNCHER_ADDR, VALUE},
	{"rdzv-backend", LAUNCHER_RDZV, VALUE},
	{"rdzv-id", LAUNCHER_RDZV, VALUE},
	{"rdzv-conf", LAUNCHER_RDZV, VALUE},
	{"master-port", LAUNCHER_RDZV, VALUE},
	{"standalone", LAUNCHER_STANDALONE, FLAG},
	{"max-restarts", LAUNCHER_KEEP, VALUE},
	{"monitor-interval", LAUNCHER_KEEP, VALUE},
	{"start-method", LAUNCHER_KEEP, VALUE},
	{"event-log-handler", LAUNCHER_KEEP, VALUE},
	{"role", LAUNCHER_KEEP, VALUE},
	{"log-dir", LAUNCHER_KEEP, VALUE},
	{"redirects", LAUNCHER_KEEP, VALUE},
	{"r", LAUNCHER_KEEP, VALUE},
	{"tee", LAUNCHER_KEEP, VALUE},
	{"t", LAUNCHER_KEEP, VALUE},
	{"local-ranks-filter", LAUNCHER_KEEP, VALUE},
	{"duplicate-stdout-filters", LAUNCHER_KEEP, VALUE},
	{"duplicate-stderr-filters", LAUNCHER_KEEP, VALUE},
	{"logs-specs", LAUNCHER_KEEP, VALUE},
	{"numa-binding", LAUNCHER_KEEP, VALUE},
	{"signals-to-handle", LAUNCHER_KEEP, VALUE},
	{"module", LAUNCHER_KEEP, FLAG},
	{"m", LAUNCHER_KEEP, FLAG},
	{"no-python", LAUNCHER_KEEP, FLAG},
	{"run-path", LAUNCHER_KEEP, FLAG},
	{"virtual-local-rank", LAUNCHER_KEEP, FLAG},
	{"use-env", LAUNCHER_KEEP, FLAG},
	{"help", LAUNCHER_KEEP, FLAG},
	{NULL, LAUNCHER_KEEP, FLAG},
};
static const struct option accelerate_options[] = {
	{"num-machines", LAUNCHER_NODES, VALUE},
	{"num-processes", LAUNCHER_TOTAL, VALUE},
	{"machine-rank", LAUNCHER_RANK, VALUE},
	{"main-process-ip", LAUNCHER_ADDR, VALUE},
	{"deepspeed-hostfile", LAUNCHER_ADDR, VALUE},
	{"main-process-port", LAUNCHER_RDZV, VALUE},
	{"rdzv-backend", LAUNCHER_RDZV, VALUE},
	{"rdzv-conf", LAUNCHER_RDZV, VALUE},
	{"deepspeed-multinode-launcher", LAUNCHER_RDZV, VALUE},
	{"same-network", LAUNCHER_RDZV, FLAG},
	{"multi-gpu", LAUNCHER_KEEP, FLAG},
	{"cpu", LAUNCHER_KEEP, FLAG},
	{"tpu", LAUNCHER_KEEP, FLAG},
	{"mps", LAUNCHER_KEEP, FLAG},
	{"use-deepspeed", LAUNCHER_KEEP, FLAG},
	{"use-fsdp", LAUNCHER_KEEP, FLAG},
	{"use-megatron-lm", LAUNCHER_KEEP, FLAG},
	{"use-xpu", LAUNCHER_KEEP, FLAG},
	{"quiet", LAUNCHER_KEEP, FLAG},
	{"q", LAUNCHER_KEEP, FLAG},
	{"module", LAUNCHER_KEEP, FLAG},
	{"m", LAUNCHER_KEEP, FLAG},
	{"no-python", LAUNCHER_KEEP, FLAG},
	{"debug", LAUNCHER_KEEP, FLAG},
	{"enable-cpu-affinity", LAUNCHER_KEEP, FLAG},
	{"standalone", LAUNCHER_STANDALONE, FLAG},
	{"h", LAUNCHER_KEEP, FLAG},
	{"help", LAUNCHER_KEEP, FLAG},
	{NULL, LAUNCHER_KEEP, FLAG},
};
static const struct option deepspeed_options[] = {
	{"num-nodes", LAUNCHER_NODES, VALUE},
	{"num-gpus", LAUNCHER_PROCS, VALUE},
	{"node-rank", LAUNCHER_RANK, VALUE},
	{"hostfile", LAUNCHER_HOSTFILE, VALUE},
	{"H", LAUNCHER_HOSTFILE, VALUE},
	{"master-addr", LAUNCHER_ADDR, VALUE},
	{"include", LAUNCHER_SLOTS, VALUE},
	{"i", LAUNCHER_SLOTS, VALUE},
	{"num-accelerators", LAUNCHER_PROCS, VALUE},
	{"exclude", LAUNCHER_ADDR, VALUE},
	{"e", LAUNCHER_ADDR, VALUE},
	{"launcher", LAUNCHER_RDZV, VALUE},
	{"launcher-args", LAUNCHER_RDZV, VALUE},
	{"no-ssh", LAUNCHER_RDZV, FLAG},
	{"no-ssh-check", LAUNCHER_RDZV, FLAG},
	{"force-multi", LAUNCHER_RDZV, FLAG},
	{"ssh-port", LAUNCHER_RDZV, VALUE},
	{"master-port", LAUNCHER_RDZV, VALUE},
	{"save-pid", LAUNCHER_KEEP, FLAG},
	{"enable-each-rank-log", LAUNCHER_KEEP, VALUE},
	{"autotuning", LAUNCHER_KEEP, VALUE},
	{"module", LAUNCHER_KEEP, FLAG},
	{"no-python", LAUNCHER_KEEP, FLAG},
	{"no-local-rank", LAUNCHER_KEEP, FLAG},
	{"bind-cores-to-rank", LAUNCHER_KEEP, FLAG},
	{"bind-core-list", LAUNCHER_KEEP, VALUE},
	{"venv-script", LAUNCHER_KEEP, VALUE},
	{"elastic-training", LAUNCHER_KEEP, FLAG},
	{"min-elastic-nodes", LAUNCHER_KEEP, VALUE},
	{"max-elastic-nodes", LAUNCHER_KEEP, VALUE},
	{"help", LAUNCHER_KEEP, FLAG},
	{NULL, LAUNCHER_KEEP, FLAG},
};
static const struct option srun_options[] = {
	/* all others take a value */
	{"nodes", LAUNCHER_NODES, VALUE},
	{"N", LAUNCHER_NODES, VALUE},
	{"ntasks", LAUNCHER_TOTAL, VALUE},
	{"n", LAUNCHER_TOTAL, VALUE},
	{"ntasks-per-node", LAUNCHER_PROCS, VALUE},
	{"nodelist", LAUNCHER_ADDR, VALUE},
	{"w", LAUNCHER_ADDR, VALUE},
	{"exclude", LAUNCHER_ADDR, VALUE},
	{"x", LAUNCHER_ADDR, VALUE},
	{"nodefile", LAUNCHER_ADDR, VALUE},
	{"F", LAUNCHER_ADDR, VALUE},
	{"relative", LAUNCHER_RDZV, VALUE},
	{"r", LAUNCHER_RDZV, VALUE},
	{"distribution", LAUNCHER_RDZV, VALUE},
	{"m", LAUNCHER_RDZV, VALUE},
	{"label", LAUNCHER_KEEP, FLAG},
	{"l", LAUNCHER_KEEP, FLAG},
	{"unbuffered", LAUNCHER_KEEP, FLAG},
	{"u", LAUNCHER_KEEP, FLAG},
	{"verbose", LAUNCHER_KEEP, FLAG},
	{"v", LAUNCHER_KEEP, FLAG},
	{"quiet", LAUNCHER_KEEP, FLAG},
	{"Q", LAUNCHER_KEEP, FLAG},
	{"exclusive", LAUNCHER_KEEP, FLAG},
	{"overlap", LAUNCHER_KEEP, FLAG},
	{"exact", LAUNCHER_KEEP, FLAG},
	{"pty", LAUNCHER_KEEP, FLAG},
	{"overcommit", LAUNCHER_KEEP, FLAG},
	{"O", LAUNCHER_KEEP, FLAG},
	{"oversubscribe", LAUNCHER_KEEP, FLAG},
	{"s", LAUNCHER_KEEP, FLAG},
	{"no-kill", LAUNCHER_KEEP, FLAG},
	{"k", LAUNCHER_KEEP, FLAG},
	{"kill-on-bad-exit", LAUNCHER_KEEP, FLAG},
	{"K", LAUNCHER_KEEP, FLAG},
	{"immediate", LAUNCHER_KEEP, FLAG},
	{"I", LAUNCHER_KEEP, FLAG},
	{"disable-status", LAUNCHER_KEEP, FLAG},
	{"X", LAUNCHER_KEEP, FLAG},
	{"preserve-env", LAUNCHER_KEEP, FLAG},
	{"E", LAUNCHER_KEEP, FLAG},
	{"contiguous", LAUNCHER_KEEP, FLAG},
	{"reboot", LAUNCHER_KEEP, FLAG},
	{"multi-prog", LAUNCHER_KEEP, FLAG},
	{"help", LAUNCHER_KEEP, FLAG},
	{"h", LAUNCHER_KEEP, FLAG},
	{"version", LAUNCHER_KEEP, FLAG},
	{"V", LAUNCHER_KEEP, FLAG},
	{NULL, LAUNCHER_KEEP, FLAG},
};
static const struct option mpirun_options[] = {
	{"np", LAUNCHER_TOTAL, VALUE},
	{"n", LAUNCHER_TOTAL, VALUE},
	{"c", LAUNCHER_TOTAL, VALUE},
	{"npernode", LAUNCHER_PROCS, VALUE},
	{"N", LAUNCHER_PROCS, VALUE},
	{"ppn", LAUNCHER_PROCS, VALUE},
	{"perhost", LAUNCHER_PROCS, VALUE},
	{"host", LAUNCHER_HOSTS, VALUE},
	{"H", LAUNCHER_HOSTS, VALUE},
	{"hosts", LAUNCHER_HOSTS, VALUE},
	{"hostfile", LAUNCHER_HOSTFILE, VALUE},
	{"machinefile", LAUNCHER_HOSTFILE, VALUE},
	{"f", LAUNCHER_HOSTFILE, VALUE},
	{"map-by", LAUNCHER_MAP, VALUE},
	{"x", LAUNCHER_KEEP, VALUE},
	{"mca", LAUNCHER_KEEP, TWO},
	{"gmca", LAUNCHER_KEEP, TWO},
	{"prtemca", LAUNCHER_KEEP, TWO},
	{"pmixmca", LAUNCHER_KEEP, TWO},
	{"env", LAUNCHER_KEEP, TWO},
	{"genv", LAUNCHER_KEEP, TWO},
	{"genvlist", LAUNCHER_KEEP, VALUE},
	{"envlist", LAUNCHER_KEEP, VALUE},
	{"wdir", LAUNCHER_KEEP, VALUE},
	{"wd", LAUNCHER_KEEP, VALUE},
	{"bind-to", LAUNCHER_KEEP, VALUE},
	{"rank-by", LAUNCHER_KEEP, VALUE},
	{"prefix", LAUNCHER_KEEP, VALUE},
	{"output", LAUNCHER_KEEP, VALUE},
	{"timeout", LAUNCHER_KEEP, VALUE},
	{"path", LAUNCHER_KEEP, VALUE},
	{"launcher", LAUNCHER_RDZV, VALUE},
	{"iface", LAUNCHER_RDZV, VALUE},
	{NULL, LAUNCHER_KEEP, FLAG},
};

static const struct launcher {
	enum launcher_kind kind;
	const char *program, *program2;
	const char *module, *module2; /* python -m */
	const struct option *options;
} launchers[] = {
	{LAUNCHER_TORCHRUN, "torchrun", "torchrun", "torch.distributed.run",
	 "torch.distributed.launch", torchrun_options},
	{LAUNCHER_ACCELERATE, "accelerate", "accelerate", "accelerate.commands.launch",
	 "accelerate.commands.accelerate_cli", accelerate_options},
	{LAUNCHER_DEEPSPEED, "deepspeed", "ds", "deepspeed", "deepspeed.launcher.runner",
	 deepspeed_options},
	{LAUNCHER_SRUN, "srun", "srun", "", "", srun_options},
	{LAUNCHER_MPIRUN, "mpirun", "mpiexec", "", "", mpirun_options},
};

/* --- which launcher, and where its options begin ---------------------------------- */

static const struct launcher *by_program(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++)
		if (strcmp(basename(word), launchers[i].program) == 0 ||
		    strcmp(basename(word), launchers[i].program2) == 0)
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
		is_wrapper |= strcmp(basename(words[0]), wrappers[i]) == 0;
	for (size_t i = 1; is_wrapper && words[i]; i++)
		if (!strchr(words[i], '=') &&
		    (by_program(words[i]) || strncmp(basename(words[i]), "python", 6) == 0))
			return i;
	return 0;
}

const struct launcher *launcher_find(char *const *words, size_t *ret_at)
{
	const struct launcher *l;
	size_t i = 0;

	i = skip_wrapper(words);
	l = by_program(words[i]);
	if (!l && strncmp(basename(words[i]), "python", 6) == 0) {
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
	if (l->kind == LAUNCHER_ACCELERATE && strcmp(words[i - 1], launchers[1].module) != 0) {
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
	return n == 1 && l->kind != LAUNCHER_MPIRUN ? only : NULL;
}

static bool looks_like_script(const char *word)
{
	size_t len = strlen(word);

	return (len > 3 && strcmp(word + len - 3, ".py") == 0) ||
	       (len > 3 && strcmp(word + len - 3, ".sh") == 0);
}

bool launcher_take(const struct launcher *l, char *const *words, struct launcher_found *ret)
{
	const char *word = words[0], *name, *eq;
	const struct option *o;
	enum arity arity;
	bool is_long;
	size_t len;

	if (word[0] != '-' || !word[1])
		return false;
	*ret = (struct launcher_found){LAUNCHER_KEEP, NULL, 1};
	is_long = word[1] == '-';
	name = word + 1 + is_long;
	eq = strchr(name, '=');
	len = eq ? (size_t)(eq - name) : strlen(name);
	if (!len)
		return false; /* "--" */
	/* -N64 */
	if (!is_long && l->kind == LAUNCHER_SRUN && len > 1) {
		o = find_option(l, name, 1, false);
		ret->class = o ? o->class : LAUNCHER_KEEP;
		ret->value = !o || o->arity == VALUE ? name + 1 : NULL;
		return true;
	}
	o = find_option(l, name, len, is_long);
	ret->class = o ? o->class : LAUNCHER_KEEP;
	if (eq) {
		ret->value = eq + 1;
		return true;
	}
	if (o)
		arity = o->arity;
	else if (l->kind == LAUNCHER_SRUN)
		arity = VALUE;
	else if (l->kind == LAUNCHER_MPIRUN)
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

enum launcher_kind launcher_kind(const struct launcher *l)
{
	return l->kind;
}

const char *launcher_name(const struct launcher *l)
{
	return l->program;
}
