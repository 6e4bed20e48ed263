/* See print.h. */
#include "nbox/reshard/print.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "mesh/route.h"

#define ROWS 64 /* of tasks that are shown; JSON has all */

/* --- what follows from the plan ------------------------------------------------------ */

static double gap_pct(const struct turns *t)
{
	return t->bound_ns > 0 ? 100 * (t->end_ns / t->bound_ns - 1) : 0;
}

/* How long each host is held. */
struct busy {
	double src[MESH_HOSTS], dst[MESH_HOSTS];
};

static struct busy busy_of(const struct answer *a)
{
	struct busy b = {{0}, {0}};

	for (uint32_t i = 0; i < a->plan.n; i++) {
		const struct turn *t = &a->plan.turns[i];
		uint64_t receivers = a->reshard.tasks[t->task].receivers;

		b.src[t->sender] += t->end_ns - t->start_ns;
		for (uint32_t h = 0; h < a->reshard.dst.hosts; h++)
			if (receivers >> h & 1)
				b.dst[h] += t->end_ns - t->start_ns;
	}
	return b;
}

static uint64_t crossing_bytes(const struct answer *a)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < a->reshard.n; i++)
		sum += mesh_crossing_bytes(a->of.strategy, a->reshard.tasks[i].bytes,
					   a->reshard.tasks[i].to);
	return sum;
}

static uint32_t first_host(const struct mesh_task *t)
{
	return (uint32_t)__builtin_ctzll(t->receivers);
}

/* --- text ----------------------------------------------------------------------------- */

static void print_head(const struct answer *a, FILE *to)
{
	const struct mesh_reshard *r = &a->reshard;
	char bytes[32], src[32], dst[32];
	uint64_t src_pad = mesh_pad_bytes(&r->src, &r->tensor);
	uint64_t dst_pad = mesh_pad_bytes(&r->dst, &r->tensor);

	fprintf(to, "tensor      %s of %s, %s, from %s to %s\n", a->of.tensor, a->of.dtype,
		units_print_bytes(mesh_bytes(&r->tensor), bytes, sizeof(bytes)), a->of.src,
		a->of.dst);
	if (src_pad || dst_pad)
		fprintf(to, "padding     %s at the source, %s at the destination: not sent\n",
			units_print_bytes(src_pad, src, sizeof(src)),
			units_print_bytes(dst_pad, dst, sizeof(dst)));
}

static void print_way(const struct answer *a, FILE *to)
{
	const struct mesh_net *net = &a->of.net;
	char alpha[32], bytes[32];

	fprintf(to, "unit tasks  %u, each by %s", a->reshard.n,
		mesh_strategy_names[a->of.strategy]);
	if (a->of.strategy == MESH_BROADCAST && net->k == MESH_K_BEST)
		fputs(" of as many pieces as are fastest", to);
	else if (a->of.strategy == MESH_BROADCAST && net->k == MESH_K_ENDLESS)
		fputs(" of endless pieces", to);
	else if (a->of.strategy == MESH_BROADCAST)
		fprintf(to, " of %u pieces", net->k);
	fprintf(to, "; a host sends and receives %.4g GB/s", net->nic);
	if (net->alpha_ns > 0)
		fprintf(to, ", a message starts in %s",
			units_print_time(net->alpha_ns, alpha, sizeof(alpha)));
	fprintf(to, "\n            %s from host to host\n",
		units_print_bytes(crossing_bytes(a), bytes, sizeof(bytes)));
}

static void print_tasks(const struct answer *a, FILE *to)
{
	char bytes[32], hosts[32];
	uint32_t n = a->plan.n < ROWS ? a->plan.n : ROWS;

	fputs("  task      bytes  from      to hosts     devices     start, ms       end, ms\n",
	      to);
	for (uint32_t i = 0; i < n; i++) {
		const struct turn *t = &a->plan.turns[i];
		const struct mesh_task *task = &a->reshard.tasks[t->task];
		uint32_t sender = mesh_task_sender(&a->reshard, t->task, t->sender);

		snprintf(hosts, sizeof(hosts), task->to.hosts > 1 ? "%u-%u" : "%u",
			 first_host(task), first_host(task) + task->to.hosts - 1);
		fprintf(to, "%6u %10s  %-8u  %-10s %7u  %14.6f%14.6f\n", t->task,
			units_print_bytes(task->bytes, bytes, sizeof(bytes)), sender, hosts,
			task->to.hosts * task->to.devices, t->start_ns / 1e6, t->end_ns / 1e6);
	}
	if (a->plan.n > n)
		fprintf(to, "  ... %u more: --json has all\n", a->plan.n - n);
}

static void print_host(const char *mesh, uint32_t host, double busy, double end, FILE *to)
{
	fprintf(to, "  %-11s %4u   busy %12.6f ms   idle %12.6f ms  %5.1f %%\n", mesh, host,
		busy / 1e6, (end - busy) / 1e6, end > 0 ? 100 * (end - busy) / end : 0);
}

static void print_end(const struct answer *a, FILE *to)
{
	const struct turns *t = &a->plan;
	char end[32], bound[32];

	fprintf(to, "plan        %s", turns_algo_names[a->of.algo]);
	if (t->by != a->of.algo)
		fprintf(to, ", found by %s", turns_algo_names[t->by]);
	fprintf(to, ": over at %s; no plan ends before %s\n",
		units_print_time(t->end_ns, end, sizeof(end)),
		units_print_time(t->bound_ns, bound, sizeof(bound)));
	if (t->is_optimal && gap_pct(t) < 1e-6)
		fputs("optimal     yes: it meets the bound\n", to);
	else if (t->is_optimal)
		fprintf(to,
			"optimal     yes: the search has seen all others (%.3g %% above the bound)\n",
			gap_pct(t));
	else
		fprintf(to, "optimal     not proven (gap %.3g %%)\n", gap_pct(t));
}

void answer_print(const struct answer *a, FILE *to)
{
	struct busy busy = busy_of(a);

	print_head(a, to);
	print_way(a, to);
	print_tasks(a, to);
	for (uint32_t h = 0; h < a->reshard.src.hosts; h++)
		print_host("source", h, busy.src[h], a->plan.end_ns, to);
	for (uint32_t h = 0; h < a->reshard.dst.hosts; h++)
		print_host("destination", h, busy.dst[h], a->plan.end_ns, to);
	print_end(a, to);
}

/* --- JSON ------------------------------------------------------------------------------ */

static json_t *json_turn(const struct answer *a, const struct turn *t)
{
	const struct mesh_task *task = &a->reshard.tasks[t->task];
	json_t *to = json_array();

	for (uint32_t p = 0; to && p < task->to.hosts * task->to.devices; p++)
		json_array_append_new(to,
				      json_integer(mesh_task_receiver(&a->reshard, t->task, p)));
	return json_pack("{s:i, s:I, s:i, s:i, s:i, s:i, s:o, s:f, s:f}", "task", (int)t->task,
			 "bytes", (json_int_t)task->bytes, "src_tile", (int)task->src_tile,
			 "dst_tile", (int)task->dst_tile, "sender_host", (int)t->sender, "sender",
			 (int)mesh_task_sender(&a->reshard, t->task, t->sender), "receivers", to,
			 "start_ns", t->start_ns, "end_ns", t->end_ns);
}

static json_t *json_k(uint32_t k)
{
	if (k == MESH_K_BEST || k == MESH_K_ENDLESS)
		return json_string(k == MESH_K_BEST ? "best" : "endless");
	return json_integer(k);
}

static json_t *json_hosts(const double *busy, uint32_t n, double end)
{
	json_t *hosts = json_array();

	for (uint32_t h = 0; hosts && h < n; h++)
		json_array_append_new(hosts, json_pack("{s:f, s:f}", "busy_ns", busy[h], "idle_ns",
						       end - busy[h]));
	return hosts;
}

static json_t *json_done(const struct answer *a)
{
	uint32_t n = a->reshard.dst.hosts * a->reshard.dst.devices;
	double *ns = malloc(n * sizeof(*ns));
	json_t *done = ns ? json_array() : NULL;

	if (done)
		mesh_done(&a->reshard, a->of.strategy, &a->of.net, &a->plan, ns, NULL);
	for (uint32_t d = 0; done && d < n; d++)
		json_array_append_new(done, json_real(ns[d]));
	free(ns);
	return done;
}

json_t *answer_json(const struct answer *a)
{
	const struct mesh_reshard *r = &a->reshard;
	const struct mesh_net *net = &a->of.net;
	struct busy busy = busy_of(a);
	json_t *tasks = json_array(), *o;

	for (uint32_t i = 0; tasks && i < a->plan.n; i++)
		json_array_append_new(tasks, json_turn(a, &a->plan.turns[i]));
	o = json_pack(
		"{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:s, s:o, s:s, s:s, s:I, s:f, s:f, s:f, s:f, s:b, "
		"s:f, s:I, s:o, s:o, s:o, s:o}",
		"tensor", a->of.tensor, "dtype", a->of.dtype, "src", a->of.src, "dst", a->of.dst,
		"bytes", (json_int_t)mesh_bytes(&r->tensor), "src_pad_bytes",
		(json_int_t)mesh_pad_bytes(&r->src, &r->tensor), "dst_pad_bytes",
		(json_int_t)mesh_pad_bytes(&r->dst, &r->tensor), "strategy",
		mesh_strategy_names[a->of.strategy], "k", json_k(net->k), "algo",
		turns_algo_names[a->of.algo], "found_by", turns_algo_names[a->plan.by], "seed",
		(json_int_t)a->of.seed, "nic_bytes_per_s", net->nic * 1e9, "alpha_ns",
		net->alpha_ns, "end_ns", a->plan.end_ns, "bound_ns", a->plan.bound_ns, "optimal",
		a->plan.is_optimal, "gap_pct", gap_pct(&a->plan), "crossing_bytes",
		(json_int_t)crossing_bytes(a), "tasks", tasks, "src_hosts",
		json_hosts(busy.src, r->src.hosts, a->plan.end_ns), "dst_hosts",
		json_hosts(busy.dst, r->dst.hosts, a->plan.end_ns), "dst_done_ns", json_done(a));
	return o;
}

/* --- trace ------------------------------------------------------------------------------ */

enum { SOURCE, DESTINATION };

static void trace_lane(const char *mesh, uint32_t pid, uint32_t hosts, FILE *to)
{
	fprintf(to,
		"{\"ph\": \"M\", \"pid\": %u, \"name\": \"process_name\", \"args\": {\"name\": "
		"\"%s\"}},\n",
		pid, mesh);
	for (uint32_t h = 0; h < hosts; h++)
		fprintf(to,
			"{\"ph\": \"M\", \"pid\": %u, \"tid\": %u, \"name\": \"thread_name\", "
			"\"args\": {\"name\": \"host %u\"}},\n",
			pid, h, h);
}

static void trace_turn(const struct turn *t, uint64_t bytes, uint32_t pid, uint32_t host, FILE *to)
{
	fprintf(to,
		",\n{\"ph\": \"X\", \"cat\": \"reshard\", \"pid\": %u, \"tid\": %u, \"name\": \"task "
		"%u\", \"ts\": %.6f, \"dur\": %.6f, \"args\": {\"bytes\": %llu, \"sender\": %u}}",
		pid, host, t->task, t->start_ns / 1e3, (t->end_ns - t->start_ns) / 1e3,
		(unsigned long long)bytes, t->sender);
}

void answer_trace(const struct answer *a, FILE *to)
{
	fputs("{\"traceEvents\": [\n", to);
	trace_lane("source", SOURCE, a->reshard.src.hosts, to);
	trace_lane("destination", DESTINATION, a->reshard.dst.hosts, to);
	fprintf(to,
		"{\"ph\": \"X\", \"cat\": \"plan\", \"pid\": 2, \"tid\": 0, \"name\": \"plan\", "
		"\"ts\": 0, \"dur\": %.6f}",
		a->plan.end_ns / 1e3);
	for (uint32_t i = 0; i < a->plan.n; i++) {
		const struct turn *t = &a->plan.turns[i];
		const struct mesh_task *task = &a->reshard.tasks[t->task];

		trace_turn(t, task->bytes, SOURCE, t->sender, to);
		for (uint32_t h = 0; h < a->reshard.dst.hosts; h++)
			if (task->receivers >> h & 1)
				trace_turn(t, task->bytes, DESTINATION, h, to);
	}
	fputs("\n]}\n", to);
}
