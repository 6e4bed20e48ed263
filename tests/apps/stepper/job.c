/* See job.h. A line is cut into words at blanks; each statement has a function that reads its
 * words. */
#include "stepper/job.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"

#define MAX_WORDS 16
#define MAX_STEPS (1 << 20) /* micro-batches of a layer in an iteration */
#define MAX_LAYERS 65536
#define MAX_RANKS (1u << 24)

enum statement {
	STATEMENT_PARALLEL,
	STATEMENT_STYLE,
	STATEMENT_BUCKET,
	STATEMENT_BUCKETS,
	STATEMENT_GROUP,
	STATEMENT_SHARD,
	STATEMENT_MICRO,
	STATEMENT_SCHEDULE,
	STATEMENT_UPDATE,
	STATEMENT_LAYER,
	STATEMENTS
};
static const char *const statements[STATEMENTS] = {
	"parallel", "style", "bucket",   "buckets", "group",
	"shard",    "micro", "schedule", "update",  "layer",
};
static const char *const styles[JOB_STYLES] = {"ddp", "fsdp", "hsdp"};
static const char *const schedules[JOB_SCHEDULES] = {"1f1b", "eager"};

struct line {
	const char *name; /* of the file */
	unsigned number;
	char *words[MAX_WORDS];
	size_t n_words;
};

struct parse {
	struct job *job;
	unsigned lines[STATEMENTS]; /* where each was given; 0: not yet */
};

/* "unknown key 'foward'; did you mean 'forward'?", or all names there are. */
static int unknown(const char *what, const char *word, const char *const *names, size_t n,
		   struct err *err)
{
	const char *near = suggest_long(word, names, n);
	char all[128] = "";
	size_t at = 0;

	if (near)
		return err_set(err, EINVAL, "unknown %s '%.60s'; did you mean '%s'?", what, word,
			       near);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(all + at, sizeof(all) - at, " %s", names[i]);
	return err_set(err, EINVAL, "unknown %s '%.60s'; there are:%s", what, word, all);
}

static int take_number(const char *text, uint32_t *ret, struct err *err)
{
	uint64_t n;
	int r = units_count(text, &n, err);

	if (r < 0)
		return r;
	if (n < 1 || n > MAX_RANKS)
		return err_set(err, EINVAL, "'%.60s' is no number from 1 to %u", text, MAX_RANKS);
	*ret = (uint32_t)n;
	return 0;
}

/* The place of the key of "key=value" among @names, *ret_value behind its '='. @given: one bit a
 * key. Return: -EINVAL with the sentence. */
static int take_key(char *word, const char *const *names, size_t n, unsigned *given,
		    const char **ret_value, struct err *err)
{
	char *equals = strchr(word, '=');

	if (equals)
		*equals = '\0';
	for (size_t i = 0; i < n; i++) {
		if (strcmp(word, names[i]) != 0)
			continue;
		if (!equals || !equals[1])
			return err_set(err, EINVAL, "%s needs a value: %s=...", word, word);
		if (*given & 1u << i)
			return err_set(err, EINVAL, "%s is given twice", word);
		*given |= 1u << i;
		*ret_value = equals + 1;
		return (int)i;
	}
	return unknown("key", word, names, n, err);
}

static int parse_parallel(const struct line *line, struct job *job, struct err *err)
{
	static const char *const names[] = {"tp", "pp", "dp"};
	uint32_t *const numbers[] = {&job->tp, &job->pp, &job->dp};
	const char *value;
	unsigned given = 0;
	int key, r;

	if (line->n_words == 1)
		return err_set(err, EINVAL, "parallel needs sizes, such as parallel tp=2 dp=4");
	for (size_t i = 1; i < line->n_words; i++) {
		key = take_key(line->words[i], names, ARRAY_SIZE(names), &given, &value, err);
		if (key < 0)
			return key;
		r = take_number(value, numbers[key], err);
		if (r < 0)
			return err_prefix(err, r, "%s", names[key]);
	}
	return 0;
}

/* The place of @word among @names. Return: -EINVAL with the sentence. */
static int take_choice(const char *what, const char *word, const char *const *names, size_t n,
		       struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, names[i]) == 0)
			return (int)i;
	return unknown(what, word, names, n, err);
}

/* "2,6" */
static int parse_buckets(char *text, struct job *job, struct err *err)
{
	char *word;
	int r;

	job->buckets = calloc(strlen(text) + 1, sizeof(*job->buckets));
	if (!job->buckets)
		return err_set(err, ENOMEM, "out of memory");
	while ((word = strsep(&text, ","))) {
		r = take_number(word, &job->buckets[job->n_buckets++], err);
		if (r < 0)
			return r;
	}
	return 0;
}

enum layer_key { FORWARD, BACKWARD, PARAMS, TP, MOE, SEND, LAYER_KEYS };

static int take_layer_value(struct job_layer *layer, enum layer_key key, const char *value,
			    struct err *err)
{
	uint64_t *const sizes[LAYER_KEYS] = {
		[PARAMS] = &layer->params_bytes,
		[TP] = &layer->tp_bytes,
		[MOE] = &layer->moe_bytes,
		[SEND] = &layer->send_bytes,
	};

	if (key == FORWARD)
		return units_time(value, &layer->forward_ns, err);
	if (key == BACKWARD)
		return units_time(value, &layer->backward_ns, err);
	if (units_bytes(value, sizes[key], err) < 0)
		return -EINVAL;
	if (*sizes[key] > UINT64_C(1) << 40)
		return err_set(err, EINVAL, "'%.60s' is too large: at most 1TiB", value);
	return 0;
}

/* Takes "x8", where it is there. Return: 0; -EINVAL with the sentence. */
static int take_times(const struct line *line, uint32_t *ret_n, size_t *ret_words, struct err *err)
{
	const char *word = line->n_words > 1 ? line->words[1] : "";
	int r;

	if (word[0] >= '0' && word[0] <= '9')
		return err_set(err, EINVAL, "'%.60s' stands alone: write x%.60s for so many layers",
			       word, word);
	if (word[0] != 'x')
		return 0;
	r = take_number(word + 1, ret_n, err);
	if (r < 0)
		return err_prefix(err, r, "%.60s", word);
	*ret_words = 1;
	return 0;
}

static int parse_layer(const struct line *line, struct job *job, struct err *err)
{
	static const char *const names[LAYER_KEYS] = {
		"forward", "backward", "params", "tp", "moe", "send",
	};
	struct job_layer layer = {.line = line->number}, *more;
	const char *value;
	unsigned given = 0;
	size_t n_words = 0;
	uint32_t n = 1;
	int key, r;

	r = take_times(line, &n, &n_words, err);
	if (r < 0)
		return r;
	for (size_t i = 1 + n_words; i < line->n_words; i++) {
		key = take_key(line->words[i], names, LAYER_KEYS, &given, &value, err);
		if (key < 0)
			return key;
		r = take_layer_value(&layer, (enum layer_key)key, value, err);
		if (r < 0)
			return err_prefix(err, r, "%s", names[key]);
	}
	if ((given & 3) != 3)
		return err_set(err, EINVAL,
			       "a layer needs forward= and backward=, such as layer x8 "
			       "forward=2.5ms backward=5ms params=1MiB");
	if (n > MAX_LAYERS - job->n_layers)
		return err_set(err, EINVAL, "there are more than %d layers", MAX_LAYERS);
	more = realloc(job->layers, (job->n_layers + n) * sizeof(*more));
	if (!more)
		return err_set(err, ENOMEM, "no memory for %u layers", n);
	job->layers = more;
	while (n-- > 0)
		job->layers[job->n_layers++] = layer;
	return 0;
}

static int parse_statement(struct parse *p, enum statement s, const struct line *line,
			   struct err *err)
{
	const char *word = line->n_words > 1 ? line->words[1] : NULL;
	int choice;

	if (s == STATEMENT_LAYER)
		return parse_layer(line, p->job, err);
	if (p->lines[s])
		return err_set(err, EINVAL, "the first one is in line %u", p->lines[s]);
	p->lines[s] = line->number;
	if (s == STATEMENT_PARALLEL)
		return parse_parallel(line, p->job, err);
	if (!word || line->n_words > 2)
		return err_set(err, EINVAL, "one value is wanted");
	switch ((int)s) {
	case STATEMENT_STYLE:
		choice = take_choice("style", word, styles, JOB_STYLES, err);
		p->job->style = (enum job_style)choice;
		return choice < 0 ? choice : 0;
	case STATEMENT_SCHEDULE:
		choice = take_choice("schedule", word, schedules, JOB_SCHEDULES, err);
		p->job->schedule = (enum job_schedule)choice;
		return choice < 0 ? choice : 0;
	case STATEMENT_BUCKET:
		return units_bytes(word, &p->job->bucket_bytes, err);
	case STATEMENT_BUCKETS:
		return parse_buckets(line->words[1], p->job, err);
	case STATEMENT_GROUP:
		return take_number(word, &p->job->group, err);
	case STATEMENT_SHARD:
		return take_number(word, &p->job->shard, err);
	case STATEMENT_MICRO:
		return take_number(word, &p->job->micro, err);
	default:
		return units_time(word, &p->job->update_ns, err);
	}
}

static int parse_line(struct parse *p, struct line *line, char *text, struct err *err)
{
	char *save = NULL, *word;
	int r;

	text[strcspn(text, "#")] = '\0';
	line->n_words = 0;
	for (word = strtok_r(text, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
		if (line->n_words == MAX_WORDS)
			return err_set(err, EINVAL, "'%.60s' is one word too many", word);
		line->words[line->n_words++] = word;
	}
	if (line->n_words == 0)
		return 0;
	for (int s = 0; s < STATEMENTS; s++) {
		if (strcmp(line->words[0], statements[s]) != 0)
			continue;
		r = parse_statement(p, (enum statement)s, line, err);
		return r < 0 ? err_prefix(err, r, "%s", statements[s]) : 0;
	}
	return unknown("statement", line->words[0], statements, STATEMENTS, err);
}

/* They hold the gradients of all layers. */
static int check_buckets(const struct parse *p, const char *name, struct err *err)
{
	const struct job *job = p->job;
	unsigned line = p->lines[STATEMENT_BUCKETS];
	uint64_t n = 0, in_all = 0;

	for (size_t i = 0; i < job->n_layers; i++)
		n += job->layers[i].params_bytes > 0;
	for (size_t i = 0; i < job->n_buckets; i++)
		in_all += job->buckets[i];
	if (job->style != JOB_DDP || job->pp != 1 || p->lines[STATEMENT_BUCKET])
		return err_set(err, EINVAL,
			       "%s:%u: buckets: for style ddp without a pipeline, instead of "
			       "bucket",
			       name, line);
	if (in_all != n)
		return err_set(err, EINVAL,
			       "%s:%u: buckets: they hold %llu gradients, and %llu layers have "
			       "params",
			       name, line, (unsigned long long)in_all, (unsigned long long)n);
	return 0;
}

/* What must hold of all statements together; those of which a line is at fault say which. */
static int check(const struct parse *p, const char *name, struct err *err)
{
	const struct job *job = p->job;
	const struct job_layer *last;
	size_t per_stage;
	int r;

	if (job->n_layers == 0)
		return err_set(err, EINVAL, "%s: it has no layer", name);
	if (p->lines[STATEMENT_BUCKET] && job->style != JOB_DDP)
		return err_set(err, EINVAL, "%s:%u: bucket: style %s has no buckets", name,
			       p->lines[STATEMENT_BUCKET], styles[job->style]);
	if (p->lines[STATEMENT_BUCKETS]) {
		r = check_buckets(p, name, err);
		if (r < 0)
			return r;
	}
	if (p->lines[STATEMENT_GROUP] && job->style != JOB_DDP)
		return err_set(err, EINVAL, "%s:%u: group: style %s has no buckets", name,
			       p->lines[STATEMENT_GROUP], styles[job->style]);
	if (job->shard && job->style != JOB_HSDP)
		return err_set(err, EINVAL, "%s:%u: shard: only style hsdp has groups to shard in",
			       name, p->lines[STATEMENT_SHARD]);
	if (!job->shard && job->style == JOB_HSDP)
		return err_set(err, EINVAL,
			       "%s:%u: style hsdp needs the ranks of a sharding group, such as "
			       "shard 4",
			       name, p->lines[STATEMENT_STYLE]);
	if (job->shard == 1)
		return err_set(err, EINVAL,
			       "%s:%u: shard: a group of one rank shards nothing: write style ddp",
			       name, p->lines[STATEMENT_SHARD]);
	if (p->lines[STATEMENT_SCHEDULE] && job->pp == 1)
		return err_set(err, EINVAL,
			       "%s:%u: schedule: one stage has none: write parallel pp=2", name,
			       p->lines[STATEMENT_SCHEDULE]);
	if ((uint64_t)job->micro * job->n_layers > MAX_STEPS)
		return err_set(err, EINVAL,
			       "%s: %u micro-batches of %zu layers are more than %d steps", name,
			       job->micro, job->n_layers, MAX_STEPS);
	if (job->n_layers % job->pp != 0)
		return err_set(err, EINVAL,
			       "%s:%u: parallel: the layers, %zu, do not divide into pp=%u stages",
			       name, p->lines[STATEMENT_PARALLEL], job->n_layers, job->pp);
	per_stage = job->n_layers / job->pp;
	for (size_t i = per_stage; i < job->n_layers; i += per_stage) {
		last = &job->layers[i - 1];
		if (!last->send_bytes)
			return err_set(err, EINVAL,
				       "%s:%u: layer: layer %zu ends a stage and needs the bytes "
				       "that go to the next, such as send=1MiB",
				       name, last->line, i - 1);
	}
	return 0;
}

int job_parse(const char *name, const char *text, struct job *ret, struct err *err)
{
	CLEANUP(job_deinit)
	struct job job = {.tp = 1, .pp = 1, .micro = 1, .group = 1, .bucket_bytes = 25 << 20};
	CLEANUP(freep) char *copy = strdup(text);
	struct parse p = {.job = &job};
	struct line line = {.name = name};
	char *rest = copy, *one;
	int r;

	if (!copy)
		return err_set(err, ENOMEM, "no memory for %s", name);
	while ((one = strsep(&rest, "\n"))) {
		line.number++;
		r = parse_line(&p, &line, one, err);
		if (r < 0)
			return err_prefix(err, r, "%s:%u", name, line.number);
	}
	r = check(&p, name, err);
	if (r < 0)
		return r;
	*ret = job;
	job.layers = NULL;
	job.buckets = NULL;
	return 0;
}

int job_fit(struct job *job, uint32_t world, struct err *err)
{
	uint64_t others = (uint64_t)job->tp * job->pp;

	if (!job->dp && world % others == 0)
		job->dp = (uint32_t)(world / others);
	if (!job->dp)
		return err_set(
			err, EINVAL,
			"the world has %u ranks, and tp=%u x pp=%u = %llu does not divide it",
			world, job->tp, job->pp, (unsigned long long)others);
	if (others * job->dp != world)
		return err_set(err, EINVAL,
			       "the world has %u ranks, and tp=%u x pp=%u x dp=%u is %llu", world,
			       job->tp, job->pp, job->dp, (unsigned long long)(others * job->dp));
	if (job->shard && job->dp % job->shard != 0)
		return err_set(err, EINVAL, "shard %u does not divide dp=%u", job->shard, job->dp);
	return 0;
}

void job_deinit(struct job *job)
{
	free(job->layers);
	free(job->buckets);
	job->layers = NULL;
	job->buckets = NULL;
}
