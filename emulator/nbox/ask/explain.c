/* See explain.h. */
#include "nbox/ask/explain.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "config/open-model.h"
#include "nbox/ask/honest.h"
#include "nbox/topo/words.h"
#include "schedule/coll.h"

static const char *how_text(const struct answer *a)
{
	static const char *const texts[] = {"the model's own answer for the op", /* SOLVE_... */
					    "symmetry, equal to a simulation of each message",
					    "a simulation of each message"};

	return a->is_near ? "a short cut that is near to a simulation of each message"
			  : texts[a->how];
}

struct subject {
	struct ask *ask;
	const struct config *config;
	enum coll_kind kind;
	uint64_t asked, size; /* the same in whole elements for each rank */
	struct answer answer;
	struct asked_message slowest; /* n_links 0: none */
	char why[640];                /* it is far above the bound; "": it is not */
};

/* Where nodes differ, a scheduler sees the weakest of each thing (fabric/view.c). */
static void print_weakest(const struct fabric *f, FILE *to)
{
	const struct membership world = {.n_ranks = f->n_nodes * f->gpus_per_node, .stride = 1};
	struct fabric_view v;

	if (fabric_view(f, &world, &v) < 0)
		return;
	fprintf(to,
		"            decided by the weakest: compute capability %u.%u, %g GB/s a GPU, %u NICs "
		"of %g GB/s a domain, %s, %s\n",
		v.sm_min / 10, v.sm_min % 10, v.gpu_bytes_per_ns, v.n_nics, v.nic_bytes_per_ns,
		v.has_nvls ? "NVLS" : "no NVLS", v.has_gdr ? "GDR" : "no GDR");
}

static void print_fabric(const struct fabric *f, FILE *to)
{
	char text[160], gpu[32], nic[32];

	fprintf(to, "fabric      %s: %s\n", f->name, f->source);
	for (uint32_t i = 0; i < f->n_classes; i++) {
		const struct fabric_class *k = &f->classes[i];

		fprintf(to,
			"            %s: %u x %s on %s, %u NIC%s %s GPUDirect RDMA; NCCL gets %s each way "
			"of a GPU's port, %s of a NIC\n",
			f->n_classes > 1 ? k->name : "a node", k->n_gpus,
			k->gpu[0] ? k->gpu : "GPU", topo_intra(k), k->n_nics,
			k->n_nics == 1 ? "" : "s", k->has_gdr ? "with" : "without",
			topo_rate(k->gpu_bytes_per_ns * fabric_gpu_efficiency(k), gpu, sizeof(gpu)),
			topo_rate(k->nic_bytes_per_ns * fabric_nic_efficiency(k), nic,
				  sizeof(nic)));
		if (k->domain_nodes > 1)
			fprintf(to, "            NVLink joins %u nodes\n", k->domain_nodes);
	}
	if (f->n_classes > 1)
		print_weakest(f, to);
	fprintf(to, "            between nodes: %s; %.2f us\n", topo_network(f, text, sizeof(text)),
		f->network.latency_ns / 1e3);
}

/* What nbox's own rules say, beside a cost that does not come from them. */
static void print_own(const struct nbox_plan *p, uint32_t i, FILE *to)
{
	double ns = p->candidates[i].cost_ns, own = p->own_cost_ns[i];

	if (own < 0)
		fprintf(to, "%12s            ", "-");
	else if (ns <= 0)
		fprintf(to, "%12.2f us         ", own / 1e3);
	else
		fprintf(to, "%12.2f us %+7.1f %%", own / 1e3,
			fabs(own / ns - 1) < 0.0005 ? 0 : 100 * (own / ns - 1));
}

static void print_candidate(const struct nbox_plan *p, uint32_t i, FILE *to)
{
	const struct nbox_candidate *k = &p->candidates[i];
	bool is_taken = k->algo == p->algo && k->proto == p->proto;

	fprintf(to, "            %-8s %-6s ", ask_algo_name(k->algo), ask_proto_name(k->proto));
	if (k->cost_ns >= 0)
		fprintf(to, "%12.2f us", k->cost_ns / 1e3);
	else
		fprintf(to, "%12s   ", "-");
	if (p->own_source)
		print_own(p, i, to);
	if (k->cost_ns < 0)
		fprintf(to, "  %s", k->why_not ? k->why_not : "");
	else if (is_taken)
		fputs("  <- taken", to);
	if (p->own_source && k->algo == p->own_algo && k->proto == p->own_proto)
		fputs(is_taken ? ", by nbox's own rules too" : "  <- nbox's own rules take this",
		      to);
	fputc('\n', to);
}

static void print_candidates(const struct nbox_plan *p, FILE *to)
{
	fprintf(to, "candidates  by the costs of %s\n", p->source ? p->source : "the model");
	if (p->own_source)
		fprintf(to, "            beside them those of nbox's own rules (%s)\n",
			p->own_source);
	for (uint32_t i = 0; i < p->n_candidates; i++)
		print_candidate(p, i, to);
}

static void print_plan(const struct nbox_plan *p, FILE *to)
{
	char chunk[32];

	if (p->n_candidates)
		print_candidates(p, to);
	fprintf(to, "choice      %s %s, %u channel%s", ask_algo_name(p->algo),
		ask_proto_name(p->proto), p->n_lanes, p->n_lanes == 1 ? "" : "s");
	if (p->n_threads)
		fprintf(to, " of %u threads", p->n_threads);
	fprintf(to, ", chunks of %s in %u slice%s, %u rail%s",
		units_print_bytes(p->chunk_bytes, chunk, sizeof(chunk)), p->n_slices,
		p->n_slices == 1 ? "" : "s", p->n_rails, p->n_rails == 1 ? "" : "s");
	if (p->wire_factor != 1)
		fprintf(to, "; %.4g bytes on the wire for each", p->wire_factor);
	fputc('\n', to);
	if (p->whole_ns >= 0)
		return;
	fprintf(to,
		"steps       %.2f us an op; a message besides its links: %.2f us inside a "
		"domain, %.2f us between\n",
		p->base_ns / 1e3, p->step_ns[NBOX_INTRA] / 1e3, p->step_ns[NBOX_INTER] / 1e3);
	for (int i = NBOX_INTRA; i <= NBOX_INTER; i++)
		if (p->lane_bytes_per_ns[i] > 0)
			fprintf(to, "            a channel carries %.2f GB/s at most %s\n",
				p->lane_bytes_per_ns[i],
				i == NBOX_INTRA ? "inside a domain" : "between domains");
}

static void print_message(const struct asked_message *m, FILE *to)
{
	char bytes[32], a[32], b[32], rate[32];

	fprintf(to,
		"slowest     a message of %s from rank %u to rank %u, lane %u: keeps its way busy for %s, arrives %s after it left",
		units_print_bytes(m->bytes, bytes, sizeof(bytes)), m->src, m->dst, m->lane,
		units_print_time(m->delay.occupancy_ns, a, sizeof(a)),
		units_print_time(m->delay.occupancy_ns + m->delay.latency_ns, b, sizeof(b)));
	if (m->n_sample)
		fprintf(to, "; of a sample of %u messages", m->n_sample);
	fputc('\n', to);
	for (uint32_t i = 0; i < m->n_links; i++)
		fprintf(to, "            %-20s %10s %8.2f us  %u flow%s\n", m->names[i],
			topo_rate(m->links[i].bytes_per_ns, rate, sizeof(rate)),
			m->links[i].latency_ns / 1e3, m->links[i].flows,
			m->links[i].flows == 1 ? "" : "s");
}

static void print_text(const struct subject *s, FILE *to)
{
	const struct answer *a = &s->answer;
	const struct config *c = s->config;
	const struct asked asked = {(int)s->kind, (double)s->size, (double)s->size};
	char text[1024], size[32], t[32], b[32];

	fprintf(to, "op          %s of %s", coll_kind_name(s->kind),
		units_print_bytes(s->asked, size, sizeof(size)));
	if (s->size != s->asked)
		fprintf(to, " (%llu B in whole elements for each rank)",
			(unsigned long long)s->size);
	fprintf(to, ", %s\n", topology_print(&c->topology, text, sizeof(text)));
	fprintf(to, "model       %s", config_model(c, text, sizeof(text)));
	fprintf(to, "%s%s\n", c->links ? "; messages by " : "", c->links ? c->links : "");
	if (c->fabric)
		print_fabric(c->fabric, to);
	if (a->plan.n_lanes) {
		fprintf(to, "            %s\n",
			open_model_calibration(c, &asked, text, sizeof(text)));
		print_plan(&a->plan, to);
	} else {
		fprintf(to, "network     %s\n", ask_network(s->ask, &asked, text, sizeof(text)));
	}
	if (s->slowest.n_links)
		print_message(&s->slowest, to);
	fprintf(to, "bound       %s%s%s\n", units_print_time(a->bound_ns, b, sizeof(b)),
		a->bound_at[0] ? " at " : "", a->bound_at);
	fprintf(to, "time        %s, by %s", units_print_time(a->model_ns, t, sizeof(t)),
		how_text(a));
	if (a->bound_ns > 0)
		fprintf(to, "; %.2f x the bound", a->model_ns / a->bound_ns);
	fputc('\n', to);
	if (a->plan.n_lanes && a->plan.estimate_ns >= 0)
		fprintf(to, "            the scheduler's own estimate: %s\n",
			units_print_time(a->plan.estimate_ns, t, sizeof(t)));
	if (s->why[0])
		fprintf(to, "why         %s\n", s->why);
	if (a->ns != a->model_ns)
		fprintf(to, "what-ifs    %s in all\n", units_print_time(a->ns, t, sizeof(t)));
	else if (config_moves_times(c))
		fprintf(to, "what-ifs    add nothing to this op\n");
}

static json_t *candidates_json(const struct nbox_plan *p)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < p->n_candidates; i++) {
		const struct nbox_candidate *k = &p->candidates[i];

		json_t *o = k->cost_ns >= 0
				    ? json_pack("{s:s, s:s, s:f}", "algo", ask_algo_name(k->algo),
						"proto", ask_proto_name(k->proto), "cost_us",
						k->cost_ns / 1e3)
				    : json_pack("{s:s, s:s, s:s}", "algo", ask_algo_name(k->algo),
						"proto", ask_proto_name(k->proto), "why_not",
						k->why_not ? k->why_not : "");

		if (p->own_source && p->own_cost_ns[i] >= 0)
			json_object_set_new(o, "own_cost_us", json_real(p->own_cost_ns[i] / 1e3));
		json_array_append_new(list, o);
	}
	return list;
}

/* What nbox's own rules take. */
static json_t *own_json(const struct nbox_plan *p)
{
	return json_pack("{s:s, s:s, s:i, s:s}", "algo", ask_algo_name(p->own_algo), "proto",
			 ask_proto_name(p->own_proto), "channels", (int)p->own_lanes, "source",
			 p->own_source);
}

static json_t *plan_json(const struct nbox_plan *p)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:i, s:f, s:f, s:[f, f], s:[f, f], s:f, "
			 "s:s, s:o}",
			 "algo", ask_algo_name(p->algo), "proto", ask_proto_name(p->proto),
			 "channels", (int)p->n_lanes, "threads", (int)p->n_threads, "chunk_bytes",
			 (json_int_t)p->chunk_bytes, "slices", (int)p->n_slices, "rails",
			 (int)p->n_rails, "wire_factor", p->wire_factor, "base_us",
			 p->base_ns / 1e3, "step_us", p->step_ns[0] / 1e3, p->step_ns[1] / 1e3,
			 "channel_gb_per_s", p->lane_bytes_per_ns[0], p->lane_bytes_per_ns[1],
			 "estimate_us", p->estimate_ns / 1e3, "source", p->source ? p->source : "",
			 "candidates", candidates_json(p));
}

static json_t *message_json(const struct asked_message *m)
{
	json_t *links = json_array(), *o;

	for (uint32_t i = 0; i < m->n_links; i++)
		json_array_append_new(links, json_pack("{s:s, s:f, s:f, s:i}", "name", m->names[i],
						       "gb_per_s", m->links[i].bytes_per_ns,
						       "latency_us", m->links[i].latency_ns / 1e3,
						       "flows", (int)m->links[i].flows));
	o = json_pack("{s:i, s:i, s:i, s:I, s:f, s:f, s:o}", "from", (int)m->src, "to", (int)m->dst,
		      "lane", (int)m->lane, "bytes", (json_int_t)m->bytes, "occupancy_us",
		      m->delay.occupancy_ns / 1e3, "latency_us", m->delay.latency_ns / 1e3, "links",
		      links);
	if (m->n_sample)
		json_object_set_new(o, "sample", json_integer(m->n_sample));
	return o;
}

static int print_json(const struct subject *s, FILE *to)
{
	const struct answer *a = &s->answer;
	const struct config *c = s->config;
	const struct asked asked = {(int)s->kind, (double)s->size, (double)s->size};
	char model[1024], network[1024];
	json_t *o =
		json_pack("{s:s, s:I, s:i, s:i, s:i, s:s, s:s, s:f, s:f, s:f, s:s, s:s}", "op",
			  coll_kind_name(s->kind), "bytes", (json_int_t)s->size, "ranks",
			  (int)c->world, "nodes", (int)c->topology.n_nodes, "gpus_per_node",
			  (int)c->topology.gpus_per_node, "model",
			  config_model(c, model, sizeof(model)), "network",
			  ask_network(s->ask, &asked, network, sizeof(network)), "modelled_us",
			  a->model_ns / 1e3, "injected_us", (a->ns - a->model_ns) / 1e3, "bound_us",
			  a->bound_ns / 1e3, "bound_at", a->bound_at, "how", how_text(a));
	int failed;

	if (o && c->fabric)
		json_object_set_new(o, "fabric", json_string(c->fabric->name));
	if (o && a->plan.n_lanes)
		json_object_set_new(o, "plan", plan_json(&a->plan));
	if (o && a->plan.n_lanes && a->plan.own_source && a->plan.own_algo != UINT32_MAX)
		json_object_set_new(json_object_get(o, "plan"), "own", own_json(&a->plan));
	if (o && s->slowest.n_links)
		json_object_set_new(o, "slowest", message_json(&s->slowest));
	if (o && s->why[0])
		json_object_set_new(o, "why", json_string(s->why));
	failed = !o || json_dumpf(o, to, JSON_INDENT(1)) < 0;

	fputc('\n', to);
	json_decref(o);
	return failed ? -ENOMEM : 0;
}

int explain_print(struct ask *a, enum coll_kind kind, uint64_t size, uint32_t dtype, bool is_json,
		  FILE *to, struct err *err)
{
	struct subject s = {.ask = a, .config = ask_config(a), .kind = kind, .asked = size};
	uint32_t element = (uint32_t)coll_dtype_bytes(dtype);
	uint64_t bytes = ask_bytes(kind, size, element, s.config->world);
	int r;

	if (!bytes)
		return err_set(err, EINVAL, "%llu B hold no %s%s; take a larger size",
			       (unsigned long long)size, coll_dtype_name(dtype),
			       ask_size(kind, 1, s.config->world) > 1 ? " for each rank's part"
								      : "");
	s.size = ask_size(kind, bytes, s.config->world);
	r = ask_op(a, kind, bytes, element, 0, &s.answer, err);
	if (r == 0)
		r = ask_slowest(a, kind, bytes, element, &s.slowest, err);
	if (r == 0 && honest_is_far_above(&s.answer, s.size))
		r = honest_why(a, kind, bytes, element, &s.answer, s.why, sizeof(s.why), err);
	if (r < 0)
		return r;
	if (is_json)
		r = print_json(&s, to);
	else
		print_text(&s, to);
	if (r < 0 || !honest_is_below(&s.answer) || strcmp(s.config->model, "none") == 0)
		return r;
	return err_set(err, ERANGE,
		       "the time is below the bound, which nothing on this network can do: model "
		       "%s is wrong here",
		       s.config->model);
}
