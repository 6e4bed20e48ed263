/* See launcher-options.h. The options are those that the launchers document: torch.distributed.run
 * up to 2.11, accelerate 1.x, DeepSpeed's runner, srun(1), mpirun(1) of Open MPI and mpiexec of
 * Hydra. Of an option that is not in the tables nothing is known but that it stays. */
#include "nbox/run/launcher-options.h"

#include <string.h>

#include "base/cleanup.h"

enum arity { FLAG, VALUE, TWO };

/* Options of one kind: names without dashes, '_' and '-' are the same. */
struct options {
	enum launcher_class class;
	enum arity arity;
	const char *names;
};

// clang-format off
static const struct options torchrun_options[] = {
	{LAUNCHER_NODES, VALUE, "nnodes"},
	{LAUNCHER_PROCS, VALUE, "nproc-per-node"},
	{LAUNCHER_RANK, VALUE, "node-rank"},
	{LAUNCHER_ADDR, VALUE, "rdzv-endpoint master-addr local-addr"},
	{LAUNCHER_RDZV, VALUE, "rdzv-backend rdzv-id rdzv-conf master-port"},
	{LAUNCHER_STANDALONE, FLAG, "standalone"},
	{LAUNCHER_KEEP, VALUE,
	 "max-restarts monitor-interval start-method event-log-handler role log-dir redirects "
	 "r tee t local-ranks-filter duplicate-stdout-filters duplicate-stderr-filters "
	 "logs-specs numa-binding signals-to-handle"},
	{LAUNCHER_KEEP, FLAG, "module m no-python run-path virtual-local-rank use-env help"},
	{LAUNCHER_KEEP, FLAG, NULL},
};
static const struct options accelerate_options[] = {
	{LAUNCHER_NODES, VALUE, "num-machines"},
	{LAUNCHER_TOTAL, VALUE, "num-processes"},
	{LAUNCHER_RANK, VALUE, "machine-rank"},
	{LAUNCHER_ADDR, VALUE, "main-process-ip deepspeed-hostfile"},
	{LAUNCHER_RDZV, VALUE, "main-process-port rdzv-backend rdzv-conf deepspeed-multinode-launcher"},
	{LAUNCHER_RDZV, FLAG, "same-network"},
	{LAUNCHER_KEEP, FLAG,
	 "multi-gpu cpu tpu mps use-deepspeed use-fsdp use-megatron-lm use-xpu quiet q module "
	 "m no-python debug enable-cpu-affinity h help"},
	{LAUNCHER_STANDALONE, FLAG, "standalone"},
	{LAUNCHER_KEEP, FLAG, NULL},
};
static const struct options deepspeed_options[] = {
	{LAUNCHER_NODES, VALUE, "num-nodes"},
	{LAUNCHER_PROCS, VALUE, "num-gpus num-accelerators"},
	{LAUNCHER_RANK, VALUE, "node-rank"},
	{LAUNCHER_HOSTFILE, VALUE, "hostfile H"},
	{LAUNCHER_ADDR, VALUE, "master-addr exclude e"},
	{LAUNCHER_SLOTS, VALUE, "include i"},
	{LAUNCHER_RDZV, VALUE, "launcher launcher-args ssh-port master-port"},
	{LAUNCHER_RDZV, FLAG, "no-ssh no-ssh-check force-multi"},
	{LAUNCHER_KEEP, FLAG, "save-pid module no-python no-local-rank bind-cores-to-rank elastic-training help"},
	{LAUNCHER_KEEP, VALUE,
	 "enable-each-rank-log autotuning bind-core-list venv-script min-elastic-nodes "
	 "max-elastic-nodes"},
	{LAUNCHER_KEEP, FLAG, NULL},
};
static const struct options srun_options[] = { /* of any other option the next word is the value */
	{LAUNCHER_NODES, VALUE, "nodes N"},
	{LAUNCHER_TOTAL, VALUE, "ntasks n"},
	{LAUNCHER_PROCS, VALUE, "ntasks-per-node"},
	{LAUNCHER_ADDR, VALUE, "nodelist w exclude x nodefile F"},
	{LAUNCHER_RDZV, VALUE, "relative r distribution m"},
	{LAUNCHER_KEEP, FLAG,
	 "label l unbuffered u verbose v quiet Q exclusive overlap exact pty overcommit O "
	 "oversubscribe s no-kill k kill-on-bad-exit K immediate I disable-status X "
	 "preserve-env E contiguous reboot multi-prog help h version V"},
	{LAUNCHER_KEEP, FLAG, NULL},
};
static const struct options mpirun_options[] = {
	{LAUNCHER_TOTAL, VALUE, "np n c"},
	{LAUNCHER_PROCS, VALUE, "npernode N ppn perhost"},
	{LAUNCHER_HOSTS, VALUE, "host H hosts"},
	{LAUNCHER_HOSTFILE, VALUE, "hostfile machinefile f"},
	{LAUNCHER_MAP, VALUE, "map-by"},
	{LAUNCHER_KEEP, VALUE, "x genvlist envlist wdir wd bind-to rank-by prefix output timeout path"},
	{LAUNCHER_KEEP, TWO, "mca gmca prtemca pmixmca env genv"},
	{LAUNCHER_RDZV, VALUE, "launcher iface"},
	{LAUNCHER_KEEP, FLAG, NULL},
};
// clang-format on

static const struct launcher {
	enum launcher_kind kind;
	const char *program, *program2;
	const char *module, *module2;  /* python -m */
	const struct options *options; /* ends with NULL names */
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
static const struct options *find_option(const struct launcher *l, const char *name, size_t len,
					 bool is_long)
{
	const struct options *only = NULL;
	unsigned int n = 0;

	for (const struct options *o = l->options; o->names; o++)
		for (const char *word = o->names; *word; word += strspn(word, " ")) {
			size_t full = strcspn(word, " ");

			if (full == len && same_name(word, name, len))
				return o;
			if (is_long && len > 2 && full > len && same_name(word, name, len)) {
				only = o;
				n++;
			}
			word += full;
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
	const struct options *o;
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
