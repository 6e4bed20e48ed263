/* nbox reshard: how a tensor gets from one mesh of devices to another. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/options.h"
#include "base/suggest.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/json/json-file.h"
#include "nbox/reshard/print.h"
#include "nbox/reshard/table2.h"
#include "nbox/reshard/verify.h"

enum verb { PLAN, VERIFY, VERBS };
static const char *const verbs[] = {"plan", "verify"};

struct request {
	enum verb verb; /* VERBS: none yet */
	struct question question;
	const char *json, *trace, *link;
	bool is_table2;
};

static int usage(void)
{
	fputs("usage: nbox reshard plan --tensor AxBxC --src LAYOUT@HxD --dst LAYOUT@HxD --nic RATE [OPTION...]\n"
	      "       nbox reshard verify --tensor AxBxC --src LAYOUT@HxD --dst LAYOUT@HxD [OPTION...]\n"
	      "       nbox reshard --suite table2\n\n"
	      "A tensor goes from the devices of one pipeline stage to those of the next, where it lies otherwise. plan: its\n"
	      "unit tasks, who sends each and when, and how near that is to the bound. verify: does it, with a process for\n"
	      "each device, and compares every element. A layout has a symbol for each dimension of the tensor: R all of it,\n"
	      "S0 cut along the hosts, S1 along the devices of a host, S01 along both; then hosts x devices of a host.\n\n",
	      stdout);
	option_help(COMMAND_RESHARD, 23, stdout);
	fputs("\n  nbox reshard plan --tensor 1024x1024x512 --src S0RR@2x4 --dst RRS0@2x4 --nic 10Gbps\n"
	      "  nbox reshard verify --tensor 30x7 --dtype u8 --src S0R@2x2 --dst RS01@3x1\n",
	      stdout);
	return 0;
}

static int take_verb(struct request *q, const char *word, struct err *err)
{
	const char *near = suggest(word, verbs, VERBS);

	if (q->verb != VERBS)
		return err_set(err, EINVAL, "'%s' is one word too many; see nbox reshard --help",
			       word);
	for (int i = 0; i < VERBS; i++)
		if (strcmp(word, verbs[i]) == 0)
			q->verb = (enum verb)i;
	return q->verb != VERBS ? 0
				: err_set(err, EINVAL, "'%s' is neither plan nor verify%s%s%s",
					  word, near ? "; did you mean '" : "", near ? near : "",
					  near ? "'?" : "");
}

static int take_option(struct request *q, const struct option_word *w, struct err *err)
{
	switch ((unsigned int)w->id) {
	case FLAG_RESHARD_JSON:
		q->json = w->value;
		return 0;
	case FLAG_RESHARD_TRACE:
		q->trace = w->value;
		return 0;
	case FLAG_RESHARD_LINK:
		q->link = w->value;
		return strcmp(w->value, "shm") == 0 || strcmp(w->value, "tcp") == 0
			       ? 0
			       : err_set(err, EINVAL, "--link '%s': it is shm or tcp", w->value);
	case FLAG_RESHARD_SUITE:
		q->is_table2 = strcmp(w->value, "table2") == 0;
		return q->is_table2 ? 0
				    : err_set(err, EINVAL, "--suite '%s': there is only table2",
					      w->value);
	default:
		return question_take(&q->question, w, err);
	}
}

static int write_trace(const struct answer *a, const char *path, struct err *err)
{
	FILE *to;
	int r = file_create(path, &to, err);

	if (r < 0)
		return r;
	answer_trace(a, to);
	return file_finish(to, path, err);
}

static bool is_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

static int suite(const struct request *q, struct err *err)
{
	FILE *to = stdout;
	int r = q->json ? file_create(q->json, &to, err) : 0, closed = 0;

	if (r < 0)
		return r;
	r = q->json ? table2_json(q->question.seed, to) : table2_print(q->question.seed, to);
	if (q->json)
		closed = file_finish(to, q->json, err);
	return r < 0 ? r : closed;
}

static int tell(const struct request *q, const struct answer *a, struct err *err)
{
	int r = 0;

	if (!is_stdout(q->json) && !is_stdout(q->trace))
		answer_print(a, stdout);
	if (q->json)
		r = json_file_write(answer_json(a), q->json, err);
	if (r == 0 && q->trace)
		r = write_trace(a, q->trace, err);
	return r;
}

static int verify_json(const struct verified *v, const char *link, const char *path,
		       struct err *err)
{
	FILE *to;
	int r = file_create(path, &to, err);

	if (r < 0)
		return r;
	fprintf(to,
		"{\"processes\": %u, \"link\": \"%s\", \"elements\": %llu, \"wrong\": %llu, "
		"\"crossing_bytes\": %llu, \"expected_crossing_bytes\": %llu, \"inside_bytes\": "
		"%llu}\n",
		v->processes, link, (unsigned long long)v->elements, (unsigned long long)v->wrong,
		(unsigned long long)v->crossing_bytes, (unsigned long long)v->expected_bytes,
		(unsigned long long)v->inside_bytes);
	return file_finish(to, path, err);
}

static void verify_print(const struct verified *v, const char *link)
{
	char crossing[32], inside[32];

	printf("verified    %llu elements at the destination, %llu wrong; %u processes over %s\n"
	       "bytes       %s from host to host, %s inside hosts; by the closed form %s (%llu B)\n",
	       (unsigned long long)v->elements, (unsigned long long)v->wrong, v->processes, link,
	       units_print_bytes(v->crossing_bytes, crossing, sizeof(crossing)),
	       units_print_bytes(v->inside_bytes, inside, sizeof(inside)),
	       v->crossing_bytes == v->expected_bytes ? "as many" : "NOT as many",
	       (unsigned long long)v->expected_bytes);
}

/* Return: 0; 1: something is wrong; a negative errno with the sentence. */
static int verify(const struct request *q, const struct answer *a, struct err *err)
{
	const char *link = q->link ? q->link : "shm";
	const struct verify v = {&a->reshard, &a->plan, a->of.strategy, &a->of.net, link};
	struct verified done;
	int r = verify_run(&v, &done, err);

	if (r == 0 && q->json)
		r = verify_json(&done, link, q->json, err);
	if (r == 0 && !is_stdout(q->json))
		verify_print(&done, link);
	if (r == 0 && (done.wrong || done.crossing_bytes != done.expected_bytes))
		return 1;
	return r;
}

/* Options that would do nothing. */
static int check_words(const struct request *q, const struct option_word *other, struct err *err)
{
	if (q->is_table2 && (q->verb != VERBS || other->name[0]))
		return err_set(err, EINVAL, "--suite table2 takes --seed and --json only, not %s",
			       other->name[0] ? other->name : verbs[q->verb]);
	if (q->verb == VERBS && !q->is_table2)
		return err_set(err, EINVAL,
			       "what? nbox reshard plan, verify, or --suite table2; see --help");
	if (q->verb == PLAN && q->link)
		return err_set(err, EINVAL, "--link: of verify; a plan starts no processes");
	if (q->verb == VERIFY && q->trace)
		return err_set(err, EINVAL, "--trace: of plan; verify measures no time");
	if (q->verb == VERIFY && q->question.net.k == MESH_K_ENDLESS)
		return err_set(err, EINVAL, "--k endless: of plan; processes send pieces");
	return 0;
}

/* First the network of a preset or file, which --nic and --inside may change, wherever they
 * stand. */
static int take_words(struct request *q, int argc, char **argv, struct err *err)
{
	struct option_word w, other = {.name = ""}, fabric = {.name = ""};
	int r = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 1; r == 0 && i < argc;) {
			bool is_fabric;

			r = option_take(COMMAND_RESHARD, argc, argv, &i, &w, err);
			if (r == OPTION_NONE) {
				r = pass ? take_verb(q, argv[i], err) : 0;
				i++;
				continue;
			}
			is_fabric = w.id == FLAG_RESHARD_PRESET || w.id == FLAG_RESHARD_FABRIC;
			if (r == 0 && is_fabric && pass == 0 && fabric.name[0])
				r = err_set(err, EINVAL, "%s or %s: of one network", fabric.name,
					    w.name);
			if (is_fabric)
				fabric = w;
			if (w.id != FLAG_RESHARD_SUITE && w.id != FLAG_RESHARD_SEED &&
			    w.id != FLAG_RESHARD_JSON)
				other = w;
			if (r == 0 && is_fabric == (pass == 0))
				r = take_option(q, &w, err);
		}
	}
	return r < 0 ? r : check_words(q, &other, err);
}

int cmd_reshard(int argc, char **argv)
{
	CLEANUP(answer_deinit) struct answer a = {0};
	struct request q = {.verb = VERBS};
	struct err err = {""};
	int r, code = 1;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return usage();
	question_init(&q.question);
	r = take_words(&q, argc, argv, &err);
	if (q.verb == VERIFY && !(q.question.net.nic > 0))
		q.question.net.nic = 1; /* it measures no time */
	if (r == 0 && !q.is_table2)
		r = question_answer(&q.question, &a, &err);
	if (r < 0)
		code = 2;
	else if (q.is_table2)
		r = suite(&q, &err);
	else
		r = q.verb == PLAN ? tell(&q, &a, &err) : verify(&q, &a, &err);
	if (r == -EINVAL) /* too large to verify */
		code = 2;
	if (r >= 0)
		return r;
	fprintf(stderr, "nbox reshard: %s\n", err.text[0] ? err.text : strerror(-r));
	return code;
}
