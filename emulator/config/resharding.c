/* See resharding.h. Here the what-if is read, checked and planned. */
#include "config/resharding.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "config/did-you-mean.h"
#include "config/spec.h"
#include "mesh/mesh.h"
#include "mesh/route.h"

#define SEARCH_NODES (1 << 16) /* tens of milliseconds */
#define K_MAX 1000000

const char resharding_help[] =
	"  xmesh      resharding steps, sends between two groups of ranks, take the times of a plan; all else is the model's\n"
	"      strategy=<name>        sendrecv, local-ag, global-ag, broadcast or signal (must be given)\n"
	"      tensor=<dims>          what moves, such as 1024x1024x512; without it nbox assumes that equal messages of a rank are copies\n"
	"      dtype=<type>           of its elements (default f32)\n"
	"      src=<spec>@<mesh>      how it lies where it comes from, such as RS0R@2x4: hosts x devices\n"
	"      dst=<spec>@<mesh>      and where it goes to\n"
	"      senders=<ranks>        world ranks of the one mesh, host by host (default from 0 on)\n"
	"      receivers=<ranks>      and of the other (default: those behind the senders)\n"
	"      algo=<name>            naive, alpa, lb, dfs, greedy, ours or exact (default ours)\n"
	"      k=<count>              pieces of a broadcast; best or endless (default 100)\n"
	"      nic=<bandwidth>        of a host, and nothing else takes time (default: all NICs of a node, and the cluster's latencies and NVLinks)\n"
	"      alpha=<time>           start-up of each message between hosts (default 0s with nic=, else the cluster's)\n"
	"    a mesh's hosts are nodes, and no node is in both; each direction of a pipeline is a what-if of its own. A step is one group of calls\n"
	"    (ncclGroup; PyTorch: batch_isend_irecv), of sends or of receives between the meshes, with as many bytes a call as the tensor has for\n"
	"    the two ranks; a receiver has all of its tile in one. Other groups keep their times: the summary counts them, and says of the first why\n"
	"    a rank waits for itself and for those that it calls, as without the plan; from then on it takes as long as the plan says for it: a\n"
	"    source that sends nothing in the plan is over at once. The step uses all NICs of a node evenly, by one connection each, beside other ops.\n"
	"    add, jitter and slow do not act on it\n"
	"    without tensor= any group with several peers, all sends or all receives, is one rank's part of a step, and claims no links: equal\n"
	"    messages of a rank are copies of one slice, which goes out once, those of two ranks are different slices\n";

bool resharding_is_one(const char *text)
{
	return spec_is(text, "xmesh");
}

static void deinit(struct resharding *x)
{
	free(x->place);
	free(x->bytes);
	free(x->needs);
	free(x->done_ns);
	free(x->nodes);
	free(x->crossing);
}

void reshardings_free(struct resharding *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		deinit(&list[i]);
	free(list);
}

/* --- what is given -------------------------------------------------------------------------- */

enum key { STRATEGY, TENSOR, DTYPE, SRC, DST, SENDERS, RECEIVERS, ALGO, K, NIC, ALPHA, KEYS };
static const char *const keys[KEYS] = {"strategy",  "tensor", "dtype", "src", "dst",  "senders",
				       "receivers", "algo",   "k",     "nic", "alpha"};

static int take_keys(const struct spec *spec, const char *values[KEYS], struct err *err)
{
	for (size_t i = 0; i < spec->n; i++) {
		size_t k = 0;

		while (k < KEYS && strcmp(keys[k], spec->pairs[i].key))
			k++;
		if (k == KEYS)
			return spec_unknown(spec->pairs[i].key, keys, KEYS, err);
		values[k] = spec->pairs[i].value;
	}
	return 0;
}

/* Return: the place of @value in @names, which ends with NULL; -EINVAL with the sentence. */
static int take_name(const char *key, const char *value, const char *const *names, struct err *err)
{
	char near[96];
	size_t n = 0;

	for (; names[n]; n++)
		if (!strcmp(names[n], value))
			return (int)n;
	did_you_mean(value, names, n, near, sizeof(near));
	return err_set(err, EINVAL, "unknown %s '%.64s'%s", key, value,
		       near[0] ? near : "; nbox models xmesh lists them");
}

/* One message between hosts, from all NICs of a node. */
static void net_of_cluster(const struct topology *t, const struct fabric *f, struct mesh_net *net)
{
	const struct fabric_class *class = f ? &f->classes[0] : NULL;

	*net = (struct mesh_net){.nic = t->inter.bytes_per_ns * t->gpus_per_node,
				 .alpha_ns = t->inter.latency_ns,
				 .inside = t->intra.bytes_per_ns,
				 .inside_alpha_ns = t->intra.latency_ns};
	if (!class || !class->n_nics)
		return;
	net->nic = class->nic_bytes_per_ns * fabric_nic_efficiency(class) * class->n_nics;
	net->alpha_ns = f->network.latency_ns;
	net->inside = class->gpu_bytes_per_ns * fabric_gpu_efficiency(class);
	net->inside_alpha_ns = class->gpu_latency_ns;
}

static int take_net(struct resharding *x, const char *const values[KEYS], struct err *err)
{
	struct mesh_net *net = &x->net;
	const char *pieces = values[K];
	uint64_t k = MESH_K;
	int r = 0;

	if (values[NIC]) {
		*net = (struct mesh_net){.inside = INFINITY};
		r = units_bandwidth(values[NIC], &net->nic, err);
	}
	if (r == 0 && !fabric_is_rate(net->nic))
		r = err_set(err, EINVAL, "that bandwidth is impossible");
	if (r == 0 && values[ALPHA])
		r = units_time(values[ALPHA], &net->alpha_ns, err);
	if (r == 0 && !fabric_is_latency(net->alpha_ns))
		r = err_set(err, EINVAL, "alpha=%.64s is out of range", values[ALPHA]);
	if (r == 0 && pieces && strcmp(pieces, "best") != 0 && strcmp(pieces, "endless") != 0)
		r = units_count(pieces, &k, err);
	if (r == 0 && !(k > 0 && k <= K_MAX))
		r = err_set(err, EINVAL, "k=%.64s: 1 to %d, best or endless", pieces ? pieces : "",
			    K_MAX);
	if (r == 0 && pieces && x->strategy != MESH_BROADCAST)
		r = err_set(err, EINVAL, "k=: pieces of a broadcast; %s has none",
			    mesh_strategy_names[x->strategy]);
	net->k = (uint32_t)k;
	if (pieces && pieces[0] == 'b')
		net->k = MESH_K_BEST;
	if (pieces && pieces[0] == 'e')
		net->k = MESH_K_ENDLESS;
	if (r == 0 && net->k == MESH_K_ENDLESS && net->alpha_ns + net->inside_alpha_ns > 0)
		r = err_set(err, EINVAL,
			    "k=endless: pieces that take time to start cannot be endless; "
			    "nic=RATE without alpha=, or k=best");
	return r;
}

/* --- who takes part ------------------------------------------------------------------------- */

/* The ranks of a mesh. *ret_ranks: the caller's to free(). */
static int mesh_ranks(const char *key, const char *given, uint32_t first,
		      const struct mesh_spec *mesh, const struct topology *t, uint32_t **ret_ranks,
		      struct err *err)
{
	uint32_t n = mesh->hosts * mesh->devices, world = topology_world(t);
	size_t n_given = 0;

	if (given) {
		int r = units_ranks(given, world, ret_ranks, &n_given, err);

		return r == 0 && n_given != n
			       ? err_set(err, EINVAL, "%s=%.64s: %zu ranks for a mesh of %ux%u",
					 key, given, n_given, mesh->hosts, mesh->devices)
			       : r;
	}
	if ((uint64_t)first + n > world)
		return err_set(err, EINVAL,
			       "%s would be ranks %u-%u of a world of %u: say which they are", key,
			       first, first + n - 1, world);
	*ret_ranks = malloc(n * sizeof(**ret_ranks));
	if (!*ret_ranks)
		return err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++)
		(*ret_ranks)[i] = first + i;
	return 0;
}

/* Gives them places from @first on. A mesh's hosts are nodes, each another. */
static int place(struct resharding *x, const char *key, const struct mesh_spec *mesh,
		 const uint32_t *ranks, uint32_t first, const struct topology *t, uint32_t *host_of,
		 struct err *err)
{
	uint32_t n = mesh->hosts * mesh->devices;
	uint32_t first_host = first ? x->n_hosts - mesh->hosts : 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t host = 1 + i / mesh->devices + (first ? MESH_HOSTS : 0);
		uint32_t *of_node = &host_of[topology_node(t, ranks[i])];

		if (x->place[ranks[i]] != RESHARDING_NOWHERE)
			return err_set(err, EINVAL, "rank %u would send to itself", ranks[i]);
		if ((i % mesh->devices == 0 && *of_node) || (i % mesh->devices && *of_node != host))
			return err_set(
				err, EINVAL,
				"%s: a mesh of %ux%u has %u ranks on each of %u nodes, none of them "
				"a node of the other mesh; but rank %u is on node %u",
				key, mesh->hosts, mesh->devices, mesh->devices, mesh->hosts,
				ranks[i], topology_node(t, ranks[i]));
		*of_node = host;
		x->place[ranks[i]] = first + i;
		x->nodes[first_host + i / mesh->devices] = topology_node(t, ranks[i]);
	}
	return 0;
}

static int place_all(struct resharding *x, const struct mesh_reshard *m,
		     const char *const values[KEYS], const struct topology *t, struct err *err)
{
	CLEANUP(freep) uint32_t *host_of = calloc(t->n_nodes, sizeof(*host_of));
	CLEANUP(freep) uint32_t *senders = NULL;
	CLEANUP(freep) uint32_t *receivers = NULL;
	uint32_t n = m->src.hosts * m->src.devices, n_to = m->dst.hosts * m->dst.devices;
	int r;

	x->n_world = topology_world(t);
	x->n_senders = n;
	x->n_receivers = n_to;
	x->place = malloc(x->n_world * sizeof(*x->place));
	x->bytes = calloc((size_t)n * n_to, sizeof(*x->bytes));
	x->needs = calloc(n_to, sizeof(*x->needs));
	x->done_ns = calloc((size_t)n + n_to, sizeof(*x->done_ns));
	x->n_hosts = m->src.hosts + m->dst.hosts;
	x->nodes = calloc(x->n_hosts, sizeof(*x->nodes));
	x->crossing = calloc((size_t)x->n_hosts * x->n_hosts, sizeof(*x->crossing));
	if (!host_of || !x->place || !x->bytes || !x->needs || !x->done_ns || !x->nodes ||
	    !x->crossing)
		return err_set(err, ENOMEM, "out of memory for a plan");
	memset(x->place, 0xff, x->n_world * sizeof(*x->place));
	r = mesh_ranks("senders", values[SENDERS], 0, &m->src, t, &senders, err);
	if (r == 0)
		r = mesh_ranks("receivers", values[RECEIVERS], senders[n - 1] + 1, &m->dst, t,
			       &receivers, err);
	if (r == 0)
		r = place(x, "senders", &m->src, senders, 0, t, host_of, err);
	return r < 0 ? r : place(x, "receivers", &m->dst, receivers, n, t, host_of, err);
}

/* --- the plan ------------------------------------------------------------------------------- */

static uint64_t common_bytes(const struct mesh_reshard *m, uint32_t src, uint32_t dst)
{
	const struct mesh_tensor *t = &m->tensor;
	struct mesh_box a, b;
	uint64_t bytes = t->element_bytes;

	mesh_tile_box(&m->src, t, mesh_tile_of(&m->src, src), &a);
	mesh_tile_box(&m->dst, t, mesh_tile_of(&m->dst, dst), &b);
	for (uint32_t i = 0; i < t->n_dims; i++) {
		uint64_t lo = a.lo[i] > b.lo[i] ? a.lo[i] : b.lo[i];
		uint64_t hi = a.hi[i] < b.hi[i] ? a.hi[i] : b.hi[i];

		bytes *= hi > lo ? hi - lo : 0;
	}
	return bytes;
}

static void add_crossing(struct resharding *x, const struct mesh_reshard *m,
			 const struct turn *turn)
{
	const struct mesh_task *task = &m->tasks[turn->task];
	uint32_t first = m->src.hosts + (uint32_t)__builtin_ctzll(task->receivers);

	for (uint32_t i = 0; i < task->to.hosts; i++) {
		uint32_t next = (i + 1) % task->to.hosts;
		struct mesh_crossing c = mesh_crossing_at(x->strategy, task->bytes, task->to, i);

		x->crossing[turn->sender * x->n_hosts + first + i] += (double)c.from_sender;
		x->crossing[(first + i) * x->n_hosts + first + next] += (double)c.to_next;
	}
}

static int plan(struct resharding *x, const struct mesh_reshard *m, enum turns_algo algo,
		struct err *err)
{
	const struct turns_effort effort = {.seed = 1, .nodes = SEARCH_NODES};
	struct turns turns;
	int r = mesh_plan(m, x->strategy, &x->net, algo, &effort, &turns, err);

	if (r < 0)
		return r;
	mesh_done(m, x->strategy, &x->net, &turns, x->done_ns + x->n_senders, x->done_ns);
	x->end_ns = turns.end_ns;
	for (uint32_t i = 0; i < turns.n; i++)
		add_crossing(x, m, &turns.turns[i]);
	turns_deinit(&turns);
	for (uint32_t k = 0; k < x->n_receivers; k++) {
		struct mesh_box tile;

		for (uint32_t i = 0; i < x->n_senders; i++)
			x->bytes[(size_t)i * x->n_receivers + k] = common_bytes(m, i, k);
		mesh_tile_box(&m->dst, &m->tensor, mesh_tile_of(&m->dst, k), &tile);
		x->needs[k] = mesh_box_elements(&tile, m->tensor.n_dims) * m->tensor.element_bytes;
	}
	return 0;
}

static int take_tensor(struct mesh_reshard *m, const char *const values[KEYS], struct err *err)
{
	struct mesh_tensor tensor = {0};
	struct mesh_spec src, dst;
	int r = mesh_dims_parse(values[TENSOR], &tensor, err);

	if (r == 0)
		r = mesh_dtype_bytes(values[DTYPE] ? values[DTYPE] : "f32", err);
	if (r < 0)
		return r;
	tensor.element_bytes = (uint32_t)r;
	r = mesh_spec_parse(values[SRC], &src, err);
	if (r == 0)
		r = mesh_spec_parse(values[DST], &dst, err);
	return r < 0 ? r : mesh_reshard_init(m, &tensor, &src, &dst, err);
}

static int take_all(struct resharding *x, const char *const values[KEYS], const struct topology *t,
		    const struct fabric *f, struct err *err)
{
	CLEANUP(mesh_reshard_deinit) struct mesh_reshard m = {0};
	bool has_tensor = false;
	int r, algo = TURNS_OURS;

	if (!values[STRATEGY])
		return err_set(err, EINVAL, "say how: strategy=broadcast, or another");
	r = take_name("strategy", values[STRATEGY], mesh_strategy_names, err);
	x->strategy = (enum mesh_strategy)r;
	net_of_cluster(t, f, &x->net);
	if (r >= 0)
		r = take_net(x, values, err);
	if (r == 0 && values[ALGO])
		r = algo = take_name("algo", values[ALGO], turns_algo_names, err);
	for (size_t k = TENSOR; k <= ALGO && r >= 0; k++)
		has_tensor |= values[k] != NULL;
	if (r < 0 || !has_tensor)
		return r;
	if (!values[TENSOR] || !values[SRC] || !values[DST])
		return err_set(err, EINVAL,
			       "tensor=, src= and dst= belong together, such as "
			       "tensor=1024x1024x512,src=S0RR@2x4,dst=RRS0@2x4");
	r = take_tensor(&m, values, err);
	if (r == 0)
		r = place_all(x, &m, values, t, err);
	return r < 0 ? r : plan(x, &m, (enum turns_algo)algo, err);
}

int resharding_parse(const char *text, const struct topology *t, const struct fabric *f,
		     struct resharding *ret, struct err *err)
{
	struct resharding x = {.text = text};
	const char *values[KEYS] = {NULL};
	struct spec spec;
	int r = spec_split(text, &spec, err);

	if (r)
		return r;
	r = take_keys(&spec, values, err);
	if (r == 0)
		r = take_all(&x, values, t, f, err);
	if (r < 0) {
		deinit(&x);
		return err_prefix(err, r, "'%.200s'", text);
	}
	*ret = x;
	return 0;
}
