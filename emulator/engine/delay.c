/* See delay.h. A question about a message goes to the outermost what-if, which asks the one beneath
 * it through nbox_next. Each answer is checked on its way up, so that an error names the model that
 * gave it. */
#include "engine/delay.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "engine/delay-answer.h"
#include "engine/delay-host.h"

static bool is_what_if(const struct delay_instance *in)
{
	return in->plugin.table.flags & NBOX_DECORATOR;
}

static bool works_on_messages(const struct delay_instance *in)
{
	return in->plugin.table.message && !(in->flags & NBOX_NO_MESSAGES) && !in->is_off;
}

static bool works_on_segments(const struct delay_instance *in)
{
	return in->plugin.table.segment && !(in->flags & NBOX_NO_SEGMENTS);
}

static bool has_message(const struct delay_instance *in, const struct nbox_op *op,
			const struct nbox_message *msg)
{
	return works_on_messages(in) && target_has_op(&in->target, op->kind, op->bytes) &&
	       (delay_scope_has_rank(in, msg->src) || delay_scope_has_rank(in, msg->dst));
}

/* The message as the chain up to and with @in has it. */
static int ask_message(struct delay_instance *in, const struct nbox_op *op,
		       const struct nbox_message *msg, struct nbox_delay *ret)
{
	struct nbox_delay delay = {0, 0};
	int r;

	while (in->number > 0 && !has_message(in, op, msg))
		in--;
	in->n_used++;
	if (!in->plugin.table.message)
		return 1;
	r = delay_check_return(in, in->plugin.table.message(in->model, op, msg, &delay),
			       "message()");
	if (r != 0)
		return r;
	if (delay_check_time(in, delay.latency_ns, false, "message()'s latency") < 0 ||
	    delay_check_time(in, delay.occupancy_ns, false, "message()'s occupancy") < 0)
		return -1;
	if (in->number == 0) {
		delay.latency_ns *= delay_scale(in->chain, op);
		delay.occupancy_ns *= delay_scale(in->chain, op);
	}
	*ret = delay;
	return 0;
}

/* nbox_next.message of a decorator. */
static int next_message(const struct nbox_next *next, const struct nbox_op *op,
			const struct nbox_message *msg, struct nbox_delay *ret)
{
	struct delay_instance *in = next->ctx;

	return ask_message(in - 1, op, msg, ret);
}

/* --- opening --------------------------------------------------------------- */

static int check_role(const struct delay_instance *in, enum delay_role role, const char *spec,
		      struct err *err)
{
	const struct nbox_delaymodel *m = &in->plugin.table;
	bool is_decorator = m->flags & NBOX_DECORATOR;

	if (role == DELAY_WHAT_IF && !is_decorator)
		return err_set(err, EINVAL, "'%.200s' is a model, no what-if: give it with --model",
			       spec);
	if (role != DELAY_WHAT_IF && is_decorator)
		return err_set(err, EINVAL,
			       "'%.200s' is a what-if around a model, no model: give it "
			       "with --what-if",
			       spec);
	if (role == DELAY_LINKS && !m->message)
		return err_set(
			err, EINVAL,
			"'%.200s' says nothing about messages, and --links wants a model that "
			"does, such as alphabeta",
			spec);
	return 0;
}

/* Loads the plug-in and checks the parameters; nothing points to @in yet. */
static int instance_load(struct delay_instance *in, enum delay_role role, const char *spec,
			 const char *const *dirs, struct err *err)
{
	const char *name;
	int r = delay_spec_parse(in, spec, &name, err);

	if (r == 0)
		r = delay_plugin_find(name, dirs, &in->plugin, err);
	if (r == 0)
		r = check_role(in, role, spec, err);
	if (r == 0 && role == DELAY_WHAT_IF)
		r = delay_scope_take(in, err);
	return r ? r : delay_params_check(in, err);
}

static int instance_make(struct delay_instance *in, const char *spec, struct err *err)
{
	const struct nbox_delaymodel *m = &in->plugin.table;
	struct delay_chain *d = in->chain;

	delay_host_init(in);
	in->next = (struct nbox_next){
		.message = d->items[0].plugin.table.message ? next_message : NULL,
		.ctx = in,
	};
	d->err.text[0] = '\0';
	if (delay_check_return(in,
			       m->create(&in->host, is_what_if(in) ? &in->next : NULL, in->kv,
					 in->n_kv, &in->model),
			       "create()") != 0) {
		if (!d->err.text[0]) /* it said 1 */
			err_set(&d->err, EINVAL, "delay model %s: create() has no answer", m->name);
		return err_set(err, EINVAL, "%s", d->err.text);
	}
	in->is_made = true;
	in->flags = m->traits ? m->traits(in->model) : m->flags;
	if (in->is_for_ranks && in->flags & NBOX_UNIFORM)
		in->flags = (in->flags & ~(uint32_t)NBOX_UNIFORM) | NBOX_BY_RANKS | NBOX_STEADY;
	if (!is_what_if(in))
		return 0;
	if (works_on_messages(in) && !in->next.message)
		return err_set(err, EINVAL,
			       "'%.200s' works on messages, and the model %s answers whole "
			       "ops only: take a model with messages, such as alphabeta",
			       spec, d->items[0].plugin.table.name);
	return delay_scope_check(in, works_on_segments(in), works_on_messages(in) || m->extra, err);
}

/* Adds an item to the chain. */
static int item_open(struct delay_chain *d, enum delay_role role, const char *spec,
		     const char *const *dirs, struct err *err)
{
	struct delay_instance *in = &d->items[d->n];
	int r;

	in->chain = d;
	in->number = (uint32_t)d->n++;
	r = instance_load(in, role, spec, dirs, err);
	return r ? r : instance_make(in, spec, err);
}

/* The model is a scheduler: @d's first item makes room for the model of its links. */
static int scheduler_open(struct delay_chain *d, const char *model, struct err *err)
{
	d->scheduler = malloc(sizeof(*d->scheduler));
	if (!d->scheduler)
		return err_set(err, ENOMEM, "out of memory for the delay models");
	*d->scheduler = d->items[0];
	d->scheduler->number = DELAY_SCHEDULER;
	d->items[0] = (struct delay_instance){0};
	d->n = 0;
	return instance_make(d->scheduler, model, err);
}

/* The model and, of a scheduler, the model of its links. */
static int base_open(struct delay_chain *d, const char *model, const char *links,
		     const char *const *dirs, struct err *err)
{
	struct delay_instance *in = &d->items[0];
	int r;

	in->chain = d;
	d->n = 1;
	r = instance_load(in, DELAY_MODEL, model, dirs, err);
	if (r)
		return r;
	if (!in->plugin.table.plan)
		return !links ? instance_make(in, model, err)
			      : err_set(err, EINVAL,
					"%.64s: the model %s says itself what messages cost; "
					"--links belongs to a model that plans ops, such as nccl",
					links, in->plugin.table.name);
	r = scheduler_open(d, model, err);
	return r ? r : item_open(d, DELAY_LINKS, links ? links : "alphabeta", dirs, err);
}

static char *describe(const char *model, const char *links, const char *const *what_ifs, size_t n)
{
	size_t len = strlen(model) + strlen(" over ") + strlen(links ? links : "") + 1, i;
	char *text, *p;

	for (i = 0; i < n; i++)
		len += strlen(" + ") + strlen(what_ifs[i]);
	text = malloc(len);
	if (!text)
		return NULL;
	p = stpcpy(text, model);
	if (links)
		p = stpcpy(stpcpy(p, " over "), links);
	for (i = 0; i < n; i++)
		p = stpcpy(stpcpy(p, " + "), what_ifs[i]);
	return text;
}

static void chain_freep(struct delay_chain **d)
{
	delay_free(*d);
}

int delay_open(const char *model, const char *links, const char *const *what_ifs, size_t n_what_ifs,
	       const struct topology *world, const char *const *dirs, uint64_t seed,
	       struct delay_chain **ret, struct err *err)
{
	CLEANUP(chain_freep) struct delay_chain *d = calloc(1, sizeof(*d));
	size_t i;
	int r;

	if (!d)
		return err_set(err, ENOMEM, "out of memory for the delay models");
	d->seed = seed;
	d->world = *world;
	d->window_ns = -1;
	for (i = 0; i < COLL_KINDS; i++)
		d->algos[i] = NBOX_ALGO_ANY;
	d->items = calloc(n_what_ifs + 1, sizeof(d->items[0]));
	if (!d->items)
		return err_set(err, ENOMEM, "out of memory for the delay models");
	r = base_open(d, model, links, dirs, err);
	for (i = 0; i < n_what_ifs && r == 0; i++)
		r = item_open(d, DELAY_WHAT_IF, what_ifs[i], dirs, err);
	if (r)
		return r;
	if (d->scheduler && !links)
		links = "alphabeta";
	d->description = describe(model, links, what_ifs, n_what_ifs);
	if (!d->description)
		return err_set(err, ENOMEM, "out of memory for the delay models");
	*ret = steal_ptr(d);
	return 0;
}

static void instance_deinit(struct delay_instance *in)
{
	if (in->is_made)
		in->plugin.table.destroy(in->model);
	delay_plugin_close(&in->plugin);
	free(in->text);
	free(in->ranks);
}

struct delay_chain *delay_free(struct delay_chain *d)
{
	size_t i;

	if (!d)
		return NULL;
	for (i = d->n; i-- > 0;) /* a decorator goes before what it stands on */
		instance_deinit(&d->items[i]);
	if (d->scheduler)
		instance_deinit(d->scheduler);
	free(d->scheduler);
	free(d->items);
	free(d->description);
	free(d);
	return NULL;
}

void delay_set_fabric(struct delay_chain *d, const struct fabric *f)
{
	d->fabric = f;
}

void delay_set_scale(struct delay_chain *d, const struct delay_scale *s)
{
	d->scale = s;
}

double delay_scale(const struct delay_chain *d, const struct nbox_op *op)
{
	return d->scale ? d->scale->of(d->scale->ctx, op) : 1;
}

const struct fabric *delay_fabric(const struct delay_chain *d)
{
	return d->fabric;
}

/* Makes the scheduler again, by what has changed. */
static int remake(struct delay_instance *in, struct err *err)
{
	void *model = in->model;
	int r;

	in->chain->warning.text[0] = '\0';
	r = instance_make(in, in->plugin.table.name, err);
	if (r < 0) {
		in->model = model;
		return r;
	}
	in->plugin.table.destroy(model);
	in->chain->decided_by = in->chain->taken_by = in->chain->told_by = NULL;
	return 0;
}

int delay_set_job(struct delay_chain *d, const struct delay_job *job, struct err *err)
{
	struct delay_job before = d->job;
	int r;

	d->job = *job;
	r = d->scheduler ? remake(d->scheduler, err) : 0;
	if (r < 0)
		d->job = before;
	return r;
}

int delay_set_param(struct delay_chain *d, const char *key, const char *value, struct err *err)
{
	struct delay_instance *in = d->scheduler;
	int r;

	if (nbox_value(in->kv, in->n_kv, key))
		return err_set(err, EINVAL, "the model is given as %s, which says it, too",
			       d->description);
	in->kv[in->n_kv++] = (struct nbox_kv){key, value};
	r = remake(in, err);
	if (r < 0)
		in->n_kv--;
	return r;
}

const char *delay_job_differs(const struct delay_chain *d, const struct delay_job *job)
{
	if (strcmp(d->job.texts, job->texts) != 0)
		return "NCCL";
	for (size_t i = 0; i < d->n_asked; i++) {
		const char *a = delay_told(&d->job, d->asked[i]), *b = delay_told(job, d->asked[i]);

		if (a != b && (!a || !b || strcmp(a, b) != 0))
			return d->asked[i];
	}
	return NULL;
}

void delay_set_algo(struct delay_chain *d, uint32_t kind, uint32_t algo)
{
	d->algos[kind] = algo;
}

uint32_t delay_algo(const struct delay_chain *d, uint32_t kind)
{
	return d->algos[kind];
}

const char *delay_decided_by(const struct delay_chain *d)
{
	return d->decided_by;
}

const char *delay_taken_by(const struct delay_chain *d)
{
	return d->taken_by;
}

const char *delay_told_by(const struct delay_chain *d)
{
	return d->told_by;
}

const char *delay_param_value(const struct delay_chain *d, const char *key)
{
	return d->scheduler ? nbox_value(d->scheduler->kv, d->scheduler->n_kv, key) : NULL;
}

/* --- what it is ------------------------------------------------------------ */

/* Do the model and all what-ifs on messages have @flag, or NBOX_UNIFORM, which implies it? */
static bool all_have(const struct delay_chain *d, uint32_t flag)
{
	size_t i;

	for (i = 0; i < d->n; i++) {
		const struct delay_instance *in = &d->items[i];

		if ((i == 0 || works_on_messages(in)) && !(in->flags & (flag | NBOX_UNIFORM)))
			return false;
	}
	return true;
}

bool delay_is_uniform(const struct delay_chain *d)
{
	return all_have(d, NBOX_UNIFORM);
}

/* Of @d the next decorator from @i on that looks at who is named; d->n: none. */
static size_t next_by_ranks(const struct delay_chain *d, size_t i)
{
	while (i < d->n && (!works_on_messages(&d->items[i]) || d->items[i].flags & NBOX_UNIFORM))
		i++;
	return i;
}

bool delay_is_by_ranks(const struct delay_chain *d)
{
	size_t n = 0;

	for (size_t i = 1; (i = next_by_ranks(d, i)) < d->n; i++)
		n++;
	return delay_base_is_uniform(d) && all_have(d, NBOX_BY_RANKS) && n > 0 &&
	       n <= DELAY_NAMED_MAX;
}

uint32_t delay_named(const struct delay_chain *d, uint32_t src, uint32_t dst)
{
	uint32_t bits = 0;

	for (size_t i = 1; (i = next_by_ranks(d, i)) < d->n; i++) {
		const struct nbox_ranks who = {d->items[i].ranks, d->items[i].n_ranks};

		bits = bits << 2 | (uint32_t)nbox_ranks_have(&who, src) << 1 |
		       (uint32_t)nbox_ranks_have(&who, dst);
	}
	return bits;
}

bool delay_base_is_uniform(const struct delay_chain *d)
{
	return d->items[0].flags & NBOX_UNIFORM;
}

bool delay_works_on_messages(const struct delay_chain *d)
{
	for (size_t i = 1; i < d->n; i++)
		if (works_on_messages(&d->items[i]))
			return true;
	return false;
}

bool delay_has_segments(const struct delay_chain *d)
{
	for (size_t i = 1; i < d->n; i++)
		if (works_on_segments(&d->items[i]))
			return true;
	return false;
}

const char *delay_warning(const struct delay_chain *d)
{
	return d->warning.text[0] ? d->warning.text : NULL;
}

void delay_set_moment(struct delay_chain *d, const struct moment *at, const struct target_comm *c)
{
	d->now = *at;
	for (size_t i = 1; i < d->n; i++) {
		struct delay_instance *in = &d->items[i];

		in->is_off = !when_holds(&in->when, at) || !target_has_comm(&in->target, c);
	}
}

void delay_set_window(struct delay_chain *d, double window_ns)
{
	d->window_ns = window_ns;
}

uint64_t delay_phase(const struct delay_chain *d)
{
	uint64_t phase = 0;

	for (size_t i = 1; i < d->n; i++)
		phase = phase * 31 + works_on_messages(&d->items[i]);
	return phase;
}

bool delay_has_when(const struct delay_chain *d)
{
	for (size_t i = 1; i < d->n; i++)
		if (!when_is_always(&d->items[i].when) || d->items[i].target.communicator[0])
			return true;
	return false;
}

long delay_in_steps(const struct delay_chain *d)
{
	for (size_t i = 1; i < d->n; i++)
		if (when_has_steps(&d->items[i].when))
			return (long)i - 1;
	return -1;
}

const char *delay_communicator(const struct delay_chain *d, size_t i)
{
	return d->items[i + 1].target.communicator;
}

uint64_t delay_n_used(const struct delay_chain *d, size_t i)
{
	return d->items[i + 1].n_used;
}

bool delay_is_ahead(const struct delay_chain *d, size_t i)
{
	return d->items[i + 1].flags & NBOX_AHEAD;
}

bool delay_is_steady(const struct delay_chain *d)
{
	return all_have(d, NBOX_STEADY) &&
	       (!d->scheduler || d->scheduler->flags & (NBOX_STEADY | NBOX_UNIFORM));
}

bool delay_has_plan(const struct delay_chain *d)
{
	return d->scheduler != NULL;
}

bool delay_plan_has(const struct delay_chain *d, const char *key)
{
	return d->scheduler && delay_param(d->scheduler, key);
}

bool delay_has_op(const struct delay_chain *d)
{
	return d->items[0].plugin.table.op != NULL;
}

bool delay_has_message(const struct delay_chain *d)
{
	return d->items[0].plugin.table.message != NULL;
}

const char *delay_describe(const struct delay_chain *d)
{
	return d->description;
}

/* --- asking ---------------------------------------------------------------- */

int delay_op(struct delay_chain *d, const struct nbox_op *op, double *ret_ns, struct err *err)
{
	struct delay_instance *in = &d->items[0];
	double ns = 0;
	int r;

	if (!delay_has_op(d))
		return 1;
	d->err.text[0] = '\0';
	r = delay_check_return(in, in->plugin.table.op(in->model, op, &ns), "op()");
	if (r == 0)
		r = delay_check_time(in, ns, false, "op()");
	if (r == 0)
		*ret_ns = ns * delay_scale(d, op);
	return delay_answer(d, r, err);
}

int delay_message(struct delay_chain *d, const struct nbox_op *op, const struct nbox_message *msg,
		  bool base_only, struct nbox_delay *ret, struct err *err)
{
	d->err.text[0] = '\0';
	return delay_answer(d, ask_message(&d->items[base_only ? 0 : d->n - 1], op, msg, ret), err);
}

/* Would @in pass by @op as if it were not there? It works on messages, and a scheduler gives the op
 * as a whole. */
static bool is_deaf(const struct delay_instance *in, const struct nbox_op *op)
{
	return works_on_messages(in) && delay_scope_has_op(in, op) &&
	       !(in->flags & NBOX_BY_RANKS) && op->algo >= NBOX_NVLS && op->algo <= NBOX_COLLNET;
}

int delay_extra(struct delay_chain *d, const struct nbox_op *op, double so_far_ns,
		bool from_messages, double *ret_extra_ns, bool *ret_is_ahead, struct err *err)
{
	double total_ns = 0; /* summed by itself: so_far_ns would take its digits */
	struct nbox_op asked = *op;
	size_t i;

	d->err.text[0] = '\0';
	asked.window_ns = d->window_ns;
	*ret_is_ahead = false;
	for (i = 1; i < d->n; i++) {
		struct delay_instance *in = &d->items[i];
		double extra_ns = 0;
		int r = 1;

		if (in->plugin.table.extra && !in->is_off && delay_scope_has_op(in, op))
			r = delay_check_return(in,
					       in->plugin.table.extra(in->model, &asked,
								      so_far_ns + total_ns,
								      from_messages, &extra_ns),
					       "extra()");
		if (r == 1 && is_deaf(in, op))
			return err_set(
				err, EINVAL,
				"the what-if %s works on messages, and %s of %u ranks has none "
				"here, as NVLS and PAT are timed as a whole: pin another "
				"algorithm (--algo %s=ring, or NCCL_ALGO), or take a what-if on "
				"whole ops",
				in->plugin.table.name, coll_kind_name(op->kind), op->n_ranks,
				coll_kind_name(op->kind));
		if (r == 1)
			continue;
		if (r == 0)
			r = delay_check_time(in, extra_ns, true, "extra()");
		if (r < 0)
			return delay_answer(d, r, err);
		in->n_used++;
		total_ns = fmax(total_ns + extra_ns, -so_far_ns);
		*ret_is_ahead |= extra_ns < 0 && in->flags & NBOX_AHEAD;
	}
	*ret_extra_ns = total_ns;
	return 0;
}

int delay_segment(struct delay_chain *d, uint32_t rank, uint64_t number, double start_ns, double ns,
		  double *ret_ns, struct err *err)
{
	struct nbox_segment seg = {.struct_size = sizeof(seg),
				   .rank = rank,
				   .number = number,
				   .start_ns = start_ns};
	size_t i;

	d->now.time_ns = start_ns;
	d->err.text[0] = '\0';
	for (i = 1; i < d->n; i++) {
		struct delay_instance *in = &d->items[i];
		double new_ns = ns;
		int r;

		if (!works_on_segments(in) || (in->is_for_ranks && !delay_scope_has_rank(in, rank)))
			continue;
		seg.from_ns = -INFINITY;
		seg.until_ns = INFINITY;
		if (!when_is_always(&in->when)) {
			if (!(in->flags & NBOX_OVER_TIME) && !when_holds(&in->when, &d->now))
				continue;
			when_window(&in->when, &d->now, &seg.from_ns, &seg.until_ns);
		}
		r = delay_check_return(in, in->plugin.table.segment(in->model, &seg, ns, &new_ns),
				       "segment()");
		if (r == 1)
			continue;
		if (r == 0)
			r = delay_check_time(in, new_ns, false, "segment()");
		if (r < 0)
			return delay_answer(d, r, err);
		in->n_used++;
		ns = new_ns;
	}
	*ret_ns = ns;
	return 0;
}
