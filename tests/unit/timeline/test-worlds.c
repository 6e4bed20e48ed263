/* Timelines of random jobs against a slow obvious simulator.
 *
 * A job is a list of calls that each rank's host makes: kernels, records and waits of events, ops
 * on any stream, and waits of the host. struct machine is a rank that runs it: a host and streams,
 * each of which does one thing after the other. All ranks run without lateness and with the
 * what-ifs; that is what has to come out. Beside them the real ranks run by the wall clock, without
 * what-ifs, on gates that open late, and what a worker sees of that is fed to the timelines.
 *
 * Times are multiples of STEP_NS, so that no point comes just after its call by chance, which would
 * count as the host's. For what nobody can see from points, the worker makes more of them than a
 * job has events: directly before each wait, and around a kernel whose host was not known to be
 * ahead. */
#include <math.h>
#include <string.h>

#include "cmocka-all.h"
#include "rng.h"
#include "timeline/timeline.h"

#define STEP_NS 250e3
#define BASE_NS UINT64_C(1000000000000)
#define WORLD_MAX 24
#define REAL_MAX 4
#define STREAMS 6
#define N_COMPUTE 3 /* streams 0 to 2; ops are mostly on the others */
#define EVENTS 8
#define OPS_MAX 12
#define CALLS_MAX 160
#define JOBS 2000

enum call_kind { HOST, KERNEL, RECORD, WAIT, OP, SYNC };

struct call {
	enum call_kind kind;
	uint32_t stream, event;
	double ns; /* HOST, KERNEL */
};

struct job {
	struct call calls[CALLS_MAX];
	uint32_t n;
	double start;
	bool has_op[OPS_MAX];
};

struct op {
	double ns, plain_ns;
	uint32_t group[WORLD_MAX]; /* by world rank: of its communicator */
};

/* --- what-ifs ------------------------------------------------------------------------------- */

struct scenario {
	uint32_t world, n_real, real[REAL_MAX], template[WORLD_MAX]; /* index into @real */
	struct job jobs[REAL_MAX];
	struct op ops[OPS_MAX];
	uint32_t n_ops;
	bool is_late;  /* gates, and ops' own work */
	bool is_whole; /* all ranks are in each op, and it is one communicator */
	double slow[WORLD_MAX];
	uint32_t jitter[WORLD_MAX]; /* at most so many steps more or fewer; 0: none */
	uint64_t seed;
	uint32_t call; /* the kernel that a point is made for */
};

static double stretched(const struct scenario *s, uint32_t rank, uint32_t call, double ns)
{
	uint64_t dice = rng_mix64(s->seed ^ ((uint64_t)call << 32 | rank));
	double more = 0;

	if (s->jitter[rank])
		more = (double)(dice % (2 * s->jitter[rank] + 1)) - s->jitter[rank];
	return fmax(0, ns * s->slow[rank] + more * STEP_NS);
}

static int segment(void *ctx, uint32_t rank, uint64_t number, double start, double ns,
		   double *ret_ns, struct err *err)
{
	const struct scenario *s = ctx;

	(void)start;
	(void)number;
	(void)err;
	if (s->slow[rank] == 1 && !s->jitter[rank])
		return 1;
	*ret_ns = stretched(s, rank, s->call, ns);
	return 0;
}

/* --- a rank that runs its job --------------------------------------------------------------- */

struct machine {
	double host, streams[STREAMS], events[EVENTS];
};

static void machine_start(struct machine *m, double at)
{
	m->host = at;
	for (int i = 0; i < STREAMS; i++)
		m->streams[i] = at;
	for (int i = 0; i < EVENTS; i++)
		m->events[i] = at;
}

/* OP: the stream stands where it has arrived; the caller knows when it is over. */
static void machine_step(struct machine *m, const struct call *c, double kernel_ns)
{
	double *stream = &m->streams[c->stream];

	if (c->kind != HOST && c->kind != SYNC)
		*stream = fmax(*stream, m->host);
	switch (c->kind) {
	case HOST:
		m->host += c->ns;
		break;
	case KERNEL:
		*stream += kernel_ns;
		break;
	case RECORD:
		m->events[c->event] = *stream;
		break;
	case WAIT:
		*stream = fmax(*stream, m->events[c->event]);
		break;
	case SYNC:
		m->host = fmax(m->host, m->events[c->event]);
		break;
	case OP:
		break;
	}
}

/* --- a worker: what libnbox sees of a real rank --------------------------------------------- */

/* The latest point of each stream that lies before a place; the last is the host's first point. */
struct before {
	uint64_t names[STREAMS + 1];
};

struct worker {
	uint32_t rank;
	struct machine wall;
	const struct machine *true_, *plain; /* the same rank by its time, and by the plain one */
	struct before streams[STREAMS], events[EVENTS];
	uint64_t n_names, host;
	bool has_kernel[STREAMS]; /* since its last point */
	double work[STREAMS];     /* when the host gave it the first of them */
	uint32_t kernel[STREAMS];
};

struct run {
	struct scenario *s;
	struct timelines *timelines;
	struct worker workers[REAL_MAX];
	struct machine machines[WORLD_MAX], plain[REAL_MAX];
	uint32_t next[REAL_MAX]; /* call */
	struct timeline_node *nodes[REAL_MAX];
	double end[WORLD_MAX];
	uint32_t n_checked;
};

static double ns_of(uint64_t wall_ns)
{
	return (double)(int64_t)(wall_ns - BASE_NS);
}

static uint64_t wall_of(double ns)
{
	return BASE_NS + (uint64_t)(int64_t)llround(ns);
}

static void check(struct run *run, double got, double expected, const char *what, uint32_t rank)
{
	if (fabs(got - expected) > 1e-9 * fmax(fabs(got), fabs(expected)) + 1e-3)
		fail_msg("seed %llu: rank %u %s at %.17g, not %.17g",
			 (unsigned long long)run->s->seed, rank, what, got, expected);
	run->n_checked++;
}

static void merge(struct before *into, const struct before *from)
{
	for (int i = 0; i <= STREAMS; i++)
		if (from->names[i] > into->names[i])
			into->names[i] = from->names[i];
}

static size_t deps_of(const struct before *b, uint32_t stream, struct timeline_dep *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i <= STREAMS; i++)
		if (b->names[i])
			ret[n++] = (struct timeline_dep){.name = b->names[i],
							 .is_same_stream = i == stream};
	return n;
}

/* A point of @stream, or an op's (@ret_node). */
static void tell(struct run *run, struct worker *w, uint32_t stream,
		 struct timeline_node **ret_node)
{
	struct timeline_dep deps[STREAMS + 1];
	struct timeline_times times;
	struct err err = {""};
	struct timeline_point p = {
		.name = ++w->n_names,
		.time_ns = wall_of(fmax(w->wall.streams[stream], w->wall.host)),
		.call_ns = wall_of(w->wall.host),
		.work_ns = w->has_kernel[stream] ? wall_of(w->work[stream]) : 0,
		.host = w->host,
		.deps = deps,
		.n_deps = deps_of(&w->streams[stream], stream, deps),
	};
	int r;

	run->s->call = w->kernel[stream];
	r = ret_node ? timelines_arrive(run->timelines, w->rank, &p, ret_node, &times, &err)
		     : timelines_point(run->timelines, w->rank, &p, &times, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	w->streams[stream].names[stream] = p.name;
	w->has_kernel[stream] = false;
	check(run, ns_of(times.time_ns), fmax(w->true_->streams[stream], w->true_->host),
	      "is at a point", w->rank);
	if (run->s->is_whole)
		check(run, ns_of(times.plain_ns), fmax(w->plain->streams[stream], w->plain->host),
		      "is at a point without what-ifs", w->rank);
}

/* The host has returned from a wait for what lies before @b. */
static void tell_host(struct run *run, struct worker *w, const struct before *b, double call)
{
	struct timeline_dep deps[STREAMS + 1];
	struct timeline_times times;
	struct err err = {""};
	struct timeline_point p = {
		.name = ++w->n_names,
		.time_ns = wall_of(w->wall.host),
		.call_ns = wall_of(call),
		.host = w->host,
		.deps = deps,
		.n_deps = deps_of(b, UINT32_MAX, deps),
		.is_host = true,
	};

	if (timelines_point(run->timelines, w->rank, &p, &times, &err))
		fail_msg("%s", err.text);
	w->host = p.name;
	check(run, ns_of(times.time_ns), w->true_->host, "is back from a wait", w->rank);
}

/* Before the call. */
static void watch(struct run *run, struct worker *w, const struct call *c)
{
	if (c->kind == HOST || c->kind == SYNC)
		for (uint32_t i = 0; i < STREAMS; i++)
			if (w->has_kernel[i])
				tell(run, w, i, NULL);
	if (c->kind == OP || c->kind == HOST || c->kind == SYNC)
		return;
	if (w->has_kernel[c->stream])
		tell(run, w, c->stream, NULL);
}

/* After the call. */
static void note(struct worker *w, uint32_t call, const struct call *c)
{
	if (c->kind == KERNEL) {
		w->has_kernel[c->stream] = true;
		w->work[c->stream] = w->wall.host;
		w->kernel[c->stream] = call;
	} else if (c->kind == RECORD) {
		w->events[c->event] = w->streams[c->stream];
	} else if (c->kind == WAIT) {
		merge(&w->streams[c->stream], &w->events[c->event]);
	}
}

/* Real rank @i up to its next op, or to its end, and with it those that it is the template of. */
static void advance(struct run *run, uint32_t i)
{
	const struct scenario *s = run->s;
	const struct job *job = &s->jobs[i];
	struct worker *w = &run->workers[i];

	for (;; run->next[i]++) {
		uint32_t k = run->next[i];
		const struct call *c = &job->calls[k];
		double call = w->wall.host;

		if (k == job->n)
			return;
		watch(run, w, c);
		machine_step(&w->wall, c, c->ns);
		machine_step(&run->plain[i], c, c->ns);
		for (uint32_t v = 0; v < s->world; v++)
			if (s->template[v] == i)
				machine_step(&run->machines[v], c,
					     c->kind == KERNEL ? stretched(s, v, k, c->ns) : 0);
		if (c->kind == SYNC)
			tell_host(run, w, &w->events[c->event], call);
		note(w, k, c);
		if (c->kind == OP) {
			tell(run, w, c->stream, &run->nodes[i]);
			return;
		}
	}
}

/* --- ops ------------------------------------------------------------------------------------ */

static uint32_t stream_of(const struct run *run, uint32_t i)
{
	return run->s->jobs[i].calls[run->next[i]].stream;
}

static double arrival(const struct run *run, uint32_t v)
{
	return timeline_arrival(run->nodes[run->s->template[v]], v);
}

/* Ends of all ranks, from arrivals as the timelines know them, or as they truly are. */
static void find_ends(const struct run *run, uint32_t k, bool is_true, double *ret)
{
	const struct scenario *s = run->s;

	for (uint32_t v = 0; v < s->world; v++) {
		ret[v] = -INFINITY;
		for (uint32_t u = 0; u < s->world; u++) {
			uint32_t i = s->template[u];

			if (s->ops[k].group[u] != s->ops[k].group[v] || !s->jobs[i].has_op[k])
				continue;
			ret[v] = fmax(ret[v], is_true ? run->machines[u].streams[stream_of(run, i)]
						      : arrival(run, u));
		}
		ret[v] += s->ops[k].ns;
	}
}

/* In one go, or with ends that others say are earlier. */
static void end_node(struct run *run, struct rng *r, uint32_t i, const double *end, double plain)
{
	double ends[WORLD_MAX], some[WORLD_MAX];
	uint32_t n;
	const uint32_t *ranks = timeline_ranks(run->nodes[i], &n);
	bool is_alike = true;

	for (uint32_t k = 0; k < n; k++) {
		ends[k] = end[ranks[k]];
		some[k] = ends[k] - (double)below(r, 2) * STEP_NS;
		is_alike &= ends[k] == ends[0];
	}
	if (below(r, 4) == 0)
		assert_int_equal(timeline_end_each(run->nodes[i], some, plain - STEP_NS), 0);
	if (is_alike && below(r, 2))
		assert_int_equal(timeline_end_all(run->nodes[i], ends[0], plain), 0);
	else
		assert_int_equal(timeline_end_each(run->nodes[i], ends, plain), 0);
	if (below(r, 4) == 0)
		assert_int_equal(timeline_end_each(run->nodes[i], some, plain - STEP_NS), 0);
}

/* The gate of real rank @i opens by the wall clock, when all have told of their arrivals. */
static void open_gate(struct run *run, struct rng *r, uint32_t i, double known)
{
	double *stream = &run->workers[i].wall.streams[stream_of(run, i)];
	double due = ns_of(timeline_due_ns(run->nodes[i])), at = fmax(due, known);

	if (run->s->is_late && below(r, 2))
		at = fmax(at, *stream + (double)below(r, 40) * STEP_NS); /* the op's own work */
	if (run->s->is_late && below(r, 2))
		at += (double)below(r, 20) * STEP_NS;
	if (at > due || below(r, 2))
		timeline_opened(run->nodes[i], wall_of(at));
	*stream = at;
}

static void play(struct run *run, struct rng *r, uint32_t k)
{
	const struct scenario *s = run->s;
	double known = -INFINITY, plain = -INFINITY, end[WORLD_MAX], true_end[WORLD_MAX];
	uint32_t i;

	for (i = 0; i < s->n_real; i++) {
		if (!s->jobs[i].has_op[k])
			continue;
		advance(run, i);
		known = fmax(known, run->workers[i].wall.streams[stream_of(run, i)]);
		plain = fmax(plain, timeline_plain_arrival(run->nodes[i]));
	}
	plain += s->ops[k].plain_ns;
	find_ends(run, k, false, end);
	find_ends(run, k, true, true_end);
	for (uint32_t v = 0; v < s->world; v++) {
		if (!s->jobs[s->template[v]].has_op[k])
			continue;
		i = s->template[v];
		check(run, arrival(run, v), run->machines[v].streams[stream_of(run, i)],
		      "arrives at an op", v);
		check(run, end[v], true_end[v], "is through with an op", v);
		run->machines[v].streams[stream_of(run, i)] = true_end[v];
	}
	for (i = 0; i < s->n_real; i++) {
		if (!s->jobs[i].has_op[k])
			continue;
		end_node(run, r, i, end, plain);
		check(run, ns_of(timeline_end(run->nodes[i]).time_ns), end[s->real[i]],
		      "ends an op", s->real[i]);
		open_gate(run, r, i, known);
		run->plain[i].streams[stream_of(run, i)] = plain;
		timeline_node_release(run->nodes[i]);
		run->next[i]++;
	}
}

/* Return: how many times were compared. */
static uint32_t run_job(struct rng *r, struct scenario *s, const struct topology *t)
{
	const struct timeline_what_if what_if = {.segment = segment, .ctx = s};
	static struct run run;

	run = (struct run){.s = s};
	assert_int_equal(timelines_new(t, s->real, s->n_real, NULL, &what_if, &run.timelines), 0);
	for (uint32_t v = 0; v < s->world; v++) {
		uint32_t i = 0;

		while (s->real[i] != timelines_template(run.timelines, v))
			i++;
		s->template[v] = i;
		machine_start(&run.machines[v], s->jobs[i].start);
	}
	for (uint32_t i = 0; i < s->n_real; i++) {
		struct worker *w = &run.workers[i];

		w->rank = s->real[i];
		w->true_ = &run.machines[w->rank];
		w->plain = &run.plain[i];
		machine_start(&w->wall, s->jobs[i].start);
		machine_start(&run.plain[i], s->jobs[i].start);
		tell_host(&run, w, &(struct before){{0}}, w->wall.host);
		for (int k = 0; k < STREAMS; k++)
			w->streams[k].names[STREAMS] = w->host;
		for (int k = 0; k < EVENTS; k++)
			w->events[k].names[STREAMS] = w->host;
	}
	for (uint32_t k = 0; k < s->n_ops; k++)
		play(&run, r, k);
	timelines_free(run.timelines);
	return run.n_checked;
}

/* --- random jobs ---------------------------------------------------------------------------- */

static double steps(struct rng *r, uint64_t least, uint64_t n)
{
	return (double)(least + below(r, n)) * STEP_NS;
}

static void add(struct job *j, struct call c)
{
	assert_true(j->n < CALLS_MAX);
	j->calls[j->n++] = c;
}

/* What a rank does between two ops. The host is fast or slow. */
static void random_calls(struct rng *r, struct job *j, bool is_host_slow)
{
	for (uint64_t n = below(r, 7); n > 0; n--) {
		uint32_t event = (uint32_t)below(r, EVENTS), stream = (uint32_t)below(r, STREAMS);

		switch (below(r, 8)) {
		case 0:
			add(j, (struct call){HOST, 0, 0, steps(r, 1, is_host_slow ? 60 : 6)});
			break;
		case 1:
		case 2:
		case 3:
			stream %= N_COMPUTE;
			add(j, (struct call){KERNEL, stream, 0, 4 * steps(r, 1, 12)});
			break;
		case 4:
		case 5:
			add(j, (struct call){RECORD, stream, event, 0});
			break;
		case 6:
			add(j, (struct call){WAIT, stream, event, 0});
			break;
		default:
			if (below(r, 2))
				add(j, (struct call){SYNC, 0, event, 0});
		}
	}
}

/* An op, mostly as PyTorch makes it: its stream waits for a compute stream. Some compute stream
 * waits for the op. */
static void random_op(struct rng *r, struct job *j)
{
	uint32_t compute = (uint32_t)below(r, N_COMPUTE), event = (uint32_t)below(r, EVENTS),
		 stream = below(r, 6) ? N_COMPUTE + (uint32_t)below(r, STREAMS - N_COMPUTE)
				      : compute;

	if (below(r, 4)) {
		add(j, (struct call){RECORD, compute, event, 0});
		add(j, (struct call){WAIT, stream, event, 0});
	}
	add(j, (struct call){OP, stream, 0, 0});
	if (below(r, 3) == 0) {
		add(j, (struct call){RECORD, stream, event, 0});
		add(j, (struct call){WAIT, compute, event, 0});
	}
}

/* One stream waits for all, for the last op. */
static void join(struct job *j)
{
	for (uint32_t i = 0; i + 1 < STREAMS; i++) {
		add(j, (struct call){RECORD, i, 0, 0});
		add(j, (struct call){WAIT, STREAMS - 1, 0, 0});
	}
	add(j, (struct call){OP, STREAMS - 1, 0, 0});
}

static void random_ranks(struct rng *r, struct scenario *s, struct topology *t)
{
	uint32_t left;

	*t = (struct topology){.gpus_per_node = 1 + (uint32_t)below(r, 4)};
	t->n_nodes = 1 + (uint32_t)below(r, WORLD_MAX / t->gpus_per_node);
	s->world = topology_world(t);
	left = 1 + (uint32_t)below(r, s->world < REAL_MAX ? s->world : REAL_MAX);
	for (uint32_t v = 0; v < s->world; v++) {
		if (below(r, s->world - v) < left) {
			s->real[s->n_real++] = v;
			left--;
		}
		s->slow[v] = below(r, 3) ? 1 : 0.5 + 0.25 * (double)below(r, 11);
		s->jitter[v] = below(r, 3) ? 0 : (uint32_t)below(r, 5);
	}
}

static void random_scenario(struct rng *r, struct scenario *s, struct topology *t)
{
	*s = (struct scenario){.seed = rng_u64(r)};
	random_ranks(r, s, t);
	s->is_late = below(r, 4);
	s->is_whole = below(r, 3) == 0;
	s->n_ops = 2 + (uint32_t)below(r, OPS_MAX - 1);
	for (uint32_t k = 0; k < s->n_ops; k++) {
		uint32_t n_groups = s->is_whole ? 1 : 1 + (uint32_t)below(r, 4), with = UINT32_MAX;

		s->ops[k].ns = steps(r, 0, 40);
		s->ops[k].plain_ns = steps(r, 0, 40);
		for (uint32_t v = 0; v < s->world; v++)
			s->ops[k].group[v] = (uint32_t)below(r, n_groups);
		if (!s->is_whole && below(r, 3) == 0 && k + 1 < s->n_ops)
			with = 1 + (uint32_t)below(r, 15);
		for (uint32_t i = 0; i < s->n_real; i++)
			s->jobs[i].has_op[k] = with >> i & 1;
	}
	for (uint32_t i = 0; i < s->n_real; i++) {
		bool is_host_slow = below(r, 3) == 0;

		s->jobs[i].start = i ? steps(r, 0, 100) - 50 * STEP_NS : 0; /* 0: the epoch */
		for (uint32_t k = 0; k + 1 < s->n_ops; k++) {
			random_calls(r, &s->jobs[i], is_host_slow);
			if (s->jobs[i].has_op[k])
				random_op(r, &s->jobs[i]);
		}
		join(&s->jobs[i]);
	}
}

static void all_ranks_have_the_times_of_a_simulation(void **state)
{
	static struct scenario s;
	uint32_t n_checked = 0;
	struct topology t;
	struct rng r;

	(void)state;
	rng_seed(&r, 2026, 21);
	for (int i = 0; i < JOBS; i++) {
		random_scenario(&r, &s, &t);
		n_checked += run_job(&r, &s, &t);
	}
	print_message("# %u times compared\n", n_checked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_have_the_times_of_a_simulation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
