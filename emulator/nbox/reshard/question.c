/* See question.h. */
#include "nbox/reshard/question.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "base/units.h"
#include "fabric/read/open.h"

#define EXACT_BUDGET_S 60
#define BUDGET_S 1
#define K_MAX 1000000

void question_init(struct question *q)
{
	*q = (struct question){
		.dtype = "f32",
		.strategy = MESH_BROADCAST,
		.algo = TURNS_OURS,
		.net = {.inside = INFINITY, .k = MESH_K},
		.seed = 1,
	};
}

static double budget_ns(const struct question *q)
{
	if (q->budget_ns > 0)
		return q->budget_ns;
	return (q->algo == TURNS_EXACT ? EXACT_BUDGET_S : BUDGET_S) * (double)NS_PER_S;
}

/* Its number in a list that ends with NULL. */
static int take_name(const struct option_word *w, const char *const *names, int *ret,
		     struct err *err)
{
	char list[128] = "";
	const char *near;
	size_t n = 0;

	for (n = 0; names[n]; n++) {
		if (strcmp(w->value, names[n]) == 0) {
			*ret = (int)n;
			return 0;
		}
		strcat(strcat(list, n ? ", " : ""), names[n]);
	}
	near = suggest(w->value, names, n);
	return err_set(err, EINVAL, "%s '%s': it is one of %s%s%s%s", w->name, w->value, list,
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int take_k(const char *value, uint32_t *ret, struct err *err)
{
	uint64_t k;

	if (strcmp(value, "best") == 0 || strcmp(value, "endless") == 0) {
		*ret = value[0] == 'b' ? MESH_K_BEST : MESH_K_ENDLESS;
		return 0;
	}
	if (units_count(value, &k, err) < 0 || k < 1 || k > K_MAX)
		return err_set(err, EINVAL,
			       "--k '%s': pieces of a broadcast, 1 to %d; or best, or endless",
			       value, K_MAX);
	*ret = (uint32_t)k;
	return 0;
}

/* A host's NICs together, its GPUs' ports, and what a message between hosts takes to start. */
static int take_fabric(const struct option_word *w, struct mesh_net *net, struct err *err)
{
	struct fabric *f;
	const struct fabric_class *c;
	int r = fabric_open(w->value, 0, 0, &f, err);

	if (r < 0)
		return err_prefix(err, r, "%s", w->name);
	c = fabric_class_of(f, 0);
	net->nic = c->n_nics * c->nic_bytes_per_ns * fabric_nic_efficiency(c);
	net->inside = c->gpu_bytes_per_ns * fabric_gpu_efficiency(c);
	net->alpha_ns = f->network.latency_ns;
	net->inside_alpha_ns = c->gpu_latency_ns;
	fabric_free(f);
	return 0;
}

int question_take(struct question *q, const struct option_word *w, struct err *err)
{
	int n = 0, r = 0;

	switch ((unsigned int)w->id) {
	case FLAG_RESHARD_TENSOR:
		q->tensor = w->value;
		return 0;
	case FLAG_RESHARD_DTYPE:
		q->dtype = w->value;
		return 0;
	case FLAG_RESHARD_SRC:
		q->src = w->value;
		return 0;
	case FLAG_RESHARD_DST:
		q->dst = w->value;
		return 0;
	case FLAG_RESHARD_STRATEGY:
		r = take_name(w, mesh_strategy_names, &n, err);
		q->strategy = r == 0 ? (enum mesh_strategy)n : q->strategy;
		return r;
	case FLAG_RESHARD_PLANNER:
		r = take_name(w, turns_algo_names, &n, err);
		q->algo = r == 0 ? (enum turns_algo)n : q->algo;
		return r;
	case FLAG_RESHARD_K:
		q->has_k = true;
		return take_k(w->value, &q->net.k, err);
	case FLAG_RESHARD_PRESET:
	case FLAG_RESHARD_FABRIC:
		return take_fabric(w, &q->net, err);
	case FLAG_RESHARD_NIC:
		r = units_nic(w->value, &q->net.nic, &q->net.alpha_ns, err);
		break;
	case FLAG_RESHARD_INSIDE:
		q->has_inside = true;
		r = units_bandwidth(w->value, &q->net.inside, err);
		break;
	case FLAG_RESHARD_BUDGET:
		r = units_time(w->value, &q->budget_ns, err);
		if (r == 0 && !(q->budget_ns > 0))
			r = err_set(err, EINVAL, "'%s' is zero; to search takes time", w->value);
		break;
	default:
		q->has_seed = true;
		r = units_count(w->value, &q->seed, err);
		break;
	}
	return r < 0 ? err_prefix(err, r, "%s", w->name) : 0;
}

/* Options that would do nothing. */
static int check_use(const struct question *q, struct err *err)
{
	bool is_by_list = q->algo == TURNS_NAIVE || q->algo == TURNS_ALPA || q->algo == TURNS_LB;
	bool has_inside = q->strategy == MESH_BROADCAST || q->strategy == MESH_LOCAL_AG;

	if (q->has_k && q->strategy != MESH_BROADCAST)
		return err_set(err, EINVAL, "--k: pieces of a broadcast; %s has none",
			       mesh_strategy_names[q->strategy]);
	if (q->has_inside && !has_inside)
		return err_set(err, EINVAL,
			       "--inside: of broadcast and local-ag; by %s no message goes faster "
			       "than a host's NIC",
			       mesh_strategy_names[q->strategy]);
	if (q->has_seed && (is_by_list || q->algo == TURNS_DFS))
		return err_set(err, EINVAL,
			       "--seed: of greedy, and of ours and exact, which try it; %s draws "
			       "nothing",
			       turns_algo_names[q->algo]);
	if (q->budget_ns > 0 && is_by_list)
		return err_set(err, EINVAL, "--budget: of planners that search; %s does not",
			       turns_algo_names[q->algo]);
	return 0;
}

static int parse(const struct question *q, struct mesh_tensor *t, struct mesh_spec *src,
		 struct mesh_spec *dst, struct err *err)
{
	int r = check_use(q, err);

	if (r < 0)
		return r;
	if (!q->tensor || !q->src || !q->dst)
		return err_set(err, EINVAL,
			       "needs --tensor, --src and --dst, such as --tensor 1024x1024x512 "
			       "--src S0RR@2x4 --dst RRS0@2x4");
	if (!(q->net.nic > 0))
		return err_set(err, EINVAL,
			       "needs --nic RATE, the bandwidth of a host, such as 10Gbps; or "
			       "--preset NAME");
	if (q->net.k == MESH_K_ENDLESS && q->net.alpha_ns + q->net.inside_alpha_ns > 0)
		return err_set(err, EINVAL,
			       "--k endless: pieces that take time to start cannot be endless; "
			       "--nic without a latency, or --k best");
	r = mesh_dims_parse(q->tensor, t, err);
	if (r < 0)
		return err_prefix(err, r, "--tensor");
	r = mesh_dtype_bytes(q->dtype, err);
	if (r < 0)
		return err_prefix(err, r, "--dtype");
	t->element_bytes = (uint32_t)r;
	r = mesh_spec_parse(q->src, src, err);
	if (r < 0)
		return err_prefix(err, r, "--src");
	r = mesh_spec_parse(q->dst, dst, err);
	return r < 0 ? err_prefix(err, r, "--dst") : 0;
}

static bool is_over(void *due_ns)
{
	return clock_now_ns() >= *(uint64_t *)due_ns;
}

int question_answer(const struct question *q, struct answer *ret, struct err *err)
{
	uint64_t due_ns = clock_now_ns() + (uint64_t)budget_ns(q);
	struct turns_effort effort = {.seed = q->seed,
				      .nodes = UINT64_MAX,
				      .is_over = is_over,
				      .who = &due_ns};
	struct mesh_tensor tensor;
	struct mesh_spec src, dst;
	struct answer a = {.of = *q};
	int r = parse(q, &tensor, &src, &dst, err);

	r = r < 0 ? r : mesh_reshard_init(&a.reshard, &tensor, &src, &dst, err);
	r = r < 0 ? r : mesh_plan(&a.reshard, q->strategy, &q->net, q->algo, &effort, &a.plan, err);
	if (r < 0) {
		answer_deinit(&a);
		return r;
	}
	*ret = a;
	return 0;
}

void answer_deinit(struct answer *a)
{
	mesh_reshard_deinit(&a->reshard);
	turns_deinit(&a->plan);
}
