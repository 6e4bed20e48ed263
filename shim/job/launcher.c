/* See launcher.h. The variables are those that the launchers document or set:
 * torch.distributed.run (RANK ... ROLE_WORLD_SIZE), DeepSpeed (LOCAL_SIZE, CROSS_...),
 * srun (SLURM_...), Open MPI's mpirun, MVAPICH2, Hydra (PMI_..., MPI_LOCAL...).
 *
 * NBOX_WORLD remembers the size that was put in: a child that inherits it is left alone, a child to
 * which a nested launcher gave another WORLD_SIZE is rewritten again. What a process manager hands
 * to MPI_Init (PMI_RANK beside PMI_FD or PMI_PORT, PMIX_...) stays; RANK and its like are added
 * beside it. */
#include "shim/job/launcher.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "shim/job/nccl-variables.h"
#include "shim/job/raw-line.h"

#define RANKS_MAX 65536

/* Which variables say who this process is, in each launcher's words. */
static const struct source {
	enum launcher_source source;
	const char *rank, *world, *local_rank, *local_size[4];
} sources[] = {
	// clang-format off
	{LAUNCHER_TORCH, "RANK", "WORLD_SIZE", "LOCAL_RANK", {"LOCAL_WORLD_SIZE", "LOCAL_SIZE"}},
	{LAUNCHER_OMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
		{"OMPI_COMM_WORLD_LOCAL_SIZE"}},
	{LAUNCHER_MV2, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
		{"MV2_COMM_WORLD_LOCAL_SIZE"}},
	{LAUNCHER_PMI, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", {"MPI_LOCALNRANKS"}},
	{LAUNCHER_SLURM, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
		{"SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}},
	// clang-format on
};

/* The local rank may be in another launcher's words than the rank: a wrapper script under mpirun
 * exports RANK and leaves the rest. */
static const char *const local_ranks[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
					  "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
					  "SLURM_LOCALID"};

/* Programs that stand around workers and have their variables. */
static const char *const not_workers[] = {"sh",
					  "bash",
					  "dash",
					  "zsh",
					  "ksh",
					  "ash",
					  "busybox",
					  "fish",
					  "csh",
					  "tcsh",
					  "srun",
					  "sbatch",
					  "salloc",
					  "slurmstepd",
					  "mpirun",
					  "mpiexec",
					  "mpiexec.hydra",
					  "orterun",
					  "orted",
					  "prterun",
					  "prte",
					  "prted",
					  "hydra_pmi_proxy",
					  "hydra_bstrap_proxy",
					  "torchrun",
					  "accelerate",
					  "deepspeed",
					  "nbox",
					  "nboxd"};
static const char *const launcher_modules[] = {"torch.distributed.run",
					       "torch.distributed.launch",
					       "accelerate",
					       "accelerate.commands.launch",
					       "deepspeed",
					       "deepspeed.launcher.runner"};

struct ctx {
	const struct launcher_input *in;
	struct launcher_plan *plan;
	const struct source *source;
	/* the real world, as the launcher says it */
	uint32_t rank, world, local_rank, local_size;
	/* the virtual one */
	uint32_t nodes, gpus, node, new_rank, new_world;
};

static const char *get(const struct ctx *x, const char *name)
{
	const char *text = x->in->get(x->in->ctx, name);

	return text && *text ? text : NULL;
}

static bool get_number(const struct ctx *x, const char *name, uint32_t *ret)
{
	const char *text = get(x, name);
	char digits[16];
	uint64_t n;

	if (!text)
		return false;
	/* Slurm: "8(x64)", or "8,4" */
	snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(text, "(,"), text);
	if (units_count(digits, &n, NULL) < 0 || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static struct launcher_set *set(struct ctx *x, const char *name)
{
	struct launcher_set *s = &x->plan->sets[x->plan->n];

	if (x->plan->n == LAUNCHER_SETS_MAX)
		return NULL; /* the table is sized for all names below; the unit test counts */
	x->plan->n++;
	*s = (struct launcher_set){.name = name};
	return s;
}

/* A variable that has the value already is not set again: an idle plan is an empty one. */
static void set_text(struct ctx *x, const char *name, const char *text)
{
	const char *old = x->in->get(x->in->ctx, name);
	struct launcher_set *s = old && !strcmp(old, text) ? NULL : set(x, name);

	if (s)
		s->text = text;
}

static void set_number(struct ctx *x, const char *name, uint32_t n)
{
	const char *old = x->in->get(x->in->ctx, name);
	char text[16];
	struct launcher_set *s;

	snprintf(text, sizeof(text), "%u", n);
	s = old && !strcmp(old, text) ? NULL : set(x, name);
	if (s)
		memcpy(s->value, text, sizeof(text));
}

static void renumber(struct ctx *x, const char *name, uint32_t n)
{
	if (x->in->get(x->in->ctx, name))
		set_number(x, name, n);
}

/* --- is this a worker? ------------------------------------------------------------- */

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, list[i]))
			return true;
	return false;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The program's own name, or the script or module that an interpreter is given. */
static bool is_launching(const struct launcher_input *in)
{
	const char *name = in->argc > 0 && in->argv[0] ? base_name(in->argv[0]) : "";

	if (*name == '-')
		name++; /* a login shell */
	if (is_one_of(name, not_workers, ARRAY_SIZE(not_workers)))
		return true;
	if (strncmp(name, "python", 6) != 0)
		return false;
	for (int i = 1; i < in->argc && in->argv[i]; i++) {
		const char *word = in->argv[i];

		if (!strcmp(word, "-m") && i + 1 < in->argc)
			return is_one_of(in->argv[i + 1], launcher_modules,
					 ARRAY_SIZE(launcher_modules));
		if (word[0] == '-') {
			i += !strcmp(word, "-W") || !strcmp(word, "-X");
			continue;
		}
		return is_one_of(base_name(word), not_workers, ARRAY_SIZE(not_workers));
	}
	return false;
}

static bool find_local_rank(struct ctx *x, const struct source *s)
{
	if (get_number(x, s->local_rank, &x->local_rank))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(local_ranks); i++)
		if (get_number(x, local_ranks[i], &x->local_rank))
			return true;
	return false;
}

static void find_local_size(struct ctx *x, const struct source *s)
{
	uint32_t nodes;

	for (size_t i = 0; i < ARRAY_SIZE(s->local_size) && s->local_size[i]; i++)
		if (get_number(x, s->local_size[i], &x->local_size) && x->local_size)
			return;
	/* under a wrapper script */
	if (s->source == LAUNCHER_TORCH &&
	    (get_number(x, "OMPI_COMM_WORLD_LOCAL_SIZE", &x->local_size) ||
	     get_number(x, "MPI_LOCALNRANKS", &x->local_size)) &&
	    x->local_size)
		return;
	x->local_size = x->world; /* all on one node, unless Slurm says how many */
	if (s->source == LAUNCHER_SLURM && get_number(x, "SLURM_NNODES", &nodes) && nodes &&
	    x->world % nodes == 0)
		x->local_size = x->world / nodes;
}

static const struct source *find_source(struct ctx *x)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const struct source *s = &sources[i];

		if (!get(x, s->rank))
			continue;
		if (!get_number(x, s->rank, &x->rank) || !get_number(x, s->world, &x->world) ||
		    !x->world || x->rank >= x->world || !find_local_rank(x, s)) {
			if (s->source == LAUNCHER_TORCH)
				return NULL; /* RANK means something else here */
			continue;
		}
		find_local_size(x, s);
		if (s->source == LAUNCHER_TORCH)
			return get(x, "MASTER_ADDR") && get(x, "MASTER_PORT") ? s : NULL;
		return is_launching(x->in) ? NULL : s;
	}
	return NULL;
}

/* --- its place in the virtual world --------------------------------------------------- */

/* "first", "last" or a number, for a world of @nodes with @real real ones. Return: 0; -EINVAL with
 * the sentence. */
static int find_node(const char *text, uint32_t nodes, uint32_t real, uint32_t *ret,
		     struct err *err)
{
	uint64_t k;

	if (real > nodes)
		return err_set(err, EINVAL, "%u real nodes do not fit a world of %u", real, nodes);
	if (!text || !strcmp(text, "first"))
		*ret = 0;
	else if (!strcmp(text, "last"))
		*ret = nodes - real;
	else if (units_count(text, &k, NULL) < 0)
		return err_set(err, EINVAL, "'%.32s' is no node: first, last, or 0 to %u", text,
			       nodes - 1);
	else if (k + real > nodes)
		return err_set(err, EINVAL,
			       "there is no node %llu in a world of %u nodes (0 to %u)",
			       (unsigned long long)k, nodes, nodes - 1);
	else
		*ret = (uint32_t)k;
	return 0;
}

/* NBOX_REAL: the ranks that have a process, in the order of the launcher's ranks. */
static int place_by_list(struct ctx *x, const char *list)
{
	CLEANUP(freep) uint32_t *ranks = NULL;
	struct err *err = &x->plan->problem;
	size_t n;
	int r = units_ranks(list, x->new_world, &ranks, &n, err);

	if (r < 0)
		return err_prefix(err, -EINVAL, "NBOX_REAL");
	if (n != x->world)
		return err_set(err, EINVAL,
			       "NBOX_REAL=%.64s names %zu ranks, but the launcher started %u", list,
			       n, x->world);
	x->new_rank = ranks[x->rank];
	x->node = x->new_rank / x->gpus;
	return 0;
}

static int place_by_node(struct ctx *x)
{
	struct err *err = &x->plan->problem;
	uint32_t real = x->world / x->gpus;

	if (x->gpus != x->local_size)
		return err_set(err, EINVAL,
			       "the launcher started %u ranks on this node, but "
			       "NBOX_GPUS_PER_NODE is %u: make them equal, or name the ranks that "
			       "have a process in NBOX_REAL",
			       x->local_size, x->gpus);
	if (x->world % x->gpus)
		return err_set(err, EINVAL, "the launcher's %u ranks are no multiple of %u a node",
			       x->world, x->gpus);
	if (find_node(get(x, "NBOX_AS_NODE"), x->nodes, real, &x->node, err) < 0)
		return err_prefix(err, -EINVAL, "NBOX_AS_NODE");
	x->new_rank = x->node * x->gpus + x->rank;
	x->node += x->rank / x->gpus;
	return 0;
}

static int place(struct ctx *x)
{
	const char *nodes = get(x, "NBOX_NODES"), *real = get(x, "NBOX_REAL");
	struct err *err = &x->plan->problem;
	uint32_t world;

	if (get(x, "NBOX_GPUS_PER_NODE") &&
	    (!get_number(x, "NBOX_GPUS_PER_NODE", &x->gpus) || !x->gpus || x->gpus > RANKS_MAX))
		return err_set(err, EINVAL,
			       "NBOX_GPUS_PER_NODE=%.32s is no number of ranks from 1 to %d",
			       get(x, "NBOX_GPUS_PER_NODE"), RANKS_MAX);
	if (!x->gpus)
		x->gpus = x->local_size;
	if (nodes && (!get_number(x, "NBOX_NODES", &x->nodes) || !x->nodes || x->nodes > RANKS_MAX))
		return err_set(err, EINVAL, "NBOX_NODES=%.32s is no number from 1 to %d", nodes,
			       RANKS_MAX);
	if (!nodes) { /* NBOX_WORLD alone gives the nodes */
		if (!get_number(x, "NBOX_WORLD", &world) || !world || world % x->gpus)
			return err_set(err, EINVAL,
				       "NBOX_WORLD=%.32s is no multiple of %u ranks a node",
				       get(x, "NBOX_WORLD"), x->gpus);
		x->nodes = world / x->gpus;
	}
	if ((uint64_t)x->nodes * x->gpus > RANKS_MAX)
		return err_set(err, EINVAL, "%u nodes x %u ranks are more than %d", x->nodes,
			       x->gpus, RANKS_MAX);
	x->new_world = x->nodes * x->gpus;
	return real ? place_by_list(x, real) : place_by_node(x);
}

/* --- the variables ----------------------------------------------------------------------- */

static void set_torch(struct ctx *x)
{
	uint32_t role = x->rank, roles = x->world;

	get_number(x, "ROLE_RANK", &role);
	get_number(x, "ROLE_WORLD_SIZE", &roles);
	set_number(x, "RANK", x->new_rank);
	set_number(x, "WORLD_SIZE", x->new_world);
	renumber(x, "GROUP_RANK", x->node);
	renumber(x, "GROUP_WORLD_SIZE", x->nodes);
	/* one role: as the rank; several: as many on every node as here */
	renumber(x, "ROLE_RANK", roles == x->world ? x->new_rank : x->node * roles + role);
	renumber(x, "ROLE_WORLD_SIZE", roles == x->world ? x->new_world : x->nodes * roles);
	renumber(x, "CROSS_RANK", x->node);
	renumber(x, "CROSS_SIZE", x->nodes);
}

static void set_slurm(struct ctx *x)
{
	renumber(x, "SLURM_PROCID", x->new_rank);
	renumber(x, "SLURM_NTASKS", x->new_world);
	renumber(x, "SLURM_NPROCS", x->new_world);
	renumber(x, "SLURM_STEP_NUM_TASKS", x->new_world);
	renumber(x, "SLURM_NODEID", x->node);
	renumber(x, "SLURM_NNODES", x->nodes);
	renumber(x, "SLURM_JOB_NUM_NODES", x->nodes);
	renumber(x, "SLURM_STEP_NUM_NODES", x->nodes);
}

static void set_pmi(struct ctx *x)
{
	if (!get(x, "PMI_FD") && !get(x, "PMI_PORT") && !get(x, "PMIX_NAMESPACE")) {
		set_number(x, "PMI_RANK", x->new_rank);
		set_number(x, "PMI_SIZE", x->new_world);
		return;
	}
	/* MPI_Init will want them as they are; programs that look for both take RANK first */
	set_number(x, "RANK", x->new_rank);
	set_number(x, "WORLD_SIZE", x->new_world);
	set_number(x, "LOCAL_RANK", x->local_rank);
	set_number(x, "LOCAL_WORLD_SIZE", x->local_size);
}

/* A process that Python's multiprocessing spawned, in a job where each rank has a process already.
 * If it means to be a rank (mp.spawn), it meets others at an address of its own, and as a client of
 * the store it would wait there for ever. Under `nbox run --procs 1` one process stands for all
 * ranks, and a spawned one is a rank. */
static bool is_spawned_again(const struct ctx *x)
{
	uint32_t local;

	if (get(x, "TORCHELASTIC_RUN_ID") || !get_number(x, "LOCAL_WORLD_SIZE", &local) ||
	    local < 2)
		return false;
	for (int i = 1; i < x->in->argc && x->in->argv[i]; i++)
		if (!strcmp(x->in->argv[i], "--multiprocessing-fork"))
			return true;
	return false;
}

/* NBOX_STORE=HOST:PORT: nboxd is the job's store, for every rank alike. */
static void set_store(struct ctx *x)
{
	const char *store = get(x, "NBOX_STORE"), *colon = store ? strrchr(store, ':') : NULL;
	size_t len = colon ? (size_t)(colon - store) : 0;
	const char *old = x->in->get(x->in->ctx, "MASTER_ADDR");
	struct launcher_set *s;

	/* port 0: nboxd's to choose, and it did not */
	if (!store || !strcmp(store, "none") || (colon && !strcmp(colon, ":0")))
		return;
	if (!len || !colon[1] || len >= LAUNCHER_VALUE_MAX) {
		x->plan->error = err_set(&x->plan->problem, EINVAL,
					 "NBOX_STORE=%.64s is no HOST:PORT", store);
		return;
	}
	if (store[0] == '[' && store[len - 1] == ']') { /* IPv6 */
		store++;
		len -= 2;
	}
	if (!old || strlen(old) != len || memcmp(old, store, len) != 0) {
		s = set(x, "MASTER_ADDR");
		if (s)
			memcpy(s->value, store, len);
	}
	set_text(x, "MASTER_PORT", colon + 1);
	set_text(x, "TORCHELASTIC_USE_AGENT_STORE", is_spawned_again(x) ? "False" : "True");
	if (!get(x, "TORCHELASTIC_RESTART_COUNT"))
		set_text(x, "TORCHELASTIC_RESTART_COUNT", "0");
}

/* Keeps PyTorch from waiting for ranks that do not exist. */
static void set_waits(struct ctx *x)
{
	const char *debug = get(x, "TORCH_DISTRIBUTED_DEBUG");

	set_text(x, "TORCH_NCCL_RANKS_PER_ROOT",
		 "2147483647"); /* else an id from every 128th rank */
	set_text(x, "TORCH_DIST_INIT_BARRIER", "0");
	set_text(x, "TORCH_GLOO_LAZY_INIT", "1");
	if (debug && !strcmp(debug, "DETAIL")) { /* a gloo group beside every group */
		set_text(x, "TORCH_DISTRIBUTED_DEBUG", "INFO");
		x->plan->note =
			"TORCH_DISTRIBUTED_DEBUG=DETAIL was taken for INFO: DETAIL compares all calls of all "
			"ranks over gloo, and virtual ranks make none";
	}
	if (x->in->self)
		set_text(x, "VLLM_NCCL_SO_PATH", x->in->self);
}

static void set_numbers(struct ctx *x)
{
	switch (x->source->source) {
	case LAUNCHER_TORCH:
		set_torch(x);
		break;
	case LAUNCHER_SLURM:
		set_slurm(x);
		break;
	case LAUNCHER_OMPI: /* for the program's information: MPI_Init reads PMIX_... */
	case LAUNCHER_MV2:
		set_number(x, x->source->rank, x->new_rank);
		set_number(x, x->source->world, x->new_world);
		break;
	case LAUNCHER_PMI:
		set_pmi(x);
		break;
	case LAUNCHER_NONE:
	default:
		break;
	}
	set_number(x, "NBOX_WORLD", x->new_world);
}

bool launcher_find(const struct launcher_input *in, struct launcher_place *ret)
{
	struct ctx x = {.in = in};
	const char *enable = get(&x, "NBOX_ENABLE");
	uint32_t known;

	if (enable && !strcmp(enable, "0"))
		return false;
	x.source = find_source(&x);
	if (!x.source)
		return false;
	*ret = (struct launcher_place){
		.source = x.source->source,
		.rank = x.rank,
		.n_ranks = x.world,
		.local_rank = x.local_rank,
		.local_size = x.local_size,
		.is_rewritten = get_number(&x, "NBOX_WORLD", &known) && known == x.world,
	};
	return true;
}

void launcher_decide(const struct launcher_input *in, struct launcher_plan *ret)
{
	struct ctx x = {.in = in, .plan = ret};
	const char *enable;
	uint32_t known;

	ret->source = LAUNCHER_NONE;
	ret->n = 0;
	ret->note = NULL;
	ret->error = 0;
	ret->problem.text[0] = 0;
	enable = get(&x, "NBOX_ENABLE");
	if ((enable && !strcmp(enable, "0")) || (!get(&x, "NBOX_NODES") && !get(&x, "NBOX_WORLD")))
		return;
	x.source = find_source(&x);
	if (!x.source)
		return;
	ret->source = x.source->source;
	if (!get_number(&x, "NBOX_WORLD", &known) || known != x.world) { /* else ours, inherited */
		ret->error = place(&x);
		if (ret->error < 0)
			return;
		set_numbers(&x);
	}
	set_store(&x);
	set_waits(&x);
	if (ret->error < 0)
		ret->n = 0;
}

/* --- the constructor ------------------------------------------------------------------------ */

static struct launcher_plan the_plan;
static struct launcher_place the_place;

const struct launcher_place *launcher_place(void)
{
	return &the_place;
}

int launcher_problem(struct err *err)
{
	if (the_plan.error < 0)
		*err = the_plan.problem;
	return the_plan.error;
}

const char *launcher_note(void)
{
	return the_plan.note;
}

static const char *get_env(void *ctx, const char *name)
{
	(void)ctx;
	return getenv(name);
}

/* Only a worker gets past the first two lines. */
static void rewrite(const struct launcher_input *in)
{
	const char *addr = getenv("NBOX_ADDR");

	if (!launcher_find(in, &the_place))
		return;
	if ((!addr || !*addr) && !the_place.is_rewritten && raw_line_wanted()) {
		the_plan.error = raw_line_join(the_place.rank, the_place.n_ranks,
					       the_place.local_size, &the_plan.problem);
		if (the_plan.error < 0)
			return;
	}
	nccl_variables_set_early();
	if (!getenv("NBOX_NODES") && !getenv("NBOX_WORLD"))
		return;
	launcher_decide(in, &the_plan);
	for (uint32_t i = 0; i < the_plan.n; i++) {
		const struct launcher_set *s = &the_plan.sets[i];

		setenv(s->name, s->text ? s->text : s->value, 1);
	}
}

__attribute__((constructor)) static void on_load(int argc, char **argv)
{
	struct launcher_input in = {.get = get_env, .argc = argc, .argv = argv};
	int saved_errno = errno;
	Dl_info info;

	if (dladdr((void *)(uintptr_t)launcher_decide, &info) && info.dli_fname &&
	    info.dli_fname[0] == '/')
		in.self = info.dli_fname;
	rewrite(&in);
	errno = saved_errno;
}
