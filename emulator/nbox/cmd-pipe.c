/* nbox pipe: what a pipeline's schedules cost, by what stages compute and how long messages take.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/suggest.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "nbox/pipe/from.h"
#include "nbox/pipe/print.h"
#include "pipe/memory.h"

struct request {
	uint64_t n_stages, n_micro, pieces, bytes, parameters;
	bool has_micro, has_pieces;
	/* lists, a value a stage, or one for all */
	const char *forward, *backward, *weights, *messages;
	const char *nic, *update, *gpt, *comm_from;
	uint64_t activation_bytes;
	struct pipeline_wanted wanted;
	const char *json, *svg;
	const char **runs; /* owned list; of --from, then of --with */
	size_t n_runs;
};

static int usage(void)
{
	fputs("usage: nbox pipe --stages N --micro M --fwd TIME --bwd TIME --comm TIME [OPTION...]\n"
	      "       nbox pipe --from RUN [--with RUN2]... [OPTION...]\n\n"
	      "How long an iteration of a pipeline takes by GPipe, 1F1B and eager 1F1B, which has more micro-batches under\n"
	      "way so that messages are hidden, and what it keeps in memory for that. Times of stages and messages are given,\n"
	      "or those of a recorded run. A list of times, such as 1ms,2ms,1ms, has one for each stage.\n"
	      "Signal: the same with messages that take no time.\n\n",
	      stdout);
	option_help(COMMAND_PIPE, 24, stdout);
	fputs("\n  nbox pipe --stages 4 --micro 16 --fwd 1ms --bwd 2ms --comm 1ms --overlap all\n"
	      "  nbox pipe --stages 8 --micro 64 --fwd 10ms --bwd 20ms --bytes 48MiB --nic 100Gbps --gpt hidden=12288,tp=8,tokens=2048\n",
	      stdout);
	return 0;
}

static bool is_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* --- the command line --------------------------------------------------------------------------
 */

static int take_choice(const char *value, const char *const *names, size_t n, unsigned *ret,
		       struct err *err)
{
	const char *near;

	*ret = 0;
	if (strcmp(value, "all") == 0)
		*ret = (1u << n) - 1;
	for (size_t i = 0; i < n; i++)
		if (strcmp(value, names[i]) == 0)
			*ret = 1u << i;
	if (*ret)
		return 0;
	near = suggest(value, names, n);
	return err_set(err, EINVAL, "'%s' is none of %s, %s, %s, all%s%s%s", value, names[0],
		       names[1], names[2], near ? "; did you mean '" : "", near ? near : "",
		       near ? "'?" : "");
}

static int take_value(struct request *q, const struct option_word *w, struct err *err)
{
	static const char *const schedules[] = {"gpipe", "1f1b", "eager"}, *const overlaps[] = {
										   "on", "sender",
										   "off"};
	struct {
		enum option_id id;
		uint64_t *count, *bytes;
		const char **text;
	} const values[] = {
		{FLAG_PIPE_STAGES, &q->n_stages, NULL, NULL},
		{FLAG_PIPE_MICRO, &q->n_micro, NULL, NULL},
		{FLAG_PIPE_PIECES, &q->pieces, NULL, NULL},
		{FLAG_PIPE_PARAMETERS, &q->parameters, NULL, NULL},
		{FLAG_PIPE_BYTES, NULL, &q->bytes, NULL},
		{FLAG_PIPE_ACTIVATION, NULL, &q->activation_bytes, NULL},
		{FLAG_PIPE_FORWARD, NULL, NULL, &q->forward},
		{FLAG_PIPE_BACKWARD, NULL, NULL, &q->backward},
		{FLAG_PIPE_WEIGHTS, NULL, NULL, &q->weights},
		{FLAG_PIPE_COMM, NULL, NULL, &q->messages},
		{FLAG_PIPE_COMM_FROM, NULL, NULL, &q->comm_from},
		{FLAG_PIPE_NIC, NULL, NULL, &q->nic},
		{FLAG_PIPE_UPDATE, NULL, NULL, &q->update},
		{FLAG_PIPE_GPT, NULL, NULL, &q->gpt},
		{FLAG_PIPE_JSON, NULL, NULL, &q->json},
		{FLAG_PIPE_SVG, NULL, NULL, &q->svg},
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		if (values[i].id != w->id)
			continue;
		q->has_micro |= w->id == FLAG_PIPE_MICRO;
		q->has_pieces |= w->id == FLAG_PIPE_PIECES;
		if (values[i].count)
			return units_count(w->value, values[i].count, err);
		if (values[i].bytes)
			return units_bytes(w->value, values[i].bytes, err);
		*values[i].text = w->value;
		return 0;
	}
	if (w->id == FLAG_PIPE_SCHEDULE)
		return take_choice(w->value, schedules, 3, &q->wanted.schedules, err);
	if (w->id == FLAG_PIPE_OVERLAP)
		return take_choice(w->value, overlaps, 3, &q->wanted.overlaps, err);
	if (w->id == FLAG_PIPE_FROM && q->runs[0])
		return err_set(err, EINVAL, "one run, and others of the same job by --with");
	if (w->id == FLAG_PIPE_FROM)
		q->runs[0] = w->value;
	else
		q->runs[++q->n_runs] = w->value;
	return 0;
}

/* Options that would do nothing. */
static int check_use(const struct request *q, struct err *err)
{
	bool has_message = q->messages || q->nic || q->comm_from;

	if (q->has_pieces && !q->weights)
		return err_set(err, EINVAL,
			       "--pieces: of gradients of weights; --bwd-w says how "
			       "long these take");
	if (q->has_pieces && !q->pieces)
		return err_set(err, EINVAL, "--pieces: 1 or more");
	if (q->weights &&
	    (q->wanted.schedules == 1u << PIPE_GPIPE || !(q->wanted.overlaps & 1u << PIPE_NOBODY)))
		return err_set(
			err, EINVAL,
			"--bwd-w: of rows that delay them: of 1f1b and eager, with --overlap "
			"on");
	if (q->n_stages == 1 && (has_message || q->bytes))
		return err_set(err, EINVAL,
			       "--comm, --comm-from, --nic, --bytes: one stage sends no message");
	if (q->bytes && !has_message && !q->n_runs)
		return err_set(err, EINVAL,
			       "--bytes: how long do they take? --nic RATE, or --comm TIME");
	return 0;
}

/* Return: 0; 1: help was given; -EINVAL with the sentence. */
static int take_words(int argc, char **argv, struct request *q, struct err *err)
{
	struct option_word w;
	int r;

	for (int i = 1; i < argc;) {
		r = option_take(COMMAND_PIPE, argc, argv, &i, &w, err);
		if (r == OPTION_NONE)
			return err_set(
				err, EINVAL,
				"'%s': nbox pipe takes options only; did you mean --from %s?",
				argv[i], argv[i]);
		if (r == 0 && w.id == FLAG_HELP)
			return usage(), 1;
		if (r < 0)
			return r;
		r = take_value(q, &w, err);
		if (r < 0)
			return err_prefix(err, r, "%s", w.name);
	}
	if (q->n_runs && !q->runs[0])
		return err_set(err, EINVAL, "--with: beside which run? --from RUN");
	q->n_runs += q->runs[0] != NULL;
	if ((q->messages != NULL) + (q->nic != NULL) + (q->comm_from != NULL) > 1)
		return err_set(err, EINVAL,
			       "how long does a message take? One of --comm, --comm-from, --nic");
	return check_use(q, err);
}

/* --- the pipeline ------------------------------------------------------------------------------
 */

/* How many times @list has. */
static uint64_t length(const char *list)
{
	uint64_t n = list != NULL;

	for (const char *at = list; at && (at = strchr(at, ',')); at++)
		n++;
	return n;
}

/* The @i-th of @n in @list, which has one, or @n. Return: 0; -EINVAL with the sentence. */
static int time_of(const char *flag, const char *list, uint64_t i, uint64_t n, double *ret,
		   struct err *err)
{
	uint64_t has = length(list);
	char one[64];
	int r;

	if (!list)
		return 0;
	if (has != 1 && has != n)
		return err_set(err, EINVAL, "%s has %llu times: one, or %llu, is wanted", flag,
			       (unsigned long long)has, (unsigned long long)n);
	for (uint64_t k = 0; has > 1 && k < i; k++)
		list = strchr(list, ',') + 1;
	snprintf(one, sizeof(one), "%.*s", (int)strcspn(list, ","), list);
	r = units_time(one, ret, err);
	return r < 0 ? err_prefix(err, r, "%s", flag) : 0;
}

/* A message of --bytes by --nic. */
static int network_time(const struct request *q, double *ret, double *ret_latency, struct err *err)
{
	double bandwidth, latency = 0;
	int r = units_nic(q->nic, &bandwidth, &latency, err);

	if (r < 0)
		return err_prefix(err, r, "--nic");
	if (!q->bytes)
		return err_set(err, EINVAL, "--nic: of a message of how many bytes? --bytes 48MiB");
	*ret_latency = latency;
	*ret = latency + (double)q->bytes / bandwidth;
	return 0;
}

static int set_stage(const struct request *q, struct pipeline *p, uint32_t i, struct err *err)
{
	struct pipe_stage *s = &p->stages[i];
	double ns = 0;
	int r = time_of("--fwd", q->forward, i, p->n_stages, &s->forward_ns, err);

	if (r == 0)
		r = time_of("--bwd", q->backward, i, p->n_stages, &s->backward_ns, err);
	if (r == 0)
		r = time_of("--bwd-w", q->weights, i, p->n_stages, &s->weights_ns, err);
	if (r < 0 || i + 1 == p->n_stages)
		return r;
	if (q->bytes)
		p->message_bytes[i] = q->bytes;
	if (!q->messages && !q->nic && !q->comm_from)
		return 0;
	if (q->comm_from)
		r = pipeline_comm_from(q->comm_from, &ns, &p->message_bytes[i], err);
	else if (q->messages)
		r = time_of("--comm", q->messages, i, p->n_stages - 1, &ns, err);
	else
		r = network_time(q, &ns, &p->latency_ns, err);
	s->to_next_ns = p->stages[i + 1].to_previous_ns = ns;
	return r;
}

/* hidden=12288,tp=8,tokens=2048[,layers=1] */
static int take_gpt(const char *value, struct pipeline *p, struct err *err)
{
	static const char *const names[] = {"hidden", "tp", "tokens", "layers"};
	struct pipe_gpt g = {.tensor = 1, .layers = 1};
	uint64_t *const numbers[] = {&g.hidden, &g.tensor, &g.tokens, &g.layers};
	unsigned given = 0;
	CLEANUP(freep) char *copy = strdup(value);
	char *rest = copy, *word;
	int r = copy ? 0 : -ENOMEM;

	while (r == 0 && (word = strsep(&rest, ","))) {
		char *equals = strchr(word, '=');
		size_t i = 0;

		while (equals && i < 4 &&
		       (strlen(names[i]) != (size_t)(equals - word) ||
			strncmp(word, names[i], (size_t)(equals - word)) != 0))
			i++;
		if (!equals || i == 4)
			return err_set(err, EINVAL,
				       "--gpt: '%s' is none of hidden=, tp=, tokens=, layers=",
				       word);
		if (given & 1u << i)
			return err_set(err, EINVAL, "--gpt: '%s' is given a second time", word);
		given |= 1u << i;
		r = units_count(equals + 1, numbers[i], err);
	}
	if (r < 0)
		return err_prefix(err, r, "--gpt");
	if (!g.hidden || !g.tokens || !g.tensor || !g.layers)
		return err_set(err, EINVAL, "--gpt: such as hidden=12288,tp=8,tokens=2048");
	p->state_bytes = PIPE_STATE_BYTES * pipe_gpt_parameters(&g);
	p->activation_bytes = PIPE_ACTIVATION_BYTES * pipe_gpt_activation(&g);
	return 0;
}

static int set_memory(const struct request *q, struct pipeline *p, struct err *err)
{
	int r = q->gpt ? take_gpt(q->gpt, p, err) : 0;

	if (q->parameters)
		p->state_bytes = PIPE_STATE_BYTES * (double)q->parameters;
	if (q->activation_bytes)
		p->activation_bytes = (double)q->activation_bytes;
	return r;
}

static int make_room(const struct request *q, struct pipeline *p, struct err *err)
{
	if (!q->n_stages || !q->has_micro || !q->forward || !q->backward)
		return err_set(
			err, EINVAL,
			"which pipeline? Such as --stages 4 --micro 16 --fwd 1ms --bwd 2ms --comm "
			"1ms, or --from RUN");
	if (q->n_stages > PIPE_MAX_STAGES)
		return err_set(err, EINVAL, "--stages: at most %d", PIPE_MAX_STAGES);
	p->n_stages = (uint32_t)q->n_stages;
	p->stages = calloc(p->n_stages, sizeof(*p->stages));
	p->message_bytes = calloc(p->n_stages, sizeof(*p->message_bytes));
	return p->stages && p->message_bytes ? 0 : -ENOMEM;
}

/* What flags say comes in the place of what the record says. */
static int make_pipeline(const struct request *q, struct pipeline *p, struct err *err)
{
	int r = 0;

	if (q->has_micro && (q->n_micro < 1 || q->n_micro > PIPE_MAX_PASSES))
		return err_set(err, EINVAL, "--micro: 1 to %d", PIPE_MAX_PASSES);
	r = q->n_runs ? pipeline_from_record(q->runs, q->n_runs, q->n_micro, p, err)
		      : make_room(q, p, err);
	if (r == 0 && q->n_runs && q->n_stages && q->n_stages != p->n_stages)
		r = err_set(err, EINVAL, "--stages: the run has %u", p->n_stages);
	if (r == 0 && q->n_micro)
		p->n_micro = (uint32_t)q->n_micro;
	if (r == 0 && q->pieces > PIPE_MAX_PASSES)
		r = err_set(err, EINVAL, "--pieces: at most %d", PIPE_MAX_PASSES);
	p->pieces = q->pieces ? (uint32_t)q->pieces : 1;
	for (uint32_t i = 0; i < p->n_stages && r == 0; i++)
		r = set_stage(q, p, i, err);
	if (r == 0 && q->update)
		r = time_of("--update", q->update, 0, 1, &p->update_ns, err);
	return r == 0 ? set_memory(q, p, err) : r;
}

static int write_svg(const struct pipeline_answer *a, const char *path, struct err *err)
{
	FILE *to;
	int r = file_create(path, &to, err), closed;

	if (r < 0)
		return r;
	r = pipeline_draw(a, to, err);
	closed = file_finish(to, path, err);
	return r < 0 ? r : closed;
}

static int answer(const struct request *q, const struct pipeline *p, struct err *err)
{
	CLEANUP(pipeline_answer_deinit) struct pipeline_answer a = {.n = 0};
	int r = pipeline_play(p, &q->wanted, &a, err);

	if (r == 0 && !is_stdout(q->json) && !is_stdout(q->svg))
		pipeline_print(&a, stdout);
	if (r == 0 && q->json)
		r = json_file_write(pipeline_json(&a), q->json, err);
	return r == 0 && q->svg ? write_svg(&a, q->svg, err) : r;
}

int cmd_pipe(int argc, char **argv)
{
	CLEANUP(freep) const char **runs = calloc((size_t)argc + 1, sizeof(*runs));
	struct request q = {
		.runs = runs,
		.wanted = {.schedules = (1u << PIPE_SCHEDULES) - 1, .overlaps = 1u << PIPE_NOBODY},
	};
	CLEANUP(pipeline_deinit) struct pipeline p = {.n_stages = 0};
	struct err err = {""};
	int r = runs ? take_words(argc, argv, &q, &err) : -ENOMEM, code = 2;

	if (r == 1)
		return 0;
	r = r == 0 ? make_pipeline(&q, &p, &err) : r;
	if (r == 0)
		r = answer(&q, &p, &err);
	if (r == 0)
		return 0;
	fprintf(stderr, "nbox pipe: %s\n", err.text[0] ? err.text : strerror(-r));
	return r == -EINVAL || r == -ENOENT || r == -ENODATA ? code : 1;
}
