/* See source.h. */
#include "nbox/replay/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "nbox/json/json-file.h"
#include "nbox/replay/of-record.h"
#include "nbox/replay/of-trace.h"
#include "nbox/replay/words.h"
#include "nbox/retime/told.h"
#include "nbox/trace/load.h"

/* --- the command line
 * ----------------------------------------------------------------------------- */

static int take_option(struct source_words *to, const struct option_word *w, struct err *err)
{
	uint64_t n;
	int r = 0;

	if (w->id == FLAG_REPLAY_JSON)
		to->json = w->value;
	else if (w->id == FLAG_REPLAY_NIC)
		to->nic = w->value;
	else if (w->id == CONFIG_ALGO &&
		 (!strchr(w->value, '=') || strncmp(w->value, "ps:", 3) == 0))
		to->algo = w->value;
	else if (w->id == FLAG_COUNTS)
		r = declared_parse(w->value, &to->declared, err);
	else if (w->id == CONFIG_WITH)
		to->words[to->n_words++] = w->value;
	else if (w->id == CONFIG_OUT)
		r = err_set(err, EINVAL, "no results are kept but FILE of --json");
	else if (w->id == CONFIG_REAL || w->id == CONFIG_AS_NODE)
		r = err_set(err, EINVAL,
			    "the real ranks are those of the record; --with RUN2 adds those of "
			    "another run");
	else if (w->id == CONFIG_EXPECT)
		r = err_set(err, EINVAL, "nbox retime judges what is expected");
	else if (w->id == FLAG_REPLAY_RANKS) {
		r = units_count(w->value, &n, err);
		if (r == 0 && (n < 1 || n > RECORD_WORLD_MAX))
			r = err_set(err, EINVAL, "1 to %u", RECORD_WORLD_MAX);
		to->ranks = r == 0 ? (uint32_t)n : 0;
	} else {
		to->options[to->n_options++] = *w;
	}
	return r;
}

int source_words_take(enum command command, int argc, char **argv,
		      int (*take)(void *ctx, const struct option_word *w, struct err *err),
		      void *ctx, struct source_words *ret, struct err *err)
{
	struct option_word w;
	int r = 0;

	ret->words = calloc((size_t)argc + 1, sizeof(*ret->words));
	ret->options = calloc((size_t)argc + 1, sizeof(*ret->options));
	if (!ret->words || !ret->options)
		return err_set(err, ENOMEM, "out of memory");
	for (int i = 1; i < argc;) {
		r = option_take(command, argc, argv, &i, &w, err);
		if (r < 0)
			return r;
		if (r == OPTION_NONE) {
			ret->words[ret->n_words++] = argv[i++];
			continue;
		}
		if (w.id == FLAG_HELP)
			return 1;
		r = take ? take(ctx, &w, err) : 1;
		if (r == 1)
			r = take_option(ret, &w, err);
		if (r < 0)
			return err_prefix(err, r, "%s", w.name);
	}
	return ret->n_words ? 0
			    : err_set(err, EINVAL,
				      "which run, or traces? nbox list has the names of runs");
}

void source_words_deinit(struct source_words *w)
{
	free(w->words);
	free(w->options);
}

/* --- a run --------------------------------------------------------------------------------------
 */

/* "ring:bw=400Gbps,alpha=5us" with another rate: a parameter of the model counts before the
 * cluster's. Return: 0; -ENOMEM. */
static int set_param(struct config *c, const char *key, const char *value)
{
	const char *model =
		c->values[CONFIG_MODEL].n_items ? c->values[CONFIG_MODEL].items[0].text : NULL;
	const char *at = model ? strstr(model, key) : NULL, *end;
	CLEANUP(freep) char *text = NULL;

	if (!at || (at[-1] != ':' && at[-1] != ','))
		return 0;
	end = at + strcspn(at, ",");
	if (asprintf(&text, "%.*s%s%s%s", (int)(at - model), model, key, value, end) < 0)
		return -ENOMEM;
	return config_set(c, CONFIG_MODEL, SOURCE_FLAG, text);
}

/* Another rate of each node's port, where the configuration has no fabric. */
static int set_nic(struct config *c, const char *nic, struct err *err)
{
	const char *comma = strchr(nic, ',');
	CLEANUP(freep) char *rate = comma ? strndup(nic, (size_t)(comma - nic)) : strdup(nic);
	double bytes_per_ns, latency_ns;
	int r = units_nic(nic, &bytes_per_ns, &latency_ns, err);

	if (r == 0 && (config_is_set(c, CONFIG_PRESET) || config_is_set(c, CONFIG_FABRIC) ||
		       config_is_set(c, CONFIG_INTER)))
		return err_set(
			err, EINVAL,
			"the run has a fabric with NICs of its own: --inter 8x%s says others", nic);
	if (r < 0)
		return r;
	if (!rate || config_set(c, CONFIG_INTER_BANDWIDTH, SOURCE_FLAG, rate) < 0 ||
	    set_param(c, "bw=", rate) < 0 || set_param(c, "inter_bw=", rate) < 0 ||
	    (comma && (config_set(c, CONFIG_INTER_LATENCY, SOURCE_FLAG, comma + 1) < 0 ||
		       set_param(c, "alpha=", comma + 1) < 0 ||
		       set_param(c, "inter_alpha=", comma + 1) < 0)))
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int set_ranks(struct config *c, const struct record_header *was, uint32_t ranks,
		     struct err *err)
{
	char text[16];

	if (!ranks)
		return 0;
	if (ranks % was->gpus_per_node)
		return err_set(err, EINVAL, "%u ranks are no whole number of nodes of %u", ranks,
			       was->gpus_per_node);
	snprintf(text, sizeof(text), "%u", ranks / was->gpus_per_node);
	return config_set(c, CONFIG_NODES, SOURCE_FLAG, text) < 0
		       ? err_set(err, ENOMEM, "out of memory")
		       : 0;
}

static int set_algo(struct config *c, const char *algo, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	uint32_t n_servers;
	int number, r = words_algo(algo, &number, &n_servers, err);

	if (r < 0 || n_servers)
		return r;
	if (asprintf(&text, "allreduce=%s", algo) < 0 ||
	    config_set(c, CONFIG_ALGO, SOURCE_FLAG, text) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int make_config(const struct source_words *from, struct source *s, struct err *err)
{
	int r = recorded_config(&s->run, &s->config, err);

	for (size_t i = 0; i < from->n_options && r == 0; i++)
		r = config_take(s->config, &from->options[i], err);
	if (r == 0 && from->nic)
		r = err_prefix(err, set_nic(s->config, from->nic, err), "--nic");
	if (r == 0 && from->algo)
		r = err_prefix(err, set_algo(s->config, from->algo, err), "--algo");
	if (r == 0)
		r = err_prefix(err, set_ranks(s->config, &s->run.run.rec.header, from->ranks, err),
			       "--ranks");
	return r < 0 ? r : recorded_finish(&s->run, s->config, err);
}

struct sink {
	struct computed *computed;
	struct report *notes;
};

static int on_computed(void *ctx, uint32_t world_rank, uint64_t number, double was_ns, double ns,
		       struct err *err)
{
	return computed_told(((struct sink *)ctx)->computed, world_rank, number, was_ns, ns, err);
}

static void on_warn(void *ctx, const char *sentence)
{
	report_warn(((struct sink *)ctx)->notes, "%s", sentence);
}

static void note_replay(struct source *s, const struct replay_told *told)
{
	const struct record_header *was = &s->run.run.rec.header;
	bool has_puts = false;

	for (uint64_t i = 0; i < s->rec.n_ops && !has_puts; i++)
		has_puts = s->rec.ops[i].flags & RECORD_ONESIDED;
	if (has_puts)
		report_warn(&s->notes,
			    "puts are played as sends, and what virtual ranks put as sent "
			    "when it is waited for: nbox retime knows better");

	if (told->ended[0])
		report_warn(&s->notes, "%s; what it does then no record knows", told->ended);
	else if (told->n_lost)
		report_warn(&s->notes,
			    "%llu of %u rows of the record wait for what it does not have, and are "
			    "left out",
			    (unsigned long long)told->n_lost, s->run.graph.n);
	told_counts(&told->counts, &s->run.worlds.sizes,
		    was->world_size != s->config->world ? &s->run.declared : NULL, &s->notes);
}

/* What acts on links that ops share, or makes other messages, has no place in the graph. */
static int check_what_ifs(const struct config *c, struct err *err)
{
	static const char how[] =
		"the replay has the messages that the job sends, on links as they "
		"are: nbox retime knows it; --what-if none leaves it out";

	if (c->n_link_changes)
		return err_set(err, EINVAL, "what-if %s: %s", c->link_changes[0].text, how);
	if (c->n_reshardings)
		return err_set(err, EINVAL, "what-if %s: %s", c->reshardings[0].text, how);
	return c->alltoall
		       ? err_set(err, EINVAL,
				 "--alltoall: the replay has what recorded ranks send: nbox retime "
				 "knows the matrix")
		       : 0;
}

static int play_record(struct source *s, struct err *err)
{
	CLEANUP(freep)
	struct timeline_terms *terms = calloc((size_t)s->run.graph.n + 1, sizeof(*terms));
	CLEANUP(computed_deinit) struct computed computed = {.n = 0};
	struct sink sink = {&computed, &s->notes};
	const char *dirs[] = {s->run.models, NULL};
	const struct replay in = {.graph = &s->run.graph,
				  .config = s->config,
				  .dirs = dirs,
				  .sizes = &s->run.worlds.sizes,
				  .declared = &s->run.declared,
				  .terms = terms,
				  .sink = {.computed = on_computed, .warn = on_warn, .ctx = &sink}};
	struct replay_told told;
	int r = terms ? computed_init(&computed, s->config->world, err)
		      : err_set(err, ENOMEM, "out of memory");

	if (r == 0)
		r = replay_play(&in, &s->rec, &told, err);
	if (r == 0 && s->rec.n_ops == 0)
		r = err_set(err, EINVAL, "%s: no op is left to replay",
			    told.ended[0] ? told.ended : "the record's rows wait for each other");
	if (r < 0)
		return r;
	note_replay(s, &told);
	return job_of_record(&(struct job_record){&s->run.graph, s->config, &s->rec, terms,
						  &computed},
			     &s->job, err);
}

static int open_run(const struct source_words *from, struct source *s, struct err *err)
{
	int algo, r = recorded_load_all(from->words, from->n_words, &s->run, err);

	s->has_run = r == 0;
	s->run.declared = from->declared;
	if (r == 0)
		r = make_config(from, s, err);
	if (r == 0)
		r = retime_check(s->config, err);
	if (r == 0)
		r = check_what_ifs(s->config, err);
	if (r == 0)
		r = play_record(s, err);
	if (r == 0)
		r = costs_open(&s->job, s->config, s->run.models, &s->costs, err);
	if (r == 0 && from->algo)
		r = words_algo(from->algo, &algo, &s->costs.n_servers, err);
	if (r == 0)
		s->link_bytes_per_ns = s->config->topology.inter.bytes_per_ns;
	return r;
}

/* --- traces -------------------------------------------------------------------------------------
 */

/* Options that say nothing of traces. */
static int check_words(const struct source_words *from, struct err *err)
{
	for (size_t i = 0; i < from->n_words; i++)
		if (trace_names_run(from->words[i]))
			return err_set(err, EINVAL,
				       "'%s' is no trace, and '%s' is one: either a run, or traces",
				       from->words[i], from->words[0]);
	if (from->n_options)
		return err_set(err, EINVAL,
			       "%s: of a run's record only; traces take --nic, --ranks and --algo",
			       from->options[0].name);
	if (!from->nic && (from->ranks || from->algo))
		return err_set(
			err, EINVAL,
			"%s: a trace does not say what a hop costs there: --nic RATE,LATENCY",
			from->ranks ? "--ranks" : "--algo");
	return 0;
}

static int make_costs(const struct source_words *from, struct source *s, struct err *err)
{
	int algo = -1, r = costs_open(&s->job, NULL, NULL, &s->costs, err);
	uint32_t n_servers = 0;

	if (r == 0 && from->algo)
		r = err_prefix(err, words_algo(from->algo, &algo, &n_servers, err), "--algo");
	s->costs.algo = algo;
	s->costs.n_servers = n_servers;
	s->costs.is_measured = !from->nic;
	s->link_bytes_per_ns = from->nic ? s->job.topology.inter.bytes_per_ns : 0;
	return r;
}

static int open_traces(const struct source_words *from, struct source *s, struct err *err)
{
	CLEANUP(trace_deinit) struct trace t = {0};
	struct topology hops;
	int r = check_words(from, err);

	topology_default(&hops);
	if (r == 0 && from->nic)
		r = err_prefix(err,
			       units_nic(from->nic, &hops.inter.bytes_per_ns,
					 &hops.inter.latency_ns, err),
			       "--nic");
	if (r == 0)
		r = trace_load_to_play(from->words, from->n_words, &t, err);
	if (r == 0)
		r = job_of_trace(&t, from->ranks, &hops.intra, &hops.inter, &s->job, err);
	return r < 0 ? r : make_costs(from, s, err);
}

/* --- all ----------------------------------------------------------------------------------------
 */

int source_open(const struct source_words *from, struct source *ret, struct err *err)
{
	*ret = (struct source){.is_run = trace_names_run(from->words[0])};
	return ret->is_run ? open_run(from, ret, err) : open_traces(from, ret, err);
}

void source_close(struct source *s)
{
	costs_close(&s->costs);
	job_deinit(&s->job);
	record_deinit(&s->rec);
	config_free(s->config);
	if (s->has_run)
		recorded_deinit(&s->run);
}

void source_print_notes(const struct source *s, FILE *to)
{
	for (uint32_t i = 0; i < s->notes.n_warnings; i++)
		fprintf(to, "   %-14s %s\n", i ? "" : "note", s->notes.warnings[i]);
}

int source_write_json(const struct source *s, json_t *o, const char *path, struct err *err)
{
	json_t *notes = json_array();

	for (uint32_t i = 0; i < s->notes.n_warnings; i++)
		json_array_append_new(notes, json_string(s->notes.warnings[i]));
	json_object_update_new(o, json_pack("{s:o, s:i, s:i}", "notes", notes, "ranks_recorded",
					    (int)s->job.n_recorded, "ranks_apart",
					    (int)(s->job.n_ranks - s->job.n_recorded)));
	return json_file_write(o, path, err);
}
