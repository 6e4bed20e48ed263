/* See won.h. */
#include "nbox/why/won.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define LITTLE_NS 1e3 /* of all ops */

struct played {
	const struct recorded *r;
	const struct why_config *from;
	const struct config *config;
	const struct won_step *steps;
	uint64_t n;
	struct why *w;
};

static int by_value(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static int by_won(const void *pa, const void *pb)
{
	const struct why_won *a = pa, *b = pb;

	if (!a->refused[0] != !b->refused[0])
		return a->refused[0] ? 1 : -1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

double won_median(const struct record *rec, const struct won_step *steps, uint64_t n)
{
	CLEANUP(freep) double *times = malloc((n + 1) * sizeof(*times));

	if (!times || !n)
		return NAN;
	for (uint64_t i = 0; i < n; i++) {
		if (steps[i].to >= rec->n_ops)
			return NAN;
		times[i] = (double)(int64_t)(rec->ops[steps[i].to].virtual_arrive_ns -
					     rec->ops[steps[i].from].virtual_arrive_ns);
	}
	qsort(times, n, sizeof(*times), by_value);
	return times[(n - 1) / 2];
}

static char *next_text(struct why *w)
{
	return w->won[w->n_won].text;
}

/* The median of the iterations then; NAN: not known, @err perhaps says why. */
static double median_of(const struct played *p, const struct config *c, const struct ideal *ideal,
			struct err *err)
{
	const char *const dirs[] = {p->r->models, NULL};
	const struct replay in = {.graph = &p->r->graph,
				  .config = c,
				  .dirs = dirs,
				  .sizes = &p->r->worlds.sizes,
				  .declared = &p->r->declared,
				  .ideal = ideal};
	struct replay_told told = {.n_lost = 0};
	struct record rec = {.n_ops = 0};
	int r = replay_play(&in, &rec, &told, err);
	double ns = NAN;

	if (r == 0 && told.n_lost == p->w->told.n_lost)
		ns = won_median(&rec, p->steps, p->n);
	record_deinit(&rec);
	return ns;
}

/* Fills the last entry of the list, whose text is set. */
static void play(struct played *p, const struct config *c, const struct ideal *ideal)
{
	struct why_won *won = &p->w->won[p->w->n_won++];
	struct err err = {""};

	won->ns = median_of(p, c, ideal, &err);
	if (isnan(won->ns))
		snprintf(won->refused, sizeof(won->refused), "%.255s",
			 err.text[0] ? err.text : "not all rows are there");
}

static void play_ideal(struct played *p, const struct ideal *ideal)
{
	play(p, p->config, ideal);
}

/* What the network alone takes. */
static void play_no_computation(struct played *p)
{
	struct config c = *p->config; /* all that it points to stays the other's */

	c.topology.gpu_speed = 1e9;
	p->w->network_ns = median_of(p, &c, NULL, &(struct err){""});
}

/* Return: 0; negative errno with the sentence. */
static int play_fast_links(struct played *p, struct err *err)
{
	struct config *c = NULL;
	int r = p->from->make(p->from->ctx, &c, err);

	if (r == 0)
		r = recorded_finish(p->r, c, err);
	if (r == 0) {
		c->topology.inter.bytes_per_ns *= 2;
		for (uint32_t i = 0; c->fabric && i < c->fabric->n_classes; i++)
			c->fabric->classes[i].nic_bytes_per_ns *= 2;
		snprintf(next_text(p->w), sizeof(p->w->won->text), "each NIC is twice as fast");
		play(p, c, NULL);
	}
	config_free(c);
	return r;
}

/* Return: 0; negative errno with the sentence. */
static int leave_out(struct played *p, size_t skip, struct err *err)
{
	const struct config_value *v = &p->config->values[CONFIG_WHAT_IF];
	struct config *c = NULL;
	int r = p->from->make(p->from->ctx, &c, err);

	if (r == 0)
		r = config_scenario(c, err); /* its what-ifs are in the list */
	if (r == 0)
		value_clear(&c->values[CONFIG_WHAT_IF]);
	for (size_t i = 0; i < v->n_items && r == 0; i++)
		if (i != skip)
			r = config_set(c, CONFIG_WHAT_IF, SOURCE_FLAG, v->items[i].text);
	if (r == 0 && v->n_items == 1)
		r = config_set(c, CONFIG_WHAT_IF, SOURCE_FLAG, "none");
	if (r == 0)
		r = recorded_finish(p->r, c, err);
	if (r == 0)
		play(p, c, NULL);
	config_free(c);
	return r;
}

static double shared_ns(const struct record *rec)
{
	double ns = 0;

	for (uint64_t i = 0; i < rec->n_ops; i++)
		ns += rec->ops[i].shared_ns;
	return ns;
}

static void play_comms(struct played *p)
{
	struct why *w = p->w;

	for (uint32_t i = 0; i < w->n_groups; i++) {
		if (!why_group_is_used(w, i))
			continue;
		snprintf(next_text(w), sizeof(w->won->text), "ops of %s take no time",
			 w->groups[i].name);
		play_ideal(p, &(struct ideal){.comms = w->groups[i].has,
					      .n_comms = w->groups[i].n_has,
					      .rank = -1});
	}
}

static int play_all_comms(struct played *p)
{
	struct why *w = p->w;
	CLEANUP(freep) bool *all = calloc((size_t)w->groups[0].n_has + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->groups[0].n_has; i++)
		all[i] = true;
	snprintf(next_text(w), sizeof(w->won->text), "no op takes any time");
	play_ideal(p, &(struct ideal){.comms = all, .n_comms = w->groups[0].n_has, .rank = -1});
	return 0;
}

/* The rank whose computation what-ifs have made longest on the critical path; else whom ranks
 * waited for most; -1: there is none. */
static int64_t slowest(const struct why *w)
{
	int64_t rank = w->n_late ? (int64_t)w->late[0].rank : -1;
	double most = 0;

	for (uint32_t i = 0; i < w->n_parts; i++) {
		double ns = why_slowed_ns(w, w->parts[i].own);

		if (ns > most) {
			most = ns;
			rank = w->parts[i].own;
		}
	}
	return rank;
}

int won_find(const struct recorded *r, const struct why_config *from, const struct config *c,
	     const struct record *rec, const struct won_step *steps, uint64_t n, struct why *w,
	     struct err *err)
{
	struct played p = {r, from, c, steps, n, w};
	size_t n_what_ifs = c->values[CONFIG_WHAT_IF].n_items;
	int e = 0;

	if (n_what_ifs == 1 && strcmp(c->values[CONFIG_WHAT_IF].items[0].text, "none") == 0)
		n_what_ifs = 0;
	w->won = calloc(w->n_groups + n_what_ifs + 5, sizeof(*w->won));
	if (!w->won)
		return -ENOMEM;
	play_no_computation(&p);
	play_comms(&p);
	if (w->n_exposed > 1) /* groups */
		e = play_all_comms(&p);
	if (n_what_ifs && slowest(w) >= 0) {
		snprintf(next_text(w), sizeof(w->won->text),
			 "rank %u computes as long as its template", (uint32_t)slowest(w));
		play_ideal(&p, &(struct ideal){.rank = slowest(w)});
	}
	if (shared_ns(rec) > LITTLE_NS && !c->n_link_changes) {
		snprintf(next_text(w), sizeof(w->won->text), "ops share no links");
		play_ideal(&p, &(struct ideal){.rank = -1, .shares_no_link = true});
	}
	if (c->topology.n_nodes > 1 && e == 0)
		e = play_fast_links(&p, err);
	for (size_t i = 0; i < n_what_ifs && e == 0; i++) {
		const char *text = c->values[CONFIG_WHAT_IF].items[i].text;

		snprintf(next_text(w), sizeof(w->won->text), "the what-if %.220s is left out",
			 text);
		e = leave_out(&p, i, err);
	}
	qsort(w->won, w->n_won, sizeof(*w->won), by_won);
	return e;
}
